// SPDX-License-Identifier: MIT
/*
 * What kbarman stat prints: lines for people, JSON, or the fields that perf stat has behind -x:
 *
 *	[SECONDS,][SHARE,[CPUS,]]VALUE,UNIT,EVENT,[DEVIATION,]RUNNING,PERCENT,VALUE,UNIT
 *
 * With --rotate the deviation is the error.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/percent.h"
#include "base/text/utf8.h"
#include "cli/stat/stat.h"

/* 1234567 as 1,234,567 */
static const char *grouped(const struct stat_run *run, double value, char text[40])
{
	char digits[32];
	int length = snprintf(digits, sizeof(digits), "%.0f", value);
	char *to = text;

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0 && !run->plain_numbers)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	/* cppcheck-suppress uninitvar ; the loop fills it */
	return text;
}

/* The name, and that the kernel was left out because the user may not count it. */
static const char *name_of(const struct stat_event *event, char name[72])
{
	const char *sign = strchr(event->event.name, '/') ? "u" : ":u";

	snprintf(name, 72, "%s%s", event->event.name, event->user_only ? sign : "");
	return name;
}

/* PMU/ipc of one kind of cores, where there are several */
static const char *metric_name(const struct stat_metric_value *m, char name[128])
{
	snprintf(name, 128, "%.*s%s%s", (int)m->pmu_length, m->pmu_length ? m->pmu : "",
		 m->pmu_length ? "/" : "", m->metric->name);
	return name;
}

static double seconds(const struct stat_run *run)
{
	return (double)(run->ended - run->begun) / 1e9;
}

/* How far off a count of turns may be, in percent of it; infinite: not known. */
static double error_percent(const struct stat_result *result)
{
	if (!result->in_turns || !(result->error > 0))
		return 0;
	return result->value > 0 ? 100 * result->error / result->value : INFINITY;
}

/* ---- JSON ---- */

static void json_begin(struct stat_run *run, const char *kind, const char *key, const char *name,
		       size_t share)
{
	struct kb_json *json = &run->json;

	kb_json_begin(json, kind);
	kb_json_string(json, key, name);
	if (run->by == STAT_BY_CPU)
		kb_json_i64(json, "cpu", strtol(run->shares[share].name + 3, NULL, 10));
	else if (run->by != STAT_ALL)
		kb_json_string(json, run->by == STAT_BY_CORE ? "core" : "socket",
			       run->shares[share].name);
	if (run->interval_ms)
		kb_json_double(json, "at_s", seconds(run));
}

static void json_event(struct stat_run *run, const struct stat_event *event,
		       const struct stat_result *result, size_t share)
{
	struct kb_json *json = &run->json;
	const __u32 kernel = KB_PERF_NO_USER | KB_PERF_NO_KERNEL;

	json_begin(run, "counter", "event", event->event.name, share);
	if (event->error || !result->known) {
		kb_json_string(json, "value", NULL);
		kb_json_string(json, "why", event->error ? stat_why_not(event) : "never got a counter");
	} else {
		kb_json_u64(json, "value", (uint64_t)(result->value + 0.5));
		kb_json_u64(json, "enabled_ns", result->enabled);
		kb_json_u64(json, "running_ns", result->running);
		if (run->runs > 1)
			kb_json_double(json, "deviation_percent", result->deviation);
		else if (result->in_turns && isfinite(result->error))
			kb_json_double(json, "error", result->error);
	}
	kb_json_bool(json, "user_only", event->user_only ||
		     (event->event.flags & kernel) == KB_PERF_NO_KERNEL);
	kb_json_end(json);
}

static void json_metric(struct stat_run *run, size_t share, const struct stat_metric_value *m)
{
	struct kb_json *json = &run->json;
	char name[128];

	json_begin(run, "metric", "metric", metric_name(m, name), share);
	kb_json_string(json, "unit", m->metric->unit);
	if (m->why) {
		kb_json_string(json, "value", NULL);
		kb_json_string(json, "why", m->why);
	} else {
		kb_json_double(json, "value", m->value.value);
		if (isfinite(m->value.low))
			kb_json_double(json, "low", m->value.low);
		if (isfinite(m->value.high))
			kb_json_double(json, "high", m->value.high);
		kb_json_double(json, "counted_part", m->value.part);
	}
	kb_json_end(json);
}

/* ---- what perf prints behind -x ---- */

static void csv_begin(struct stat_run *run, size_t share)
{
	struct kb_out *out = run->json.out;

	if (run->interval_ms)
		kb_out_printf(out, "%16.9f%s", seconds(run), run->separator);
	if (run->by == STAT_ALL)
		return;
	kb_out_printf(out, "%s%s", run->shares[share].name, run->separator);
	if (run->by != STAT_BY_CPU)
		kb_out_printf(out, "%u%s", run->shares[share].nr_cpus, run->separator);
}

static void csv_event(struct stat_run *run, const struct stat_event *event,
		      const struct stat_result *result, size_t share)
{
	struct kb_out *out = run->json.out;
	const char *sep = run->separator;
	struct stat_relation relation = { .perf_unit = "" };
	bool counted = !event->error && result->ran;
	char name[72];

	csv_begin(run, share);
	if (!counted)
		kb_out_printf(out, "<not %s>", event->error ? "supported" : "counted");
	else if (stat_is_time(event))
		kb_out_printf(out, "%.2f", result->value / 1e6);
	else
		kb_out_printf(out, "%.0f", result->value);
	kb_out_printf(out, "%s%s%s%s%s", sep, stat_is_time(event) ? "msec" : "", sep,
		      name_of(event, name), sep);
	if (run->runs > 1)
		kb_out_printf(out, "%.2f%%%s", result->deviation, sep);
	else if (run->nr_groups)
		kb_out_printf(out, "%.2f%%%s", error_percent(result), sep);
	kb_out_printf(out, "%" PRIu64 "%s%.2f%s", result->running, sep,
		      result->enabled ? kb_percent(result->running, result->enabled) : 100.0, sep);
	if (counted)
		relation = stat_relation(run, event, result->value, share);
	if (*relation.perf_unit)
		kb_out_printf(out, strchr(relation.format, '2') ? "%.2f" : "%.3f", relation.value);
	kb_out_printf(out, "%s%s\n", sep, relation.perf_unit);
}

static void csv_metric(struct stat_run *run, size_t share, const struct stat_metric_value *m)
{
	struct kb_out *out = run->json.out;
	bool share_of_whole = !strcmp(m->metric->unit, "1");
	char name[128];

	csv_begin(run, share);
	for (int i = 0; i < (run->runs > 1 || run->nr_groups ? 6 : 5); i++)
		kb_out_printf(out, "%s", run->separator);
	if (m->why)
		kb_out_printf(out, "<not counted>");
	else if (share_of_whole)
		kb_out_printf(out, "%.2f", 100 * m->value.value);
	else
		kb_out_printf(out, "%.3f", m->value.value);
	kb_out_printf(out, "%s%s%s\n", run->separator, share_of_whole ? "%  " : "",
		      metric_name(m, name));
}

/* ---- for people ---- */

static void text_begin(struct stat_run *run, size_t share)
{
	struct kb_out *out = run->json.out;

	if (run->interval_ms)
		kb_out_printf(out, "%12.6f  ", seconds(run));
	if (run->by == STAT_BY_CPU)
		kb_out_printf(out, "%-7s", run->shares[share].name);
	else if (run->by != STAT_ALL)
		kb_out_printf(out, "%-12s%4u", run->shares[share].name, run->shares[share].nr_cpus);
}

static void text_coverage(struct kb_out *out, const struct stat_result *result, bool many_runs)
{
	kb_out_printf(out, " (counted %.0f%% of the time, ",
		      kb_percent(result->running, result->enabled));
	if (!result->in_turns || many_runs)
		kb_out_printf(out, "%s)", result->in_turns ? "in turns" : result->elsewhere ?
			      "not on other cores" : "extrapolated");
	else if (isfinite(error_percent(result)))
		kb_out_printf(out, "in turns; at most %.2f%% off)", error_percent(result));
	else if (isfinite(result->error))
		kb_out_printf(out, "in turns; at most %.0f off)", result->error);
	else
		kb_out_printf(out, "in turns; too few to say how far off)");
}

static void text_event(struct stat_run *run, const struct stat_event *event,
		       const struct stat_result *result, size_t share)
{
	struct kb_out *out = run->json.out;
	char number[40], name[72], related[64] = "";
	struct stat_relation relation;

	text_begin(run, share);
	name_of(event, name);
	if (event->error || !result->known) {
		kb_out_printf(out, "%20s  %-28s # %s\n", "-", name,
			      event->error ? stat_why_not(event) : "never got a counter");
		return;
	}
	relation = stat_relation(run, event, result->value, share);
	if (stat_is_time(event))
		kb_out_printf(out, "%17.3f ms  ", result->value / 1e6);
	else
		kb_out_printf(out, "%20s  ", grouped(run, result->value, number));
	if (*relation.unit) {
		/* NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): one of a few literals */
		snprintf(related, sizeof(related), relation.format, relation.value);
		kb_out_printf(out, "%-28s # %s %s", name, related, relation.unit);
	} else {
		kb_out_printf(out, "%s", name);
	}
	if (run->runs > 1)
		kb_out_printf(out, " ( +-%6.2f%% )", result->deviation);
	if (result->running < result->enabled)
		text_coverage(out, result, run->runs > 1);
	kb_out_printf(out, "\n");
}

static void text_metric(struct stat_run *run, size_t share, const struct stat_metric_value *m)
{
	struct kb_out *out = run->json.out;
	char value[32], low[32], high[32], name[128];

	text_begin(run, share);
	kb_out_printf(out, "%20s  %-28s # %s",
		      m->why ? "-" : kb_metric_text(m->metric, m->value.value, value),
		      metric_name(m, name),
		      m->why ? m->why : m->metric->what);
	if (!m->why && m->value.low < m->value.high)
		kb_out_printf(out, " (%s to %s)", kb_metric_text(m->metric, m->value.low, low),
			      isfinite(m->value.high) ?
			      kb_metric_text(m->metric, m->value.high, high) : "any");
	if (!m->why && m->value.part < 1)
		kb_out_printf(out, " (counted %.0f%% of the time)", 100 * m->value.part);
	kb_out_printf(out, "\n");
}

/* ---- all of it ---- */

static void put_event(struct stat_run *run, const struct stat_event *event, size_t share)
{
	struct stat_result result = stat_result_of(run, event, share);

	/* On a CPU of another kind there is nothing to say of the event. */
	if (run->by != STAT_ALL && !event->error && !result.here)
		return;
	if (run->form == STAT_JSON)
		json_event(run, event, &result, share);
	else if (run->form == STAT_CSV)
		csv_event(run, event, &result, share);
	else
		text_event(run, event, &result, share);
}

static void put_metrics(struct stat_run *run, size_t share)
{
	stat_metrics(run, share, run->form == STAT_JSON ? json_metric :
		     run->form == STAT_CSV ? csv_metric : text_metric);
}

/* As perf does: by event for CPUs, else by share. */
void stat_put_all(struct stat_run *run)
{
	if (run->by == STAT_BY_CPU) {
		for (unsigned int i = 0; i < run->nr_events; i++)
			for (size_t share = 0; share < run->nr_shares; share++)
				put_event(run, &run->events[i], share);
	}
	for (size_t share = 0; share < run->nr_shares; share++) {
		for (unsigned int i = 0; i < run->nr_events && run->by != STAT_BY_CPU; i++)
			put_event(run, &run->events[i], share);
		put_metrics(run, share);
	}
	if (run->interval_ms)
		kb_out_flush(run->json.out);
}

static void put_command(struct kb_out *out, const char *name)
{
	char shown[256];
	size_t length = kb_utf8_shown(shown, name, strnlen(name, sizeof(shown)));

	kb_out_printf(out, "in '%.*s'", (int)length, shown);
}

void stat_put_title(struct stat_run *run)
{
	struct kb_out *out = run->json.out;

	if (run->form != STAT_TEXT || run->interval_ms)
		return;
	kb_out_printf(out, "\nCounted ");
	if (run->pids_text)
		kb_out_printf(out, "in process %s", run->pids_text);
	else if (run->cpus_text)
		kb_out_printf(out, "on CPU %s", run->cpus_text);
	else if (run->all)
		kb_out_printf(out, "in the whole system");
	else
		put_command(out, run->argv[0]);
	if (run->runs > 1)
		kb_out_printf(out, " (%u runs)", run->nr_done);
	kb_out_printf(out, ":\n\n");
}

void stat_put_end(struct stat_run *run)
{
	double elapsed = run->runs > 1 ? run->elapsed.mean : seconds(run);
	struct rusage used = { 0 };
	double user, kernel;

	if (run->form == STAT_CSV)
		return;
	if (run->argv)
		getrusage(RUSAGE_CHILDREN, &used);
	user = ((double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec / 1e6) / run->nr_done;
	kernel = ((double)used.ru_stime.tv_sec + (double)used.ru_stime.tv_usec / 1e6) / run->nr_done;
	if (run->form == STAT_JSON) {
		kb_json_begin(&run->json, "elapsed");
		kb_json_double(&run->json, "seconds", elapsed);
		kb_json_double(&run->json, "user_s", user);
		kb_json_double(&run->json, "system_s", kernel);
		if (run->runs > 1) {
			kb_json_double(&run->json, "deviation_percent",
				       stat_mean_deviation(&run->elapsed));
			kb_json_u64(&run->json, "runs", run->nr_done);
		}
		kb_json_end(&run->json);
		return;
	}
	kb_out_printf(run->json.out, "\n%20.6f  seconds elapsed", elapsed);
	if (run->runs > 1)
		kb_out_printf(run->json.out, " ( +-%6.2f%% )", stat_mean_deviation(&run->elapsed));
	kb_out_printf(run->json.out, "\n");
	if (run->argv)
		kb_out_printf(run->json.out, "%20.6f  seconds of CPU time in user space\n"
			      "%20.6f  seconds of CPU time in the kernel\n", user, kernel);
}
