// SPDX-License-Identifier: MIT
/* Event names, against a sysfs of our own making. */
#include <errno.h>
#include <linux/perf_event.h>

#include <kbarman/perf_events.h>

#include "../lib/sysfs.h"
#include "../lib/tap.h"

static struct kb_perf_event events[KB_EVENTS_MAX];
static struct kb_error error;

static void make_sysfs(void)
{
	sysfs_begin();
	sysfs_pmu("armv8_pmuv3_0/type", "8\n");
	sysfs_pmu("armv8_pmuv3_0/cpus", "0-3\n");
	sysfs_pmu("armv8_pmuv3_0/format/event", "config:0-15\n");
	sysfs_pmu("armv8_pmuv3_0/format/long", "config1:0\n");
	sysfs_pmu("armv8_pmuv3_0/events/cpu_cycles", "event=0x0011\n");
	sysfs_pmu("armv8_pmuv3_0/events/l1d_cache", "event=0x04,long=1\n");
	sysfs_pmu("armv8_pmuv3_0/events/broken", "nothing=1\n");
	sysfs_pmu("split/type", "20\n");
	sysfs_pmu("split/format/event", "config:0-7,32-35\n");
	sysfs_pmu("split/format/whole", "config2:0-63\n");
	sysfs_pmu("split/format/odd", "config3:0-7\n");
	sysfs_pmu("split/format/mad", "config:9-5\n");
	sysfs_pmu("split/cpumask", "0\n");
	sysfs_pmu("split/events/uncore_only", "event=1\n");
	sysfs_put("kernel/tracing/events/sched/sched_wakeup/id", "314\n");
	sysfs_put("kernel/tracing/events/sched/broken/id", "no number\n");
}

static int parse(const char *list)
{
	memset(events, 0xaa, sizeof(events));
	memset(&error, 0, sizeof(error));
	return kb_events_parse(events, KB_EVENTS_MAX, list, sysfs, &error);
}

static bool is(unsigned int i, uint32_t type, uint64_t config, const char *name)
{
	bool good = events[i].type == type && events[i].config == config &&
		    !strcmp(events[i].name, name) && !events[i].flags;

	if (!good)
		tap_note("event %u: type %u config 0x%llx name '%.64s'", i, events[i].type,
			 (unsigned long long)events[i].config, events[i].name);
	return good;
}

static bool refused(const char *list, int code)
{
	int ret = parse(list);
	bool good = ret == code && error.code == code && strlen(error.text) > 10;

	if (!good)
		tap_note("'%s': %d, want %d: %s", list, ret, code, error.text);
	return good;
}

static void generic_names(void)
{
	tap_is(parse("cycles,cpu-cycles,instructions,cache-misses,cpu-clock,context-switches,faults"),
	       7, "lists_are_split");
	tap_ok(is(0, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles") &&
	       is(1, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cpu-cycles") &&
	       is(2, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "instructions") &&
	       is(3, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, "cache-misses"),
	       "hardware_names_are_those_of_perf");
	tap_ok(is(4, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock") &&
	       is(5, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, "context-switches") &&
	       is(6, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, "faults"),
	       "software_names_are_those_of_perf");
	tap_ok(parse("L1-dcache-load-misses,LLC-stores,branch-load-misses") == 3 &&
	       is(0, PERF_TYPE_HW_CACHE, 0x10000, "L1-dcache-load-misses") &&
	       is(1, PERF_TYPE_HW_CACHE, 0x00102, "LLC-stores") &&
	       is(2, PERF_TYPE_HW_CACHE, 0x10005, "branch-load-misses"),
	       "cache_names_are_composed");
}

static void raw_numbers(void)
{
	tap_ok(parse("r1a,r0,rFFFFFFFFFFFFFFFF") == 3 && is(0, PERF_TYPE_RAW, 0x1a, "r1a") &&
	       is(1, PERF_TYPE_RAW, 0, "r0") && is(2, PERF_TYPE_RAW, UINT64_MAX, "rFFFFFFFFFFFFFFFF"),
	       "raw_numbers_are_hexadecimal");
	tap_ok(refused("r", -ENOENT) && refused("rxyz", -ENOENT) && refused("r0x11", -ENOENT) &&
	       refused("r-1", -ENOENT) && refused("r10000000000000000", -ENOENT),
	       "what_only_looks_raw_is_refused");
}

static void tracepoints(void)
{
	tap_ok(parse("cycles,sched:sched_wakeup") == 2 &&
	       is(1, PERF_TYPE_TRACEPOINT, 314, "sched:sched_wakeup"),
	       "tracepoints_have_tracefs_numbers");
	tap_ok(refused("sched:nothing", -ENOENT) && refused("nothing:sched_wakeup", -ENOENT) &&
	       refused(":", -ENOENT) && refused("sched:", -ENOENT) &&
	       refused(":sched_wakeup", -ENOENT) &&
	       refused("..:sched_wakeup", -ENOENT) && refused("sched:..", -ENOENT),
	       "other_names_with_a_colon_are_refused");
	tap_ok(refused("sched:broken", -EINVAL), "a_tracepoint_without_a_number_is_refused");
}

static void sysfs_events(void)
{
	tap_ok(parse("armv8_pmuv3_0/cpu_cycles/") == 1 &&
	       is(0, 8, 0x11, "armv8_pmuv3_0/cpu_cycles/"), "pmu_events_are_looked_up");
	tap_ok(parse("cycles,armv8_pmuv3_0/event=0x8,long/,r3") == 3 &&
	       is(1, 8, 8, "armv8_pmuv3_0/event=0x8,long/") && events[1].config1 == 1 &&
	       is(2, PERF_TYPE_RAW, 3, "r3"), "commas_between_slashes_belong_to_the_event");
	tap_ok(parse("l1d_cache") == 1 && is(0, 8, 4, "l1d_cache") && events[0].config1 == 1,
	       "events_of_the_cpu_pmu_need_no_pmu_name");
	tap_ok(parse("split/event=0xabc/") == 1 && is(0, 20, 0xa000000bc, "split/event=0xabc/"),
	       "fields_are_spread_over_their_bits");
	tap_ok(parse("split/whole=0xffffffffffffffff/") == 1 && events[0].config2 == UINT64_MAX,
	       "a_field_can_be_64_bits_wide");
	tap_ok(parse("split/config=0x12,config1=3,name=mine/") == 1 && is(0, 20, 0x12, "mine") &&
	       events[0].config1 == 3, "config_words_and_names_can_be_given");
	tap_ok(parse("armv8_pmuv3_0/l1d_cache,event=5/") == 1 && events[0].config == 5,
	       "later_terms_replace_earlier_ones");
}

static void mistakes(void)
{
	char long_name[100], many[33 * 7 + 1] = "";

	tap_ok(refused("no-such-event", -ENOENT) && strstr(error.text, "no-such-event"),
	       "unknown_events_are_named");
	tap_ok(refused("nopmu/event=1/", -ENOENT) && strstr(error.text, " armv8_pmuv3_0 split"),
	       "an_unknown_pmu_is_answered_with_those_there_are");
	tap_ok(refused("split/nothing=1/", -ENOENT) && refused("split/nothing/", -ENOENT),
	       "unknown_terms_are_refused");
	tap_ok(refused("uncore_only", -ENOENT), "uncore_events_need_their_pmu_name");
	tap_ok(refused("", -EINVAL) && refused("cycles,", -EINVAL) && refused(",cycles", -EINVAL),
	       "empty_names_are_refused");
	tap_ok(refused("armv8_pmuv3_0/event=0x11", -EINVAL) &&
	       refused("armv8_pmuv3_0/event=/", -EINVAL) &&
	       refused("armv8_pmuv3_0/event=-1/", -EINVAL) &&
	       refused("armv8_pmuv3_0/event=0x1g/", -EINVAL) &&
	       refused("armv8_pmuv3_0/event=0x1ffffffffffffffff/", -EINVAL),
	       "malformed_values_are_refused");
	tap_ok(refused("armv8_pmuv3_0/event=0x10000/", -EINVAL), "values_that_are_too_wide_are_refused");
	tap_ok(refused("split/odd=1/", -EINVAL) && refused("split/mad=1/", -EINVAL) &&
	       refused("broken", -EINVAL), "formats_nobody_knows_are_refused");
	tap_ok(refused("../split/event=1/", -ENOENT) && refused("split/../type/", -ENOENT) &&
	       refused("./event=1/", -ENOENT) && refused("..", -ENOENT),
	       "names_do_not_leave_their_folder");
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	tap_ok(refused(long_name, -ENOENT), "long_names_are_no_danger");
	for (int i = 0; i < 33; i++)
		strcat(many, i ? ",cycles" : "cycles");
	tap_ok(refused(many, -E2BIG), "the_33rd_event_is_refused");
}

int main(void)
{
	int ret;

	make_sysfs();
	generic_names();
	raw_numbers();
	sysfs_events();
	tracepoints();
	mistakes();
	ret = tap_done();
	return sysfs_end() ? 1 : ret;
}
