/* SPDX-License-Identifier: MIT */
/*
 * export/text/: the reports as text for people: the report, latencies, the critical path.
 *
 * A report on its way to people, and how all its parts print.
 */
#ifndef KB_LIB_EXPORT_TEXT_REPORT_PUT_H
#define KB_LIB_EXPORT_TEXT_REPORT_PUT_H

#include <kbarman/report_text.h>

#include "analysis/report/inside.h"

#define TEXT_METRICS_MAX	64

struct report_text {
	struct kb_out *out;
	struct kb_report_text_options options;	/* with the default limit filled in */

	const struct kb_report *got;
	const struct kb_report_options *how;
	const struct kb_filter *filter;	/* NULL: the whole capture is wanted */
	struct kb_trace *trace;
	const struct kb_barman *barman;
	const struct kb_header *header;
	const struct kb_tasks *tasks;
	const struct kb_names *names;
	struct kb_report_metric metrics[TEXT_METRICS_MAX];	/* columns */
	unsigned int nr_metrics;
};

/* These return nothing: an error of the output is kept in the output. */

__attribute__((format(printf, 2, 3)))
void text_printf(const struct report_text *report, const char *format, ...);

/* Names come from files and must not control the terminal. Behind them blanks up to @width. */
void text_put(const struct report_text *report, const char *text, int width);
void text_put_padded(const struct report_text *report, const char *text, size_t length, int width);

/* "  12.34%" with this width, and in a colour if colours are on. */
void text_put_share(const struct report_text *report, uint64_t part, uint64_t whole, int width);
void text_put_title(const struct report_text *report, const char *title);

/* Who ran, woke or interrupted; its name is that of @ticks. */
void text_put_origin(const struct report_text *report, const struct kb_origin *origin,
		     uint64_t ticks);

/* The first line of the head; none if @capture is NULL. */
void text_put_capture(const struct report_text *report, const char *capture);

/*
 * The end of the text, and of @made, 0 or the negative errno with which it ends early. Flushes the output. Returns 0, or
 * a negative errno and @err.
 */
int text_end(const struct report_text *report, int made, struct kb_error *err);

/* A line if the capture is damaged: what the head counts is not all. */
void text_put_damage(const struct report_text *report, bool damaged);

/* The end of the head: @only, what options choose, was not asked of what the head says. */
void text_put_only(const struct report_text *report, const char *only);

/* The title of a table that is of what options choose; with @all_tasks, that is not by task. */
void text_put_chosen(const struct report_text *report, const char *title, bool all_tasks);

/* "PID  TID  NAME" and the end of the line; */
void text_put_task_name(const struct report_text *report, uint32_t task_id, uint64_t timestamp);

/* and with the command line in front of that, where it says more than the name. */
void text_put_task_command(const struct report_text *report, uint32_t task_id, uint64_t timestamp);

/* True if a row with that share of its table is not below the limit. */
bool text_is_shown(const struct report_text *report, uint64_t part, uint64_t whole);

static inline double text_ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

#endif
