/* SPDX-License-Identifier: MIT */
/* The exports, one in each file: the file defines a struct kb_export, which export.c lists. */
#ifndef KB_LIB_EXPORT_H
#define KB_LIB_EXPORT_H

#include <kbarman/export.h>

extern const struct kb_export kb_export_heph;
extern const struct kb_export kb_export_annotate;
extern const struct kb_export kb_export_tptp;
extern const struct kb_export kb_export_folded;
extern const struct kb_export kb_export_flamegraph;
extern const struct kb_export kb_export_perfetto;
extern const struct kb_export kb_export_html;
extern const struct kb_export kb_export_chrome;
extern const struct kb_export kb_export_pprof;
extern const struct kb_export kb_export_speedscope;
extern const struct kb_export kb_export_firefox;
extern const struct kb_export kb_export_ctf;

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
