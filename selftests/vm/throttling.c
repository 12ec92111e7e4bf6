// SPDX-License-Identifier: MIT
/*
 * Counters that stand still for a while: because Linux throttles them, or their CPU is gone. Each
 * time is counted, and told where it was, in the ring.
 */
#include "burn.h"
#include "kselftest_harness.h"

#define RATE		"/proc/sys/kernel/perf_event_max_sample_rate"
#define PERCENT		"/proc/sys/kernel/perf_cpu_time_max_percent"
#define UNLIMITED	"100000"

/* Linux itself would lower the rate while handlers seem slow to it, as they do when emulated. */
static void set_rate(const char *rate)
{
	write_file(PERCENT, "25");
	write_file(RATE, rate);
	write_file(PERCENT, "0");
}

/* The row of the series "Counters stopped". */
static uint32_t series_of_stops(const void *map)
{
	const struct bm_protocol_header_custom_chart_series *series = capture_series(map);
	uint32_t row, nr = capture_header(map)->config_constants.num_custom_counters;

	for (row = 0; row < nr; row++)
		if (!strcmp(capture_strings(map) + series[row].name_ptr, "Counters stopped"))
			return row;
	lost("no series of stopped counters");
}

/* What the ring of a CPU tells of its counter. */
struct told {
	unsigned int samples, by_reason[KBARMAN_STOP_REASONS];
	unsigned int whole;		/* samples while it counted all the time */
	unsigned int bookmarks;
	uint64_t state;			/* the last value of the series */
};

static struct told tell(const void *map)
{
	uint32_t series = series_of_stops(map);
	struct walk walk = walk_begin(map);
	const union record *r;
	struct told told = { 0 };

	while ((r = walk_next(&walk))) {
		switch (r->header.record_type) {
		case BM_RECORD_SAMPLE_WITH_PC:
			told.samples++;
			told.whole += !told.state;
			break;
		case BM_RECORD_ANNOTATION:
			told.bookmarks += r->annotation.type == BM_ANNOTATION_BOOKMARK;
			break;
		case BM_RECORD_CUSTOM_COUNTER:
			if (r->counter.counter != series)
				break;
			told.state = r->counter.value;
			if (told.state > KBARMAN_STOP_REASONS)
				lost("no such reason");
			if (told.state)
				told.by_reason[told.state - 1]++;
			break;
		}
	}
	return told;
}

/* Work until the ring tells of @count times that the counter was throttled. */
static struct told burn_until_throttled(const void *map, unsigned int count)
{
	struct told told;

	while ((told = tell(map)).by_reason[KBARMAN_STOPPED_THROTTLED] < count)
		burn();
	return told;
}

/* ---- throttling, by the CPU's PMU and by cpu-clock ---- */

FIXTURE(throttling)
{
	int fd;
	const void *map;
	char rate[16], percent[16];
};

FIXTURE_VARIANT(throttling)
{
	const struct kbarman_event *event;
};

FIXTURE_VARIANT_ADD(throttling, cpu_clock) { .event = &cpu_clock };
FIXTURE_VARIANT_ADD(throttling, cycles) { .event = &cycles };

FIXTURE_SETUP(throttling)
{
	self->fd = device_open_free();
	if (variant->event == &cycles && !(query(self->fd).features & KBARMAN_FEATURE_PMU))
		SKIP(skip_test(), "no hardware PMU");
	read_file(RATE, self->rate, sizeof(self->rate));
	read_file(PERCENT, self->percent, sizeof(self->percent));
	pin(0);
	ASSERT_EQ(0, configure(self->fd, sampling(variant->event, 1)));
	self->map = map_cpu(self->fd, 0);
}

FIXTURE_TEARDOWN(throttling)
{
	set_rate(self->rate);
	write_file(PERCENT, self->percent);
	close(self->fd);
}

/* With so low a rate each overflow is one too many; to some kernels the second one of a tick. */
TEST_F(throttling, each_time_is_counted_and_told_behind_its_sample)
{
	struct kbarman_stats s;
	struct told told;
	unsigned int stops;

	set_rate("1");
	ASSERT_EQ(0, start(self->fd));
	burn_until_throttled(self->map, 20);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(NULL, judge_cpu(self->fd, 0).fault);
	told = tell(self->map);
	stops = told.by_reason[KBARMAN_STOPPED_THROTTLED];
	EXPECT_GE(told.samples, stops);
	/* Behind each stop there is one sample that is not whole, but for the last one. */
	EXPECT_EQ(stops - !!told.state, told.samples - told.whole);
	EXPECT_LE(1, told.bookmarks);
	EXPECT_GE(stops, told.bookmarks);
	s = stats(self->fd, 0);
	EXPECT_EQ(stops, s.stopped[KBARMAN_STOPPED_THROTTLED]);
	EXPECT_EQ(0, s.stopped[KBARMAN_STOPPED_ERROR]);
	EXPECT_EQ(0, s.stopped[KBARMAN_STOPPED_OFFLINE]);
	EXPECT_LE(stops, stats(self->fd, KBARMAN_CPU_ALL).stopped[KBARMAN_STOPPED_THROTTLED]);
}

TEST_F(throttling, the_end_of_it_is_told_too)
{
	struct told told, later;

	set_rate("1");
	ASSERT_EQ(0, start(self->fd));
	burn_until_throttled(self->map, 5);
	set_rate(UNLIMITED);
	while ((told = tell(self->map)).state)
		burn();
	burn_for(self->map, told.samples + 20);
	ASSERT_EQ(0, stop(self->fd));
	later = tell(self->map);
	EXPECT_EQ(0, later.state);
	EXPECT_EQ(told.by_reason[KBARMAN_STOPPED_THROTTLED],
		  later.by_reason[KBARMAN_STOPPED_THROTTLED]);
	EXPECT_EQ(later.samples - told.samples, later.whole - told.whole);
}

TEST_F(throttling, nothing_is_told_where_nothing_stopped)
{
	struct kbarman_stats s;
	struct told told;
	unsigned int i;

	set_rate(UNLIMITED);
	ASSERT_EQ(0, start(self->fd));
	burn_for(self->map, 20);
	ASSERT_EQ(0, stop(self->fd));
	told = tell(self->map);
	EXPECT_EQ(told.samples, told.whole);
	EXPECT_EQ(0, told.bookmarks);
	s = stats(self->fd, KBARMAN_CPU_ALL);
	for (i = 0; i < KBARMAN_STOP_REASONS; i++)
		EXPECT_EQ(0, s.stopped[i]);
}

TEST_F(throttling, a_new_session_counts_anew)
{
	set_rate("1");
	ASSERT_EQ(0, start(self->fd));
	burn_until_throttled(self->map, 2);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_LE(2, stats(self->fd, 0).stopped[KBARMAN_STOPPED_THROTTLED]);
	set_rate(UNLIMITED);
	ASSERT_EQ(0, start(self->fd));
	burn_for(self->map, 2);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(0, stats(self->fd, 0).stopped[KBARMAN_STOPPED_THROTTLED]);
	EXPECT_EQ(0, tell(self->map).bookmarks);
}

/* ---- CPUs that go ---- */

TEST_F(throttling, a_cpu_that_goes_offline_stops_its_counter)
{
	const void *map;
	struct told told;

	if (query(self->fd).nr_cpus < 2 || access("/sys/devices/system/cpu/cpu1/online", W_OK))
		SKIP(return, "no CPU can go offline");
	set_rate(UNLIMITED);
	ASSERT_EQ(0, start(self->fd));
	map = map_cpu(self->fd, 1);
	pin(1);
	burn_for(map, 2);
	pin(0);
	cpu_set_online(1, false);
	EXPECT_EQ(1, stats(self->fd, 1).stopped[KBARMAN_STOPPED_OFFLINE]);
	EXPECT_EQ(0, stats(self->fd, 0).stopped[KBARMAN_STOPPED_OFFLINE]);
	told = tell(map);
	EXPECT_EQ(1, told.by_reason[KBARMAN_STOPPED_OFFLINE]);
	EXPECT_EQ(KBARMAN_STOPPED_OFFLINE + 1, told.state);
	cpu_set_online(1, true);
	pin(1);
	while (tell(map).state)
		burn();
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(1, stats(self->fd, 1).stopped[KBARMAN_STOPPED_OFFLINE]);
	EXPECT_EQ(1, tell(map).by_reason[KBARMAN_STOPPED_OFFLINE]);
}

/* ---- more than the machine takes ---- */

/* perf itself asks this of user space's events only. */
TEST_F(throttling, a_frequency_above_the_limit_is_refused)
{
	struct kbarman_configure c = sampling(variant->event, 1);
	struct kbarman_start s = { .size = sizeof(s) };

	set_rate("1000");
	c.events_ptr = sampled_hz(variant->event, 1, 1001);
	ASSERT_EQ(0, configure(self->fd, c));
	EXPECT_EQ(-ERANGE, call(self->fd, KBARMAN_START, &s));
	EXPECT_EQ(~0U, s.cpu);
	EXPECT_EQ(~0U, s.event);
	EXPECT_EQ(0, query(self->fd).state & KBARMAN_STATE_RUNNING);
	c.events_ptr = sampled_hz(variant->event, 1, 1000);
	ASSERT_EQ(0, configure(self->fd, c));
	EXPECT_EQ(0, start(self->fd));
	/* A limit that is lowered later stops nobody. */
	set_rate("500");
	burn_for(map_cpu(self->fd, 0), 2);
}

TEST_HARNESS_MAIN
