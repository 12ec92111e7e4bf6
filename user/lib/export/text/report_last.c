// SPDX-License-Identifier: MIT
/* What the machine did in the second before it stopped. */
#include <inttypes.h>

#include "base/percent.h"
#include "export/text/latency_put.h"
#include "export/text/report_parts.h"

static void put_name(const struct report_text *report, uint32_t task_id, uint64_t ticks)
{
	char name[KB_TASK_NAME_BUFFER];

	text_put(report, kb_tasks_name(report->tasks, task_id, ticks, name), 0);
}

static void put_wait(const struct report_text *report, const struct kb_last_task *row)
{
	const struct latency_text text = { .put = *report, .trace = report->trace };

	text_printf(report, ": ");
	latency_put_object(&text, &row->object);
	if (!row->holder)
		return;
	text_printf(report, ", held by ");
	put_name(report, row->holder, row->ticks);
	text_printf(report, " (%" PRIu32 ")", row->holder);
}

static void put_row(const struct report_text *report, const struct kb_last_task *row)
{
	static const char *const states[] = {
		[KB_LAST_RAN] = "ran", [KB_LAST_RUNS] = "runs", [KB_LAST_RUNNABLE] = "could run",
		[KB_LAST_WAITS] = "waits",
	};
	const int64_t until = report->got->last.until;

	text_printf(report, "   %3" PRIu32 "  ", row->core);
	if (row->state <= KB_LAST_RUNS)
		text_printf(report, "%6.2f%%", kb_percent(row->ran_ns, (uint64_t)(until - report->got->last.from)));
	else
		text_printf(report, "      -");
	if (row->state == KB_LAST_RAN)
		text_printf(report, "           -");
	else
		text_printf(report, "  %10.3f", text_ms((uint64_t)(until - row->since)));
	text_printf(report, "  %-10s  %7" PRIu32 "  ", states[row->state], row->task_id);
	put_name(report, row->task_id, row->ticks ?: report->got->last_timestamp);
	if (row->object.object)
		put_wait(report, row);
	if (row->holds_up)
		text_printf(report, ", holds what %" PRIu32 " %s for", row->holds_up,
			    row->holds_up == 1 ? "task waits" : "tasks wait");
	text_printf(report, "\n");
}

/* Who has waited for long, and is held up by nobody, most likely had nothing to do. */
static bool is_shown(const struct report_text *report, const struct kb_last_task *row)
{
	const struct kb_last_second *last = &report->got->last;

	if (!report->options.percent_limit || row->holds_up)
		return true;
	return row->state == KB_LAST_RAN   ? text_is_shown(report, row->ran_ns, (uint64_t)(last->until - last->from)) :
	       row->state == KB_LAST_WAITS ? row->held_up || !row->is_older : true;
}

void text_put_last(const struct report_text *report)
{
	const struct kb_last_second *last = &report->got->last;
	uint32_t rest = 0;

	text_put_title(report, "The last second: what each CPU ran, held and waited for (times in ms)");
	text_printf(report, "#  CPU    Run %%         For  At the end      TID  Task, and what it waits for\n#\n");
	for (uint32_t i = 0; i < last->nr; i++)
		if (is_shown(report, &last->rows[i]))
			put_row(report, &last->rows[i]);
		else
			rest++;
	if (rest)
		text_printf(report, "# %" PRIu32 " more row%s: ran less than %g%%, or wait for longer: --percent-limit 0 "
				    "shows all\n", rest, rest == 1 ? "" : "s", report->options.percent_limit);
}
