/* SPDX-License-Identifier: MIT */
/*
 * What captures say as numbers that only grow, for Prometheus and others that read OpenMetrics 1.0:
 * how long tasks waited for a CPU, what CPUs did, idle states, interrupts, losses, and what reading
 * cost. The numbers are those of a process, which reads one capture after the other, or pieces of a
 * session that runs:
 *
 *	kb_openmetrics_create(&metrics, NULL, &err);
 *	for each capture:
 *		kb_openmetrics_read(metrics, trace, NULL, &err);
 *		kb_openmetrics_write(metrics, KB_OPENMETRICS, out);
 *	kb_openmetrics_destroy(metrics);
 *
 * Memory use and the number of series are bounded, whatever the captures claim: see
 * struct kb_openmetrics_options. Names of handlers, which files and drivers choose, are labels; tasks
 * are not, because there is no end of them. kbarman-push(1) lists the metrics.
 *
 * Functions return 0 or a negative errno and @err, which may be NULL, unless they say otherwise. One
 * thread at a time uses a struct kb_openmetrics.
 */
#ifndef KBARMAN_OPENMETRICS_H
#define KBARMAN_OPENMETRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/error.h>
#include <kbarman/out.h>
#include <kbarman/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kb_openmetrics;

/* All zero behind `size` is the default. */
struct kb_openmetrics_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	uint32_t cpus;		/* CPUs with rows of their own; all others share cpu="other". 0: 256 */
	uint32_t rows;		/* of each metric whose labels the capture chooses (handlers, idle
				 * states, reasons of losses); then one "other". 0: 1024 */
};

/* @options may be NULL. kb_openmetrics_destroy() frees the metrics, which may be NULL. */
int kb_openmetrics_create(struct kb_openmetrics **out, const struct kb_openmetrics_options *options,
			  struct kb_error *err);
void kb_openmetrics_destroy(struct kb_openmetrics *metrics);

/* Which records of a capture count. All zero behind `size`: all of them. */
struct kb_openmetrics_part {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	/*
	 * The capture is of the same session as the one before. So its facts of losses, which tell of
	 * the whole session, count from where those of the one before ended.
	 */
	bool goes_on;
	/*
	 * ticks. If the captures overlap, as those of kb_trace_open_device() do: records up to
	 * `after` counted before, and only say here what goes on; records behind `until` come again,
	 * with the next capture. 0: no limit. With `until` nothing ends where the capture does. So
	 * each record counts once, and a wait or a halt counts where its last record does.
	 */
	uint64_t after, until;
};

/*
 * Count @trace. Nothing else reads it meanwhile. A capture that lacks records is read twice, as by
 * kb_latency_create(). @part may be NULL. Returns 0; 1 if the capture is damaged: @err says where,
 * and what is whole counts; or a negative errno: those of kb_trace_rewind(), -EINVAL and -ENOMEM.
 */
int kb_openmetrics_read(struct kb_openmetrics *metrics, struct kb_trace *trace,
			const struct kb_openmetrics_part *part, struct kb_error *err);

/*
 * The same for who makes the walk: begin goes to the first record of @trace, feed takes each record
 * that kb_trace_next() gives (0 or -ENOMEM), end takes what is open at the end of the walk. Between
 * begin and end the trace must live; without memory in between call end, too.
 * kb_openmetrics_write() may be called at any time.
 */
int kb_openmetrics_begin(struct kb_openmetrics *metrics, struct kb_trace *trace,
			 const struct kb_openmetrics_part *part, struct kb_error *err);
int kb_openmetrics_feed(struct kb_openmetrics *metrics, const struct kb_walk *walk);
int kb_openmetrics_end(struct kb_openmetrics *metrics, struct kb_error *err);

/* What reading cost, over the life of the process. A number that is lower than before is ignored. */
struct kb_openmetrics_cost {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	uint64_t cpu_ns;	/* CPU time of the reader */
	uint64_t bytes;		/* that it read from the rings or from files */
	uint64_t wakeups;	/* how often it woke up to read */
	uint64_t resident;	/* bytes of memory that it has now; this one may become lower */
};

/* Takes what reading cost so far, for kb_openmetrics_write(). Returns 0, or -EINVAL for a wrong size. */
int kb_openmetrics_cost(struct kb_openmetrics *metrics, const struct kb_openmetrics_cost *cost,
			struct kb_error *err);

/* How to write. */
enum kb_openmetrics_form {
	KB_OPENMETRICS,		/* OpenMetrics 1.0, which Prometheus asks for */
	KB_OPENMETRICS_PROMETHEUS,	/* the older text of Prometheus (0.0.4): for the textfile
					 * collector of node_exporter, and `promtool check metrics` */
};

/* The values of HTTP's Content-Type for the two forms. */
#define KB_OPENMETRICS_TYPE	"application/openmetrics-text; version=1.0.0; charset=utf-8"
#define KB_OPENMETRICS_TYPE_PROMETHEUS	"text/plain; version=0.0.4; charset=utf-8"

/*
 * Write all metrics with their end ("# EOF"). Between kb_openmetrics_metrics(), which writes them
 * without the end, and kb_openmetrics_eof() a program may put metrics of its own. Returns 0 or the
 * first error of @out.
 */
int kb_openmetrics_write(const struct kb_openmetrics *metrics, enum kb_openmetrics_form form,
			 struct kb_out *out);
int kb_openmetrics_metrics(const struct kb_openmetrics *metrics, enum kb_openmetrics_form form,
			   struct kb_out *out);
int kb_openmetrics_eof(enum kb_openmetrics_form form, struct kb_out *out);

/*
 * Write one metric of the program's own with one value: @name without "_total", such as
 * "kbarman_agent_restarts"; a counter gets it. @help: a sentence. @unit: "seconds", "bytes"; NULL:
 * none; @name ends with it. @label, NULL: none, has @text. The number is @value / 10^@digits, exactly.
 */
struct kb_openmetrics_value {
	const char *name, *help, *unit, *label, *text;
	bool counter;		/* else a gauge */
	uint64_t value;
	unsigned int digits;	/* 0 to 9 */
};

/* Writes that metric. Returns 0 or the first error of @out. */
int kb_openmetrics_value(const struct kb_openmetrics_value *value, enum kb_openmetrics_form form,
			 struct kb_out *out);

#ifdef __cplusplus
}
#endif

#endif
