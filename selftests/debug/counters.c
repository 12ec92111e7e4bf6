// SPDX-License-Identifier: MIT
/*
 * A sample reads the counters of its CPU, which stop() takes away by interrupting. A software
 * event's overflow can be interrupted on kernels older than those that watch over this test: so
 * what it reads it has to read with interrupts off, whatever the kernel.
 *
 * And a counter may lose its place on the PMU, which nobody tells: that is counted and told, and
 * it is given a place again when there is one.
 *
 * Needs the test build, which has a PMU that overflows like that, and looks (module/pmu.c).
 */
#include "lib/tap.h"
#include "parameters.h"

#define PMU_TYPE	"/sys/bus/event_source/devices/kbarman_test/type"
#define OVERFLOWS	100

/* perf looks anew for places of what is pinned to CPU 0, and finds none. */
static void take_places(uint32_t type)
{
	struct perf_event_attr attr = { .type = type, .size = sizeof(attr), .pinned = 1 };
	int fd;

	write_parameter("test_pmu_refuse", "1");
	fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		lost("no event of the test's PMU");
	close(fd);
}

static bool overflows(void)
{
	int fd = open(PARAMETERS "test_pmu_overflow", O_WRONLY | O_CLOEXEC);
	bool counts = write(fd, "1", 1) == 1;

	close(fd);
	return counts;
}

/* The last value that CPU 0's ring has of a series of the module's, ~0: none. */
static uint64_t last_value(int fd)
{
	const void *map = map_cpu(fd, 0);
	struct walk walk = walk_begin(map);
	struct kbarman_query q = query(fd);
	uint64_t value = ~0ULL;
	const union record *r;

	while ((r = walk_next(&walk)))
		if (r->header.record_type == BM_RECORD_CUSTOM_COUNTER)
			value = r->counter.value;
	munmap((void *)map, q.map_bytes);
	return value;
}

static void test_lost_place(int fd, uint32_t type)
{
	if (start(fd))
		lost("no start");
	tap_is(stats(fd, 0).stopped[KBARMAN_STOPPED_ERROR], 0, "no_stop_is_told_before_there_is_one");
	take_places(type);
	while (!stats(fd, 0).stopped[KBARMAN_STOPPED_ERROR])
		usleep(10000);
	tap_is(last_value(fd), KBARMAN_STOPPED_ERROR + 1, "a_counter_without_a_place_is_told");
	tap_ok(!overflows(), "it_does_not_count_then");
	write_parameter("test_pmu_refuse", "0");
	while (!overflows())
		usleep(10000);
	tap_is(last_value(fd), 0, "when_there_is_a_place_it_counts_again");
	tap_is(stats(fd, 0).stopped[KBARMAN_STOPPED_ERROR], 1, "it_has_stopped_once");
	take_places(type);
	if (stop(fd))
		lost("no stop");
	tap_is(stats(fd, 0).stopped[KBARMAN_STOPPED_ERROR], 2, "what_stopped_before_the_end_is_told_too");
	write_parameter("test_pmu_refuse", "0");
}

int main(void)
{
	struct kbarman_event events[] = { { .name = "overflows" }, { .name = "reads" } };
	unsigned int i;
	int fd;

	test_build_want();
	write_parameter("test_pmu", "1");
	events[0].attr.type = events[1].attr.type = read_number(PMU_TYPE);
	pin(0);
	fd = device_open_free();
	if (configure(fd, (struct kbarman_configure) {
			.sources = KBARMAN_SOURCE_PMU, .ring_bytes = 256 * KIB, .nr_events = 2,
			.events_ptr = sampled(events, 2, 1) }) || start(fd))
		lost("no session");
	for (i = 0; i < OVERFLOWS; i++)
		write_parameter("test_pmu_overflow", "1");
	if (stop(fd))
		lost("no stop");
	tap_is(stats(fd, KBARMAN_CPU_ALL).written, OVERFLOWS, "every_overflow_is_a_sample");
	tap_ok(parameter("test_pmu_reads") >= 2 * OVERFLOWS, "that_reads_all_counters");
	tap_is(parameter("test_pmu_interruptible"), 0, "with_interrupts_off");
	test_lost_place(fd, events[0].attr.type);
	close(fd);
	write_parameter("test_pmu", "0");
	tap_is(module_unload(), 0, "nothing_holds_the_module_afterwards");
	return tap_done();
}
