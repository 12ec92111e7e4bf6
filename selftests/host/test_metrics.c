// SPDX-License-Identifier: MIT
/* The facts of metrics, and their values and bounds. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include <kbarman/metrics.h>
#include <kbarman/perf_events.h>

#include "metrics/facts.h"
#include "metrics/formula.h"

#include "../lib/sysfs.h"
#include "../lib/tap.h"

static void every_unit_fits(void)
{
	bool good = true;

	for (const struct kb_metric *m = kb_metrics_all(); m->name; m++) {
		char unit[128] = "";
		int ret = kb_formula_unit(m->formula, kb_metric_unit_of, unit, sizeof(unit));

		if (ret || strcmp(unit, m->unit)) {
			tap_note("%s: '%s' is %s, not %s (%d)", m->name, m->formula, unit, m->unit, ret);
			good = false;
		}
		good &= strlen(m->what) > 5 && *m->source;
	}
	tap_ok(good, "the_units_of_every_metric_fit");
}

static const char *unit_of(const char *name)
{
	return !strcmp(name, "a") ? "apple" : !strcmp(name, "p") ? "pear" :
	       !strcmp(name, "r") ? "apple/s" : NULL;
}

static bool has_unit(const char *formula, const char *unit)
{
	char text[64] = "";
	int ret = kb_formula_unit(formula, unit_of, text, sizeof(text));

	if (unit ? ret || strcmp(text, unit) : ret != -EINVAL)
		tap_note("'%s' is '%s' (%d)", formula, text, ret);
	return unit ? !ret && !strcmp(text, unit) : ret == -EINVAL;
}

static void units(void)
{
	tap_ok(has_unit("a / a", "1") && has_unit("a / p", "apple/pear") &&
	       has_unit("a * a", "apple*apple") && has_unit("a / r", "s") &&
	       has_unit("1 / a", "1/apple") && has_unit("2 * a + a", "apple"), "units_cancel");
	tap_ok(has_unit("a + p", NULL) && has_unit("1 - a", NULL) && has_unit("a + nothing", NULL) &&
	       has_unit("(a / p - p / a)", NULL), "apples_are_not_added_to_pears");
}

static bool number(void *context, const char *name, struct kb_range *range)
{
	(void)context;
	if (!strcmp(name, "none"))
		return false;
	range->value = range->low = range->high = name[0] == 'x' ? 6 : 3;
	return true;
}

static double value_of(const char *formula)
{
	struct kb_range range;

	return kb_formula_evaluate(formula, number, NULL, &range) ? NAN : range.value;
}

static void formulas(void)
{
	static const char *const bad[] = {
		"", "x +", "x y", "(x", "x)", "* x", "x - - y", "1..2 x", "x -", "#x", "x / (y",
		"((((((((((((((((((x))))))))))))))))))",
	};
	struct kb_range range;
	bool good = true;

	tap_ok(value_of("x - y * 2 + 1") == 1 && value_of("(x - y) * 2") == 6 &&
	       value_of("x / y / 2") == 1 && value_of("0.5*x-ray") == 3 && value_of("$x") == 3,
	       "formulas_are_read_as_in_school");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (kb_formula_evaluate(bad[i], number, NULL, &range) != -EINVAL) {
			tap_note("'%s' is accepted", bad[i]);
			good = false;
		}
	}
	tap_ok(good, "malformed_formulas_are_refused");
	tap_is(kb_formula_evaluate("x + none", number, NULL, &range), -ENOENT,
	       "a_name_may_be_unknown");
}

/* ---- values ---- */

struct count {
	const char *name;
	struct kb_metric_count count;
};

static bool lookup(void *context, const char *name, struct kb_metric_count *count)
{
	for (const struct count *row = context; row->name; row++) {
		if (strcmp(row->name, name))
			continue;
		*count = row->count;
		return true;
	}
	return false;
}

static const struct kb_metric *metric(const char *name, const char *source)
{
	for (const struct kb_metric *m = kb_metrics_all(); m->name; m++)
		if (!strcmp(m->name, name) && strstr(m->source, source))
			return m;
	tap_ok(false, name);
	return kb_metrics_all();
}

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

#define IS(value, part, together)	{ value, part, together, false, 0 }
#define WITHIN(value, error)		{ value, 0.5, 1, true, error }

static void values(void)
{
	struct count all[] = { { "cycles", IS(200, 1, 0) }, { "instructions", IS(300, 1, 0) }, { 0 } };
	struct count turns[] = { { "cycles", IS(200, 0.5, 0) }, { "instructions", IS(300, 1, 0) }, { 0 } };
	struct count group[] = { { "cycles", IS(200, 0.5, 1) }, { "instructions", IS(300, 0.5, 1) }, { 0 } };
	struct count apart[] = { { "cycles", IS(200, 0.5, 1) }, { "instructions", IS(300, 0.5, 2) }, { 0 } };
	struct count none[] = { { "cycles", IS(0, 1, 0) }, { "instructions", IS(0, 1, 0) }, { 0 } };
	struct count errors[] = { { "cycles", WITHIN(200, 50) }, { "instructions", WITHIN(300, 0) }, { 0 } };
	struct count unknown[] = { { "cycles", WITHIN(200, 0) }, { "instructions", WITHIN(300, INFINITY) },
				   { 0 } };
	const struct kb_metric *ipc = metric("ipc", "perf");
	struct kb_metric_value v;

	tap_ok(!kb_metric_evaluate(ipc, lookup, errors, &v) && v.value == 1.5 && near(v.low, 1.2) &&
	       near(v.high, 2) && v.part == 0.5, "errors_of_counts_are_the_bounds");
	tap_ok(!kb_metric_evaluate(ipc, lookup, unknown, &v) && v.low == 0 && isinf(v.high),
	       "an_unknown_error_bounds_nothing");
	tap_ok(!kb_metric_evaluate(ipc, lookup, all, &v) && v.value == 1.5 && v.low == 1.5 &&
	       v.high == 1.5 && v.part == 1, "what_was_counted_all_the_time_is_exact");
	tap_ok(!kb_metric_evaluate(ipc, lookup, turns, &v) && v.value == 1.5 &&
	       near(v.low, 1) && near(v.high, 3) && v.part == 0.5,
	       "what_was_counted_in_turns_has_bounds");
	tap_ok(!kb_metric_evaluate(ipc, lookup, group, &v) && v.low == 1.5 && v.high == 1.5 &&
	       v.part == 0.5, "what_was_counted_together_is_exact_for_that_time");
	tap_ok(!kb_metric_evaluate(ipc, lookup, apart, &v) && near(v.low, 0.5) && near(v.high, 4.5),
	       "two_groups_are_not_together");
	tap_is(kb_metric_evaluate(ipc, lookup, none, &v), -ERANGE, "of_no_cycles_there_is_no_part");
	tap_is(kb_metric_evaluate(ipc, lookup, none + 2, &v), -ENOENT, "counts_may_be_missing");
}

static void topdown(void)
{
	/* 8 slots a cycle: 200 of 800 waited, of the others 5 of 6 were of use */
	struct count arm[] = {
		{ "$slots", IS(8, 1, 0) }, { "cycles", IS(100, 1, 0) }, { "stall_slot", IS(200, 1, 0) },
		{ "stall_slot_frontend", IS(80, 1, 0) }, { "stall_slot_backend", IS(120, 1, 0) },
		{ "op_retired", IS(500, 1, 0) }, { "op_spec", IS(600, 1, 0) }, { 0 },
	};
	struct count intel[] = {
		{ "slots", IS(800, 1, 0) }, { "topdown-retiring", IS(400, 1, 0) }, { 0 },
	};
	static const char *const four[] = {
		"retiring", "bad_speculation", "frontend_bound", "backend_bound" };
	struct kb_metric_value v;
	double sum = 0;

	for (int i = 0; i < 4; i++)
		if (!kb_metric_evaluate(metric(four[i], "Arm"), lookup, arm, &v))
			sum += v.value;
	tap_ok(near(sum, 1), "the_four_parts_of_arms_slots_are_the_whole");
	tap_ok(!kb_metric_evaluate(metric("retiring", "Arm"), lookup, arm, &v) &&
	       near(v.value, 5.0 / 6 * 0.75), "arms_retiring_is_as_published");
	tap_ok(!kb_metric_evaluate(metric("retiring", "Intel"), lookup, intel, &v) && v.value == 0.5,
	       "intels_retiring_is_as_published");
}

static void names(void)
{
	const char *events[KB_METRIC_EVENTS_MAX];
	struct kb_error err;
	char text[512];

	tap_ok(kb_metric_events(metric("retiring", "Arm"), events, text, sizeof(text)) == 4 &&
	       !strcmp(events[0], "op_retired") && !strcmp(events[3], "cycles"),
	       "a_metric_says_what_it_needs");
	tap_ok(kb_metric_is_event("cpu_core/cycles/u", "cycles") &&
	       kb_metric_is_event("cycles:u", "cycles") && kb_metric_is_event("cpu_cycles", "cycles") &&
	       kb_metric_is_event("armv8_pmuv3_0/inst_retired/", "instructions") &&
	       !kb_metric_is_event("cycles-more", "cycles") && !kb_metric_is_event("", "cycles"),
	       "counters_are_found_by_each_of_their_names");
	tap_ok(!kb_metrics_check("ipc,topdown", &err) && !kb_metrics_check("all", &err) &&
	       kb_metrics_check("ipc,nonsense", &err) == -ENOENT && strstr(err.text, "'nonsense'") &&
	       kb_metrics_check("", &err) == -ENOENT && kb_metrics_check("ipc,", &err) == -ENOENT,
	       "unknown_metrics_are_named");
	tap_ok(kb_metric_is_in(metric("retiring", "Arm"), "ipc,topdown") &&
	       !kb_metric_is_in(metric("retiring", "Arm"), "ipc,cache"), "a_group_stands_for_its_metrics");
}

/* Each event of a formula is one that a PMU of its source has, or a generic one. */
static void events(void)
{
	bool good = true;

	sysfs_plain();
	for (const struct kb_metric *m = kb_metrics_all(); m->name; m++) {
		const char *names[KB_METRIC_EVENTS_MAX];
		char text[512];
		unsigned int nr = kb_metric_events(m, names, text, sizeof(text));

		for (unsigned int i = 0; i < nr && !strstr(m->source, "Arm"); i++) {
			struct kb_perf_event event;

			if (kb_events_parse(&event, 1, names[i], sysfs, NULL) == 1)
				continue;
			tap_note("%s: no event '%s'", m->name, names[i]);
			good = false;
		}
	}
	tap_ok(good, "the_events_of_formulas_have_these_names");
}

int main(void)
{
	int ret;

	sysfs_begin();
	every_unit_fits();
	units();
	formulas();
	values();
	topdown();
	names();
	events();
	ret = tap_done();
	return sysfs_end() ? 1 : ret;
}
