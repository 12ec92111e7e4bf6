// SPDX-License-Identifier: MIT
/*
 * A sample reads the counters of its CPU, which stop() takes away by interrupting. A software
 * event's overflow can be interrupted on kernels older than those that watch over this test: so
 * what it reads it has to read with interrupts off, whatever the kernel.
 *
 * Needs the test build, which has a PMU that overflows like that, and looks (module/pmu.c).
 */
#include "lib/tap.h"
#include "parameters.h"

#define PMU_TYPE	"/sys/bus/event_source/devices/kbarman_test/type"
#define OVERFLOWS	100

int main(void)
{
	struct kbarman_event events[] = { { .name = "overflows" }, { .name = "reads" } };
	unsigned int i;
	int fd;

	test_build_want();
	write_parameter("test_pmu", "1");
	events[0].type = events[1].type = read_number(PMU_TYPE);
	fd = device_open_free();
	if (configure(fd, (struct kbarman_configure) {
			.sources = KBARMAN_SOURCE_PMU, .ring_bytes = 256 * KIB, .nr_events = 2,
			.events_ptr = (uintptr_t)events, .sample = 1 }) || start(fd))
		lost("no session");
	for (i = 0; i < OVERFLOWS; i++)
		write_parameter("test_pmu_overflow", "1");
	if (stop(fd))
		lost("no stop");
	tap_is(stats(fd, KBARMAN_CPU_ALL).written, OVERFLOWS, "every_overflow_is_a_sample");
	tap_ok(parameter("test_pmu_reads") >= 2 * OVERFLOWS, "that_reads_all_counters");
	tap_is(parameter("test_pmu_interruptible"), 0, "with_interrupts_off");
	close(fd);
	write_parameter("test_pmu", "0");
	tap_is(module_unload(), 0, "nothing_holds_the_module_afterwards");
	return tap_done();
}
