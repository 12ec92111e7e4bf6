// SPDX-License-Identifier: MIT
/*
 * Turns of counters: when which ones count, and that what they say is of that time alone. The same
 * event as one that is counted all the time tells what a turn should have said.
 */
#include <linux/perf_event.h>
#include <sys/mman.h>

#include "kselftest_harness.h"
#include "sums.h"

#define TURN_MS		20
#define SECONDS		2
#define ROUNDS		500
#define ALWAYS		0	/* counter: switches, all the time; then those of three turns: */
#define SWITCHES	1
#define FAULTS		2	/* beside SWITCHES, in the same turn */
#define CLOCK		3
#define MIGRATIONS	4
#define NR		5

#define SOFTWARE(number, text, when) \
	{ .attr = { .type = PERF_TYPE_SOFTWARE, .config = (number) }, .name = (text), .turn = (when) }

static const struct kbarman_event events[NR] = {
	SOFTWARE(PERF_COUNT_SW_CONTEXT_SWITCHES, "context-switches", 0),
	SOFTWARE(PERF_COUNT_SW_CONTEXT_SWITCHES, "cs", 1),
	SOFTWARE(PERF_COUNT_SW_PAGE_FAULTS, "faults", 1),
	SOFTWARE(PERF_COUNT_SW_CPU_CLOCK, "cpu-clock", 2),
	SOFTWARE(PERF_COUNT_SW_CPU_MIGRATIONS, "migrations", 3),
};

FIXTURE(turns)
{
	int fd;
	struct kbarman_event events[NR];
	struct kbarman_configure config;
};

FIXTURE_SETUP(turns)
{
	self->fd = device_open_free();
	if (!(query(self->fd).features & KBARMAN_FEATURE_TURNS))
		lost("the module says that it has no turns");
	pin(0);
	memcpy(self->events, events, sizeof(events));
	self->config = (struct kbarman_configure){
		.sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_PMU, .ring_bytes = 16 * MIB,
		.flags = KBARMAN_CONFIGURE_COUNT_SWITCH,
		.nr_events = NR, .events_ptr = (uintptr_t)self->events };
}

FIXTURE_TEARDOWN(turns)
{
	close(self->fd);
}

static int turn(int fd, uint32_t number)
{
	struct kbarman_turn t = { .size = sizeof(t), .turn = number };

	return call(fd, KBARMAN_TURN, &t);
}

/* Records work. Each turn comes once in a round of three. */
static void record_ping_pong(struct __test_metadata *_metadata, int fd,
			     struct kbarman_configure config)
{
	uint64_t begun, now, due = 0;
	unsigned int turns = 0;

	ASSERT_EQ(0, configure(fd, config));
	ASSERT_EQ(0, start(fd));
	begun = clock_ns(CLOCK_MONOTONIC);
	while ((now = clock_ns(CLOCK_MONOTONIC)) - begun < SECONDS * SLOWNESS * 1000000000ULL ||
	       turns < 4 * 3) {
		if (now >= due) {
			ASSERT_EQ(0, turn(fd, 1 + turns++ % 3));
			due = now + TURN_MS * 1000000ULL;
		}
		ping_pong(0, ROUNDS / 10);
	}
	ASSERT_EQ(0, stop(fd));
	ASSERT_EQ(0, stats(fd, 0).overwritten);
}

static bool counts(const union record *r, unsigned int i)
{
	return delta_of(r, i) != INVALID_DELTA;
}

TEST_F(turns, one_group_counts_at_a_time_and_each_in_turn)
{
	unsigned int of_turn[NR] = { 0 }, turns = 0, i;
	const union record *r;
	int last = -1;
	struct walk walk;

	record_ping_pong(_metadata, self->fd, self->config);
	walk = walk_begin(map_cpu(self->fd, 0));
	while ((r = walk_next(&walk))) {
		if (!is_sample(r))
			continue;
		ASSERT_TRUE(counts(r, ALWAYS));
		ASSERT_EQ(counts(r, SWITCHES), counts(r, FAULTS));
		ASSERT_GE(1, counts(r, SWITCHES) + counts(r, CLOCK) + counts(r, MIGRATIONS));
		for (i = SWITCHES; i < NR; i++) {
			if (i == FAULTS || !counts(r, i))
				continue;
			turns += last != (int)i;
			of_turn[i] += last != (int)i;
			last = i;
		}
	}
	TH_LOG("%u, %u, %u turns", of_turn[SWITCHES], of_turn[CLOCK], of_turn[MIGRATIONS]);
	/* Two turns of a group look like one if they are next to each other. */
	EXPECT_LE(SECONDS * 1000 / TURN_MS / 20, turns);
	for (i = SWITCHES; i < NR; i++)
		EXPECT_TRUE(i == FAULTS || of_turn[i] > turns / 9) TH_LOG("counter %u", i);
}

/*
 * The last value of a turn was counted up to a moment before it was read: what switched meanwhile
 * is in the other counter alone. On a machine with more to do, samples may be further apart than a
 * turn is long: then all other turns may have been between the two.
 */
TEST_F(turns, a_value_is_what_was_counted_since_the_record_before)
{
	unsigned int same = 0, less = 0, ended = 0, apart = 0;
	const union record *r;
	bool counted = false;
	uint64_t before, at = 0;
	struct walk walk;
	const void *map;

	record_ping_pong(_metadata, self->fd, self->config);
	map = map_cpu(self->fd, 0);
	walk = walk_begin(map);
	while ((r = walk_next(&walk))) {
		if (!is_sample(r))
			continue;
		before = at;
		at = capture_ns(map, r->header.timestamp);
		ended += counted && !counts(r, SWITCHES);
		counted = counts(r, SWITCHES);
		if (!counted)
			continue;
		ASSERT_LE(delta_of(r, SWITCHES), delta_of(r, ALWAYS));
		if (delta_of(r, SWITCHES) == delta_of(r, ALWAYS))
			same++;
		else if (at - before > TURN_MS * 1000000ULL)
			apart++;
		else
			less++;
	}
	TH_LOG("%u values are the same, %u are less, %u more after a long time; %u turns ended",
	       same, less, apart, ended);
	EXPECT_LE(20, same);
	EXPECT_LE(3, ended);
	EXPECT_GE(ended + 1 + same / 50, less);
}

TEST_F(turns, nothing_is_counted_that_is_not_told)
{
	record_ping_pong(_metadata, self->fd, self->config);
	EXPECT_TRUE(sums_are_equal(self->fd));
	EXPECT_EQ(0, query(self->fd).state & KBARMAN_STATE_RUNNING);
}

/* To rest is no failure. */
TEST_F(turns, what_rests_is_not_unreadable)
{
	record_ping_pong(_metadata, self->fd, self->config);
	EXPECT_EQ(0, stats(self->fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_COUNTER]);
}

TEST_F(turns, the_capture_says_which_counters_take_turns)
{
	const void *map;

	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	map = map_cpu(self->fd, 0);
	EXPECT_EQ(NULL, capture_fact(map, "turn.0.0"));
	EXPECT_STREQ("1", capture_fact(map, "turn.0.1"));
	EXPECT_STREQ("1", capture_fact(map, "turn.0.2"));
	EXPECT_STREQ("2", capture_fact(map, "turn.0.3"));
	EXPECT_STREQ("3", capture_fact(map, "turn.0.4"));
}

/* What samples never takes turns: with turns for the others its samples go on as without. */
TEST_F(turns, samples_go_on_meanwhile)
{
	self->events[0] = (struct kbarman_event)SOFTWARE(PERF_COUNT_SW_CPU_CLOCK, "clock", 0);
	self->events[0].attr.sample_period = 1000000;
	record_ping_pong(_metadata, self->fd, self->config);
	EXPECT_LE(SECONDS * 10, records_of(self->fd, 0, BM_RECORD_SAMPLE_WITH_PC));
	EXPECT_TRUE(sums_are_equal(self->fd));
}

TEST_F(turns, several_recordings_take_their_own_turns)
{
	int other = device_open();

	ASSERT_EQ(0, configure(other, self->config));
	ASSERT_EQ(0, start(other));
	ASSERT_EQ(0, turn(other, 3));
	record_ping_pong(_metadata, self->fd, self->config);
	ASSERT_EQ(0, stop(other));
	EXPECT_TRUE(sums_are_equal(self->fd));
	EXPECT_TRUE(sums_are_equal(other));
	close(other);
}

/* Nothing that takes turns counts before the first one, and the last one goes on. */
TEST_F(turns, the_last_turn_goes_on_and_the_capture_says_since_when)
{
	unsigned long long given = 0, since = 0;
	unsigned int before = 0, after = 0;
	const union record *r;
	struct walk walk;
	const void *map;

	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	ping_pong(0, ROUNDS);
	ASSERT_EQ(0, turn(self->fd, 2));
	ASSERT_EQ(0, turn(self->fd, 1));
	ping_pong(0, ROUNDS);
	ASSERT_EQ(0, stop(self->fd));
	map = map_cpu(self->fd, 0);
	ASSERT_EQ(2, sscanf(capture_fact(map, "turned"), "%llu,%llu", &given, &since));
	EXPECT_EQ(2, given);
	walk = walk_begin(map);
	while ((r = walk_next(&walk))) {
		if (!is_sample(r))
			continue;
		if (counts(r, SWITCHES)) {
			EXPECT_LE(since, r->header.timestamp);
			after++;
		} else if (r->header.timestamp < since) {
			before++;
		}
	}
	EXPECT_LE(ROUNDS, before);
	EXPECT_LE(ROUNDS, after);
	EXPECT_TRUE(sums_are_equal(self->fd));
}

TEST_F(turns, only_the_owner_gives_a_turn_that_there_is)
{
	int other = device_open();

	ASSERT_EQ(0, configure(self->fd, self->config));
	EXPECT_EQ(-EINVAL, turn(self->fd, 1));	/* it does not run */
	ASSERT_EQ(0, start(self->fd));
	EXPECT_EQ(-EINVAL, turn(self->fd, 0));
	EXPECT_EQ(-EINVAL, turn(self->fd, 4));
	EXPECT_EQ(-EPERM, turn(other, 1));
	EXPECT_EQ(0, turn(self->fd, 1));
	close(other);
}

TEST_F(turns, what_can_have_no_turns_is_refused)
{
	struct kbarman_configure c = self->config;

	ASSERT_EQ(0, configure(self->fd, self->config));
	c.flags = 0;			/* no readings at switches */
	c.count_ns = 1000000;
	EXPECT_EQ(-EINVAL, configure(self->fd, c));
	self->events[ALWAYS].attr.sample_period = 1000000;
	EXPECT_EQ(0, configure(self->fd, self->config));
	self->events[ALWAYS].turn = 1;		/* what samples */
	EXPECT_EQ(-EINVAL, configure(self->fd, self->config));
	self->events[ALWAYS].turn = 0;
	self->events[CLOCK].turn = KBARMAN_TURNS_MAX + 1;
	EXPECT_EQ(-EINVAL, configure(self->fd, self->config));
}

TEST_HARNESS_MAIN
