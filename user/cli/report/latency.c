// SPDX-License-Identifier: MIT
/*
 * kbarman report --latency and --irq: why tasks ran late, what interrupts took, what ended halts.
 * The JSON is complete and ignores the percent limit.
 */
#include <stdio.h>

#include "analysis/facts/sources.h"
#include "analysis/time/origin.h"
#include "base/text/json.h"
#include "cli/base/cli.h"
#include "cli/report/print.h"

struct latency {
	const struct report *report;
	const struct kb_latency *got;
	struct kb_trace *trace;
	struct kb_json json;
};

/* ---- JSON ---- */

static void put_fact(struct latency *latency, const char *key)
{
	const char *value = kb_barman_fact(kb_trace_barman(latency->trace), key);

	if (value)
		kb_json_string(&latency->json, key, value);
}

static void put_stats(struct kb_json *json, const struct kb_latency_stats *stats)
{
	kb_json_u64(json, "waits", stats->count);
	report_put_stats(json, stats);
}

static void put_parts(struct kb_json *json, const uint64_t parts[KB_PARTS])
{
	char key[32];

	for (unsigned int part = 0; part < KB_PARTS; part++) {
		snprintf(key, sizeof(key), "%s_ns", kb_part_name((enum kb_part)part));
		kb_json_u64(json, key, parts[part]);
	}
}

static void put_name(struct latency *latency, uint32_t task_id, uint64_t ticks)
{
	const struct kb_tasks *tasks = kb_trace_tasks(latency->trace, NULL);
	char buffer[KB_TASK_NAME_BUFFER];
	struct kb_task_hit hit;

	kb_tasks_find(tasks, task_id, ticks, &hit);
	kb_json_u64(&latency->json, "pid", hit.tgid);
	kb_json_u64(&latency->json, "tid", task_id);
	kb_json_string(&latency->json, "task", kb_tasks_name(tasks, task_id, ticks, buffer));
}

static const char *kind_name(enum kb_tile_kind kind)
{
	return kb_origin_kind(kind);
}

/* @kind, @id and @name are keys. The id of what is not known is left out. */
static void put_origin(struct latency *latency, const struct kb_origin *origin, uint64_t ticks,
		       const char *kind, const char *id, const char *name)
{
	char text[KB_ORIGIN_NAME];

	kb_json_string(&latency->json, kind, kind_name(origin->kind));
	if (origin->kind != KB_TILE_UNKNOWN && origin->id != KB_ORIGIN_ANY)
		kb_json_u64(&latency->json, id, origin->id);
	kb_json_string(&latency->json, name,
		       kb_origin_name(latency->trace, origin, ticks, text, sizeof(text)));
	if (kb_origin_call(latency->trace, origin))
		kb_json_string(&latency->json, "by_call", kb_origin_call(latency->trace, origin));
}

static void put_only(struct latency *latency)
{
	static const char *const whole[] = {
		"duration_ns", "cpus", "records", "wakeups", "migrations", "interrupts", "softirqs",
		"lost", "gaps", NULL
	};
	static const char *const all_tasks[] = {
		"halts", "halt_end", "halts_paid", "halt_miss", "cpu_time", NULL
	};

	filters_put_json(&latency->report->filters, &latency->json, whole, all_tasks);
}

static void put_head(struct latency *latency)
{
	const struct kb_latency *got = latency->got;
	const struct kb_losses *losses = kb_trace_losses(latency->trace, NULL);
	struct kb_json *json = &latency->json;

	kb_json_begin(json, "latency");
	put_fact(latency, "host");
	put_fact(latency, "release");
	put_fact(latency, "command");
	put_fact(latency, "sources");
	kb_json_u64(json, "unix_base_ns", kb_trace_header(latency->trace)->unix_base_ns);
	kb_json_u64(json, "duration_ns", got->duration_ns);
	kb_json_u64(json, "cpus", got->nr_cores);
	kb_json_u64(json, "records", got->records);
	kb_json_u64(json, "wakeups", got->whats[KB_WHAT_WAKING] + got->whats[KB_WHAT_WAKING_NEW]);
	kb_json_u64(json, "migrations", got->whats[KB_WHAT_MIGRATE]);
	kb_json_u64(json, "interrupts",
		    got->whats[KB_WHAT_IRQ_ENTRY] + got->whats[KB_WHAT_IPI_ENTRY]);
	kb_json_u64(json, "softirqs", got->whats[KB_WHAT_SOFTIRQ_ENTRY]);
	kb_json_u64(json, "lost", losses ? losses->lost : 0);
	kb_json_u64(json, "gaps", got->gaps);
	kb_json_u64(json, "cut", got->cut);
	kb_json_u64(json, "unexplained", got->unexplained);
	kb_json_u64(json, "filtered", got->filtered);
	kb_json_u64(json, "unsure", got->unsure);
	kb_json_bool(json, "damaged", got->damaged);
	put_only(latency);
	kb_json_end(json);
}

static void put_sums(struct latency *latency, bool preempted)
{
	const struct kb_latency *got = latency->got;
	const uint64_t *powers = preempted ? got->preempted_powers : got->woken_powers;
	struct kb_json *json = &latency->json;
	unsigned int i, last = 0;

	kb_json_begin(json, "latency_sum");
	kb_json_bool(json, "preempted", preempted);
	put_stats(json, preempted ? &got->preempted : &got->woken);
	put_parts(json, preempted ? got->preempted_parts : got->woken_parts);
	for (i = 0; i < 64; i++)
		last = powers[i] ? i + 1 : last;
	kb_json_array(json, "powers");
	for (i = 0; i < last; i++)
		kb_json_u64(json, NULL, powers[i]);
	kb_json_array_end(json);
	kb_json_end(json);
}

static void put_task(struct latency *latency, const struct kb_latency_task *task, bool preempted)
{
	const struct kb_latency_stats *stats = preempted ? &task->preempted : &task->woken;

	if (!stats->count)
		return;
	kb_json_begin(&latency->json, "latency_task");
	put_name(latency, task->task_id, task->last_seen);
	kb_json_bool(&latency->json, "preempted", preempted);
	put_stats(&latency->json, stats);
	put_parts(&latency->json, preempted ? task->preempted_parts : task->woken_parts);
	kb_json_end(&latency->json);
}

static void put_waker(struct latency *latency, const struct kb_latency_waker *waker)
{
	kb_json_begin(&latency->json, "latency_waker");
	put_origin(latency, &waker->origin, waker->last_seen, "by", "id", "name");
	put_stats(&latency->json, &waker->woken);
	put_parts(&latency->json, waker->parts);
	kb_json_end(&latency->json);
}

static void put_idle(struct latency *latency, const struct kb_latency_idle *idle)
{
	kb_json_begin(&latency->json, "latency_idle");
	kb_json_i64(&latency->json, "idle_state", idle->state);
	put_stats(&latency->json, &idle->left);
	kb_json_end(&latency->json);
}

static void put_text(struct kb_json *json, const char *key, const char *text)
{
	kb_json_text(json, key, text, text ? strlen(text) : 0);
}

static void put_behind(struct latency *latency, const struct kb_latency_behind *behind)
{
	kb_json_begin(&latency->json, "latency_behind");
	put_text(&latency->json, "task", behind->task);
	put_text(&latency->json, "ran", behind->ran);
	kb_json_string(&latency->json, "what", kind_name(behind->kind));
	kb_json_u64(&latency->json, "duration_ns", behind->ns);
	kb_json_u64(&latency->json, "pieces", behind->pieces);
	kb_json_end(&latency->json);
}

static void put_pieces(struct latency *latency, const struct kb_latency_wait *wait)
{
	char name[KB_ORIGIN_NAME];
	uint32_t i;

	kb_json_array(&latency->json, "ran");
	for (i = 0; i < wait->nr_meanwhile; i++) {
		const struct kb_latency_piece *piece = &wait->meanwhile[i];

		kb_json_array(&latency->json, NULL);
		kb_json_string(&latency->json, NULL, kind_name(piece->what.kind));
		kb_json_string(&latency->json, NULL,
			       kb_origin_name(latency->trace, &piece->what, wait->ticks, name,
					      sizeof(name)));
		kb_json_u64(&latency->json, NULL, piece->ns);
		kb_json_array_end(&latency->json);
	}
	kb_json_array_end(&latency->json);
	kb_json_u64(&latency->json, "others_ns", wait->others_ns);
}

static void put_wait(struct latency *latency, const struct kb_latency_wait *wait)
{
	struct kb_json *json = &latency->json;

	kb_json_begin(json, "latency_wait");
	put_name(latency, wait->task_id, wait->ticks);
	kb_json_bool(json, "preempted", wait->preempted);
	if (!wait->preempted) {
		kb_json_bool(json, "new", wait->is_new);
		put_origin(latency, &wait->waker, wait->ticks, "by", "by_id", "by_name");
		kb_json_u64(json, "by_cpu", wait->waker_core);
	}
	kb_json_u64(json, "cpu", wait->core);
	kb_json_u64(json, "duration_ns", wait->ns);
	kb_json_i64(json, "at_ns", wait->since);
	if (wait->has_left)
		kb_json_i64(json, "idle_state", wait->idle_state);
	kb_json_u64(json, "moves", wait->moves);
	put_parts(json, wait->parts);
	put_pieces(latency, wait);
	kb_json_end(json);
}

static void put_waits(struct latency *latency)
{
	const struct kb_latency *got = latency->got;
	uint32_t i;

	put_sums(latency, false);
	put_sums(latency, true);
	for (i = 0; i < got->nr_tasks; i++)
		put_task(latency, &got->tasks[i], false);
	for (i = 0; i < got->nr_tasks; i++)
		put_task(latency, &got->tasks[i], true);
	for (i = 0; i < got->nr_wakers; i++)
		put_waker(latency, &got->wakers[i]);
	for (i = 0; i < got->nr_idle; i++)
		put_idle(latency, &got->idle[i]);
	for (i = 0; i < got->nr_behind; i++)
		put_behind(latency, &got->behind[i]);
	for (i = 0; i < got->nr_worst; i++)
		put_wait(latency, &got->worst[i]);
	for (i = 0; i < got->nr_worst_preempted; i++)
		put_wait(latency, &got->worst_preempted[i]);
}

static void put_interrupt(struct latency *latency, const struct kb_interrupt *row)
{
	struct kb_json *json = &latency->json;

	kb_json_begin(json, "interrupt");
	put_origin(latency, &row->origin, 0, "what", "id", "handler");
	kb_json_u64(json, "count", row->count);
	kb_json_u64(json, "own_ns", row->ns);
	kb_json_u64(json, "longest_ns", row->longest_ns);
	if (row->longest_ns) {
		kb_json_i64(json, "longest_at_ns", row->longest_at);
		kb_json_u64(json, "longest_cpu", row->longest_core);
	}
	if (row->origin.kind == KB_TILE_SOFTIRQ) {
		kb_json_u64(json, "raised", row->raised);
		kb_json_u64(json, "delays", row->delays);
		kb_json_u64(json, "delay_ns", row->delay_ns);
		kb_json_u64(json, "longest_delay_ns", row->longest_delay_ns);
	}
	kb_json_end(json);
}

static void put_from(struct latency *latency, const struct kb_interrupt_from *from)
{
	kb_json_begin(&latency->json, "interrupt_from");
	put_origin(latency, &from->origin, 0, "what", "id", "handler");
	put_text(&latency->json, "task", from->task);
	kb_json_u64(&latency->json, "duration_ns", from->ns);
	kb_json_u64(&latency->json, "pieces", from->pieces);
	kb_json_end(&latency->json);
}

static void put_halts(struct latency *latency, const struct kb_halts *halts)
{
	struct kb_text name = kb_latency_state_name(latency->got, halts->core, halts->state);
	struct kb_json *json = &latency->json;

	kb_json_begin(json, "halts");
	kb_json_u64(json, "cpu", halts->core);
	kb_json_i64(json, "idle_state", halts->state);
	if (name.length)
		kb_json_text(json, "idle_state_name", name.data, name.length);
	kb_json_u64(json, "count", halts->count);
	kb_json_u64(json, "duration_ns", halts->ns);
	kb_json_u64(json, "above", halts->too_deep);
	kb_json_u64(json, "above_ns", halts->too_deep_ns);
	kb_json_u64(json, "below", halts->too_shallow);
	kb_json_u64(json, "below_ns", halts->too_shallow_ns);
	kb_json_end(json);
}

static void put_halt_end(struct latency *latency, const struct kb_halt_end *end)
{
	kb_json_begin(&latency->json, "halt_end");
	kb_json_u64(&latency->json, "cpu", end->core);
	kb_json_i64(&latency->json, "idle_state", end->state);
	put_origin(latency, &end->origin, 0, "by", "id", "name");
	kb_json_u64(&latency->json, "count", end->count);
	kb_json_end(&latency->json);
}

static void put_halts_paid(struct latency *latency, const struct kb_halts_paid *paid)
{
	struct kb_json *json = &latency->json;

	kb_json_begin(json, "halts_paid");
	kb_json_u64(json, "cpu", paid->core);
	kb_json_i64(json, "idle_state", paid->state);
	kb_json_string(json, "was", paid->too_shallow ? "below" : "above");
	if (paid->paid != KB_STATE_UNKNOWN)
		kb_json_i64(json, "paid", paid->paid);
	kb_json_u64(json, "count", paid->count);
	kb_json_u64(json, "duration_ns", paid->ns);
	kb_json_end(json);
}

static void put_halt_miss(struct latency *latency, const struct kb_halt_miss *miss)
{
	struct kb_json *json = &latency->json;

	kb_json_begin(json, "halt_miss");
	kb_json_u64(json, "cpu", miss->core);
	kb_json_i64(json, "chosen", miss->chosen);
	kb_json_i64(json, "idle_state", miss->state);
	kb_json_string(json, "was", miss->too_shallow ? "below" : "above");
	if (miss->paid != KB_STATE_UNKNOWN)
		kb_json_i64(json, "paid", miss->paid);
	kb_json_i64(json, "at_ns", miss->since);
	kb_json_u64(json, "duration_ns", miss->ns);
	kb_json_u64(json, "off_ns", miss->off_ns);
	put_origin(latency, &miss->origin, miss->ticks, "ended_by", "ended_by_id", "ended_by_name");
	if (miss->has_task)
		put_name(latency, miss->task_id, miss->ticks);
	if (miss->is_woken) {
		put_origin(latency, &miss->waker, miss->ticks, "by", "by_id", "by_name");
		kb_json_u64(json, "by_cpu", miss->waker_core);
	}
	kb_json_end(json);
}

static void put_cpu(struct latency *latency, uint32_t core, const struct kb_cpu_tiles *cpu)
{
	char key[32];

	kb_json_begin(&latency->json, "cpu_time");
	kb_json_u64(&latency->json, "cpu", core);
	kb_json_i64(&latency->json, "first_ns", cpu->first);
	kb_json_i64(&latency->json, "last_ns", cpu->last);
	for (unsigned int kind = 0; kind < KB_TILE_KINDS; kind++) {
		snprintf(key, sizeof(key), "%s_ns", kind_name((enum kb_tile_kind)kind));
		kb_json_u64(&latency->json, key, cpu->ns[kind]);
	}
	kb_json_end(&latency->json);
}

static void put_interrupts(struct latency *latency)
{
	const struct kb_latency *got = latency->got;
	uint32_t i;

	for (i = 0; i < got->nr_interrupts; i++)
		put_interrupt(latency, &got->interrupts[i]);
	for (i = 0; i < got->nr_from; i++)
		put_from(latency, &got->from[i]);
	for (i = 0; i < got->nr_halts; i++)
		put_halts(latency, &got->halts[i]);
	for (i = 0; i < got->nr_halt_ends; i++)
		put_halt_end(latency, &got->halt_ends[i]);
	for (i = 0; i < got->nr_halts_paid; i++)
		put_halts_paid(latency, &got->halts_paid[i]);
	for (i = 0; i < got->nr_worst_deep; i++)
		put_halt_miss(latency, &got->worst_deep[i]);
	for (i = 0; i < got->nr_worst_shallow; i++)
		put_halt_miss(latency, &got->worst_shallow[i]);
	for (i = 0; i < kb_trace_header(latency->trace)->max_cores; i++)
		if (got->cpus[i].seen)
			put_cpu(latency, i, &got->cpus[i]);
}

void report_put_latency(const struct report *report, const struct kb_latency *got,
			struct kb_trace *trace, struct kb_out *out)
{
	struct latency latency = { .report = report, .got = got, .trace = trace, .json.out = out };

	put_head(&latency);
	if (report->latency)
		put_waits(&latency);
	if (report->irq)
		put_interrupts(&latency);
}

/* Says what the capture lacks for its reports. Returns CLI_OK or CLI_IMPOSSIBLE. */
static int check_sources(const struct report *report, const struct kb_latency *got)
{
	const struct kb_barman *barman = kb_trace_barman(report->trace);
	const uint64_t *whats = got->whats;

	if (report->latency && report_check_wakeups(report, whats[KB_WHAT_WAKING] || whats[KB_WHAT_WAKING_NEW]))
		return CLI_IMPOSSIBLE;
	if (report->irq && !kb_has_source(barman, "irq") &&
	    !kb_has_source(barman, "softirq") && !whats[KB_WHAT_IRQ_ENTRY] &&
	    !whats[KB_WHAT_IPI_ENTRY] && !whats[KB_WHAT_SOFTIRQ_ENTRY])
		return cli_fail("%s has no interrupts and no softirqs: record with 'kbarman record "
				"--latency'", report->path);
	return CLI_OK;
}

int report_latency(struct report *report, bool json)
{
	const struct kb_latency_options how = { .size = sizeof(how), .filter = report->how.filter };
	const struct kb_latency_text_options text = {
		.size = sizeof(text), .capture = report->path, .filter = report->filters.text,
		.waits = report->latency, .interrupts = report->irq,
		.percent_limit = report->text.percent_limit,
	};
	const struct kb_latency *got = NULL;
	struct kb_error err = { 0 };
	int ret = report_begin(report) ?:
		  report_take(kb_latency_create(&got, report->trace, &how, &err), &err);

	if (ret)
		return ret;
	ret = check_sources(report, got);
	if (!ret) {
		if (json)
			report_put_latency(report, got, report->trace, report->out);
		else
			ret = kb_latency_text(got, report->trace, &text, report->out, NULL);
		ret = report_end(report, ret, got->damaged);
	}
	kb_latency_destroy(got);
	return ret;
}
