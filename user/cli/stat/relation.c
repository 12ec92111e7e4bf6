// SPDX-License-Identifier: MIT
/* A count of kbarman stat beside another one: GHz, instructions a cycle, events a second. */
#include <linux/perf_event.h>
#include <string.h>

#include "cli/stat/stat.h"

bool stat_is_time(const struct stat_event *event)
{
	return event->event.type == PERF_TYPE_SOFTWARE &&
	       (event->event.config == PERF_COUNT_SW_TASK_CLOCK ||
		event->event.config == PERF_COUNT_SW_CPU_CLOCK);
}

/*
 * The count of the event that is called @name, beside @event: of the same PMU, counted in the same
 * part of the machine. 0: there is none.
 */
static double value_of(const struct stat_run *run, const struct stat_event *event, const char *name,
		       size_t share)
{
	const __u32 where = KB_PERF_NO_USER | KB_PERF_NO_KERNEL | KB_PERF_NO_HV;
	size_t length = kb_metric_pmu(event->event.name);

	for (unsigned int i = 0; i < run->nr_events; i++) {
		const struct stat_event *other = &run->events[i];

		if (other->error || other->set != event->set ||
		    !kb_metric_is_event(other->event.name, name))
			continue;
		if (stat_is_time(other) && event->kind >= 0)
			return stat_result_of(run, event, share).on_ns;
		if (stat_is_time(other))
			return stat_result_of(run, other, share).value;
		if ((other->event.flags & where) == (event->event.flags & where) &&
		    kb_metric_pmu(other->event.name) == length &&
		    !memcmp(other->event.name, event->event.name, length))
			return stat_result_of(run, other, share).value;
	}
	return 0;
}

static struct stat_relation a_second(double a_ns)
{
	static const struct { double factor; const char *unit, *perf_unit; } units[] = {
		{ 1, "G a second", "G/sec" }, { 1e3, "M a second", "M/sec" },
		{ 1e6, "K a second", "K/sec" }, { 1e9, "a second", "/sec" },
	};
	unsigned int i = 0;

	while (i < 3 && a_ns * units[i].factor < 1)
		i++;
	return (struct stat_relation) {
		a_ns * units[i].factor, "%.3f", units[i].unit, units[i].perf_unit };
}

struct stat_relation stat_relation(const struct stat_run *run, const struct stat_event *event,
				   double value, size_t share)
{
	static const struct {
		const char *name, *beside;
		double factor;
		const char *format, *unit, *perf_unit;
	} rows[] = {
		{ "instructions", "cycles", 1, "%.2f", "a cycle", "insn per cycle" },
		{ "branch-misses", "branches", 100, "%.2f%%", "of branches", "of all branches" },
		{ "cache-misses", "cache-references", 100, "%.2f%%", "of references",
		  "of all cache refs" },
		{ "L1-dcache-load-misses", "L1-dcache-loads", 100, "%.2f%%", "of loads",
		  "of all L1-dcache accesses" },
		{ "L1-icache-load-misses", "L1-icache-loads", 100, "%.2f%%", "of loads",
		  "of all L1-icache accesses" },
		{ "LLC-load-misses", "LLC-loads", 100, "%.2f%%", "of loads",
		  "of all LL-cache accesses" },
		{ "dTLB-load-misses", "dTLB-loads", 100, "%.2f%%", "of loads",
		  "of all dTLB cache accesses" },
		{ "iTLB-load-misses", "iTLB-loads", 100, "%.2f%%", "of loads",
		  "of all iTLB cache accesses" },
	};
	const struct stat_relation none = { 0, "%.3f", "", "" };
	double time = value_of(run, event, "task-clock", share), other;
	double elapsed = run->elapsed.nr ? run->elapsed.mean * 1e9 : (double)(run->ended - run->since);

	if (stat_is_time(event) && elapsed > 0)
		return (struct stat_relation) {
			value / elapsed, "%.3f", "CPUs used", "CPUs utilized" };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!kb_metric_is_event(event->event.name, rows[i].name))
			continue;
		other = value_of(run, event, rows[i].beside, share);
		if (other > 0)
			return (struct stat_relation) { rows[i].factor * value / other,
				rows[i].format, rows[i].unit, rows[i].perf_unit };
	}
	if (!(time > 0))
		return none;
	if (kb_metric_is_event(event->event.name, "cycles"))
		return (struct stat_relation) { value / time, "%.3f", "GHz", "GHz" };
	return a_second(value / time);
}
