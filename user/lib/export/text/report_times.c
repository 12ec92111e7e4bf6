// SPDX-License-Identifier: MIT
/* The tables of a report that say how tasks and CPUs spent their time. */
#include <inttypes.h>
#include <stdio.h>

#include "base/percent.h"
#include "export/text/report_parts.h"

/*
 * "Run %" is relative to the recorded time on one CPU. A preempted task could run and waits for a
 * CPU; a blocked task waits for something else.
 */
void text_put_task_times(const struct report_text *report)
{
	uint32_t i;

	text_put_chosen(report, "Scheduling by task (times in ms; Run % is of one CPU)", false);
	text_printf(report,
		    "#  Run %%         Run     Runs  Preempted      waited  Blocked      waited"
		    "  Longest wait      PID      TID  Task\n#\n");
	for (i = 0; i < report->got->nr_sched_tasks; i++) {
		const struct kb_sched_task *task = &report->got->sched_tasks[i];

		if (!text_is_shown(report, task->run_ns, report->got->wanted_ns))
			break;
		text_printf(report,
			    "%7.2f%%  %10.3f  %7" PRIu64 "  %9" PRIu64 "  %10.3f  %7" PRIu64
			    "  %10.3f  %10.3f %s",
			    kb_percent(task->run_ns, report->got->wanted_ns),
			    text_ms(task->run_ns), task->runs, task->preempted,
			    text_ms(task->preempted_ns), task->blocked, text_ms(task->blocked_ns),
			    text_ms(task->longest_ns),
			    !task->longest_ns	    ? "-"
			    : task->longest_asleep  ? "s"
			    : task->longest_blocked ? "b"
						    : "p");
		text_put_task_command(report, task->key, task->last_seen);
	}
	if (i < report->got->nr_sched_tasks)
		text_printf(report,
			    "# %u more task%s ran less than %g%%: --percent-limit 0 shows all\n",
			    report->got->nr_sched_tasks - i,
			    report->got->nr_sched_tasks - i == 1 ? "" : "s",
			    report->options.percent_limit);
}

void text_put_cpus(const struct report_text *report)
{
	bool lost = false;
	uint32_t i;

	for (i = 0; i < report->header->max_cores; i++)
		lost |= report->got->cpus[i].lost_ns != 0;
	text_put_chosen(report, "CPUs (times in ms)", true);
	text_printf(
		report,
		"#  CPU  Switches         Busy      %%  Idle, awake      %%       Halted      %%"
		"%s\n#\n",
		lost ? "      Unknown" : "");
	for (i = 0; i < report->header->max_cores; i++) {
		const struct kb_sched_cpu *cpu = &report->got->cpus[i];
		uint64_t all = cpu->busy_ns + cpu->awake_ns + cpu->halted_ns + cpu->lost_ns;

		if (!cpu->seen)
			continue;
		text_printf(report,
			    "   %3u  %8" PRIu64 "  %11.3f %5.1f%%  %11.3f %5.1f%%  %11.3f %5.1f%%",
			    i, cpu->switches, text_ms(cpu->busy_ns), kb_percent(cpu->busy_ns, all),
			    text_ms(cpu->awake_ns), kb_percent(cpu->awake_ns, all),
			    text_ms(cpu->halted_ns), kb_percent(cpu->halted_ns, all));
		if (lost)
			text_printf(report, "  %11.3f", text_ms(cpu->lost_ns));
		text_printf(report, "\n");
	}
}

static void put_state(const struct report_text *report, uint32_t core, int state,
		      const struct kb_sched_state *row, uint64_t duration)
{
	char name[16] = "unknown";

	if (state)
		snprintf(name, sizeof(name), "%d", state - 1);
	text_printf(report, "   %3u  %7s  %8" PRIu64 "  %9.1f  %11.3f %5.1f%%  %10.3f  %10.3f\n",
		    core, name, row->count, duration ? row->count * 1e9 / duration : 0,
		    text_ms(row->ns), kb_percent(row->ns, duration), text_ms(row->ns) / row->count,
		    text_ms(row->longest_ns));
}

void text_put_idle(const struct report_text *report)
{
	uint32_t i;
	int state;

	text_put_chosen(report, "Idle states (times in ms)", true);
	text_printf(report, "#  CPU    State     Count   Per sec.         Time      %%        Mean"
			    "     Longest\n#\n");
	for (i = 0; i < report->header->max_cores; i++) {
		const struct kb_sched_cpu *cpu = &report->got->cpus[i];

		for (state = 0; cpu->states && state < KB_SCHED_STATES; state++)
			if (cpu->states[state].count)
				put_state(report, i, state, &cpu->states[state],
					  report->got->wanted_ns);
	}
}
