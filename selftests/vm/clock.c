// SPDX-License-Identifier: MIT
/* Timestamps are ticks of some clock; the header says how they become nanoseconds. */
#include "kselftest_harness.h"
#include "lib.h"

#define ALLOWED_NS	1000	/* what kbarman.h promises after a stop */

FIXTURE(clock)
{
	int fd;
};

FIXTURE_SETUP(clock)
{
	self->fd = device_open_free();
	ASSERT_EQ(0, configure(self->fd, (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_SCHED }));
}

FIXTURE_TEARDOWN(clock)
{
	close(self->fd);
}

TEST_F(clock, now_is_now_by_all_clocks)
{
	struct kbarman_clock k;
	uint64_t raw, mono, real;

	raw = clock_ns(CLOCK_MONOTONIC_RAW);
	mono = clock_ns(CLOCK_MONOTONIC);
	real = clock_ns(CLOCK_REALTIME);
	k = clocks(self->fd);
	EXPECT_LE(raw, k.now.raw_ns);
	EXPECT_LE(mono, k.now.monotonic_ns);
	EXPECT_LE(real, k.now.realtime_ns);
	EXPECT_GE(clock_ns(CLOCK_MONOTONIC_RAW), k.now.raw_ns);
	EXPECT_GE(clock_ns(CLOCK_MONOTONIC), k.now.monotonic_ns);
	EXPECT_GE(clock_ns(CLOCK_REALTIME), k.now.realtime_ns);
}

TEST_F(clock, pairs_are_in_order)
{
	struct kbarman_clock k;

	ASSERT_EQ(0, start(self->fd));
	usleep(2000);
	ASSERT_EQ(0, stop(self->fd));
	k = clocks(self->fd);
	EXPECT_LT(k.start.timestamp, k.stop.timestamp);
	EXPECT_LT(k.stop.timestamp, k.now.timestamp);
	EXPECT_LT(k.start.raw_ns, k.stop.raw_ns);
	EXPECT_LE(k.start.raw_ns + 2000000, k.stop.raw_ns);
}

TEST_F(clock, header_starts_where_the_first_pair_does)
{
	const struct bm_protocol_header_start *h;
	struct kbarman_clock k;
	const void *map;

	ASSERT_EQ(0, start(self->fd));
	map = map_cpu(self->fd, 0);
	h = capture_header(map);
	k = clocks(self->fd);
	EXPECT_EQ(k.start.timestamp, h->clock_info.timestamp_base);
	EXPECT_EQ(k.start.realtime_ns, h->clock_info.unix_base_ns);
	ASSERT_NE(NULL, capture_fact(map, "raw_base"));
	EXPECT_EQ(k.start.raw_ns, strtoull(capture_fact(map, "raw_base"), NULL, 10));
	/* A 64-bit product does not overflow within an hour. */
	EXPECT_GT(1 << 20, h->clock_info.timestamp_multiplier);
	EXPECT_LT(0, h->clock_info.timestamp_divisor);
	EXPECT_LT(query(self->fd).clock_hz, ~0ULL / 3600 / h->clock_info.timestamp_multiplier);
}

TEST_F(clock, both_pairs_convert_to_their_raw_time)
{
	const void *map;
	struct kbarman_clock k;
	int64_t error;

	ASSERT_EQ(0, start(self->fd));
	usleep(500000);
	ASSERT_EQ(0, stop(self->fd));
	map = map_cpu(self->fd, 0);
	k = clocks(self->fd);
	error = capture_ns(map, k.start.timestamp) - k.start.raw_ns;
	EXPECT_EQ(0, error);
	error = capture_ns(map, k.stop.timestamp) - k.stop.raw_ns;
	EXPECT_GE(ALLOWED_NS, error);
	EXPECT_LE(-ALLOWED_NS, error);
	/* With a product of 64 bits, as capture_ns() has it. */
	EXPECT_LE(capture_header(map)->clock_info.timestamp_multiplier,
		  ~0ULL / (k.stop.timestamp - k.start.timestamp));
}

TEST_F(clock, both_pairs_are_in_the_capture)
{
	struct kbarman_clock k;
	const void *map;
	char end[64];

	ASSERT_EQ(0, start(self->fd));
	map = map_cpu(self->fd, 0);
	EXPECT_EQ(NULL, capture_fact(map, "raw_end"));
	ASSERT_EQ(0, stop(self->fd));
	k = clocks(self->fd);
	snprintf(end, sizeof(end), "%llu,%llu", k.stop.timestamp, k.stop.raw_ns);
	ASSERT_NE(NULL, capture_fact(map, "raw_end"));
	EXPECT_STREQ(end, capture_fact(map, "raw_end"));
}

/* The fit and the nominal rate tell the same story, to a part in a thousand. */
TEST_F(clock, the_fit_is_near_the_nominal_rate)
{
	const struct bm_protocol_clock_info *c;
	double nominal, fitted;

	ASSERT_EQ(0, start(self->fd));
	usleep(300000);
	ASSERT_EQ(0, stop(self->fd));
	c = &capture_header(map_cpu(self->fd, 0))->clock_info;
	nominal = 1e9 / query(self->fd).clock_hz;
	fitted = (double)c->timestamp_multiplier / c->timestamp_divisor;
	EXPECT_LT(0.999, fitted / nominal);
	EXPECT_GT(1.001, fitted / nominal);
}

/*
 * A process is switched to for the first time after it was made and before it looks at
 * the clock: so its first record lies between the two looks, once it is nanoseconds.
 */
TEST_F(clock, records_lie_between_two_looks_at_the_clock)
{
	struct {
		uint64_t before, after;
		pid_t task;
	} *looks = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const int count = 30;
	uint32_t cpu, nr_cpus = query(self->fd).nr_cpus;
	int i;

	ASSERT_NE(MAP_FAILED, looks);
	ASSERT_EQ(0, start(self->fd));
	for (i = 0; i < count; i++) {
		pid_t task;

		looks[i].before = clock_ns(CLOCK_MONOTONIC_RAW);
		task = fork();
		if (!task) {
			looks[i].after = clock_ns(CLOCK_MONOTONIC_RAW);
			_exit(0);
		}
		waitpid(task, NULL, 0);
		looks[i].task = task;
	}
	ASSERT_EQ(0, stop(self->fd));
	for (i = 0; i < count; i++) {
		uint64_t first = ~0ULL;

		for (cpu = 0; cpu < nr_cpus; cpu++) {
			const void *map = map_cpu(self->fd, cpu);
			struct walk walk = walk_begin(map);
			const union record *r;

			while ((r = walk_next(&walk)))
				if (r->task_switch.task_id == (uint32_t)looks[i].task) {
					uint64_t ns = capture_ns(map, r->header.timestamp);

					first = ns < first ? ns : first;
				}
			munmap((void *)map, query(self->fd).map_bytes);
		}
		EXPECT_LE(looks[i].before, first + ALLOWED_NS);
		EXPECT_GE(looks[i].after, first - ALLOWED_NS);
	}
}

/* ---- what comes first, on whatever CPU, has the earlier time ---- */

#define ROUNDS		SLOWED(10000)
#define INTERRUPTIBLE	1	/* TASK_INTERRUPTIBLE, in prev_state */

/* By CPU: when the task there marked a round, and when it was switched to for that. */
struct rounds {
	uint64_t mark[ROUNDS];
	uint64_t run[ROUNDS];		/* 0: it had not been waiting */
};

static void mark_round(int fd, uint32_t cpu, uint32_t round)
{
	struct {
		struct kbarman_mark mark;
		char text[8];
	} m = { .mark = { .size = sizeof(m.mark), .type = KBARMAN_MARK_STRING, .text_bytes = 1,
			  .channel = cpu, .colour = round }, .text = "." };

	if (write(fd, &m, sizeof(m.mark) + 1) < 0)
		lost("no mark");
}

static void give(int fd, uint32_t *given)
{
	if (write(fd, "", 1) != 1)
		lost("no byte can be given");
	__atomic_store_n(given, *given + 1, __ATOMIC_RELEASE);
}

/*
 * Of @round. Who gives wakes behind the byte, and may be late with that: who did not wait for this byte would be woken
 * out of the wait for the next one. So the other one's call has ended when this returns.
 */
static void take(int fd, const uint32_t *given, uint32_t round)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		lost("no byte comes");
	while (__atomic_load_n(given, __ATOMIC_ACQUIRE) <= round)
		sched_yield();
}

/*
 * A byte goes to and fro between this task on CPU 0 and another one on CPU 1; who has it
 * marks the round, then wakes the other one. Returns the other's id.
 */
static pid_t causal_ping_pong(int marks)
{
	uint32_t *given = mmap(NULL, 2 * sizeof(*given), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int there[2], back[2];
	uint32_t round;
	pid_t echo;

	if (given == MAP_FAILED || pipe2(there, O_CLOEXEC) || pipe2(back, O_CLOEXEC))
		lost("no pipe");
	echo = fork();
	if (echo < 0)
		lost("no process");
	if (!echo) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(1);
		for (round = 0; round < ROUNDS; round++) {
			take(there[0], &given[0], round);
			mark_round(marks, 1, round);
			give(back[1], &given[1]);
		}
		_exit(0);
	}
	pin(0);
	for (round = 0; round < ROUNDS; round++) {
		mark_round(marks, 0, round);
		give(there[1], &given[0]);
		take(back[0], &given[1], round);
	}
	waitpid(echo, NULL, 0);
	munmap(given, 2 * sizeof(*given));
	close(there[0]), close(there[1]), close(back[0]), close(back[1]);
	return echo;
}

static const char *collect_rounds(const void *map, uint32_t cpu, uint32_t task, struct rounds *rounds)
{
	bool current = false, waited = false;
	uint64_t run = 0, last = 0;
	const union record *r;
	uint32_t marked = 0;
	struct walk walk = walk_begin(map);

	while ((r = walk_next(&walk))) {
		if (r->header.timestamp < last)
			return "time goes back on a CPU";
		last = r->header.timestamp;
		if (r->header.record_type == BM_RECORD_TASK_SWITCH) {
			if (r->task_switch.task_id == task && waited)
				run = last;
			else if (current)
				/* In read(). Who waits for the pipe's lock can't be interrupted. */
				waited = r->task_switch.reason == BM_TASK_SWITCH_BLOCKED &&
					 r->task_switch.prev_state & INTERRUPTIBLE;
			current = r->task_switch.task_id == task;
		}
		if (r->header.record_type != BM_RECORD_ANNOTATION || r->annotation.channel != cpu)
			continue;
		if (r->annotation.colour != marked || r->annotation.task_id != task)
			return "a mark is not that of the next round";
		rounds->mark[marked] = last;
		rounds->run[marked++] = run;
		run = 0;
		waited = false;
	}
	return marked == ROUNDS ? walk.damage : "a round is not marked";
}

TEST_F_TIMEOUT(clock, causes_come_before_effects_on_other_cpus, 600)
{
	static struct rounds rounds[2];
	unsigned int wrong = 0, wakeups = 0, i;
	int marks = open(KBARMAN_DEVICE, O_RDWR | O_CLOEXEC);
	const char *fault;
	pid_t echo;

	if (query(self->fd).nr_cpus < 2)
		SKIP(return, "one CPU only");
	ASSERT_LE(0, marks);
	ASSERT_EQ(0, configure(self->fd, (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_MARKS, .ring_bytes = 8 * MIB }));
	ASSERT_EQ(0, start(self->fd));
	echo = causal_ping_pong(marks);
	ASSERT_EQ(0, stop(self->fd));
	close(marks);
	fault = collect_rounds(map_cpu(self->fd, 0), 0, thread_id(), &rounds[0]);
	ASSERT_EQ(NULL, fault) TH_LOG("%s", fault);
	fault = collect_rounds(map_cpu(self->fd, 1), 1, echo, &rounds[1]);
	ASSERT_EQ(NULL, fault) TH_LOG("%s", fault);

	for (i = 0; i < ROUNDS; i++) {
		/* There, and back. */
		wrong += rounds[0].mark[i] >= rounds[1].mark[i];
		wrong += i && rounds[1].mark[i - 1] >= rounds[0].mark[i];
		/* The wake-up is between the mark of the one and the run of the other. */
		wrong += rounds[1].run[i] && rounds[0].mark[i] >= rounds[1].run[i];
		wrong += i && rounds[0].run[i] && rounds[1].mark[i - 1] >= rounds[0].run[i];
		wakeups += !!rounds[1].run[i] + !!rounds[0].run[i];
	}
	TH_LOG("%u rounds, %u of their %u wake-ups of one that waited", ROUNDS, wakeups, 2 * ROUNDS);
	EXPECT_EQ(0, wrong);
	EXPECT_LE(ROUNDS, wakeups);
}

#if defined(__x86_64__) || defined(__i386__)
static bool file_has(const char *path, const char *word)
{
	char line[8192] = "";
	FILE *f = fopen(path, "r");
	bool found = false;

	if (!f)
		lost("no %s", path);
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, word);
	fclose(f);
	return found;
}
#endif

TEST_F(clock, timestamps_are_ticks_where_the_counter_is_reliable)
{
	bool raw = query(self->fd).features & KBARMAN_FEATURE_RAW_CLOCK;

#if defined(__x86_64__) || defined(__i386__)
	if (file_has("/sys/module/kbarman/parameters/trust_tsc", "Y")) {
		EXPECT_EQ(file_has("/proc/cmdline", "tsc=reliable"), raw);
	} else if (!file_has("/proc/cpuinfo", " constant_tsc") ||
		   !file_has("/proc/cpuinfo", " nonstop_tsc")) {
		EXPECT_EQ(false, raw);
	}
#elif defined(__aarch64__) || defined(__arm__)
	EXPECT_EQ(true, raw);
#else
	/* The module knows no counter of this machine that needs no care. */
	EXPECT_EQ(false, raw);
#endif
	if (!raw)
		EXPECT_EQ(1000000000, query(self->fd).clock_hz);
}

TEST_HARNESS_MAIN
