// SPDX-License-Identifier: MIT
/* Who woke whom, and who went to which CPU: programs whose waits are known. */
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>

#include "kselftest_harness.h"
#include "details.h"

#define WAKE	(BIT(BM_KBARMAN_WAKING) | BIT(BM_KBARMAN_WAKING_NEW))
#define CHAIN	4		/* processes of a chain */
#define ROUNDS	50

static const struct kbarman_configure wakeups = {
	.sources = KBARMAN_SOURCE_WAKE, .ring_bytes = 4 * MIB };

FIXTURE(wakeups)
{
	int fd;
};

FIXTURE_SETUP(wakeups)
{
	self->fd = device_open_free();
	if (query(self->fd).absent & KBARMAN_SOURCE_WAKE)
		skip_test();
	pin(0);
}

FIXTURE_TEARDOWN(wakeups)
{
	close(self->fd);
}

static void log_fact(struct __test_metadata *_metadata, const struct fact *f)
{
	TH_LOG("at %llu on CPU %u: what %u, %u -> %u, cpu %u, context %u",
	       (unsigned long long)f->time, f->at, f->detail.what, f->task, f->detail.id,
	       f->detail.cpu, f->detail.context);
}

/* ---- a chain of pipes ---- */

struct chain {
	int ends[CHAIN + 1][2];
	pid_t links[CHAIN];
};

/* Each process waits for a byte and passes it on. All run on @cpu. */
static void chain_create(struct chain *chain, uint32_t cpu)
{
	char byte;
	int i;

	for (i = 0; i <= CHAIN; i++)
		if (pipe2(chain->ends[i], O_CLOEXEC))
			lost("no pipe");
	for (i = 0; i < CHAIN; i++) {
		chain->links[i] = fork();
		if (chain->links[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(cpu);
		while (read(chain->ends[i][0], &byte, 1) == 1 &&
		       write(chain->ends[i + 1][1], &byte, 1) == 1)
			;
		_exit(0);
	}
}

/* Pass a byte through the chain while everybody waits for it. */
static void chain_round(struct chain *chain)
{
	char byte = 0;
	int i;

	for (i = 0; i < CHAIN; i++)
		wait_until_waiting(chain->links[i]);
	if (write(chain->ends[0][1], &byte, 1) != 1 || read(chain->ends[CHAIN][0], &byte, 1) != 1)
		lost("the chain is broken");
}

static void chain_destroy(struct chain *chain)
{
	int i;

	for (i = 0; i < CHAIN; i++) {
		kill(chain->links[i], SIGKILL);
		waitpid(chain->links[i], NULL, 0);
	}
	for (i = 0; i <= CHAIN; i++) {
		close(chain->ends[i][0]);
		close(chain->ends[i][1]);
	}
}

static uint32_t chain_waker(const struct chain *chain, int link)
{
	return link ? chain->links[link - 1] : getpid();
}

/* The byte comes from the parent, and in each round each link wakes the next one, in this order. */
static void expect_order(struct __test_metadata *_metadata, const struct chain *chain,
			 const struct facts *facts)
{
	unsigned int next = 0, rounds = 0;
	size_t i;
	int link;

	for (i = 0; i < facts->nr; i++) {
		const struct fact *f = &facts->all[i];

		for (link = 0; link < CHAIN && f->detail.id != (uint32_t)chain->links[link]; link++)
			;
		if (link == CHAIN)
			continue;
		EXPECT_EQ(next, link) log_fact(_metadata, f);
		EXPECT_EQ(chain_waker(chain, link), f->task) log_fact(_metadata, f);
		EXPECT_EQ(BM_KBARMAN_IN_TASK, f->detail.context) log_fact(_metadata, f);
		EXPECT_EQ(BM_KBARMAN_WAKING, f->detail.what) log_fact(_metadata, f);
		EXPECT_EQ(1, f->value);
		next = (link + 1) % CHAIN;
		rounds += !next;
	}
	EXPECT_EQ(0, next);
	EXPECT_EQ(ROUNDS, rounds);
}

/* On PREEMPT_RT who waits for the lock of a pipe is woken, too: there may be more wakeups. */
static void expect_chain(struct __test_metadata *_metadata, const struct chain *chain,
			 const struct facts *facts)
{
	unsigned int count;
	int link;

	if (!is_rt()) {
		expect_order(_metadata, chain, facts);
		return;
	}
	for (link = 0; link < CHAIN; link++) {
		count = facts_count(facts, BM_KBARMAN_WAKING, chain_waker(chain, link),
				    chain->links[link]);
		EXPECT_LE(ROUNDS, count) TH_LOG("link %d", link);
	}
}

static void try_chain(struct __test_metadata *_metadata, int fd, uint32_t cpu)
{
	struct chain chain;
	struct facts facts;
	struct judgement j;
	size_t i;
	int n;

	chain_create(&chain, cpu);
	for (n = 0; n < CHAIN; n++)
		wait_until_waiting(chain.links[n]);
	ASSERT_EQ(0, configure(fd, wakeups));
	ASSERT_EQ(0, start(fd));
	for (n = 0; n < ROUNDS; n++)
		chain_round(&chain);
	ASSERT_EQ(0, stop(fd));
	facts = facts_of(fd, WAKE);
	expect_chain(_metadata, &chain, &facts);
	for (i = 0; i < facts.nr; i++)
		if (facts.all[i].detail.id == (uint32_t)chain.links[1]) {
			EXPECT_EQ(cpu, facts.all[i].detail.cpu);
			EXPECT_EQ(cpu, facts.all[i].at);
		}
	for (n = 0; n < (int)query(fd).nr_cpus; n++) {
		j = judge_cpu(fd, n);
		EXPECT_EQ(NULL, j.fault) TH_LOG("CPU %d: %s", n, j.fault);
	}
	free(facts.all);
	chain_destroy(&chain);
}

TEST_F(wakeups, each_link_of_a_pipe_chain_wakes_the_next)
{
	try_chain(_metadata, self->fd, 0);
}

TEST_F(wakeups, a_chain_on_another_cpu_is_the_same)
{
	if (query(self->fd).nr_cpus < 2)
		SKIP(return, "one CPU only");
	try_chain(_metadata, self->fd, 1);
}

/* ---- other waits ---- */

struct waiter {
	pthread_t thread;
	pid_t id;
	int word;
	useconds_t nap;		/* 0: waits for the word */
	int rounds;
};

static void *waiter_run(void *argument)
{
	struct waiter *w = argument;
	int seen = 0;

	__atomic_store_n(&w->id, thread_id(), __ATOMIC_RELEASE);
	while (w->rounds--) {
		if (w->nap)
			usleep(w->nap);
		else
			while (__atomic_load_n(&w->word, __ATOMIC_ACQUIRE) == seen)
				syscall(SYS_futex, &w->word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL,
					0);
		seen++;
	}
	return NULL;
}

static void waiter_begin(struct waiter *w)
{
	if (pthread_create(&w->thread, NULL, waiter_run, w))
		lost("no thread");
	while (!__atomic_load_n(&w->id, __ATOMIC_ACQUIRE))
		sched_yield();
}

TEST_F(wakeups, who_wakes_by_a_futex_is_the_waker)
{
	struct waiter w = { .rounds = ROUNDS };
	struct facts facts;
	int i;

	ASSERT_EQ(0, configure(self->fd, wakeups));
	ASSERT_EQ(0, start(self->fd));
	waiter_begin(&w);
	for (i = 0; i < ROUNDS; i++) {
		wait_until_waiting(w.id);
		__atomic_add_fetch(&w.word, 1, __ATOMIC_RELEASE);
		syscall(SYS_futex, &w.word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	pthread_join(w.thread, NULL);
	ASSERT_EQ(0, stop(self->fd));
	facts = facts_of(self->fd, WAKE);
	EXPECT_EQ(ROUNDS, facts_count(&facts, BM_KBARMAN_WAKING, thread_id(), w.id));
	EXPECT_EQ(ROUNDS, facts_count(&facts, BM_KBARMAN_WAKING, ~0U, w.id));
	free(facts.all);
}

/* The task that was interrupted has nothing to do with it. */
TEST_F(wakeups, a_timer_wakes_in_an_interrupt)
{
	struct waiter w = { .rounds = ROUNDS, .nap = 2000 };
	unsigned int seen = 0, of_others = 0;
	struct facts facts;
	size_t i;

	ASSERT_EQ(0, configure(self->fd, wakeups));
	ASSERT_EQ(0, start(self->fd));
	waiter_begin(&w);
	pthread_join(w.thread, NULL);
	ASSERT_EQ(0, stop(self->fd));
	facts = facts_of(self->fd, BIT(BM_KBARMAN_WAKING));
	for (i = 0; i < facts.nr; i++) {
		if (facts.all[i].detail.id != (uint32_t)w.id)
			continue;
		EXPECT_EQ(is_rt() ? BM_KBARMAN_IN_SOFTIRQ : BM_KBARMAN_IN_IRQ,
			  facts.all[i].detail.context) log_fact(_metadata, &facts.all[i]);
		seen++;
		of_others += facts.all[i].task != (uint32_t)w.id;
	}
	/* A nap may be over before it has begun, or before the CPU was left for it. */
	EXPECT_GE(ROUNDS, seen);
	EXPECT_LE(ROUNDS / 2, of_others);
	free(facts.all);
}

TEST_F(wakeups, a_new_task_is_woken_by_its_parent)
{
	struct facts facts;
	pid_t child;
	int i;

	ASSERT_EQ(0, configure(self->fd, wakeups));
	ASSERT_EQ(0, start(self->fd));
	for (i = 0; i < ROUNDS; i++) {
		child = fork();
		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
	}
	ASSERT_EQ(0, stop(self->fd));
	facts = facts_of(self->fd, WAKE);
	EXPECT_EQ(ROUNDS, facts_count(&facts, BM_KBARMAN_WAKING_NEW, getpid(), ~0U));
	EXPECT_EQ(1, facts_count(&facts, BM_KBARMAN_WAKING_NEW, getpid(), child));
	EXPECT_EQ(1, facts_count(&facts, BM_KBARMAN_WAKING_NEW, ~0U, child));
	free(facts.all);
}

/* A wakeup is in front of the switch to the task that it woke. */
TEST_F(wakeups, a_woken_task_runs_after_its_wakeup)
{
	struct kbarman_configure c = wakeups;
	const struct bm_kbarman_detail *detail;
	unsigned int woken = 0, ran = 0;
	const union record *r;
	struct walk walk;
	struct echo e;

	c.sources |= KBARMAN_SOURCE_SCHED;
	ASSERT_EQ(0, configure(self->fd, c));
	e = echo_create(0);
	wait_until_waiting(e.echo);
	ASSERT_EQ(0, start(self->fd));
	echo_rounds(&e, ROUNDS);
	ASSERT_EQ(0, stop(self->fd));
	walk = walk_begin(map_cpu(self->fd, 0));
	while ((r = walk_next(&walk))) {
		detail = walk_detail(&walk, r);
		woken += detail && detail->id == (uint32_t)e.echo;
		if (r->header.record_type != BM_RECORD_TASK_SWITCH ||
		    r->task_switch.task_id != (uint32_t)e.echo)
			continue;
		ran++;
		EXPECT_LE(1, woken);
	}
	EXPECT_LE(1, ran);
	echo_destroy(&e);
}

/* ---- migrations ---- */

TEST_F(wakeups, who_goes_to_another_cpu_is_told_once)
{
	struct kbarman_configure c = wakeups;
	uint32_t to = 1, id = thread_id();
	struct facts facts;
	size_t k;
	int i;

	if (query(self->fd).nr_cpus < 2)
		SKIP(return, "one CPU only");
	c.sources = KBARMAN_SOURCE_MIGRATE;
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	for (i = 0; i < ROUNDS; i++) {
		pin(1);
		pin(0);
	}
	ASSERT_EQ(0, stop(self->fd));
	facts = facts_of(self->fd, BIT(BM_KBARMAN_MIGRATE));
	EXPECT_EQ(2 * ROUNDS, facts_count(&facts, BM_KBARMAN_MIGRATE, ~0U, id));
	for (k = 0; k < facts.nr; k++) {
		if (facts.all[k].detail.id != id)
			continue;
		EXPECT_EQ(to, facts.all[k].detail.cpu) log_fact(_metadata, &facts.all[k]);
		to = !to;
	}
	free(facts.all);
}

/* ---- what a session asks for ---- */

TEST_F(wakeups, chosen_tasks_have_what_they_wake_and_who_wakes_them)
{
	struct kbarman_configure c = wakeups;
	struct chain chain;
	struct facts facts;
	uint32_t pid;
	size_t i;

	chain_create(&chain, 0);
	pid = chain.links[1];
	c.pids_ptr = (uintptr_t)&pid;
	c.nr_pids = 1;
	ASSERT_EQ(0, configure(self->fd, c));
	for (i = 0; i < CHAIN; i++)
		wait_until_waiting(chain.links[i]);
	ASSERT_EQ(0, start(self->fd));
	for (i = 0; i < ROUNDS; i++)
		chain_round(&chain);
	ASSERT_EQ(0, stop(self->fd));
	facts = facts_of(self->fd, WAKE);
	EXPECT_LE(ROUNDS, facts_count(&facts, BM_KBARMAN_WAKING, chain.links[0], pid));
	EXPECT_LE(ROUNDS, facts_count(&facts, BM_KBARMAN_WAKING, pid, chain.links[2]));
	/* An interrupt of this task may wake others. */
	if (!is_rt()) {
		EXPECT_EQ(ROUNDS, facts_count(&facts, BM_KBARMAN_WAKING, ~0U, pid));
		EXPECT_EQ(ROUNDS, facts_count(&facts, BM_KBARMAN_WAKING, pid, chain.links[2]));
	}
	EXPECT_EQ(0, facts_count(&facts, BM_KBARMAN_WAKING, ~0U, chain.links[3]));
	for (i = 0; i < facts.nr; i++)
		EXPECT_TRUE(facts.all[i].task == pid || facts.all[i].detail.id == pid)
			log_fact(_metadata, &facts.all[i]);
	free(facts.all);
	chain_destroy(&chain);
}

static const char *series_name(const void *map, uint32_t row)
{
	return capture_strings(map) + capture_series(map)[row].name_ptr;
}

TEST_F(wakeups, sources_not_asked_for_write_nothing_and_have_no_names)
{
	static const struct kbarman_configure only_switches = { .sources = KBARMAN_SOURCE_SCHED };
	struct judgement j;
	const void *map;
	uint32_t row;

	ASSERT_EQ(0, configure(self->fd, only_switches));
	ASSERT_EQ(0, start(self->fd));
	ping_pong(0, 100);
	ASSERT_EQ(0, stop(self->fd));
	j = judge_cpu(self->fd, 0);
	EXPECT_EQ(NULL, j.fault) TH_LOG("%s", j.fault);
	EXPECT_EQ(0, j.by_type[BM_RECORD_CUSTOM_COUNTER]);
	map = map_cpu(self->fd, 0);
	for (row = FIRST_DETAILS; row < FIRST_SERIES; row++)
		EXPECT_STREQ("", series_name(map, row)) TH_LOG("row %u", row);
	EXPECT_EQ(NULL, capture_fact(map, "sources"));
}

TEST_F(wakeups, the_capture_names_what_was_asked_for)
{
	static const char *const names[] = { "Lost records", "Counters stopped", "Wakeups",
		"Migrations", "Interrupts", "Softirqs", "CPU frequency", "Idle misses",
		"System calls", "Page faults", "Block requests" };
	static const struct {
		uint32_t source, rows;
		const char *fact;
	} cases[] = {
		{ KBARMAN_SOURCE_WAKE, 1 << 2, "wake" },
		{ KBARMAN_SOURCE_MIGRATE, 1 << 3, "migrate" },
		{ KBARMAN_SOURCE_IRQ, 1 << 4, "irq" },
		{ KBARMAN_SOURCE_SOFTIRQ, 1 << 5, "softirq" },
		{ KBARMAN_SOURCE_FREQ, 3 << 6, "freq" },
		{ KBARMAN_SOURCE_SYSCALLS, 1 << 8, "syscalls" },
		{ KBARMAN_SOURCE_FAULTS, 1 << 9, "faults" },
		{ KBARMAN_SOURCE_BLOCK, 1 << 10, "block" },
		{ KBARMAN_SOURCE_DETAILS, 0x1ff << 2, "wake,migrate,irq,softirq,freq,syscalls,faults,block" },
	};
	const void *map;
	uint32_t row;
	size_t i;

	ASSERT_EQ(0, query(self->fd).absent & KBARMAN_SOURCE_DETAILS);
	EXPECT_EQ(KBARMAN_FEATURE_DETAILS, query(self->fd).features & KBARMAN_FEATURE_DETAILS);
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct kbarman_configure c = { .sources = cases[i].source };

		ASSERT_EQ(0, configure(self->fd, c));
		ASSERT_EQ(0, start(self->fd));
		ASSERT_EQ(0, stop(self->fd));
		map = map_cpu(self->fd, 0);
		for (row = 0; row < FIRST_SERIES; row++)
			EXPECT_STREQ((3 | cases[i].rows) & BIT(row) ? names[row] : "",
				     series_name(map, row)) TH_LOG("case %zu, row %u", i, row);
		ASSERT_NE(NULL, capture_fact(map, "sources"));
		EXPECT_STREQ(cases[i].fact, capture_fact(map, "sources"));
		EXPECT_EQ(cases[i].source, query(self->fd).sources);
	}
}

/* Each of two sessions has the wakeups as if it were alone. */
TEST_F(wakeups, two_sessions_have_the_same_wakeups)
{
	int other = device_open();
	struct facts mine, its;
	struct echo e;

	ASSERT_EQ(0, configure(self->fd, wakeups));
	ASSERT_EQ(0, configure(other, wakeups));
	e = echo_create(0);
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, start(other));
	echo_rounds(&e, ROUNDS);
	ASSERT_EQ(0, stop(other));
	ASSERT_EQ(0, stop(self->fd));
	mine = facts_of(self->fd, WAKE);
	its = facts_of(other, WAKE);
	EXPECT_EQ(facts_count(&mine, BM_KBARMAN_WAKING, getpid(), e.echo),
		  facts_count(&its, BM_KBARMAN_WAKING, getpid(), e.echo));
	EXPECT_LE(1, its.nr);
	free(mine.all);
	free(its.all);
	echo_destroy(&e);
	close(other);
}

TEST_HARNESS_MAIN
