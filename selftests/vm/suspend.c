// SPDX-License-Identifier: MIT
/*
 * The machine is suspended while a session runs, to idle and to memory, but for the last step:
 * of that the kernel waits for a second instead. With all devices asleep in the one case; in
 * the other one its other CPUs are gone, too, and its clocks stand still. Not among the
 * programs of every run, as a root or a share of the host's (9p) does not outlive it:
 * `make soak PARTS=suspend` runs it from the guest's memory.
 */
#include <inttypes.h>

#include "kselftest_harness.h"
#include "lib.h"

#define POWER		"/sys/power/"
#define DELAY		"/sys/module/suspend/parameters/pm_test_delay"
#define ALLOWED_NS	200000	/* two looks at clocks of an emulated machine */
#define ROUNDS		20

static bool can(const char *file, const char *word)
{
	char words[256] = "";

	if (access(file, R_OK))
		return false;
	read_file(file, words, sizeof(words));
	return strstr(words, word);
}

static void suspend_as_far_as(const char *state, const char *step)
{
	write_file(DELAY, "1");
	write_file(POWER "pm_test", step);
	write_file(POWER "state", state);
	write_file(POWER "pm_test", "none");
}

static void suspend_to_idle(void)
{
	suspend_as_far_as("freeze", "platform");
}

static void suspend_to_memory(void)
{
	write_file(POWER "mem_sleep", "deep");
	suspend_as_far_as("mem", "core");
}

FIXTURE(suspend)
{
	int fd;
	uint32_t nr;
};

FIXTURE_SETUP(suspend)
{
	self->fd = device_open_free();
	self->nr = query(self->fd).nr_cpus;
	if (!can(POWER "mem_sleep", "deep") || !can(POWER "pm_test", "core"))
		SKIP(skip_test(), "this kernel can't pretend to be suspended");
	ASSERT_EQ(0, configure(self->fd, (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE, .ring_bytes = 8 * MIB }));
	ASSERT_EQ(0, start(self->fd));
}

FIXTURE_TEARDOWN(suspend)
{
	close(self->fd);
}

/* Records of @cpu from @timestamp on. */
static uint64_t records_since(int fd, uint32_t cpu, uint64_t timestamp)
{
	struct kbarman_query q = query(fd);
	const void *map = map_cpu(fd, cpu);
	struct walk walk = walk_begin(map);
	const union record *r;
	uint64_t nr = 0;

	while ((r = walk_next(&walk)))
		nr += r->header.timestamp >= timestamp;
	munmap((void *)map, q.map_bytes);
	return nr;
}

static void every_cpu_is_recorded_around(struct __test_metadata *_metadata, int fd, uint32_t nr,
					 void (*suspend)(void))
{
	uint64_t before[2] = { 0 }, awake;
	struct kbarman_stats all;
	uint32_t cpu;

	ASSERT_EQ(2, nr);
	for (cpu = 0; cpu < nr; cpu++) {
		ping_pong(cpu, ROUNDS);
		before[cpu] = stats(fd, cpu).written;
	}
	pin(0);
	suspend();
	awake = clocks(fd).now.timestamp;
	for (cpu = 0; cpu < nr; cpu++)
		/* One that went and came is taken in again, a moment after. */
		do
			ping_pong(cpu, ROUNDS);
		while (records_since(fd, cpu, awake) < ROUNDS);
	ASSERT_EQ(0, stop(fd));
	all = stats(fd, KBARMAN_CPU_ALL);
	EXPECT_EQ(0, lost_records(&all));
	for (cpu = 0; cpu < nr; cpu++) {
		struct judgement j = judge_cpu(fd, cpu);

		EXPECT_EQ(NULL, j.fault)
			TH_LOG("CPU %u at %" PRIu64 ": %s", cpu, j.at, j.fault);
		EXPECT_EQ(stats(fd, cpu).written, j.records);
		EXPECT_LE(ROUNDS, before[cpu]);
		EXPECT_LT(before[cpu], j.records);
	}
}

TEST_F(suspend, every_cpu_is_recorded_before_and_after_suspend_to_idle)
{
	every_cpu_is_recorded_around(_metadata, self->fd, self->nr, suspend_to_idle);
}

TEST_F(suspend, every_cpu_is_recorded_before_and_after_suspend_to_memory)
{
	every_cpu_is_recorded_around(_metadata, self->fd, self->nr, suspend_to_memory);
}

/* Nanoseconds between two looks by the capture, and by the clock that stands still. */
static int64_t capture_span(const void *map, const struct kbarman_clock_pair *from,
			    const struct kbarman_clock_pair *to)
{
	return capture_ns(map, to->timestamp) - capture_ns(map, from->timestamp);
}

static int64_t raw_span(const struct kbarman_clock_pair *from, const struct kbarman_clock_pair *to)
{
	return to->raw_ns - from->raw_ns;
}

#define EXPECT_NEAR(want, seen)	do {				\
	int64_t off_ = (int64_t)(seen) - (int64_t)(want);	\
	EXPECT_GE(ALLOWED_NS, off_);				\
	EXPECT_LE(-ALLOWED_NS, off_);				\
} while (0)

/* The longer it was awake, the less was a short sleep seen as what it is. */
TEST_F(suspend, a_short_sleep_moves_no_record)
{
	struct kbarman_clock_pair looks[3];
	struct kbarman_clock k;
	const void *map;
	uint64_t ns;

	sleep(45);
	looks[0] = clocks(self->fd).now;
	suspend_to_memory();
	looks[1] = clocks(self->fd).now;
	sleep(5);
	looks[2] = clocks(self->fd).now;
	ASSERT_EQ(0, stop(self->fd));
	k = clocks(self->fd);
	map = map_cpu(self->fd, 0);
	TH_LOG("%" PRId64 " ns by the capture, %" PRId64 " of CLOCK_MONOTONIC_RAW; asleep: %s",
	       capture_span(map, &looks[0], &looks[1]), raw_span(&looks[0], &looks[1]),
	       capture_fact(map, "asleep") ?: "never");
	EXPECT_NEAR(raw_span(&k.start, &looks[0]), capture_span(map, &k.start, &looks[0]));
	EXPECT_NEAR(raw_span(&looks[1], &looks[2]), capture_span(map, &looks[1], &looks[2]));
	/* The end, as if that clock had gone on; and how long it had not. */
	ASSERT_NE(NULL, capture_fact(map, "raw_end"));
	ns = strtoull(strchr(capture_fact(map, "raw_end"), ',') + 1, NULL, 10);
	EXPECT_NEAR(ns, capture_ns(map, k.stop.timestamp));
	ASSERT_NE(NULL, capture_fact(map, "asleep"));
	EXPECT_EQ(1, strtoul(capture_fact(map, "asleep"), NULL, 10));
	ns = strtoull(strchr(capture_fact(map, "asleep"), ',') + 1, NULL, 10);
	EXPECT_NEAR(ns, capture_span(map, &looks[0], &looks[1]) - raw_span(&looks[0], &looks[1]));
}

TEST_F(suspend, the_next_session_has_not_slept)
{
	suspend_to_memory();
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_NE(NULL, capture_fact(map_cpu(self->fd, 0), "asleep"));
	ASSERT_EQ(0, start(self->fd));
	usleep(1000);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(NULL, capture_fact(map_cpu(self->fd, 0), "asleep"));
}

TEST_HARNESS_MAIN
