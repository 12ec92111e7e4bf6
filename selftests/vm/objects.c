// SPDX-License-Identifier: MIT
/* What a task waits for: programs whose waits are known. */
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "details.h"

#define ROUNDS	50

/* In memory that the test and its program share. */
struct shared {
	int step;			/* how many waits the program has begun */
	int word;			/* a futex */
	struct timespec hour;
	struct pollfd poll;
	char byte;
};

/* The system calls in which the program waits, in this order, again and again. */
enum { READ, FUTEX, SLEEP, POLL, WAIT, CALLS };

struct known {
	long call;
	uint8_t kind;			/* enum bm_kbarman_object_kind */
	uint32_t id;
	uint64_t value;
};

static struct shared *shared;
static struct known known[CALLS];
static int ends[2], child_ends[2];	/* pipes: of the program, and of its children */

static uint64_t inode_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		lost("no status");
	return st.st_ino;
}

static void shared_begin(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || pipe(ends) || pipe(child_ends))
		lost("no memory, or no pipe");
	shared->hour.tv_sec = 3600;
	shared->poll = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	known[READ] = (struct known){ SYS_read, BM_KBARMAN_OBJECT_PIPE, ends[0], inode_of(ends[0]) };
	known[FUTEX] = (struct known){ SYS_futex, BM_KBARMAN_OBJECT_FUTEX, 0, (uintptr_t)&shared->word };
	known[SLEEP] = (struct known){ SYS_clock_nanosleep, BM_KBARMAN_OBJECT_CALL, CLOCK_MONOTONIC, 0 };
	known[POLL] = (struct known){ SYS_ppoll, BM_KBARMAN_OBJECT_CALL, (uintptr_t)&shared->poll, 1 };
	known[WAIT] = (struct known){ SYS_wait4, BM_KBARMAN_OBJECT_CALL, ~0U, 0 };
}

static void take_signal(int number __attribute__((unused)))
{
}

/* By their numbers: a library may take other calls. */
static void wait_in(int call)
{
	char byte;

	if (call == WAIT && !fork()) {
		if (read(child_ends[0], &byte, 1) != 1)
			_exit(1);
		_exit(0);
	}
	__atomic_add_fetch(&shared->step, 1, __ATOMIC_RELEASE);
	if (call == READ)
		syscall(SYS_read, ends[0], &shared->byte, 1);
	else if (call == FUTEX)
		syscall(SYS_futex, &shared->word, FUTEX_WAIT, 0, NULL, NULL, 0);
	else if (call == SLEEP)
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &shared->hour, NULL);
	else if (call == POLL)
		syscall(SYS_ppoll, &shared->poll, 1, NULL, NULL, 0);
	else
		syscall(SYS_wait4, -1, NULL, 0, NULL);
	if (call == POLL && read(ends[0], &byte, 1) != 1)
		_exit(1);
}

/* The call in which @task waits, as Linux tells it; -1: it runs. */
static long call_of(pid_t task)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%d/syscall", task);
	read_file(path, text, sizeof(text));
	return text[0] < '0' || text[0] > '9' ? -1 : strtol(text, NULL, 10);
}

static void end_wait(pid_t program, int call)
{
	int fd = call == WAIT ? child_ends[1] : ends[1];

	if (call == SLEEP)
		kill(program, SIGUSR1);
	else if (call == FUTEX)
		syscall(SYS_futex, &shared->word, FUTEX_WAKE, 1, NULL, NULL, 0);
	else if (write(fd, "", 1) != 1)
		lost("no write to a pipe");
}

/* The program, on CPU 0: it has waited ROUNDS times in each of the calls, and has ended. */
static pid_t wait_in_all(void)
{
	pid_t program = fork();
	int i;

	if (!program) {
		pin(0);
		signal(SIGUSR1, take_signal);
		for (i = 0; i < ROUNDS * CALLS; i++)
			wait_in(i % CALLS);
		_exit(0);
	}
	for (i = 0; i < ROUNDS * CALLS; i++) {
		while (__atomic_load_n(&shared->step, __ATOMIC_ACQUIRE) <= i ||
		       call_of(program) != known[i % CALLS].call)
			usleep(100);
		end_wait(program, i % CALLS);
	}
	if (waitpid(program, NULL, 0) != program)
		lost("the program is gone");
	return program;
}

FIXTURE(objects)
{
	int fd;
	struct kbarman_configure config;
	uint32_t me;
};

FIXTURE_VARIANT(objects)
{
	uint32_t flags;
	bool chosen;			/* one process is recorded, and its children */
};
FIXTURE_VARIANT_ADD(objects, of_all) { };
FIXTURE_VARIANT_ADD(objects, of_chosen) { .flags = KBARMAN_CONFIGURE_INHERIT, .chosen = true };
FIXTURE_VARIANT_ADD(objects, with_chains) {
	.flags = KBARMAN_CONFIGURE_CHAIN_USER | KBARMAN_CONFIGURE_CHAIN_SWITCH };
FIXTURE_VARIANT_ADD(objects, with_stacks) {
	.flags = KBARMAN_CONFIGURE_CHAIN_STACK | KBARMAN_CONFIGURE_CHAIN_SWITCH };

FIXTURE_SETUP(objects)
{
	self->me = getpid();
	self->config = (struct kbarman_configure){
		.sources = KBARMAN_SOURCE_SCHED, .ring_bytes = 4 * MIB,
		.flags = KBARMAN_CONFIGURE_OBJECTS | variant->flags,
		.pids_ptr = (uintptr_t)&self->me, .nr_pids = variant->chosen };
	self->fd = device_open_free();
	if (!(query(self->fd).features & KBARMAN_FEATURE_OBJECTS)) {
		EXPECT_EQ(-EOPNOTSUPP, configure(self->fd, self->config));
		skip_test();
	}
	shared_begin();
	ASSERT_EQ(0, configure(self->fd, self->config));
}

FIXTURE_TEARDOWN(objects)
{
	close(self->fd);
}

/* Which of the known calls @object is, or -1. */
static int known_call(const struct bm_kbarman_object *object)
{
	int i;

	for (i = 0; i < CALLS; i++)
		if (object->call == known[i].call && object->kind == known[i].kind &&
		    object->id == known[i].id && object->value == known[i].value)
			return i;
	return -1;
}

TEST_F(objects, a_task_that_blocks_says_in_which_call)
{
	unsigned int counts[CALLS] = { 0 }, i;
	const struct bm_kbarman_object *object;
	const union record *r;
	struct judgement j;
	struct walk walk;
	uint32_t from = 0;
	pid_t program;

	ASSERT_EQ(0, start(self->fd));
	program = wait_in_all();
	ASSERT_EQ(0, stop(self->fd));
	ASSERT_EQ(0, lost_records((struct kbarman_stats[]){ stats(self->fd, 0) }));
	j = judge_cpu(self->fd, 0);
	ASSERT_EQ(NULL, j.fault) TH_LOG("%s", j.fault);
	walk = walk_begin(map_cpu(self->fd, 0));
	EXPECT_STREQ("1", capture_fact(walk.map, "objects"));
	for (; (r = walk_next(&walk)); from = r->task_switch.task_id) {
		if (r->header.record_type != BM_RECORD_TASK_SWITCH)
			break;
		object = walk_object(&walk, r);
		/* The idle task waits for nothing, and who is preempted does not, either. */
		if (!from || r->task_switch.reason == BM_TASK_SWITCH_PREEMPTED)
			EXPECT_EQ(NULL, object);
		if (from != (uint32_t)program || r->task_switch.reason == BM_TASK_SWITCH_PREEMPTED)
			continue;
		/* It has one, until it exits. */
		if (!object) {
			EXPECT_NE(0, r->task_switch.prev_state);
			EXPECT_EQ(0, r->task_switch.prev_state & 0xf);
			continue;
		}
		if (known_call(object) >= 0)
			counts[known_call(object)]++;
	}
	for (i = 0; i < CALLS; i++)
		EXPECT_LE(ROUNDS, counts[i]) TH_LOG("call %u of the list", i);
}

/* ---- by what a task is woken ---- */

/* The calls that end the program's waits: end_wait(). */
enum { WRITES, WAKES_FUTEX, KILLS, EXITS, WAKERS };

/* Which of them woke in @fact, or -1. */
static int known_waker(const struct fact *fact)
{
	const struct bm_kbarman_object *object = &fact->object;

	if (object->call == SYS_write && object->kind == BM_KBARMAN_OBJECT_PIPE &&
	    object->id == (uint32_t)ends[1] && object->value == inode_of(ends[1]))
		return WRITES;
	if (object->call == SYS_futex && object->kind == BM_KBARMAN_OBJECT_FUTEX && !object->id &&
	    object->value == (uintptr_t)&shared->word)
		return WAKES_FUTEX;
	if (object->kind != BM_KBARMAN_OBJECT_CALL)
		return -1;
	if (object->call == SYS_kill && object->id == fact->detail.id && object->value == SIGUSR1)
		return KILLS;
	return object->call == SYS_exit_group ? EXITS : -1;
}

TEST_F(objects, a_task_that_wakes_says_by_which_call)
{
	unsigned int counts[WAKERS] = { 0 };
	struct facts facts;
	pid_t program;
	size_t i;

	if (query(self->fd).absent & KBARMAN_SOURCE_WAKE)
		SKIP(return, "this kernel does not tell who wakes");
	self->config.sources |= KBARMAN_SOURCE_WAKE;
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	program = wait_in_all();
	ASSERT_EQ(0, stop(self->fd));
	facts = facts_of(self->fd, BIT(BM_KBARMAN_WAKING));
	for (i = 0; i < facts.nr; i++) {
		const struct fact *f = &facts.all[i];

		/* What interrupts a task is not its doing. */
		if (!f->task || f->detail.context > BM_KBARMAN_IN_SOFTIRQ)
			EXPECT_EQ(0, f->object.kind);
		if (f->detail.id == (uint32_t)program && f->detail.context == BM_KBARMAN_IN_TASK &&
		    known_waker(f) >= 0)
			counts[known_waker(f)]++;
	}
	free(facts.all);
	EXPECT_LE(2 * ROUNDS, counts[WRITES]);	/* to a pipe that is read, and to one that is polled */
	EXPECT_LE(ROUNDS, counts[WAKES_FUTEX]);
	EXPECT_LE(ROUNDS, counts[KILLS]);
	EXPECT_LE(ROUNDS, counts[EXITS]);
}

/* ---- who holds a lock ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pid_t waiter;

static void *wait_for_mutex(void *unused)
{
	pin(0);
	__atomic_store_n(&waiter, thread_id(), __ATOMIC_RELEASE);
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return unused;
}

/* As many threads wait for this thread's lock on CPU 0, one after the other. */
static void hold_mutex(unsigned int times)
{
	pthread_t thread;

	pin(1);
	while (times--) {
		pthread_mutex_lock(&mutex);
		__atomic_store_n(&waiter, 0, __ATOMIC_RELEASE);
		if (pthread_create(&thread, NULL, wait_for_mutex, NULL))
			lost("no thread");
		while (!__atomic_load_n(&waiter, __ATOMIC_ACQUIRE) || call_of(waiter) != SYS_futex)
			usleep(100);
		pthread_mutex_unlock(&mutex);
		pthread_join(thread, NULL);
	}
}

/* How many threads on CPU 0 waited for the mutex, and said that @holder holds it, all of them. */
static unsigned int waited_for_mutex(int fd, uint32_t holder)
{
	const struct bm_kbarman_object *object;
	uint32_t from = 0, last = 0;
	unsigned int found = 0;
	const union record *r;
	struct walk walk;

	walk = walk_begin(map_cpu(fd, 0));
	for (; (r = walk_next(&walk)); from = r->task_switch.task_id) {
		object = walk_object(&walk, r);
		if (!object || object->kind != BM_KBARMAN_OBJECT_FUTEX ||
		    object->value != (uintptr_t)&mutex)
			continue;
		if (object->id != holder)
			return 0;
		found += from != last;
		last = from;
	}
	return found;
}

TEST_F(objects, who_waits_for_a_mutex_says_who_holds_it)
{
	ASSERT_EQ(0, start(self->fd));
	hold_mutex(ROUNDS / 5);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(ROUNDS / 5, waited_for_mutex(self->fd, getpid()));
}

static void __attribute__((noinline)) spin(void)
{
	__atomic_store_n(&shared->step, 1, __ATOMIC_RELEASE);
	for (;;)
		__asm__ volatile("" ::: "memory");
}

/* Stopped by a signal while it runs its own code. */
TEST_F(objects, a_task_in_no_call_says_where_its_code_was)
{
	const struct bm_kbarman_object *object;
	const union record *r;
	unsigned int found = 0, i;
	struct walk walk;
	uint32_t from = 0;
	int status;
	pid_t program;

	ASSERT_EQ(0, start(self->fd));
	program = fork();
	if (!program) {
		pin(0);
		spin();
	}
	while (!__atomic_load_n(&shared->step, __ATOMIC_ACQUIRE))
		usleep(100);
	for (i = 0; i < ROUNDS / 5; i++) {
		usleep(1000);
		kill(program, SIGSTOP);
		ASSERT_EQ(program, waitpid(program, &status, WUNTRACED));
		wait_until_off(program, 'T');	/* a little later than it is told */
		kill(program, SIGCONT);
	}
	kill(program, SIGKILL);
	waitpid(program, NULL, 0);
	ASSERT_EQ(0, stop(self->fd));
	walk = walk_begin(map_cpu(self->fd, 0));
	for (; (r = walk_next(&walk)); from = r->task_switch.task_id) {
		object = walk_object(&walk, r);
		if (object && from == (uint32_t)program && object->kind == BM_KBARMAN_OBJECT_NO_CALL)
			found += object->value - (uintptr_t)spin < 64;
	}
	EXPECT_EQ(ROUNDS / 5, found);
}

/* Put a child into the PID namespace of @first, let that one exit, and take the child when it waits. */
static void outlive(pid_t first, int go)
{
	char path[64];
	pid_t child;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", first);
	if (setns(open(path, O_RDONLY), CLONE_NEWPID))
		lost("no PID namespace");
	child = fork();
	if (!child)
		pause();
	if (write(go, "", 1) != 1)
		lost("no write to a pipe");
	while (call_of(first) != SYS_exit_group)
		usleep(100);
	waitpid(child, NULL, 0);
	_exit(0);
}

/* The first process of a PID namespace waits in its exit until all others are gone. */
TEST_F(objects, a_task_that_exits_says_in_which_call)
{
	const struct bm_kbarman_object *object;
	unsigned int found = 0;
	const union record *r;
	pid_t first, other;
	uint32_t from = 0;
	struct walk walk;
	char byte;

	ASSERT_EQ(0, start(self->fd));
	first = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
	ASSERT_LE(0, first);
	if (!first) {
		pin(0);
		_exit(read(ends[0], &byte, 1) != 1);
	}
	other = fork();
	if (!other)
		outlive(first, ends[1]);
	ASSERT_EQ(other, waitpid(other, NULL, 0));
	ASSERT_EQ(first, waitpid(first, NULL, 0));
	ASSERT_EQ(0, stop(self->fd));
	walk = walk_begin(map_cpu(self->fd, 0));
	for (; (r = walk_next(&walk)); from = r->task_switch.task_id) {
		object = walk_object(&walk, r);
		found += object && from == (uint32_t)first && object->call == SYS_exit_group &&
			 object->kind == BM_KBARMAN_OBJECT_CALL;
	}
	EXPECT_LT(0, found);
}

/* ---- locks of Linux ---- */

#define WRITTEN	(8 << 20)	/* bytes at once, for which a lock is held */

/* Write to the file at @path, or if that is NULL to @fd, whose position has a lock of its own. */
static void write_to(const char *path, int fd, size_t bytes, unsigned int times)
{
	char *from = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	pin(0);
	if (path)
		fd = open(path, O_RDWR);
	while (times--) {
		if (lseek(fd, 0, SEEK_SET) || write(fd, from, bytes) != (ssize_t)bytes)
			lost("no write to a file in memory");
		if (bytes == 1)
			usleep(1000);
	}
	_exit(0);
}

struct writers {
	pid_t holder, waiter;		/* the numbers of programs that have ended */
};

/* Two programs on CPU 0 have written to one file. */
static struct writers write_beside(bool same)
{
	int memory = syscall(SYS_memfd_create, "lock", 0), fd;
	struct writers writers;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), memory);
	fd = open(path, O_RDWR);
	writers.holder = fork();
	if (!writers.holder)
		write_to(same ? NULL : path, fd, WRITTEN, ~0U);
	writers.waiter = fork();
	if (!writers.waiter)
		write_to(same ? NULL : path, fd, 1, ROUNDS);
	if (waitpid(writers.waiter, NULL, 0) != writers.waiter)
		lost("no program");
	kill(writers.holder, SIGKILL);
	waitpid(writers.holder, NULL, 0);
	close(memory);
	close(fd);
	return writers;
}

struct locks {
	unsigned int nr, held, wrong, addresses;
};

/* Of the waiter's waits for a lock of that kind: how many say who holds it, another holder, an address. */
static struct locks find_locks(int fd, const struct writers *writers, uint8_t kind)
{
	struct walk walk = walk_begin(map_cpu(fd, 0));
	const struct bm_kbarman_object *object;
	struct locks locks = { 0 };
	const union record *r;
	uint32_t from = 0;

	for (; (r = walk_next(&walk)); from = r->task_switch.task_id) {
		object = walk_object(&walk, r);
		if (!object || from != (uint32_t)writers->waiter || object->kind != kind)
			continue;
		locks.nr++;
		locks.held += object->id == (uint32_t)writers->holder;
		locks.wrong += object->id && object->id != (uint32_t)writers->holder;
		locks.addresses += object->value != 0;
	}
	return locks;
}

/* Since Linux 6.16; PREEMPT_RT has other locks. */
static bool linux_tells_locks(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname name;

	uname(&name);
	sscanf(name.release, "%u.%u", &major, &minor);
	return (major > 6 || (major == 6 && minor >= 16)) && !is_rt();
}

FIXTURE_VARIANT(objects_locks) {
	bool same;
	uint8_t kind;
};

FIXTURE(objects_locks)
{
	int fd;
};

FIXTURE_SETUP(objects_locks)
{
	self->fd = device_open_free();
	if (!(query(self->fd).features & KBARMAN_FEATURE_OBJECTS))
		skip_test();
}

FIXTURE_TEARDOWN(objects_locks)
{
	close(self->fd);
}

FIXTURE_VARIANT_ADD(objects_locks, position) { true, BM_KBARMAN_OBJECT_MUTEX };
FIXTURE_VARIANT_ADD(objects_locks, inode) { false, BM_KBARMAN_OBJECT_RWSEM_WRITE };

static struct kbarman_configure with_objects(void)
{
	return (struct kbarman_configure){ .sources = KBARMAN_SOURCE_SCHED,
					   .flags = KBARMAN_CONFIGURE_OBJECTS };
}

TEST_F(objects_locks, who_waits_for_a_lock_of_linux_says_who_holds_it)
{
	struct writers writers;
	struct locks locks;

	if (!linux_tells_locks())
		SKIP(return, "this kernel does not tell for which lock of its own a task waits");
	ASSERT_EQ(0, configure(self->fd, with_objects()));
	ASSERT_EQ(0, start(self->fd));
	writers = write_beside(variant->same);
	ASSERT_EQ(0, stop(self->fd));
	locks = find_locks(self->fd, &writers, variant->kind);
	EXPECT_LT(0, locks.held);
	EXPECT_EQ(0, locks.wrong);
	EXPECT_EQ(locks.nr, locks.addresses);
	TH_LOG("%u waits, %u with a holder", locks.nr, locks.held);
}

/* A root without rights to others' memory records what those of the machine's root wait for. */
static int start_with_perfmon_alone(int begun)
{
	int fd;

	keep_only(CAPABILITY(CAP_PERFMON));
	fd = device_open();
	if (configure(fd, with_objects()) || start(fd) || write(begun, "", 1) != 1)
		lost("no recording");
	return fd;
}

TEST_F(objects_locks, neither_holder_nor_address_without_rights)
{
	int begun[2], go_on[2], status, fd;
	struct writers writers;
	struct locks locks;
	pid_t child;
	char byte;

	if (!linux_tells_locks())
		SKIP(return, "this kernel does not tell for which lock of its own a task waits");
	ASSERT_EQ(0, pipe(begun));
	ASSERT_EQ(0, pipe(go_on));
	child = fork();
	if (!child) {
		fd = start_with_perfmon_alone(begun[1]);
		if (read(go_on[0], &writers, sizeof(writers)) != sizeof(writers) || stop(fd))
			lost("no recording");
		locks = find_locks(fd, &writers, variant->kind);
		_exit(!locks.nr + 2 * (locks.held || locks.wrong) + 4 * !!locks.addresses);
	}
	ASSERT_EQ(1, read(begun[0], &byte, 1));
	writers = write_beside(variant->same);
	ASSERT_EQ(sizeof(writers), write(go_on[1], &writers, sizeof(writers)));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
}

/* ---- what may be asked for ---- */

FIXTURE(asked)
{
	int fd;
};

FIXTURE_SETUP(asked)
{
	self->fd = device_open_free();
}

FIXTURE_TEARDOWN(asked)
{
	close(self->fd);
}

TEST_F(asked, no_switch_has_an_object_unless_asked)
{
	const union record *r;
	struct walk walk;

	ASSERT_EQ(0, configure(self->fd, (struct kbarman_configure){ .sources = KBARMAN_SOURCE_SCHED }));
	ASSERT_EQ(0, start(self->fd));
	ping_pong(0, ROUNDS);
	ASSERT_EQ(0, stop(self->fd));
	walk = walk_begin(map_cpu(self->fd, 0));
	EXPECT_EQ(NULL, capture_fact(walk.map, "objects"));
	while ((r = walk_next(&walk)))
		EXPECT_EQ(NULL, walk_object(&walk, r));
}

TEST_F(asked, who_holds_a_lock_of_others_is_not_told)
{
	int begun[2], go_on[2], status, fd;
	pid_t child;
	char byte;

	if (!(query(self->fd).features & KBARMAN_FEATURE_OBJECTS))
		skip_test();
	ASSERT_EQ(0, pipe(begun));
	ASSERT_EQ(0, pipe(go_on));
	child = fork();
	if (!child) {
		fd = start_with_perfmon_alone(begun[1]);
		if (read(go_on[0], &byte, 1) != 1 || stop(fd))
			lost("no recording");
		_exit(waited_for_mutex(fd, 0) != ROUNDS / 5);
	}
	ASSERT_EQ(1, read(begun[0], &byte, 1));
	hold_mutex(ROUNDS / 5);
	ASSERT_EQ(1, write(go_on[1], "", 1));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(asked, objects_need_switches)
{
	EXPECT_EQ(-EINVAL, configure(self->fd, (struct kbarman_configure){
		.sources = KBARMAN_SOURCE_IDLE, .flags = KBARMAN_CONFIGURE_OBJECTS }));
}

TEST_HARNESS_MAIN
