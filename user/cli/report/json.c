// SPDX-License-Identifier: MIT
/*
 * The report for programs: JSON, one object per line; kbarman-report(1) describes it. The JSON is
 * complete and ignores the percent limit.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include <kbarman/out.h>

#include "analysis/facts/counted.h"
#include "analysis/facts/process_notes.h"
#include "analysis/trace/parts.h"
#include "base/percent.h"
#include "base/text/json.h"
#include "cli/base/end_line.h"
#include "cli/base/trigger_lines.h"
#include "cli/report/print.h"
#include "cli/session/per_core.h"

static void put_fact(const struct report *report, struct kb_json *json, const char *key)
{
	const char *value = kb_barman_fact(report->barman, key);

	if (value)
		kb_json_string(json, key, value);
}

static void put_only(const struct report *report, struct kb_json *json)
{
	static const char *const whole[] = {
		"duration_ns", "cpus", "records", "samples", "samples_without_pc", "switches", "halts",
		"annotations", "custom_counters", "unknown", "lost", "backwards", "missed", "stopped", NULL
	};
	static const char *const all_tasks[] = { "cpu", "idle", NULL };

	filters_put_json(&report->filters, json, whole, all_tasks);
}

static void put_head(const struct report *report, struct kb_json *json)
{
	const struct kb_header *header = report->header;
	struct kb_text weight = report->got->weight_of;
	uint32_t i;

	kb_json_begin(json, "report");
	kb_json_string(json, "target", header->target_name ? header->target_name : "");
	put_fact(report, json, "host");
	put_fact(report, json, "release");
	put_fact(report, json, "command");
	put_fact(report, json, "filter");
	put_fact(report, json, "fallback");
	put_fact(report, json, "asleep");
	put_fact(report, json, "clock_unsteady");
	kb_json_u64(json, "unix_base_ns", header->unix_base_ns);
	kb_json_u64(json, "duration_ns", report->got->duration_ns);
	kb_json_u64(json, "wanted_ns", report->got->wanted_ns);
	kb_json_u64(json, "cpus", report->got->nr_cores);
	kb_json_u64(json, "records", report->got->records);
	kb_json_u64(json, "samples", report->got->events[KB_EVENT_SAMPLE]);
	kb_json_u64(json, "samples_without_pc", report->got->samples_without_pc);
	kb_json_u64(json, "samples_filtered", report->got->filtered);
	kb_json_u64(json, "samples_partial", report->got->totals.partial);
	kb_json_u64(json, "switches", report->got->events[KB_EVENT_TASK_SWITCH]);
	kb_json_u64(json, "halts", report->got->events[KB_EVENT_HALT]);
	kb_json_u64(json, "annotations", report->got->events[KB_EVENT_ANNOTATION]);
	kb_json_u64(json, "custom_counters", report->got->events[KB_EVENT_CUSTOM_COUNTER]);
	kb_json_u64(json, "unknown", report->got->events[KB_EVENT_UNKNOWN]);
	kb_json_text(json, "weight_of", weight.data, weight.length);
	kb_json_u64(json, "weight", report->got->totals.weight);
	kb_json_u64(json, "idle_samples", report->got->idle_samples);
	kb_json_u64(json, "idle_weight", report->got->idle_weight);
	kb_json_array(json, "counters");
	for (i = 0; i < kb_names_nr_counters(report->names); i++) {
		struct kb_text name = kb_names_counter(report->names, i);

		kb_json_text(json, NULL, name.data, name.length);
	}
	kb_json_array_end(json);
	if (report->metrics) {
		kb_json_array(json, "metrics");
		for (i = 0; i < report->nr_metrics; i++)
			kb_json_string(json, NULL, report->rows[i].name);
		kb_json_array_end(json);
	}
	kb_json_u64(json, "lost", report->got->losses->lost);
	kb_json_u64(json, "backwards", report->got->backwards);
	kb_json_bool(json, "damaged", report->got->damaged);
	put_only(report, json);
	kb_json_end(json);
}

/* On machines with CPUs of several kinds: which of them do not count what. */
static void put_uncounted(const struct report *report, struct kb_json *json)
{
	struct kb_uncounted *rows;
	uint32_t nr;

	if (kb_uncounted_read(report->header, &rows, &nr))
		return;
	per_core_json(json, "uncounted", rows, nr);
	kb_uncounted_free(rows, nr);
	if (kb_unsampled_read(report->header, &rows, &nr))
		return;
	per_core_json(json, "unsampled", rows, nr);
	kb_uncounted_free(rows, nr);
}

/*
 * By how much each counter advanced, the instructions per cycle if both were counted, and how many
 * samples the instructions per cycle leave out.
 */
static void put_counters(const struct report *report, struct kb_json *json,
			 const struct kb_sample_table *table, const struct kb_sample_row *row)
{
	double ipc;
	uint32_t i;

	kb_json_array(json, "counters");
	for (i = 0; i < kb_names_nr_counters(report->names); i++)
		kb_json_u64(json, NULL, kb_report_counter(table, row, i));
	kb_json_array_end(json);
	if (kb_report_ipc(report->got, table, row, &ipc) && !isnan(ipc))
		kb_json_double(json, "ipc", ipc);
	if (report->metrics) {
		kb_json_array(json, "metrics");
		for (i = 0; i < report->nr_metrics; i++)
			kb_json_double(json, NULL, kb_report_metric_value(report->got,
									  &report->rows[i],
									  table, row));
		kb_json_array_end(json);
	}
	kb_json_u64(json, "partial", row->partial);
}

enum rotated_field { ROTATED_VALUE, ROTATED_ERROR, ROTATED_PART };

/* One field of each counter, null for those that count all the time. @row NULL: all tasks. */
static void put_rotated_field(const struct report *report, struct kb_json *json,
			      const struct kb_sample_row *row, const char *name,
			      enum rotated_field field)
{
	kb_json_array(json, name);
	for (uint32_t i = 0; i < kb_names_nr_counters(report->names); i++) {
		struct kb_report_count count = { .value = NAN, .error = NAN, .part = NAN };

		if (kb_report_is_rotated(report->got, i))
			count = kb_report_rotated(report->got, row, i);
		kb_json_double(json, NULL, field == ROTATED_VALUE ? count.value :
					   field == ROTATED_ERROR ? count.error : count.part);
	}
	kb_json_array_end(json);
}

/* Of counters that take turns: their counts of the whole time. */
static void put_rotated(const struct report *report, struct kb_json *json,
			const struct kb_sample_row *row)
{
	if (!kb_report_has_rotated(report->got))
		return;
	put_rotated_field(report, json, row, "estimates", ROTATED_VALUE);
	put_rotated_field(report, json, row, "errors", ROTATED_ERROR);
	put_rotated_field(report, json, row, "parts", ROTATED_PART);
}

static void put_bounds(const struct report *report, struct kb_json *json,
		       const struct kb_sample_row *row, const char *name, bool high)
{
	kb_json_array(json, name);
	for (unsigned int i = 0; i < report->nr_metrics; i++) {
		struct kb_metric_value value;

		if (kb_report_metric_bounds(report->got, &report->rows[i], &report->got->counts,
					    row, &value))
			kb_json_double(json, NULL, NAN);
		else
			kb_json_double(json, NULL, high ? value.high : value.low);
	}
	kb_json_array_end(json);
}

/* Of metrics whose counters take turns: what they may truly be. */
static void put_metric_bounds(const struct report *report, struct kb_json *json,
			      const struct kb_sample_row *row)
{
	bool any = false;

	for (unsigned int i = 0; i < report->nr_metrics; i++)
		any |= kb_report_metric_is_rotated(report->got, &report->rows[i]);
	if (!any)
		return;
	put_bounds(report, json, row, "metrics_low", false);
	put_bounds(report, json, row, "metrics_high", true);
}

/* The counters that took turns, of all tasks. */
static void put_all_rotated(const struct report *report, struct kb_json *json)
{
	if (!kb_report_has_rotated(report->got))
		return;
	kb_json_begin(json, "all_counters");
	put_rotated(report, json, NULL);
	kb_json_end(json);
}

/* Writes addresses as strings: programs that read all numbers as doubles would round them. */
static void put_address(struct kb_json *json, uint64_t address)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	kb_json_string(json, "address", text);
}

/* The command line of the process of @task_id, if it was noted. */
static void put_command(const struct report *report, struct kb_json *json, uint32_t task_id,
			uint64_t timestamp)
{
	const struct kb_process_notes *notes = kb_trace_notes(report->trace, NULL);
	const char *command;
	struct kb_task_hit hit;

	if (!notes)
		return;
	kb_tasks_find(report->tasks, task_id, timestamp, &hit);
	command = kb_process_notes_find(notes, hit.tgid, timestamp).command;
	if (command)
		kb_json_string(json, "command", command);
}

static void put_cgroup(const struct report *report, struct kb_json *json,
		       const struct kb_sample_row *row)
{
	const char *cgroup = kb_report_cgroup(&report->got->samples, row);

	kb_json_text(json, "cgroup", cgroup, cgroup ? strlen(cgroup) : 0);
}

static void put_row(const struct report *report, struct kb_json *json,
		    const struct kb_sample_row *row)
{
	kb_json_begin(json, "symbol");
	kb_json_double(json, "percent", kb_percent(row->weight, report->got->totals.weight));
	kb_json_u64(json, "weight", row->weight);
	kb_json_u64(json, "samples", row->samples);
	kb_json_bool(json, "idle", row->idle);
	if (report->how.children)
		kb_json_u64(json, "children", row->children);
	put_counters(report, json, &report->got->samples, row);
	if (report->how.sort & (KB_SORT_TASK | KB_SORT_PID | KB_SORT_TID))
		kb_json_string(json, "task", row->task);
	if (report->how.sort & KB_SORT_PID)
		kb_json_u64(json, "pid", row->pid);
	if (report->how.sort & KB_SORT_TID)
		kb_json_u64(json, "tid", row->task_id);
	if (report->how.sort & (KB_SORT_PID | KB_SORT_TID))
		put_command(report, json, row->task_id, report->got->last_timestamp);
	if (report->how.sort & KB_SORT_CGROUP)
		put_cgroup(report, json, row);
	if (report->how.sort & KB_SORT_CPU)
		kb_json_u64(json, "cpu", row->core);
	if (report->how.sort & KB_SORT_MODE)
		kb_json_string(json, "mode", row->kernel ? "kernel" : "user");
	if (report->how.sort & (KB_SORT_IMAGE | KB_SORT_SYMBOL | KB_SORT_LINE)) {
		kb_json_string(json, "image", row->image);
		kb_json_bool(json, "kernel", row->kernel);
	}
	if (report->how.sort & KB_SORT_SYMBOL)
		kb_json_text(json, "symbol", row->symbol[0] ? row->symbol : NULL,
			     strlen(row->symbol));
	if (report->how.sort & KB_SORT_SYMBOL && row->address && row->symbol[0])
		put_address(json, row->address);
	if (report->how.sort & KB_SORT_SYMBOL && report->symbols.inlined)
		kb_json_bool(json, "inlined", row->inlined);
	if (report->how.sort & KB_SORT_LINE) {
		kb_json_text(json, "source", row->file[0] ? row->file : NULL, strlen(row->file));
		kb_json_u64(json, "line", row->line);
	}
	kb_json_end(json);
}

static void put_name(const struct report *report, struct kb_json *json, uint32_t task_id,
		     uint64_t timestamp)
{
	char buffer[KB_TASK_NAME_BUFFER];
	struct kb_task_hit hit;

	kb_tasks_find(report->tasks, task_id, timestamp, &hit);
	kb_json_u64(json, "pid", hit.tgid);
	kb_json_u64(json, "tid", task_id);
	kb_json_string(json, "task", kb_tasks_name(report->tasks, task_id, timestamp, buffer));
	put_command(report, json, task_id, timestamp);
}

/* Depth first: the parent of a row is the last row before it with a lower depth. */
static void put_call(struct kb_json *json, const char *kind, const struct kb_calltree_node *node,
		     uint64_t all)
{
	kb_json_begin(json, kind);
	kb_json_u64(json, "depth", node->depth);
	kb_json_string(json, node->depth == 1 ? "task" : "symbol", node->name);
	if (node->depth > 1) {
		kb_json_string(json, "image", node->image_base);
		kb_json_bool(json, "kernel", node->kernel);
		if (node->inlined)
			kb_json_bool(json, "inlined", true);
	}
	kb_json_double(json, "percent", kb_percent(node->total, all));
	kb_json_u64(json, "total", node->total);
	kb_json_u64(json, "self", node->self);
	kb_json_end(json);
}

static void put_task_samples(const struct report *report, struct kb_json *json,
			     const struct kb_sample_row *row)
{
	kb_json_begin(json, "task_samples");
	put_name(report, json, row->task_id, report->got->last_timestamp);
	kb_json_double(json, "percent", kb_percent(row->weight, report->got->totals.weight));
	kb_json_u64(json, "weight", row->weight);
	kb_json_u64(json, "samples", row->samples);
	kb_json_bool(json, "idle", row->idle);
	put_counters(report, json, &report->got->tasks, row);
	kb_json_end(json);
}

static void put_task_counts(const struct report *report, struct kb_json *json,
			    const struct kb_sample_row *row)
{
	kb_json_begin(json, "task_counters");
	put_name(report, json, row->task_id, report->got->last_timestamp);
	kb_json_u64(json, "samples", row->samples);
	put_counters(report, json, &report->got->counts, row);
	put_rotated(report, json, row);
	put_metric_bounds(report, json, row);
	kb_json_end(json);
}

static void put_table(const struct report *report, struct kb_json *json,
		      const struct kb_sample_table *table,
		      void (*put)(const struct report *report, struct kb_json *json,
				  const struct kb_sample_row *row))
{
	for (uint32_t i = 0; i < table->nr; i++) {
		const struct kb_sample_row row = kb_report_sample(table, i);

		put(report, json, &row);
	}
}

/* One of the longest waits, with its call chain, innermost function first. */
static void put_wait(const struct report *report, struct kb_json *json,
		     const struct kb_wait *wait)
{
	const struct kb_calltree_node *node = &report->got->waiting.nodes[wait->mark];

	kb_json_begin(json, "wait");
	put_name(report, json, wait->task_id, wait->ticks);
	kb_json_bool(json, "blocked", wait->blocked);
	kb_json_bool(json, "asleep", wait->asleep);
	kb_json_u64(json, "duration_ns", wait->ns);
	kb_json_i64(json, "at_ns", wait->since);
	report_put_by(json, report->trace, &wait->waker, wait->woken);
	kb_json_array(json, "stack");
	for (; node->depth > 1; node = &report->got->waiting.nodes[node->parent]) {
		char label[512];

		if (!node->image_base[0])
			continue;
		kb_calltree_label(node, label, sizeof(label));
		kb_json_string(json, NULL, label);
	}
	kb_json_array_end(json);
	kb_json_end(json);
}

static void put_task(const struct report *report, struct kb_json *json,
		     const struct kb_sched_task *task)
{
	kb_json_begin(json, "task_time");
	put_name(report, json, task->key, task->last_seen);
	kb_json_u64(json, "run_ns", task->run_ns);
	kb_json_u64(json, "runs", task->runs);
	kb_json_u64(json, "preempted", task->preempted);
	kb_json_u64(json, "blocked", task->blocked);
	kb_json_u64(json, "preempted_ns", task->preempted_ns);
	kb_json_u64(json, "blocked_ns", task->blocked_ns);
	kb_json_u64(json, "longest_wait_ns", task->longest_ns);
	kb_json_i64(json, "longest_wait_at_ns", task->longest_at);
	kb_json_bool(json, "longest_wait_blocked", task->longest_blocked);
	kb_json_bool(json, "longest_wait_asleep", task->longest_asleep);
	kb_json_u64(json, "migrations", task->migrations);
	kb_json_end(json);
}

/* What is at the end of a recording that ended with the machine. */
static void put_last(const struct report *report, struct kb_json *json, const struct kb_last_task *row)
{
	static const char *const states[] = {
		[KB_LAST_RAN] = "ran", [KB_LAST_RUNS] = "runs", [KB_LAST_RUNNABLE] = "runnable",
		[KB_LAST_WAITS] = "waits",
	};
	char name[KB_TASK_NAME_BUFFER];
	struct kb_waits_row object = row->object;

	kb_json_begin(json, "last");
	kb_json_string(json, "state", states[row->state]);
	kb_json_u64(json, "cpu", row->core);
	kb_json_u64(json, "tid", row->task_id);
	kb_json_string(json, "task", kb_tasks_name(report->tasks, row->task_id,
						   row->ticks ?: report->got->last_timestamp, name));
	if (row->state <= KB_LAST_RUNS)
		kb_json_u64(json, "run_ns", row->ran_ns);
	if (row->state != KB_LAST_RAN)
		kb_json_u64(json, "since_ns", (uint64_t)(report->got->last.until - row->since));
	kb_json_u64(json, "holds_up", row->holds_up);
	if (row->state == KB_LAST_WAITS) {
		kb_json_bool(json, "held_up", row->held_up);
		object.holder = row->holder;
		object.holder_task = kb_tasks_name(report->tasks, row->holder, row->ticks, name);
		report_put_object(json, &object);
		report_put_holder(json, &object);
	}
	kb_json_end(json);
}

static void put_cpu(const struct report *report, struct kb_json *json, uint32_t core,
		    const struct kb_sched_cpu *cpu)
{
	int state;

	kb_json_begin(json, "cpu");
	kb_json_u64(json, "cpu", core);
	kb_json_u64(json, "busy_ns", cpu->busy_ns);
	kb_json_u64(json, "awake_ns", cpu->awake_ns);
	kb_json_u64(json, "halted_ns", cpu->halted_ns);
	kb_json_u64(json, "lost_ns", cpu->lost_ns);
	kb_json_u64(json, "switches", cpu->switches);
	kb_json_end(json);
	for (state = 0; cpu->states && state < KB_SCHED_STATES; state++) {
		if (!cpu->states[state].count)
			continue;
		kb_json_begin(json, "idle");
		kb_json_u64(json, "cpu", core);
		kb_json_i64(json, "idle_state", state - 1);
		kb_json_u64(json, "count", cpu->states[state].count);
		kb_json_u64(json, "duration_ns", cpu->states[state].ns);
		kb_json_u64(json, "longest_ns", cpu->states[state].longest_ns);
		kb_json_double(json, "per_second", report->got->wanted_ns ?
			       cpu->states[state].count * 1e9 / report->got->wanted_ns : 0);
		kb_json_end(json);
	}
}

static void put_tree(struct kb_json *json, const char *kind, const struct kb_call_tree *tree)
{
	uint32_t i;

	for (i = 1; i < tree->nr; i++)
		if (tree->nodes[tree->order[i]].total)
			put_call(json, kind, &tree->nodes[tree->order[i]],
				 tree->nodes[KB_CALLTREE_ROOT].total);
}

static void put_losses(const struct report *report, struct kb_json *json)
{
	const struct kb_losses *losses = report->got->losses;
	uint32_t i;

	for (i = 0; i < losses->nr_rows; i++) {
		kb_json_begin(json, "lost");
		kb_json_u64(json, "cpu", losses->rows[i].core);
		kb_json_string(json, "reason", losses->rows[i].what);
		kb_json_u64(json, "records", losses->rows[i].count);
		kb_json_end(json);
	}
	for (i = 0; i < losses->nr_missed; i++) {
		kb_json_begin(json, "missed");
		kb_json_string(json, "what", losses->missed[i].what);
		kb_json_u64(json, "count", losses->missed[i].count);
		kb_json_end(json);
	}
}

static void put_stops(const struct report *report, struct kb_json *json)
{
	uint32_t i;

	for (i = 0; i < report->got->nr_stops; i++) {
		const struct kb_stop *stop = &report->got->stops[i];

		kb_json_begin(json, "stopped");
		kb_json_u64(json, "cpu", stop->core);
		kb_json_string(json, "reason", stop->reason);
		kb_json_u64(json, "times", stop->times);
		kb_json_u64(json, "duration_ns", stop->ns);
		if (stop->ns) {
			kb_json_i64(json, "first_ns", stop->first);
			kb_json_i64(json, "last_ns", stop->last);
		}
		kb_json_end(json);
	}
}

void report_put_json(const struct report *report, struct kb_out *out)
{
	struct kb_json json = { .out = out };
	uint32_t i;

	put_head(report, &json);
	put_uncounted(report, &json);
	trigger_lines(&json, report->barman);
	end_line(&json, report->barman);
	for (i = 0; i < report->got->last.nr; i++)
		put_last(report, &json, &report->got->last.rows[i]);
	put_table(report, &json, &report->got->samples, put_row);
	put_table(report, &json, &report->got->tasks, put_task_samples);
	put_table(report, &json, &report->got->counts, put_task_counts);
	if (report->got->counts.hot)
		put_all_rotated(report, &json);
	if (report->got->calls.nodes)
		put_tree(&json, "call", &report->got->calls);
	for (i = 0; i < report->got->nr_sched_tasks; i++)
		put_task(report, &json, &report->got->sched_tasks[i]);
	for (i = 0; i < report->got->nr_waits; i++)
		put_wait(report, &json, &report->got->waits[i]);
	for (i = 0; i < report->got->nr_sleeps; i++)
		put_wait(report, &json, &report->got->sleeps[i]);
	if (report->got->calls.nodes && report->got->waiting_has_chains)
		put_tree(&json, "wait_call", &report->got->waiting);
	for (i = 0; i < report->header->max_cores; i++)
		if (report->got->cpus[i].seen)
			put_cpu(report, &json, i, &report->got->cpus[i]);
	put_losses(report, &json);
	put_stops(report, &json);
}
