/* SPDX-License-Identifier: MIT */
/* What differs between two groups of captures (kbarman/diff.h), as text and for viewers. */
#ifndef KBARMAN_DIFF_EXPORT_H
#define KBARMAN_DIFF_EXPORT_H

#include <kbarman/diff.h>
#include <kbarman/out.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All zero behind `size` is what `kbarman diff` prints into a file. */
struct kb_diff_text_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	const char *sides[2];	/* what the head calls A and B; NULL: nothing */
	bool all;		/* also rows that are not certain */
	bool colors;		/* certain changes in colours of a terminal: less green, more red */
	uint32_t most;		/* rows of a table; 0: 20 */
	const char *filter;	/* what struct kb_filter chose, in words; NULL: all */
};

/*
 * Write @diff to @out and flush @out. @options may be NULL. Returns 0, -EINVAL for options that this
 * library does not know, or the negative errno of the output.
 */
int kb_diff_text(const struct kb_diff *diff, const struct kb_diff_text_options *options,
		 struct kb_out *out, struct kb_error *err);

/* How to write a file for a viewer. All zero behind `size` is the default. */
struct kb_diff_write_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	const char *title;	/* of the picture; NULL: "A, then B" */
	bool waits;		/* time off the CPU, not on it */
};

/* A file for viewers. */
struct kb_diff_format {
	const char *name;		/* as in `diff --to` */
	const char *extension;		/* with its dot */
	const char *description;	/* one line */
	/* Internal: see kb_diff_write(). */
	int (*write)(const struct kb_diff *diff, const struct kb_diff_write_options *options,
		     struct kb_out *out);
};

/* All formats; the last one has no name. */
const struct kb_diff_format *kb_diff_formats(void);

/* The format with that name; NULL if there is none. */
const struct kb_diff_format *kb_diff_format_find(const char *name);

/*
 * Write the call chains of @diff to @out and flush @out. @options may be NULL. Returns 0, -EINVAL
 * for options that this library does not know, -ENOMEM, or the negative errno of the output.
 */
int kb_diff_write(const struct kb_diff *diff, const struct kb_diff_format *format,
		  const struct kb_diff_write_options *options, struct kb_out *out,
		  struct kb_error *err);

#ifdef __cplusplus
}
#endif

#endif
