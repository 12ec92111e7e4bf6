// SPDX-License-Identifier: MIT
/* System calls: programs whose calls are known. */
#include <sys/syscall.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "details.h"

#define ROUNDS	50
#define SLEEP	(2 * 1000 * 1000)	/* ns */

static const struct kbarman_configure syscalls = {
	.sources = KBARMAN_SOURCE_SYSCALLS, .ring_bytes = 4 * MIB };

/* One call, as its record has it. */
struct call {
	uint32_t task, number;
	uint64_t end;
	struct bm_kbarman_syscall is;
};

struct calls {
	struct call *all;
	size_t nr, room;
};

FIXTURE(syscalls)
{
	int fd;
	int go[2];			/* a pipe: the program begins when a byte comes */
	struct calls calls;
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

static void add_call(struct calls *calls, struct call call)
{
	if (calls->nr == calls->room) {
		calls->room = calls->room ? 2 * calls->room : 1024;
		calls->all = realloc(calls->all, calls->room * sizeof(call));
		if (!calls->all)
			lost("no memory");
	}
	calls->all[calls->nr++] = call;
}

static int compare(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	return (x->end > y->end) - (x->end < y->end);
}

/* The calls of @task, in order; of all tasks if @task is 0. */
static struct calls calls_of(int fd, pid_t task)
{
	uint32_t cpu, nr_cpus = query(fd).nr_cpus;
	const struct bm_kbarman_detail *detail;
	struct calls calls = { 0 };
	const union record *r;

	for (cpu = 0; cpu < nr_cpus; cpu++) {
		const void *map = map_cpu(fd, cpu);
		struct walk walk = walk_begin(map);
		struct call call;

		while ((r = walk_next(&walk))) {
			detail = walk_detail(&walk, r);
			if (!detail || detail->what != BM_KBARMAN_SYSCALL ||
			    (task && r->counter.task_id != (uint32_t)task))
				continue;
			call = (struct call){ .task = r->counter.task_id, .number = detail->id,
					      .end = r->header.timestamp };
			memcpy(&call.is, detail, sizeof(call.is));
			add_call(&calls, call);
		}
		munmap((void *)map, query(fd).map_bytes);
	}
	qsort(calls.all, calls.nr, sizeof(*calls.all), compare);
	return calls;
}

static unsigned int count(const struct calls *calls, long number)
{
	unsigned int nr = 0;
	size_t i;

	for (i = 0; i < calls->nr; i++)
		nr += calls->all[i].number == (uint32_t)number;
	return nr;
}

/* The @n-th call of that number; NULL: there are fewer. */
static const struct call *find(const struct calls *calls, long number, unsigned int n)
{
	size_t i;

	for (i = 0; i < calls->nr; i++)
		if (calls->all[i].number == (uint32_t)number && !n--)
			return &calls->all[i];
	return NULL;
}

static void wait_for_byte(int fd)
{
	char byte;

	if (syscall(SYS_read, fd, &byte, 1) != 1)
		_exit(1);
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

static pid_t begin_program(int go, void (*program)(void))
{
	pid_t child = fork();

	if (child)
		return child;
	wait_for_byte(go);
	program();
	_exit(0);
}

/* A recording of @task alone, with @flags. */
static int configure_chosen(int fd, pid_t task, uint32_t flags)
{
	struct kbarman_configure chosen = syscalls;
	uint32_t pid = task;

	chosen.flags = flags;
	chosen.pids_ptr = (uintptr_t)&pid;
	chosen.nr_pids = 1;
	return configure(fd, chosen);
}

static bool end_program(int go, pid_t program)
{
	int status;

	return write(go, "", 1) == 1 && waitpid(program, &status, 0) == program && !status;
}

TEST_F(syscalls, each_call_is_recorded_with_its_result_and_arguments)
{
	pid_t program = begin_program(self->go[0], known_calls);
	const struct call *call;
	unsigned int i;

	ASSERT_EQ(0, configure(self->fd, syscalls));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_TRUE(end_program(self->go[1], program));
	ASSERT_EQ(0, stop(self->fd));
	self->calls = calls_of(self->fd, program);
	ASSERT_EQ(ROUNDS, count(&self->calls, SYS_getppid));
	ASSERT_EQ(ROUNDS, count(&self->calls, SYS_close));
	ASSERT_EQ(ROUNDS, count(&self->calls, SYS_clock_nanosleep));
	EXPECT_EQ(0, count(&self->calls, SYS_exit_group));
	for (i = 0; i < ROUNDS; i++) {
		EXPECT_EQ(getpid(), find(&self->calls, SYS_getppid, i)->is.result);
		call = find(&self->calls, SYS_close, i);
		EXPECT_EQ(-EBADF, call->is.result);
		EXPECT_EQ(1000 + i, call->is.arguments[0]);
		call = find(&self->calls, SYS_clock_nanosleep, i);
		EXPECT_EQ(0, call->is.result);
		EXPECT_EQ(CLOCK_MONOTONIC, call->is.arguments[0]);
		EXPECT_EQ(0, call->is.arguments[1]);
		EXPECT_NE(0, call->is.arguments[2]);
	}
}

TEST_F(syscalls, a_call_lasts_from_its_begin_to_its_end)
{
	pid_t program = begin_program(self->go[0], known_calls);
	uint64_t last = 0, ns;
	const void *map;
	size_t i;

	ASSERT_EQ(0, configure(self->fd, syscalls));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_TRUE(end_program(self->go[1], program));
	ASSERT_EQ(0, stop(self->fd));
	map = map_cpu(self->fd, 0);
	self->calls = calls_of(self->fd, program);
	for (i = 0; i < self->calls.nr; i++) {
		const struct call *call = &self->calls.all[i];

		/* It waited for its byte when the recording began. */
		if (!i) {
			EXPECT_EQ(SYS_read, call->number);
			EXPECT_EQ(0, call->is.begin);
			last = call->end;
			continue;
		}
		EXPECT_LE(last, call->is.begin);
		EXPECT_LE(call->is.begin, call->end);
		ns = capture_ns(map, call->end) - capture_ns(map, call->is.begin);
		if (call->number == SYS_clock_nanosleep)
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
	pid_t program = begin_program(self->go[0], many_children);
	int counter = syscall(SYS_perf_event_open, &attr, program, -1, -1, PERF_FLAG_FD_CLOEXEC);
	uint64_t counted = 0;

	ASSERT_LE(0, counter);
	ASSERT_EQ(0, configure_chosen(self->fd, program, KBARMAN_CONFIGURE_INHERIT));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_TRUE(end_program(self->go[1], program));
	ASSERT_EQ(0, stop(self->fd));
	ASSERT_EQ(sizeof(counted), read(counter, &counted, sizeof(counted)));
	ASSERT_EQ(0, lost_records((struct kbarman_stats[]){ stats(self->fd, KBARMAN_CPU_ALL) }));
	self->calls = calls_of(self->fd, 0);
	EXPECT_EQ(counted, self->calls.nr);
	EXPECT_EQ(ROUNDS, count(&self->calls, SYS_getppid));
	EXPECT_EQ(ROUNDS, count(&self->calls, SYS_wait4));
	close(counter);
}

/* A child returns from the call that made it, in which it never went. Not every machine tells that return. */
TEST_F(syscalls, who_is_made_by_a_call_did_not_begin_it)
{
	pid_t program = begin_program(self->go[0], many_children);
	unsigned int made = 0, begun = 0;
	size_t i;

	ASSERT_EQ(0, configure(self->fd, syscalls));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_TRUE(end_program(self->go[1], program));
	ASSERT_EQ(0, stop(self->fd));
	self->calls = calls_of(self->fd, 0);
	for (i = 0; i < self->calls.nr; i++) {
		const struct call *call = &self->calls.all[i];

		if (call->number != SYS_clone)
			continue;
		made += call->task == (uint32_t)program && call->is.result > 0 && call->is.begin;
		begun += !call->is.result && call->is.begin;
	}
	EXPECT_EQ(ROUNDS, made);
	EXPECT_EQ(0, begun);
}

TEST_F(syscalls, only_calls_of_chosen_tasks_are_recorded)
{
	pid_t program = begin_program(self->go[0], known_calls);
	size_t i;

	ASSERT_EQ(0, configure_chosen(self->fd, program, 0));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_TRUE(end_program(self->go[1], program));
	ASSERT_EQ(0, stop(self->fd));
	self->calls = calls_of(self->fd, 0);
	for (i = 0; i < self->calls.nr; i++)
		EXPECT_EQ((uint32_t)program, self->calls.all[i].task);
	EXPECT_EQ(ROUNDS, count(&self->calls, SYS_getppid));
}

/* Each of two sessions has them as if it were alone, and none when it is over. */
TEST_F(syscalls, two_sessions_have_the_same_calls)
{
	pid_t program = begin_program(self->go[0], known_calls);
	struct calls its;
	int other = device_open();
	size_t i;

	ASSERT_EQ(0, configure(self->fd, syscalls));
	ASSERT_EQ(0, configure(other, syscalls));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, start(other));
	ASSERT_TRUE(end_program(self->go[1], program));
	ASSERT_EQ(0, stop(other));
	ASSERT_EQ(0, stop(self->fd));
	self->calls = calls_of(self->fd, program);
	its = calls_of(other, program);
	ASSERT_EQ(self->calls.nr, its.nr);
	for (i = 0; i < its.nr; i++) {
		EXPECT_EQ(self->calls.all[i].number, its.all[i].number);
		EXPECT_EQ(self->calls.all[i].is.result, its.all[i].is.result);
	}
	free(its.all);
	close(other);
}

TEST_F(syscalls, an_execve_has_its_end)
{
	pid_t program = fork();
	const struct call *call;

	if (!program) {
		wait_for_byte(self->go[0]);
		execl("/bin/true", "true", NULL);
		execl("/bin/busybox", "true", NULL);
		_exit(1);
	}
	ASSERT_EQ(0, configure(self->fd, syscalls));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_TRUE(end_program(self->go[1], program));
	ASSERT_EQ(0, stop(self->fd));
	self->calls = calls_of(self->fd, program);
	call = find(&self->calls, SYS_execve, count(&self->calls, SYS_execve) - 1);
	ASSERT_NE(NULL, call);
	EXPECT_EQ(0, call->is.result);
	EXPECT_NE(0, call->is.begin);
	EXPECT_LT(call->is.begin, call->end);
}

TEST_HARNESS_MAIN
