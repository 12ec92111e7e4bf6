// SPDX-License-Identifier: MIT
/* What a report says first: of what capture it is, and what is missing in it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/facts/counted.h"
#include "analysis/facts/end.h"
#include "analysis/facts/triggered.h"
#include "export/text/report_parts.h"

static void put_head_line(const struct report_text *report, const char *name, const char *text)
{
	if (!text || !*text)
		return;
	text_printf(report, "# %-9s: ", name);
	text_put(report, text, 0);
	text_printf(report, "\n");
}

static double seconds_since_start(const struct report_text *report, int64_t ns)
{
	return ((uint64_t)ns - (uint64_t)kb_trace_first(report->trace)) / 1e9;
}

static void put_time(const struct report_text *report)
{
	time_t seconds = report->header->unix_base_ns / 1000000000;
	char text[64] = "";
	struct tm tm;

	if (report->header->unix_base_ns && gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC, ", &tm);
	text_printf(report, "# recorded : %s%.6f s, %u CPU%s\n", text,
		    report->got->duration_ns / 1e9, report->got->nr_cores,
		    report->got->nr_cores == 1 ? "" : "s");
}

static void put_clock(const struct report_text *report)
{
	const char *raw_base = kb_barman_fact(report->barman, "raw_base");
	const struct kb_header *header = report->header;

	if (!header->timestamp_multiplier || !header->timestamp_divisor)
		return;
	text_printf(report, "# clock    : %.6f MHz",
		    1e3 * header->timestamp_divisor / header->timestamp_multiplier);
	if (raw_base) {
		text_printf(report, ", 0 = ");
		text_put(report, raw_base, 0);
		text_printf(report, " ns of CLOCK_MONOTONIC_RAW");
	}
	text_printf(report, "\n");
}

static void put_sleeps(const struct report_text *report)
{
	const char *asleep = kb_barman_fact(report->barman, "asleep");
	unsigned int times;
	uint64_t ns;

	if (asleep && sscanf(asleep, "%u,%" SCNu64, &times, &ns) == 2)
		text_printf(report,
			    "# asleep   : %u time%s; CLOCK_MONOTONIC_RAW stood still for %.6f s of "
			    "the above\n",
			    times, times == 1 ? "" : "s", ns / 1e9);
}

static void put_unsteady(const struct report_text *report)
{
	if (kb_barman_fact(report->barman, "clock_unsteady"))
		text_printf(report, "# clock    : during the recording the kernel found the CPU's "
				    "counter (TSC) unstable; times may be wrong\n");
}

static void put_events(const struct report_text *report)
{
	uint32_t i, nr = kb_names_nr_counters(report->names);
	const char *fallback = kb_barman_fact(report->barman, "fallback");

	text_printf(report, "# events   : ");
	for (i = 0; i < nr; i++) {
		struct kb_text name = kb_names_counter(report->names, i);

		text_printf(report, "%s", i ? ", " : "");
		text_put_padded(report, name.data, name.length, 0);
	}
	text_printf(report, "%s", nr ? "" : "none");
	if (fallback) {
		text_printf(report, " (there was no PMU: sampled by ");
		text_put(report, fallback, 0);
		text_printf(report, ")");
	}
	text_printf(report, "\n");
}

/* On machines with CPUs of several kinds: which of them do not count what. */
static void put_rows(const struct report_text *report, const char *title,
		     struct kb_uncounted *rows, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		text_printf(report, "# %s: ", title);
		text_put(report, rows[i].name, 0);
		text_printf(report, " on CPU %s\n", rows[i].cpus);
	}
	kb_uncounted_free(rows, nr);
}

static void put_uncounted(const struct report_text *report)
{
	struct kb_uncounted *rows;
	uint32_t nr;

	if (!kb_uncounted_read(report->header, &rows, &nr))
		put_rows(report, "uncounted", rows, nr);
	if (!kb_unsampled_read(report->header, &rows, &nr))
		put_rows(report, "unsampled", rows, nr);
}

/*
 * Groups of events took turns, and who records gives each of them. Who was stopped or killed gives no
 * more, and then one group goes on.
 */
static void put_turns(const struct report_text *report)
{
	const char *turned = kb_barman_fact(report->barman, "turned");
	const char *rotate = kb_barman_fact(report->barman, "rotate");
	uint64_t turns, at, ms;
	double since, until;

	if (!turned || !rotate || sscanf(turned, "%" SCNu64 ",%" SCNu64, &turns, &at) != 2 ||
	    sscanf(rotate, "%" SCNu64, &ms) != 1)
		return;
	since = seconds_since_start(report, kb_barman_ns(report->barman, at));
	until = seconds_since_start(report, kb_barman_ns(report->barman, report->header->last_timestamp));
	/* A turn is up to a third longer, and a busy machine may delay the next one. */
	if (until - since > (double)ms / 1e3 * 2 + 1)
		text_printf(report, "# turns    : none after %.6f s: the same events were counted for the "
				    "last %.6f s\n", since, until - since);
}

/* Why a trigger wrote the capture: its times are those of the other lines of a report. */
static void put_triggers(const struct report_text *report)
{
	uint64_t nr = kb_triggered_number(report->barman, KB_TRIGGERED_FACT);
	uint64_t more = kb_triggered_number(report->barman, KB_TRIGGERED_FACT ".suppressed");
	struct kb_triggered told;
	uint32_t i;

	for (i = 0; kb_triggered_get(report->barman, i, &told); i++) {
		text_printf(report, "# %-9s%c %.6f s: ", i ? "" : "trigger", i ? ' ' : ':',
			    seconds_since_start(report, told.ns));
		text_put(report, told.expression, 0);
		text_printf(report, ": ");
		text_put(report, told.reason, 0);
		text_printf(report, "\n");
	}
	if (nr > i)
		text_printf(report, "#            and %" PRIu64 " more in this capture\n", nr - i);
	if (more)
		text_printf(report, "#            %" PRIu64 " others came too soon after the capture "
				    "before this one\n", more);
}

/* Where in Linux it ended, the innermost function first. All addresses are those to which functions return. */
static void put_end_chain(const struct report_text *report, const struct kb_end *end)
{
	char *next;

	for (const char *at = end->chain; *at; at = *next == ',' ? next + 1 : "") {
		const uint64_t address = strtoull(at, &next, 16);
		const struct kb_symbol *symbol = kb_symbolizer_resolve(kb_trace_symbolizer(report->trace, NULL), 0,
								       end->ticks, address - 1);

		text_printf(report, "%s", at == end->chain ? "#            in " : " < ");
		if (*symbol->name)
			text_put(report, symbol->name, 0);
		else
			text_printf(report, "0x%" PRIx64, address);
	}
	text_printf(report, "%s", *end->chain ? "\n" : "");
}

static void put_end(const struct report_text *report)
{
	char words[KB_END_WORDS];
	struct kb_end end;

	if (!kb_end_get(report->barman, &end))
		return;
	text_printf(report, "# ended    : ");
	if (end.ticks)
		text_printf(report, "%.6f s: ", seconds_since_start(report, kb_barman_ns(report->barman, end.ticks)));
	text_put(report, kb_end_words(&end, words), 0);
	text_printf(report, "\n");
	put_end_chain(report, &end);
}

void text_put_head(const struct report_text *report)
{
	const char *host = kb_barman_fact(report->barman, "host");
	const char *filter = kb_barman_fact(report->barman, "filter");
	const uint64_t *events = report->got->events;

	put_head_line(report, "capture", report->options.capture);
	put_head_line(report, "host", host ? host : report->header->target_name);
	put_head_line(report, "release", kb_barman_fact(report->barman, "release"));
	put_head_line(report, "command", kb_barman_fact(report->barman, "command"));
	if (filter && strcmp(filter, "none") != 0)
		put_head_line(report, "filter", filter);
	put_time(report);
	put_end(report);
	put_triggers(report);
	put_clock(report);
	put_sleeps(report);
	put_unsteady(report);
	put_events(report);
	put_uncounted(report);
	put_turns(report);
	text_printf(report,
		    "# records  : %" PRIu64 ": %" PRIu64 " samples, %" PRIu64 " switches, %" PRIu64
		    " halts, %" PRIu64 " others\n",
		    report->got->records, events[KB_EVENT_SAMPLE], events[KB_EVENT_TASK_SWITCH],
		    events[KB_EVENT_HALT],
		    report->got->records - events[KB_EVENT_SAMPLE] - events[KB_EVENT_TASK_SWITCH] -
			    events[KB_EVENT_HALT]);
}

/* Prints what is missing from the capture and what to do. Always prints a line. */
void text_put_losses(const struct report_text *report)
{
	const struct kb_losses *losses = report->got->losses;
	uint64_t gaps = 0;
	uint32_t i;

	if (report->got->backwards)
		text_printf(report, "# order    : %" PRIu64 " records are older than the one before them "
			    "on their CPU; times around them may be wrong\n", report->got->backwards);
	for (i = 0; i < report->header->max_cores; i++)
		gaps += report->got->cpus[i].lost;
	if (!losses->stated && !gaps)
		text_printf(report, "# lost     : the capture does not say\n");
	else
		text_printf(report, "# lost     : %s%" PRIu64 " records\n", losses->stated ? "" : "at least ",
			    losses->stated ? losses->lost : gaps);
	for (i = 0; i < losses->nr_rows; i++)
		if (losses->rows[i].count)
			text_printf(report, "#            CPU %u: %" PRIu64 " (%s): %s\n",
				    losses->rows[i].core, losses->rows[i].count,
				    losses->rows[i].what, kb_loss_advice(losses->rows[i].what));
	if (losses->overwritten)
		text_printf(report,
			    "#            %" PRIu64
			    " older records were overwritten by newer ones\n",
			    losses->overwritten);
	for (i = 0; i < losses->nr_missed; i++)
		if (losses->missed[i].count)
			text_printf(report, "#            missed %" PRIu64 " (%s): %s\n",
				    losses->missed[i].count, losses->missed[i].what,
				    kb_loss_advice(losses->missed[i].what));
}

/* Prints where counters stood still, and what this means for the numbers below. */
void text_put_stops(const struct report_text *report)
{
	uint32_t i;

	for (i = 0; i < report->got->nr_stops; i++) {
		const struct kb_stop *stop = &report->got->stops[i];

		text_printf(report, "# %-9s%c CPU %u: %" PRIu64 " time%s (%s)", i ? "" : "stopped",
			    i ? ' ' : ':', stop->core, stop->times, stop->times == 1 ? "" : "s",
			    stop->reason);
		if (stop->ns)
			text_printf(report, ", %.3f ms at most, from %.6f s to %.6f s",
				    text_ms(stop->ns), seconds_since_start(report, stop->first),
				    seconds_since_start(report, stop->last));
		text_printf(report, ": %s\n", kb_stop_advice(stop->reason));
	}
}

/* Which of the samples that are wanted have no IPC, because counters stood still. */
void text_put_partial(const struct report_text *report)
{
	if (report->got->totals.partial && kb_report_ipc(report->got, NULL, NULL, NULL))
		text_printf(report,
			    "#            IPC leaves out %" PRIu64 " of %" PRIu64 " samples: their "
			    "counters did not all run at the same time\n",
			    report->got->totals.partial, report->got->totals.samples);
}
