/* SPDX-License-Identifier: MIT */
/*
 * A report as text, as `kbarman report` prints it: lines that begin with '#' describe the lines
 * below them. Names come from files: what could control a terminal is shown as \xNN.
 */
#ifndef KBARMAN_REPORT_TEXT_H
#define KBARMAN_REPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <kbarman/latency.h>
#include <kbarman/out.h>
#include <kbarman/path.h>
#include <kbarman/report.h>
#include <kbarman/ended.h>
#include <kbarman/waits.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All zero behind `size` is what `kbarman report` prints into a file. */
struct kb_report_text_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	const char *capture;	/* what the head calls the capture; NULL: nothing */
	const char *filter;	/* what the head says of the options that choose samples, such as
				 * "task xz, cpu 0-3"; NULL: nothing */
	bool counters;		/* a column for each counter */
	bool colors;		/* shares of 0.5 % and more in colours of a terminal */
	bool has_percent_limit;	/* `percent_limit` says below what share of its table a row is left
				 * out; else it is 0.5 */
	double percent_limit;
	const char *metrics;	/* a column for each of these metrics for which the capture has
				 * counters, as of kb_report_metrics(), in place of instructions per
				 * cycle; NULL: none */
};

/*
 * Write @report to @out and flush @out. The trace of the report must still be open. @options may be
 * NULL. Returns 0, -EINVAL for options that this library does not know, or the negative errno of
 * the output.
 */
int kb_report_text(const struct kb_report *report, const struct kb_report_text_options *options,
		   struct kb_out *out, struct kb_error *err);

/* What of a struct kb_latency is written, and how. All zero behind `size`: only the head. */
struct kb_latency_text_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	const char *capture;	/* as above */
	const char *filter;
	bool waits;		/* why tasks ran late, as `kbarman report --latency` prints it */
	bool interrupts;	/* what interrupts took, and idling: `kbarman report --irq` */
	double percent_limit;	/* tasks, wakers and so on below this share of the sum of their
				 * table are left out; 0: none */
};

/*
 * Write @latency, which is of @trace, to @out and flush @out. @options may be NULL. Returns what
 * kb_report_text() returns.
 */
int kb_latency_text(const struct kb_latency *latency, struct kb_trace *trace,
		    const struct kb_latency_text_options *options, struct kb_out *out,
		    struct kb_error *err);

/*
 * Write @path, which is of @trace, to @out and flush @out, as `kbarman report --critical-path`
 * prints it. @capture: what the head calls the capture; NULL: nothing. Returns 0 or the negative
 * errno of the output.
 */
int kb_path_text(const struct kb_path *path, struct kb_trace *trace, const char *capture,
		 struct kb_out *out, struct kb_error *err);

struct kb_requests_text_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	const char *capture;	/* as above */
	const char *filter;
	const char *requests;	/* what the head says of which requests they are; NULL: nothing */
};

/*
 * Write @requests, which are of @trace, to @out and flush @out, as `kbarman report --request`
 * prints them. @options may be NULL. Returns what kb_report_text() returns.
 */
int kb_requests_text(const struct kb_requests *requests, struct kb_trace *trace,
		     const struct kb_requests_text_options *options, struct kb_out *out,
		     struct kb_error *err);

struct kb_waits_text_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	const char *capture;	/* as above */
	const char *filter;
	double percent_limit;	/* rows below this share of all waits are counted only; 0: none */
};

/*
 * Write @waits, which are of @trace, to @out and flush @out, as `kbarman report --waits` prints them.
 * @options may be NULL. Returns what kb_report_text() returns.
 */
int kb_waits_text(const struct kb_waits *waits, struct kb_trace *trace,
		  const struct kb_waits_text_options *options, struct kb_out *out, struct kb_error *err);

struct kb_ended_text_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	const char *capture;	/* as above */
	const char *filter;
	double percent_limit;	/* rows below this share of the sum are counted only; 0: none */
};

/*
 * Write @ended, which is of @trace, to @out and flush @out, as `kbarman report --syscalls`, `--faults` and
 * `--block` print it. @options may be NULL. Returns what kb_report_text() returns.
 */
int kb_ended_text(const struct kb_ended *ended, struct kb_trace *trace, const struct kb_ended_text_options *options,
		  struct kb_out *out, struct kb_error *err);

struct kb_classes_text_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	const char *capture;	/* as above */
	const char *filter;
	/* Tasks below this share of the time on CPUs, and classes of a task below this share of its time; 0: none */
	double percent_limit;
};

/*
 * Write @classes, which are of @trace, to @out and flush @out, as `kbarman report --classes` prints them.
 * @options may be NULL. Returns what kb_report_text() returns.
 */
int kb_classes_text(const struct kb_classes *classes, struct kb_trace *trace,
		    const struct kb_classes_text_options *options, struct kb_out *out, struct kb_error *err);

#ifdef __cplusplus
}
#endif

#endif
