// SPDX-License-Identifier: MIT
/* Events on machines with several kinds of cores. The numbers are those of each sysfs. */
#include <errno.h>
#include <linux/perf_event.h>

#include <kbarman/perf_events.h>

#include "record/perf/parse.h"

#include "../lib/sysfs.h"
#include "../lib/tap.h"

#define USER	(KB_PERF_NO_KERNEL | KB_PERF_NO_HV)
#define GROUP	KB_PERF_GROUP
#define ON(pmu)	((uint64_t)(pmu) << 32)

static struct kb_perf_event events[KB_EVENTS_MAX];
static struct kb_error error;
static bool old_kernel, each;

static bool takes_no_type(uint32_t pmu)
{
	(void)pmu;
	return false;
}

static int parse(const char *list)
{
	const struct kb_events_how how = { sysfs, each, old_kernel ? takes_no_type : NULL };

	memset(events, 0xaa, sizeof(events));
	memset(&error, 0, sizeof(error));
	return kb_events_parse_how(events, KB_EVENTS_MAX, list, &how, &error);
}

static bool is(unsigned int i, uint32_t type, uint64_t config, const char *name, uint32_t flags)
{
	bool good = events[i].type == type && events[i].config == config &&
		    !strcmp(events[i].name, name) && events[i].flags == flags;

	if (!good)
		tap_note("event %u: type %u config 0x%llx flags 0x%x name '%.64s', %s", i,
			 events[i].type, (unsigned long long)events[i].config, events[i].flags,
			 events[i].name, error.text);
	return good;
}

static void hybrid(void)
{
	each = true;
	tap_ok(parse("cycles") == 2 && is(0, 0, ON(10), "cpu_atom/cycles/", 0) &&
	       is(1, 0, ON(4), "cpu_core/cycles/", 0),
	       "a_generic_name_is_counted_on_each_pmu");
	tap_ok(parse("cycles:u,task-clock") == 3 && is(0, 0, ON(10), "cpu_atom/cycles/u", USER) &&
	       is(2, 1, 1, "task-clock", 0), "software_events_are_counted_once");
	tap_ok(parse("{cycles,instructions,task-clock}") == 5 &&
	       is(0, 0, ON(10), "cpu_atom/cycles/", 0) &&
	       is(1, 0, ON(10) | 1, "cpu_atom/instructions/", GROUP) &&
	       is(2, 1, 1, "task-clock", GROUP) && is(3, 0, ON(4), "cpu_core/cycles/", 0) &&
	       is(4, 0, ON(4) | 1, "cpu_core/instructions/", GROUP),
	       "a_group_becomes_one_for_each_pmu");
	tap_ok(parse("{cpu_core/cycles/,cpu_atom/cycles/,cpu_core/r1/}") == 3 &&
	       is(0, 0, ON(10), "cpu_atom/cycles/", 0) && is(1, 0, ON(4), "cpu_core/cycles/", 0) &&
	       is(2, 4, 1, "cpu_core/r1/", GROUP), "a_group_is_parted_by_kinds_of_cores");
	tap_ok(parse("r3c") == 2 && is(0, 10, 0x3c, "cpu_atom/r3c/", 0) &&
	       is(1, 4, 0x3c, "cpu_core/r3c/", 0), "raw_numbers_are_counted_on_each_pmu");
	tap_ok(parse("mem-stores,slots") == 3 && is(0, 10, 0x6d0, "cpu_atom/mem-stores/", 0) &&
	       is(1, 4, 0x2cd, "cpu_core/mem-stores/", 0) && is(2, 4, 0x400, "cpu_core/slots/", 0),
	       "events_of_sysfs_are_counted_where_they_are");
	tap_ok(parse("LLC-loads") == 2 && is(1, 3, ON(4) | 2, "cpu_core/LLC-loads/", 0),
	       "cache_events_have_the_pmu_as_well");
	tap_ok(parse("big/cycles/,little/cycles/k") == 2 && is(0, 0, ON(4), "big/cycles/", 0) &&
	       is(1, 0, ON(10), "little/cycles/k", KB_PERF_NO_USER | KB_PERF_NO_HV),
	       "big_and_little_name_kinds_of_cores");
	tap_ok(parse("mid/cycles/") == -ENOENT && strstr(error.text, "cpu_atom cpu_core"),
	       "there_is_no_mid_between_two");
	tap_ok(parse("cpu_core/cycles/ppp") == 1 && parse("cpu_atom/cycles/pp") == -EINVAL &&
	       strstr(error.text, "at most 'p'"), "each_pmu_says_how_precise_it_is");
	tap_ok(parse("cpu_core/cycles,umask=1/") == -EINVAL && parse("cpu_core/umask=1,cycles/") == -EINVAL,
	       "a_generic_event_takes_no_fields");
	each = false;
	tap_ok(parse("cycles,r3c,{cycles,instructions}") == 4 && is(0, 0, 0, "cycles", 0) &&
	       is(1, 4, 0x3c, "r3c", 0) && is(3, 0, 1, "instructions", GROUP),
	       "counters_of_cpus_need_one_event");
	each = true;
	old_kernel = true;
	tap_ok(parse("cycles") == 1 && is(0, 0, 0, "cycles", 0),
	       "what_an_old_kernel_cannot_part_stays_plain");
	old_kernel = false;
}

static void big_little(void)
{
	each = true;
	tap_ok(parse("cycles,big/cycles/,armv8_cortex_a53/cycles/") == 4 &&
	       is(0, 0, ON(8), "armv8_cortex_a53/cycles/", 0) &&
	       is(1, 0, ON(9), "armv8_cortex_a72/cycles/", 0) && is(2, 0, ON(9), "big/cycles/", 0) &&
	       is(3, 0, ON(8), "armv8_cortex_a53/cycles/", 0), "arms_kinds_of_cores_are_told_apart");
	old_kernel = true;
	tap_ok(parse("{cycles,instructions}:u") == 4 &&
	       is(0, 8, 0x11, "armv8_cortex_a53/cycles/u", USER) &&
	       is(1, 8, 0x8, "armv8_cortex_a53/instructions/u", USER | GROUP) &&
	       is(2, 9, 0x11, "armv8_cortex_a72/cycles/u", USER),
	       "sysfs_has_the_event_where_the_kernel_takes_no_pmu");
	tap_ok(parse("stalled-cycles-frontend") == 1 &&
	       is(0, 9, 0x23, "armv8_cortex_a72/stalled-cycles-frontend/", 0),
	       "only_cores_that_have_it_count_it");
	tap_ok(parse("bus-cycles") == 1 && is(0, 8, 0x1d, "armv8_cortex_a53/bus-cycles/", 0) &&
	       parse("{cycles,bus-cycles}") == 3 &&
	       is(1, 8, 0x1d, "armv8_cortex_a53/bus-cycles/", GROUP) &&
	       is(2, 9, 0x11, "armv8_cortex_a72/cycles/", 0), "and_count_it_once");
	tap_ok(parse("LLC-loads,{cycles,LLC-loads}") == 4 && is(0, 3, 2, "LLC-loads", 0) &&
	       is(1, 8, 0x11, "armv8_cortex_a53/cycles/", 0) &&
	       is(2, 9, 0x11, "armv8_cortex_a72/cycles/", 0) && is(3, 3, 2, "LLC-loads", GROUP),
	       "the_others_stay_plain");
	old_kernel = false;
}

static void survive(void)
{
	static const char *const lists[] = {
		"cycles,instructions:u", "{cycles,instructions,task-clock}:k,r12", "mem-stores,slots:u",
		"cpu_core/cycles,name=a/,{cpu_atom/r3c,name=b/u,cycles}", "LLC-load-misses:uk",
	};
	struct kb_perf_event first[KB_EVENTS_MAX];
	bool good = true;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		int nr, again;
		char *text;

		each = true;
		nr = parse(lists[i]);
		memcpy(first, events, sizeof(first));
		text = nr < 0 ? NULL : kb_events_text(first, (unsigned int)nr, sysfs);
		each = false;
		again = parse(text ?: "");
		if (nr < 0 || again != nr || memcmp(first, events, (size_t)nr * sizeof(first[0]))) {
			tap_note("'%s' became '%s': %d of %d", lists[i], text, again, nr);
			good = false;
		}
		free(text);
	}
	tap_ok(good, "the_text_of_events_is_parsed_to_the_same_events");
}

int main(void)
{
	int ret;

	sysfs_begin();
	sysfs_hybrid();
	hybrid();
	survive();
	sysfs_end();
	strcpy(sysfs, "/tmp/kbarman-sysfs.XXXXXX");
	sysfs_begin();
	sysfs_big_little();
	big_little();
	ret = tap_done();
	return sysfs_end() ? 1 : ret;
}
