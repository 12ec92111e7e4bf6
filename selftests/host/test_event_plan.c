// SPDX-License-Identifier: MIT
/* What a session counts of the events of a user: alternatives for each counter, and turns. */
#include <errno.h>
#include <linux/perf_event.h>

#include <kbarman/perf_events.h>

#include "record/perf/event_plan.h"

#include "../lib/sysfs.h"
#include "../lib/tap.h"

static const struct kb_sampling hz = { .period = 1000, .freq = true },
	or_clock = { .period = 1000, .freq = true, .clock = true }, none = { 0 };

/*
 * The plan for @list as a text: counters with "; " between them, alternatives with " | ". Behind each
 * name "@PMU" if a generic event is of one, "*" if it samples, "?" if it is optional, "!" if it is a
 * fallback, "~TURN".
 */
static const char *plan_of(const char *list, const struct kb_sampling *sampling)
{
	static char text[4096];
	struct kb_perf_event events[KB_EVENTS_MAX];
	struct kb_event_plan plan;
	struct kb_error error;
	size_t used = 0;
	int nr = kb_events_parse(events, KB_EVENTS_MAX, list, sysfs, &error);

	text[0] = '\0';
	if (nr < 0 || kb_event_plan_make(&plan, events, (unsigned int)nr, sampling, sysfs, &error))
		return kb_error_text(&error);
	for (unsigned int i = 0; i < plan.nr; i++) {
		const struct kbarman_event *event = &plan.events[i];
		unsigned int pmu = event->attr.type == PERF_TYPE_HARDWARE ||
				   event->attr.type == PERF_TYPE_HW_CACHE ?
				   (unsigned int)(event->attr.config >> 32) : 0;

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
					 !i ? "" : event->flags & KBARMAN_EVENT_ELSE ? " | " : "; ",
					 event->name);
		if (pmu)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "@%u", pmu);
		if (event->turn)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "~%u", event->turn);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s%s",
					 event->attr.sample_period ? "*" : "",
					 event->flags & KBARMAN_EVENT_OPTIONAL ? "?" : "",
					 event->flags & KBARMAN_EVENT_FALLBACK ? "!" : "");
	}
	kb_event_plan_free(&plan);
	return text;
}

#define plan_is(list, sampling, text, name) tap_is_string(plan_of(list, sampling), text, name)

static void one_kind(void)
{
	plan_is("cycles,instructions", &hz, "cycles*; instructions",
		"on_cpus_of_one_kind_each_event_is_a_counter");
	plan_is("cycles,cycles", &hz, "cycles*; cycles", "even_if_it_is_named_twice");
	plan_is("cycles", &or_clock, "cycles* | cpu-clock*!", "a_clock_samples_where_there_is_no_pmu");
	plan_is("cycles:u", &or_clock, "cycles:u* | cpu-clock:u*!", "and_samples_as_much_of_the_machine");
	plan_is("page-faults", &or_clock, "page-faults*", "what_needs_no_pmu_has_no_fallback");
	plan_is("cycles,instructions", &none, "cycles; instructions", "without_samples_all_count");
}

static void hybrid(void)
{
	plan_is("cycles", &or_clock, "cycles*? | cycles@10*? | cycles@4*? | cpu-clock*!",
		"a_generic_event_is_that_of_each_kind_of_cores");
	plan_is("cycles,page-faults", &hz, "cycles*? | cycles@10*? | cycles@4*?; page-faults?",
		"no_event_samples_for_a_generic_one");
	plan_is("cpu_core/cycles/,cpu_atom/cycles/", &hz,
		"cpu_core/cycles/@4*? | cpu_atom/cycles/@10*?; cpu_atom/cycles/@10?",
		"an_event_of_another_pmu_samples_where_the_first_one_is_not");
	plan_is("cpu_core/cycles/,cpu_core/instructions/,cpu_atom/cycles/", &hz,
		"cpu_core/cycles/@4*? | cpu_atom/cycles/@10*?; cpu_core/instructions/@4?; cpu_atom/cycles/@10?",
		"no_event_samples_with_the_period_of_another_one_of_its_pmu");
	plan_is("cpu_core/cycles/,instructions", &hz,
		"cpu_core/cycles/@4*? | instructions@10*?; instructions? | instructions@10? | instructions@4?",
		"a_generic_event_samples_on_the_other_kind_of_cores");
	plan_is("cpu_core/cycles,name=c/,cpu_atom/cycles,name=c/,instructions", &hz,
		"c@4*? | c@10*?; instructions? | instructions@10? | instructions@4?",
		"a_name_stands_for_all_events_that_have_it");
	plan_is("cpu_core/cycles/,page-faults,cpu_atom/cycles/", &hz,
		"cpu_core/cycles/@4*?; page-faults?; cpu_atom/cycles/@10?",
		"behind_an_event_of_no_pmu_none_samples");
	plan_is("cpu_core/cycles/,cpu_atom/cycles/", &none, "cpu_core/cycles/@4?; cpu_atom/cycles/@10?",
		"without_samples_nothing_stands_in");
}

/* The bits of the first event. */
static void attributes(void)
{
	struct kb_perf_event event = { .type = PERF_TYPE_HARDWARE, .name = "cycles:upp",
		.flags = KB_PERF_NO_KERNEL | KB_PERF_NO_HV | 2 << KB_PERF_PRECISE_SHIFT };
	const struct kb_sampling few = { .period = 7, .clock = true };
	struct kb_event_plan plan;

	tap_is(kb_event_plan_make(&plan, &event, 1, &few, sysfs, NULL), 0, "a_plan_of_one_event_is_made");
	tap_ok(plan.nr == 2 && plan.events[0].attr.exclude_kernel && plan.events[0].attr.exclude_hv &&
	       !plan.events[0].attr.exclude_user && plan.events[0].attr.exclude_guest &&
	       plan.events[0].attr.precise_ip == 2 && plan.events[0].attr.sample_period == 7 &&
	       !plan.events[0].attr.freq, "modifiers_and_the_period_arrive");
	tap_ok(plan.events[1].attr.type == PERF_TYPE_SOFTWARE && plan.events[1].attr.exclude_kernel &&
	       !plan.events[1].attr.exclude_guest && !plan.events[1].attr.precise_ip &&
	       plan.events[1].attr.sample_period == 100000, "a_clock_does_not_sample_too_often");
	kb_event_plan_free(&plan);
	tap_is(kb_event_plan_make(&plan, &event, 1, &none, sysfs, NULL), 0, "a_plan_without_samples_is_made");
	tap_is(plan.events[0].attr.precise_ip, 0, "what_does_not_sample_is_not_precise");
	kb_event_plan_free(&plan);
}

static void turns(void)
{
	struct kb_perf_event events[5];
	struct kb_event_plan plan;

	kb_events_parse(events, 5, "cycles,{instructions,branches},page-faults,cache-misses", sysfs, NULL);
	events[1].flags |= KB_PERF_TURN;
	events[2].flags |= KB_PERF_TURN;
	events[4].flags |= KB_PERF_TURN;
	tap_is(kb_event_plan_make(&plan, events, 5, &hz, sysfs, NULL), 0, "a_plan_with_turns_is_made");
	tap_ok(plan.nr == 5 && plan.nr_turns == 2 && !plan.events[0].turn && plan.events[1].turn == 1 &&
	       plan.events[2].turn == 1 && !plan.events[3].turn && plan.events[4].turn == 2,
	       "a_group_has_one_turn");
	kb_event_plan_free(&plan);
}

int main(void)
{
	int ret;

	sysfs_begin();
	sysfs_plain();
	one_kind();
	attributes();
	turns();
	sysfs_end();
	strcpy(sysfs, "/tmp/kbarman-sysfs.XXXXXX");
	sysfs_begin();
	sysfs_hybrid();
	hybrid();
	ret = tap_done();
	return sysfs_end() ? 1 : ret;
}
