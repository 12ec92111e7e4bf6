/* SPDX-License-Identifier: MIT */
/*
 * cli/report/: kbarman report: options, and JSON. The text for people is the library's.
 *
 * What `kbarman report` prints, and how. report.c reads the options, the library makes the report
 * and its text for people, and json.c prints it for programs. latency.c does the same
 * for the reports of latencies and interrupts.
 */
#ifndef KB_CLI_REPORT_PRINT_H
#define KB_CLI_REPORT_PRINT_H

#include <kbarman/latency.h>
#include <kbarman/report_text.h>

#include "cli/base/filters.h"

#define REPORT_METRICS_MAX	64

struct report {
	const char *path;
	struct kb_report_options how;
	struct filters filters;		/* the user's options that choose samples */
	struct kb_report_text_options text;
	struct kb_symbol_options symbols;
	const char *metrics;		/* of -M; NULL: none */
	struct kb_report_metric rows[REPORT_METRICS_MAX];	/* of these, what the capture has */
	unsigned int nr_metrics;
	bool latency, irq, waits, classes;	/* these reports instead */
	enum kb_what ended;		/* what took time instead; 0: not */
	const char *critical_path;	/* of which task or marks this report instead; NULL: none */
	const char *request;		/* what requests are, of which this report; NULL: none */
	uint32_t slowest;		/* of these, how many paths */

	struct kb_trace *trace;
	struct kb_out *out;		/* standard output */
	const struct kb_report *got;
	const struct kb_barman *barman;
	const struct kb_header *header;
	const struct kb_tasks *tasks;
	const struct kb_names *names;
};

/* Prints the reports of latencies and interrupts. Returns an exit status. */
int report_latency(struct report *report, bool json);

/* Prints what tasks waited for. Returns an exit status. */
int report_waits(struct report *report, bool json);

/* Prints where the time of tasks and CPUs went. Returns an exit status. */
int report_classes(struct report *report, bool json);

/* Prints what took time. Returns an exit status. */
int report_ended(struct report *report, bool json);

/* Opens the capture and the output, and checks what was asked for. Returns 0 or an exit status. */
int report_begin(struct report *report);

/* The library has made the report, or not: @made is what it returned. Returns 0 or an exit status. */
int report_take(int made, const struct kb_error *err);

/* What goes by wakeups needs some: @seen, there are. Returns 0, or an exit status after a message. */
int report_check_wakeups(const struct report *report, bool seen);

/* The report is written; @written is 0 or a negative errno. Returns an exit status. */
int report_end(const struct report *report, int written, bool damaged);

struct kb_waits;
struct kb_ended;
struct kb_classes;

struct kb_json;

/*
 * What woke a task, or ran while it waited, as keys of @json; @ticks: when. Nothing if that is not
 * known.
 */
void report_put_by(struct kb_json *json, struct kb_trace *trace, const struct kb_origin *by, uint64_t ticks);

/* What was waited for meanwhile, and by whom, as keys of @json. Nothing if that is not known. */
void report_put_waiter(struct kb_json *json, struct kb_trace *trace, const struct kb_link *link);

/* The times of @stats as keys of @json. */
void report_put_stats(struct kb_json *json, const struct kb_latency_stats *stats);

/* The lines of JSON of these reports. */
void report_put_waits(const struct kb_waits *waits, struct kb_trace *trace, struct kb_out *out);
void report_put_ended(const struct kb_ended *ended, struct kb_out *out);
void report_put_classes(const struct kb_classes *classes, struct kb_out *out);

/* What a task waited for, as keys of @json. */
struct kb_waits_row;
void report_put_object(struct kb_json *json, const struct kb_waits_row *row);
void report_put_holder(struct kb_json *json, const struct kb_waits_row *row);

/* Prints the critical path. Returns an exit status. */
int report_path(struct report *report, bool json);

/* The lines of JSON of a path. */
void report_put_path(const struct kb_path *path, struct kb_trace *trace, struct kb_json *json);

/* Takes the value of --slowest. False after a message: it is none. */
bool report_take_slowest(struct report *report, const char *value);

/*
 * Whether the other options go with --request. Returns CLI_OK, or CLI_IMPOSSIBLE after a message.
 */
int report_choose_requests(struct report *report);

/* Prints what requests waited for. Returns an exit status. */
int report_requests(struct report *report, bool json);

/*
 * Writes the lines of these reports as JSON to @out, which keeps its errors. Of the second one,
 * @report says which parts are wanted.
 */
void report_put_json(const struct report *report, struct kb_out *out);
void report_put_latency(const struct report *report, const struct kb_latency *got,
			struct kb_trace *trace, struct kb_out *out);
#endif
