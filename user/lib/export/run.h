/* SPDX-License-Identifier: MIT */
/* What the run() of each export does: it begins, complains and ends. */
#ifndef KB_LIB_EXPORT_RUN_H
#define KB_LIB_EXPORT_RUN_H

#include <kbarman/export.h>

/* Pass a sentence to options->say, if that is set. */
void kb_export_say(const struct kb_export_options *options, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Go to the first record of @barman. */
int kb_export_rewind(struct kb_barman *barman, struct kb_error *err);

/*
 * The end of run(): flushes @out and checks whether the capture was whole. @damage is the last
 * result of kb_barman_next(); if it is negative, @err is filled. Returns what run() returns.
 */
int kb_export_end(const struct kb_barman *barman, struct kb_out *out, int damage,
		  struct kb_error *err);

#endif
