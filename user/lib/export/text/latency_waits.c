// SPDX-License-Identifier: MIT
/* Why tasks ran late: by task, as a histogram, by waker, by idle state, and the worst waits. */
#include <inttypes.h>
#include <stdio.h>

#include "base/percent.h"
#include "export/text/latency_parts.h"

#define STATS_HEAD	"    Waits        Mean      Median         p99     Longest"
#define PARTS_HEAD	"   Waking     Halt     Idle    Queue  Softirq      Irq  Unknown"

static void put_stats(const struct latency_text *text, const struct kb_latency_stats *stats)
{
	text_printf(&text->put, " %8" PRIu64 "  %10.3f  %10.3f  %10.3f  %10.3f", stats->count,
		    stats->count ? latency_us(stats->sum_ns) / (double)stats->count : 0,
		    latency_us(stats->median_ns), latency_us(stats->p99_ns),
		    latency_us(stats->max_ns));
}

/* ---- by task ---- */

static void put_parts(const struct latency_text *text, const uint64_t parts[KB_PARTS], uint64_t all)
{
	static const enum kb_part shown[] = {
		KB_PART_WAKING, KB_PART_HALT, KB_PART_AWAKE, KB_PART_TASK, KB_PART_SOFTIRQ,
		KB_PART_IRQ, KB_PART_UNKNOWN,
	};

	for (unsigned int i = 0; i < KB_PARTS; i++)
		text_printf(&text->put, "  %6.2f%%", kb_percent(parts[shown[i]], all));
}

static void put_task(const struct latency_text *text, const struct kb_latency_task *task,
		     bool preempted)
{
	const struct kb_latency_stats *stats = preempted ? &task->preempted : &task->woken;

	put_stats(text, stats);
	put_parts(text, preempted ? task->preempted_parts : task->woken_parts, stats->sum_ns);
	text_put_task_name(&text->put, task->task_id, task->last_seen);
}

static void put_tasks(const struct latency_text *text, bool preempted)
{
	const struct kb_latency *got = text->got;
	const struct kb_latency_stats *all = preempted ? &got->preempted : &got->woken;
	uint32_t i, left_out = 0;

	text_printf(&text->put, "#" STATS_HEAD PARTS_HEAD "      PID      TID  Task\n#\n");
	put_stats(text, all);
	put_parts(text, preempted ? got->preempted_parts : got->woken_parts, all->sum_ns);
	text_printf(&text->put, "  %7s  %7s  %s\n", "", "", "(all)");
	for (i = 0; i < got->nr_tasks; i++) {
		const struct kb_latency_task *task = &got->tasks[i];
		const struct kb_latency_stats *stats = preempted ? &task->preempted : &task->woken;

		if (stats->count && latency_is_shown(text, stats->sum_ns, all->sum_ns))
			put_task(text, task, preempted);
		else
			left_out += stats->count != 0;
	}
	latency_put_rest(text, left_out, "task");
}

/* ---- the histogram ---- */

#define BAR_WIDTH	48

static void put_bar(const struct latency_text *text, uint64_t count, uint64_t most)
{
	/* one that occurs is seen */
	int width = (int)((double)count * BAR_WIDTH / (double)most + 0.5);

	for (width = count && !width ? 1 : width; width; width--)
		text_printf(&text->put, "#");
	text_printf(&text->put, "\n");
}

static void put_histogram(const struct latency_text *text, const uint64_t powers[64],
			  const char *title)
{
	unsigned int i, first = 64, last = 0;
	uint64_t most = 0;

	for (i = 0; i < 64; i++) {
		if (!powers[i])
			continue;
		first = first < i ? first : i;
		last = i;
		most = most > powers[i] ? most : powers[i];
	}
	text_put_chosen(&text->put, title, false);
	text_printf(&text->put, "#        From         below     Waits\n#\n");
	for (i = first; i <= last && i < 64; i++) {
		text_printf(&text->put, "%13.3f %13.3f  %8" PRIu64 "  ",
			    i ? latency_us(UINT64_C(1) << i) : 0,
			    i < 63 ? latency_us(UINT64_C(2) << i) : 1.8446744073709552e16,
			    powers[i]);
		put_bar(text, powers[i], most);
	}
}

/* ---- wakers, idle states, what ran meanwhile ---- */

static void put_wakers(const struct latency_text *text)
{
	uint32_t i, left_out = 0;

	text_put_chosen(&text->put, "Waits by who ended them (times in us)", false);
	text_printf(&text->put, "#" STATS_HEAD PARTS_HEAD "  Waker\n#\n");
	for (i = 0; i < text->got->nr_wakers; i++) {
		const struct kb_latency_waker *waker = &text->got->wakers[i];

		if (!latency_is_shown(text, waker->woken.sum_ns, text->got->woken.sum_ns)) {
			left_out++;
			continue;
		}
		put_stats(text, &waker->woken);
		put_parts(text, waker->parts, waker->woken.sum_ns);
		text_printf(&text->put, "  ");
		latency_put_origin(text, &waker->origin, waker->last_seen);
		text_printf(&text->put, "\n");
	}
	latency_put_rest(text, left_out, "waker");
}

static void put_idle(const struct latency_text *text)
{
	char name[16];
	uint32_t i;

	if (!text->got->nr_idle)
		return;
	text_put_chosen(&text->put, "From a wakeup until the CPU left its halt, by idle state "
			"(times in us)", false);
	text_printf(&text->put, "#" STATS_HEAD "    State\n#\n");
	for (i = 0; i < text->got->nr_idle; i++) {
		const struct kb_latency_idle *idle = &text->got->idle[i];

		snprintf(name, sizeof(name), "%d", idle->state);
		put_stats(text, &idle->left);
		text_printf(&text->put, "  %7s\n", idle->state < 0 ? "unknown" : name);
	}
}

static void put_behind(const struct latency_text *text)
{
	uint64_t all = text->got->woken_parts[KB_PART_TASK] +
		       text->got->woken_parts[KB_PART_SOFTIRQ] +
		       text->got->woken_parts[KB_PART_IRQ] +
		       text->got->preempted_parts[KB_PART_TASK] +
		       text->got->preempted_parts[KB_PART_SOFTIRQ] +
		       text->got->preempted_parts[KB_PART_IRQ];
	uint32_t i, left_out = 0;

	if (!text->got->nr_behind)
		return;
	text_put_chosen(&text->put, "What ran on their CPU while tasks waited (times in us)", false);
	text_printf(&text->put,
		    "#        Time        %%    Pieces  Task              What ran\n#\n");
	for (i = 0; i < text->got->nr_behind; i++) {
		const struct kb_latency_behind *behind = &text->got->behind[i];

		if (!latency_is_shown(text, behind->ns, all)) {
			left_out++;
			continue;
		}
		text_printf(&text->put, "%13.3f  %6.2f%%  %8" PRIu64 "  ", latency_us(behind->ns),
			    kb_percent(behind->ns, all), behind->pieces);
		text_put(&text->put, behind->task ? behind->task : "(others)", 16);
		text_printf(&text->put, "  ");
		text_put(&text->put, behind->ran ? behind->ran : "(others)", 0);
		text_printf(&text->put, "%s\n",
			    behind->kind == KB_TILE_SOFTIRQ ? " (softirq)"
			    : behind->kind == KB_TILE_IRQ   ? " (interrupt)"
							    : "");
	}
	latency_put_rest(text, left_out, "row");
}

/* ---- the worst ---- */

static void put_piece(const struct latency_text *text, const char *name, uint64_t ns, bool *comma)
{
	if (!ns)
		return;
	text_printf(&text->put, "%s%s %.3f", *comma ? ", " : " ", name, latency_us(ns));
	*comma = true;
}

static void put_pieces(const struct latency_text *text, const struct kb_latency_wait *wait)
{
	bool comma = false;
	char halt[32];
	uint32_t i;

	put_piece(text, "waking", wait->parts[KB_PART_WAKING], &comma);
	snprintf(halt, sizeof(halt), wait->has_left && wait->idle_state >= 0 ? "halt in state %d"
									      : "halt",
		 wait->idle_state);
	put_piece(text, halt, wait->parts[KB_PART_HALT], &comma);
	put_piece(text, "idle", wait->parts[KB_PART_AWAKE], &comma);
	for (i = 0; i < wait->nr_meanwhile; i++) {
		text_printf(&text->put, "%s", comma ? ", " : " ");
		latency_put_origin(text, &wait->meanwhile[i].what, wait->ticks);
		text_printf(&text->put, " %.3f", latency_us(wait->meanwhile[i].ns));
		comma = true;
	}
	put_piece(text, "others", wait->others_ns, &comma);
	put_piece(text, "unknown", wait->parts[KB_PART_UNKNOWN], &comma);
}

static void put_wait(const struct latency_text *text, const struct kb_latency_wait *wait)
{
	const struct kb_origin task = { .kind = KB_TILE_TASK, .id = wait->task_id };
	int64_t first = kb_trace_first(text->trace);

	text_printf(&text->put, "%13.3f  %15.6f  ", latency_us(wait->ns),
		    text_ms((uint64_t)wait->since - (uint64_t)first));
	latency_put_origin(text, &task, wait->ticks);
	if (!wait->preempted) {
		text_printf(&text->put, "%s by ", wait->is_new ? " made" : " woken");
		latency_put_origin(text, &wait->waker, wait->ticks);
		text_printf(&text->put, " on CPU %u", wait->waker_core);
	}
	text_printf(&text->put, ", ran on CPU %u", wait->core);
	if (wait->moves)
		text_printf(&text->put, " after %u move%s", wait->moves,
			    wait->moves == 1 ? "" : "s");
	text_printf(&text->put, ":");
	put_pieces(text, wait);
	text_printf(&text->put, "\n");
}

static void put_worst(const struct latency_text *text, const char *title,
		      const struct kb_latency_wait *waits, uint32_t nr)
{
	uint32_t i;

	if (!nr)
		return;
	text_put_chosen(&text->put, title, false);
	text_printf(&text->put, "#   Wait (us)       Since (ms)  Task: what its CPU did (us)\n#\n");
	for (i = 0; i < nr; i++)
		put_wait(text, &waits[i]);
}

void latency_put_waits(const struct latency_text *text)
{
	const struct kb_latency *got = text->got;

	text_printf(&text->put, "#\n# Median and p99 come from histograms: they are at most 3.2%% "
		    "too high. All other numbers are those of the records.\n");
	if (got->cut)
		text_printf(&text->put, "# %" PRIu64 " wait%s over a gap in the records: these are not in "
			    "the tables.\n", got->cut, got->cut == 1 ? " goes" : "s go");
	if (got->unexplained)
		text_printf(&text->put, "# %" PRIu64 " wait%s of blocked tasks ended without a "
			    "record of a wakeup: these are not in the tables.\n", got->unexplained,
			    got->unexplained == 1 ? "" : "s");
	if (got->unsure)
		text_printf(&text->put, "# %" PRIu64 " wait%s of tasks that were perhaps recorded "
			    "in part: these are not in the tables. record -a records all tasks.\n",
			    got->unsure, got->unsure == 1 ? "" : "s");
	text_put_chosen(&text->put, "Woken tasks, from the wakeup until they ran (times in us)", false);
	put_tasks(text, false);
	if (got->woken.count)
		put_histogram(text, got->woken_powers, "How long woken tasks waited (times in us)");
	put_worst(text, "The longest waits of woken tasks", got->worst, got->nr_worst);
	put_wakers(text);
	put_idle(text);
	text_put_chosen(&text->put, "Preempted tasks, until they ran again (times in us)", false);
	put_tasks(text, true);
	if (got->preempted.count)
		put_histogram(text, got->preempted_powers,
			      "How long preempted tasks waited (times in us)");
	put_worst(text, "The longest waits of preempted tasks", got->worst_preempted,
		  got->nr_worst_preempted);
	put_behind(text);
}
