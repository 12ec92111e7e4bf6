// SPDX-License-Identifier: MIT
/* System calls: programs whose calls are known. */
#include "kselftest_harness.h"
#include "ended.h"

#define ROUNDS	50
#define SLEEP	(2 * 1000 * 1000)	/* ns */

static const struct kbarman_configure syscalls = {
	.sources = KBARMAN_SOURCE_SYSCALLS, .ring_bytes = 4 * MIB };

FIXTURE(syscalls)
{
	int fd;
	int go[2];			/* a pipe: the program begins when a byte comes */
	struct ended_list calls;
};

FIXTURE_SETUP(syscalls)
{
	self->fd = device_open_free();
	if (query(self->fd).absent & KBARMAN_SOURCE_SYSCALLS)
		skip_test();
	ASSERT_EQ(0, pipe2(self->go, O_CLOEXEC));
}

FIXTURE_TEARDOWN(syscalls)
{
	free(self->calls.all);
	close(self->fd);
}

static unsigned int count(const struct ended_list *calls, long number)
{
	unsigned int nr = 0;
	size_t i;

	for (i = 0; i < calls->nr; i++)
		nr += calls->all[i].syscall.detail.id == (uint32_t)number;
	return nr;
}

/* The @n-th call of that number; NULL: there are fewer. */
static const struct ended *find(const struct ended_list *calls, long number, unsigned int n)
{
	size_t i;

	for (i = 0; i < calls->nr; i++)
		if (calls->all[i].syscall.detail.id == (uint32_t)number && !n--)
			return &calls->all[i];
	return NULL;
}

/* Known calls, by their numbers: a library may take others. */
static void known_calls(void)
{
	struct timespec nap = { .tv_nsec = SLEEP };
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		syscall(SYS_getppid);
		syscall(SYS_close, 1000 + i);
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, NULL);
	}
}

TEST_F(syscalls, each_call_is_recorded_with_its_result_and_arguments)
{
	pid_t program = program_begin(self->go[0], known_calls);
	const struct ended *call;
	unsigned int i;

	ASSERT_EQ(0, configure(self->fd, syscalls));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, program_end(self->go[1], program));
	ASSERT_EQ(0, stop(self->fd));
	self->calls = ended_of(self->fd, BM_KBARMAN_SYSCALL, program);
	ASSERT_EQ(ROUNDS, count(&self->calls, SYS_getppid));
	ASSERT_EQ(ROUNDS, count(&self->calls, SYS_close));
	ASSERT_EQ(ROUNDS, count(&self->calls, SYS_clock_nanosleep));
	EXPECT_EQ(0, count(&self->calls, SYS_exit_group));
	for (i = 0; i < ROUNDS; i++) {
		EXPECT_EQ(getpid(), find(&self->calls, SYS_getppid, i)->syscall.result);
		call = find(&self->calls, SYS_close, i);
		EXPECT_EQ(-EBADF, call->syscall.result);
		EXPECT_EQ(1000 + i, call->syscall.arguments[0]);
		call = find(&self->calls, SYS_clock_nanosleep, i);
		EXPECT_EQ(0, call->syscall.result);
		EXPECT_EQ(CLOCK_MONOTONIC, call->syscall.arguments[0]);
		EXPECT_EQ(0, call->syscall.arguments[1]);
		EXPECT_NE(0, call->syscall.arguments[2]);
	}
}

TEST_F(syscalls, a_call_lasts_from_its_begin_to_its_end)
{
	pid_t program = program_begin(self->go[0], known_calls);
	uint64_t last = 0, ns;
	const void *map;
	size_t i;

	ASSERT_EQ(0, configure(self->fd, syscalls));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, program_end(self->go[1], program));
	ASSERT_EQ(0, stop(self->fd));
	map = map_cpu(self->fd, 0);
	self->calls = ended_of(self->fd, BM_KBARMAN_SYSCALL, program);
	for (i = 0; i < self->calls.nr; i++) {
		const struct ended *call = &self->calls.all[i];

		/* It waited for its byte when the recording began. */
		if (!i) {
			EXPECT_EQ(SYS_read, call->syscall.detail.id);
			EXPECT_EQ(0, call->syscall.begin);
			last = call->end;
			continue;
		}
		EXPECT_LE(last, call->syscall.begin);
		EXPECT_LE(call->syscall.begin, call->end);
		ns = capture_ns(map, call->end) - capture_ns(map, call->syscall.begin);
		if (call->syscall.detail.id == SYS_clock_nanosleep)
			EXPECT_LE(SLEEP / 100 * 99, ns);	/* by another clock */
		last = call->end;
	}
}

/* As perf counts them, of a program and its children, which come and go. */
static void many_children(void)
{
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		pid_t child = fork();

		if (!child) {
			syscall(SYS_getppid);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

TEST_F(syscalls, calls_are_as_many_as_perf_counts)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr),
		.config = tracepoint_id("raw_syscalls/sys_exit"), .inherit = 1 };
	pid_t program = program_begin(self->go[0], many_children);
	int counter = syscall(SYS_perf_event_open, &attr, program, -1, -1, PERF_FLAG_FD_CLOEXEC);
	uint64_t counted = 0;

	ASSERT_LE(0, counter);
	ASSERT_EQ(0, configure_chosen(self->fd, syscalls, program, KBARMAN_CONFIGURE_INHERIT));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, program_end(self->go[1], program));
	ASSERT_EQ(0, stop(self->fd));
	ASSERT_EQ(sizeof(counted), read(counter, &counted, sizeof(counted)));
	ASSERT_EQ(0, lost_records((struct kbarman_stats[]){ stats(self->fd, KBARMAN_CPU_ALL) }));
	self->calls = ended_of(self->fd, BM_KBARMAN_SYSCALL, 0);
	EXPECT_EQ(counted, self->calls.nr);
	EXPECT_EQ(ROUNDS, count(&self->calls, SYS_getppid));
	EXPECT_EQ(ROUNDS, count(&self->calls, SYS_wait4));
	close(counter);
}

/* A child returns from the call that made it, in which it never went. Not every machine tells that return. */
TEST_F(syscalls, who_is_made_by_a_call_did_not_begin_it)
{
	pid_t program = program_begin(self->go[0], many_children);
	unsigned int made = 0, begun = 0;
	size_t i;

	ASSERT_EQ(0, configure(self->fd, syscalls));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, program_end(self->go[1], program));
	ASSERT_EQ(0, stop(self->fd));
	self->calls = ended_of(self->fd, BM_KBARMAN_SYSCALL, 0);
	for (i = 0; i < self->calls.nr; i++) {
		const struct ended *call = &self->calls.all[i];

		if (call->syscall.detail.id != SYS_clone)
			continue;
		made += call->task == (uint32_t)program && call->syscall.result > 0 && call->syscall.begin;
		begun += !call->syscall.result && call->syscall.begin;
	}
	EXPECT_EQ(ROUNDS, made);
	EXPECT_EQ(0, begun);
}

TEST_F(syscalls, only_calls_of_chosen_tasks_are_recorded)
{
	pid_t program = program_begin(self->go[0], known_calls);
	size_t i;

	ASSERT_EQ(0, configure_chosen(self->fd, syscalls, program, 0));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, program_end(self->go[1], program));
	ASSERT_EQ(0, stop(self->fd));
	self->calls = ended_of(self->fd, BM_KBARMAN_SYSCALL, 0);
	for (i = 0; i < self->calls.nr; i++)
		EXPECT_EQ((uint32_t)program, self->calls.all[i].task);
	EXPECT_EQ(ROUNDS, count(&self->calls, SYS_getppid));
}

/* Each of two sessions has them as if it were alone, and none when it is over. */
TEST_F(syscalls, two_sessions_have_the_same_calls)
{
	pid_t program = program_begin(self->go[0], known_calls);
	struct ended_list its;
	int other = device_open();
	size_t i;

	ASSERT_EQ(0, configure(self->fd, syscalls));
	ASSERT_EQ(0, configure(other, syscalls));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, start(other));
	ASSERT_EQ(0, program_end(self->go[1], program));
	ASSERT_EQ(0, stop(other));
	ASSERT_EQ(0, stop(self->fd));
	self->calls = ended_of(self->fd, BM_KBARMAN_SYSCALL, program);
	its = ended_of(other, BM_KBARMAN_SYSCALL, program);
	ASSERT_EQ(self->calls.nr, its.nr);
	for (i = 0; i < its.nr; i++) {
		EXPECT_EQ(self->calls.all[i].syscall.detail.id, its.all[i].syscall.detail.id);
		EXPECT_EQ(self->calls.all[i].syscall.result, its.all[i].syscall.result);
	}
	free(its.all);
	close(other);
}

static void execute(void)
{
	execl("/bin/true", "true", NULL);
	execl("/bin/busybox", "true", NULL);
	_exit(1);
}

TEST_F(syscalls, an_execve_has_its_end)
{
	pid_t program = program_begin(self->go[0], execute);
	const struct ended *call;

	ASSERT_EQ(0, configure(self->fd, syscalls));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, program_end(self->go[1], program));
	ASSERT_EQ(0, stop(self->fd));
	self->calls = ended_of(self->fd, BM_KBARMAN_SYSCALL, program);
	call = find(&self->calls, SYS_execve, count(&self->calls, SYS_execve) - 1);
	ASSERT_NE(NULL, call);
	EXPECT_EQ(0, call->syscall.result);
	EXPECT_NE(0, call->syscall.begin);
	EXPECT_LT(call->syscall.begin, call->end);
}

TEST_HARNESS_MAIN
