/* SPDX-License-Identifier: MIT */
/*
 * Captures in formats of other tools. All formats are in one table, so a tool needs no code for
 * a particular format. Most exports stream, in the order of the capture: their memory use
 * depends only on the number of different tasks and call chains.
 */
#ifndef KBARMAN_EXPORT_H
#define KBARMAN_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/error.h>
#include <kbarman/filter.h>
#include <kbarman/out.h>
#include <kbarman/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All zero behind `size` is the default. An export ignores options that do not apply to it. */
struct kb_export_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	const char *format;	/* a variant of the format, such as "binary"; NULL = default */
	const char *event;	/* folded, flamegraph: counter that weighs samples; NULL = the
				 * one that samples */
	bool arrays;		/* heph: use arrays, which existing readers refuse */
	bool sample_text;	/* annotate: a line of text for each PC sample */
	bool aggregate;		/* tptp: a pair of messages per thread and method */
	const char *directory;	/* for exports with .directory: an empty directory; with .adds any */
	int32_t tid, pid;	/* annotate: sender of the stream; 0 in a file */
	const char *beside;	/* annotate: CAPTURE.annotate-side; NULL = none */
	const void *picture;	/* annotate: an image file's bytes; NULL = none */
	uint64_t picture_bytes;
	const char *picture_text;	/* the text beside the picture; NULL = "" */
	/*
	 * Called with one sentence for each thing that the capture does not have or the format
	 * can't hold. May be NULL.
	 */
	void (*say)(void *context, const char *sentence);
	void *context;
	/*
	 * What to write of the capture; NULL = all. Slices are cut at the ends of the time, and where
	 * only one task is wanted, the formats that write switches as they are have the idle task in
	 * place of all others. Wakeups are on the CPU where the task then runs, and waits where they
	 * began. What comes from `beside` is written whole.
	 */
	const struct kb_filter *filter;
	const char *host;	/* parquet: the machine; NULL = as the capture says */
	const char *name;	/* parquet: of the capture, for its files; NULL = "capture" */
};

struct kb_export {
	const char *name;		/* as in `convert --to` */
	const char *extension;		/* with its dot; that of the default variant */
	const char *description;	/* one line */
	const char *const *formats;	/* variants and their extensions in turn, ended by NULL;
					 * NULL = one variant only */
	bool directory;			/* the export fills options->directory, not @out */
	bool adds;			/* and may add to what is there from other captures: its files
					 * get their names when all of them are complete */
	/* Internal: see kb_export_run(). */
	int (*run)(struct kb_trace *trace, const struct kb_export_options *options,
		   struct kb_out *out, struct kb_error *err);
};

/*
 * Write all of @trace, from its first record on, to @out, and flush @out. @options may be NULL.
 * Returns 0; 1 if the capture is damaged: @err says where, and everything whole in front of it is
 * written; or a negative errno and @err if the capture could not be exported or the output not
 * written.
 */
int kb_export_run(const struct kb_export *format, struct kb_trace *trace,
		  const struct kb_export_options *options, struct kb_out *out,
		  struct kb_error *err);

/* All exports, ended by NULL. */
const struct kb_export *const *kb_export_all(void);

/* The export with that name; NULL if there is none. */
const struct kb_export *kb_export_find(const char *name);

#ifdef __cplusplus
}
#endif

#endif
