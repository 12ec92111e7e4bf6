/* SPDX-License-Identifier: MIT */
/*
 * Captures in the formats of others: one table, so that a tool needs no code of
 * its own for a format. Most exports stream, in the capture's order: their memory grows
 * with different tasks and call chains only.
 */
#ifndef KBARMAN_EXPORT_H
#define KBARMAN_EXPORT_H

#include <stdbool.h>

#include <kbarman/barman.h>
#include <kbarman/error.h>
#include <kbarman/out.h>
#include <kbarman/symbol.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All zero is the default. An export ignores what does not concern it. */
struct kb_export_options {
	const char *format;	/* a variant of the format, such as "binary"; NULL = default */
	const char *event;	/* folded, flamegraph: the counter that weighs; NULL = the one
				 * that samples */
	bool arrays;		/* heph: lift the limits of existing readers */
	bool sample_text;	/* annotate: a line of text for each PC sample */
	bool aggregate;		/* tptp: a pair of messages per thread and method */
	const char *directory;	/* of an export with .directory: an empty one */
	int32_t tid, pid;	/* annotate: who speaks; 0 in a file */
	const char *beside;	/* annotate: CAPTURE.annotate-side; NULL = none */
	const void *picture;	/* annotate: an image file's bytes; NULL = none */
	uint64_t picture_bytes;
	const char *picture_text;	/* beside it; NULL = "" */
	/* Called with a sentence for what the capture could not give or the format
	 * could not take; NULL = nobody wants to know. */
	void (*say)(void *context, const char *sentence);
	void *context;
};

struct kb_export {
	const char *name;		/* as in `convert --to` */
	const char *extension;		/* with its dot; of the default variant */
	const char *description;	/* one line */
	const char *const *formats;	/* variants and their extensions in turn, ended by
					 * NULL; NULL = there is one */
	bool directory;			/* it fills options->directory, not @out */
	/*
	 * Write all of @barman, from its first record on, to @out, and flush it.
	 * Returns 0; 1 if the capture is damaged: @err says where, what came before
	 * is written; or a negative errno and @err: the capture could not be
	 * exported, or the output not written.
	 */
	int (*run)(struct kb_barman *barman, struct kb_symbolizer *symbolizer,
		   const struct kb_export_options *options, struct kb_out *out,
		   struct kb_error *err);
};

/* All of them, ended by NULL. */
const struct kb_export *const *kb_export_all(void);

/* By name; NULL if there is no such export. */
const struct kb_export *kb_export_find(const char *name);

#ifdef __cplusplus
}
#endif

#endif
