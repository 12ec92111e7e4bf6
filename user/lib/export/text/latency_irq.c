// SPDX-License-Identifier: MIT
/* What interrupts and softirqs took and from whom, how halts ended, and all time of each CPU. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/facts/sources.h"
#include "base/percent.h"
#include "export/text/latency_parts.h"

static double mean_us(uint64_t ns, uint64_t count)
{
	return count ? latency_us(ns) / (double)count : 0;
}

/* All time of all CPUs that the report is about. */
static uint64_t whole(const struct latency_text *text)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < text->put.header->max_cores; i++)
		if (text->got->cpus[i].seen)
			sum += (uint64_t)text->got->cpus[i].last -
			       (uint64_t)text->got->cpus[i].first;
	return sum;
}

static void put_interrupt(const struct latency_text *text, const struct kb_interrupt *row,
			  uint64_t all)
{
	text_printf(&text->put, "%13.3f  %6.2f%%  %8" PRIu64 "  %10.3f  %10.3f",
		    latency_us(row->ns), kb_percent(row->ns, all), row->count, mean_us(row->ns, row->count),
		    latency_us(row->longest_ns));
	if (row->origin.kind == KB_TILE_SOFTIRQ)
		text_printf(&text->put, "  %8" PRIu64 "  %10.3f  %10.3f  ", row->raised,
			    mean_us(row->delay_ns, row->delays),
			    latency_us(row->longest_delay_ns));
	else
		text_printf(&text->put, "  %8s  %10s  %10s  ", "", "", "");
	latency_put_origin(text, &row->origin, 0);
	text_printf(&text->put, "\n");
}

static void put_from(const struct latency_text *text)
{
	uint64_t all = 0;
	uint32_t i, left_out = 0;

	for (i = 0; i < text->got->nr_from; i++)
		all += text->got->from[i].ns;
	text_put_chosen(&text->put, "From whom interrupts and softirqs took time (times in us)", false);
	text_printf(&text->put,
		    "#        Time        %%    Pieces  Task              Taken by\n#\n");
	for (i = 0; i < text->got->nr_from; i++) {
		const struct kb_interrupt_from *from = &text->got->from[i];

		if (!latency_is_shown(text, from->ns, all)) {
			left_out++;
			continue;
		}
		text_printf(&text->put, "%13.3f  %6.2f%%  %8" PRIu64 "  ", latency_us(from->ns),
			    kb_percent(from->ns, all), from->pieces);
		text_put(&text->put, from->task ? from->task : "(others)", 16);
		text_printf(&text->put, "  ");
		latency_put_origin(text, &from->origin, 0);
		text_printf(&text->put, "\n");
	}
	latency_put_rest(text, left_out, "row");
}

void latency_put_interrupts(const struct latency_text *text)
{
	uint64_t all = whole(text);
	uint32_t i;

	if (!text->got->nr_interrupts) {
		text_put_title(&text->put, "No interrupts and no softirqs");
		return;
	}
	text_put_chosen(&text->put, "Interrupts and softirqs, without what interrupted them (times "
			"in us; share of all time of the CPUs)", false);
	text_printf(&text->put, "#        Time        %%     Count        Mean     Longest    "
		    "Raised  Delay mean     longest  Name\n#\n");
	for (i = 0; i < text->got->nr_interrupts; i++)
		put_interrupt(text, &text->got->interrupts[i], all);
	put_from(text);
}

/* ---- idling ---- */

static const char *state_name(int state, char name[16])
{
	snprintf(name, 16, state < 0 ? "unknown" : "%d", state);
	return name;
}

static void put_halt_ends(const struct latency_text *text, const struct kb_halts *halts)
{
	static const struct kb_origin nobody = { .kind = KB_TILE_UNKNOWN };
	uint32_t i;

	for (i = 0; i < text->got->nr_halt_ends; i++) {
		const struct kb_halt_end *end = &text->got->halt_ends[i];

		if (end->core != halts->core || end->state != halts->state ||
		    !latency_is_shown(text, end->count, halts->count))
			continue;
		text_printf(&text->put, "%24s  %8" PRIu64 "  ended by ", "", end->count);
		if (end->origin.kind == nobody.kind)
			text_printf(&text->put, "no interrupt");
		else
			latency_put_origin(text, &end->origin, 0);
		text_printf(&text->put, "\n");
	}
}

static void put_state(const struct latency_text *text, uint32_t core, int state)
{
	struct kb_text name = kb_latency_state_name(text->got, core, state);

	text_printf(&text->put, "state %d", state);
	if (name.length) {
		text_printf(&text->put, " (");
		text_put_padded(&text->put, name.data, name.length, 0);
		text_printf(&text->put, ")");
	}
}

static void put_halts_paid(const struct latency_text *text, const struct kb_halts *halts)
{
	uint32_t i;

	for (i = 0; i < text->got->nr_halts_paid; i++) {
		const struct kb_halts_paid *paid = &text->got->halts_paid[i];

		if (paid->core != halts->core || paid->state != halts->state ||
		    paid->paid == KB_STATE_UNKNOWN)
			continue;
		text_printf(&text->put, "%24s  %8" PRIu64 "  too %s: ", "", paid->count,
			    paid->too_shallow ? "shallow" : "deep");
		put_state(text, paid->core, paid->paid);
		text_printf(&text->put, " would have paid\n");
	}
}

/* Why does a capture that would have them have no misses? Linux tells of them from 6.1 on. */
static const char *why_no_misses(const struct latency_text *text)
{
	const char *release = kb_barman_fact(text->put.barman, "release");
	unsigned int major, minor;

	if (!release || sscanf(release, "%u.%u", &major, &minor) != 2)
		return "Linux said of no state that it was too deep or not deep enough: it does so "
		       "from 6.1 on.";
	return major > 6 || (major == 6 && minor >= 1) ?
		       "Linux said of no state that it was too deep or not deep enough." :
		       "This kernel does not say which states were too deep or not deep enough: Linux "
		       "does so from 6.1 on.";
}

static void put_miss(const struct latency_text *text, const struct kb_halt_miss *miss)
{
	const struct kb_origin task = { .kind = KB_TILE_TASK, .id = miss->task_id };
	int64_t first = kb_trace_first(text->trace);

	text_printf(&text->put, "%13.3f  %13.3f  %15.6f  CPU %u in ", latency_us(miss->off_ns),
		    latency_us(miss->ns), text_ms((uint64_t)miss->since - (uint64_t)first),
		    miss->core);
	put_state(text, miss->core, miss->state);
	if (miss->chosen != miss->state && miss->chosen != KB_STATE_UNKNOWN)
		text_printf(&text->put, " instead of state %d", miss->chosen);
	if (miss->paid != KB_STATE_UNKNOWN) {
		text_printf(&text->put, ", ");
		put_state(text, miss->core, miss->paid);
		text_printf(&text->put, " would have paid");
	}
	text_printf(&text->put, ": ended by ");
	if (miss->origin.kind == KB_TILE_UNKNOWN)
		text_printf(&text->put, "no interrupt");
	else
		latency_put_origin(text, &miss->origin, miss->ticks);
	if (miss->has_task) {
		text_printf(&text->put, " for ");
		latency_put_origin(text, &task, miss->ticks);
	}
	if (miss->is_woken) {
		text_printf(&text->put, ", woken by ");
		latency_put_origin(text, &miss->waker, miss->ticks);
		text_printf(&text->put, " on CPU %u", miss->waker_core);
	}
	text_printf(&text->put, "\n");
}

static void put_misses(const struct latency_text *text, const char *title,
		       const struct kb_halt_miss *misses, uint32_t nr)
{
	uint32_t i;

	if (!nr)
		return;
	text_put_chosen(&text->put, title, true);
	text_printf(&text->put,
		    "#    Off (us)    Length (us)       Since (ms)  Halt, who ended it\n#\n");
	for (i = 0; i < nr; i++)
		put_miss(text, &misses[i]);
}

void latency_put_halts(const struct latency_text *text)
{
	char name[16];
	uint32_t i;

	if (!text->got->nr_halts) {
		text_put_title(&text->put, "No idling");
		return;
	}
	text_put_chosen(&text->put, "Halts, and what ended them (times in us)", true);
	if (!text->got->whats[KB_WHAT_IDLE_MISS])
		text_printf(&text->put, "# %s\n#\n", kb_has_source(text->put.barman, "freq") ?
			    why_no_misses(text) :
			    "The capture does not say which states were too deep or not deep enough.");
	text_printf(&text->put, "#     CPU    State          Halts        Mean  Too deep"
		    "        Mean  Too shallow        Mean  Name\n#\n");
	for (i = 0; i < text->got->nr_halts; i++) {
		const struct kb_halts *row = &text->got->halts[i];
		struct kb_text called = kb_latency_state_name(text->got, row->core, row->state);

		text_printf(&text->put, "   %6u  %7s       %8" PRIu64 "  %10.3f  %8" PRIu64
			    "  %10.3f  %11" PRIu64 "  %10.3f%s", row->core, state_name(row->state, name),
			    row->count, mean_us(row->ns, row->count), row->too_deep,
			    mean_us(row->too_deep_ns, row->too_deep), row->too_shallow,
			    mean_us(row->too_shallow_ns, row->too_shallow),
			    called.length ? "  " : "");
		if (called.length)
			text_put_padded(&text->put, called.data, called.length, 0);
		text_printf(&text->put, "\n");
		put_halts_paid(text, row);
		put_halt_ends(text, row);
	}
	put_misses(text, "Halts that were too deep: what lacked to the residency of their state",
		   text->got->worst_deep, text->got->nr_worst_deep);
	put_misses(text, "Halts that were not deep enough, the longest", text->got->worst_shallow,
		   text->got->nr_worst_shallow);
}

/* ---- all time ---- */

static void put_cpu(const struct latency_text *text, uint32_t core, const struct kb_cpu_tiles *cpu)
{
	static const enum kb_tile_kind kinds[] = {
		KB_TILE_TASK, KB_TILE_SOFTIRQ, KB_TILE_IRQ, KB_TILE_IPI, KB_TILE_IDLE, KB_TILE_HALT,
		KB_TILE_LOST, KB_TILE_UNKNOWN,
	};
	unsigned int i;

	text_printf(&text->put, "   %6u  %12.6f", core,
		    text_ms((uint64_t)cpu->last - (uint64_t)cpu->first));
	for (i = 0; i < KB_TILE_KINDS; i++)
		text_printf(&text->put, "  %12.6f", text_ms(cpu->ns[kinds[i]]));
	text_printf(&text->put, "\n");
}

void latency_put_cpus(const struct latency_text *text)
{
	uint32_t i;

	text_put_chosen(&text->put, "All time of each CPU; the columns add up to the first one "
			"(times in ms)", true);
	text_printf(&text->put, "#     CPU           All         Tasks      Softirqs    Interrupts"
		    "          IPIs   Idle, awake        Halted          Lost       Unknown\n#\n");
	for (i = 0; i < text->put.header->max_cores; i++)
		if (text->got->cpus[i].seen)
			put_cpu(text, i, &text->got->cpus[i]);
}
