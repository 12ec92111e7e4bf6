/* SPDX-License-Identifier: MIT */
/* The exports, one a file: each fills in a struct kb_export, and export.c lists it. */
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

/* Hand a sentence to options->say, if there is one. */
void kb_export_say(const struct kb_export_options *options, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Go to the first record of @barman. */
int kb_export_rewind(struct kb_barman *barman, struct kb_error *err);

/*
 * What run() returns at its end: flushes @out, and looks whether the capture was whole.
 * @damage is what kb_barman_next() gave last (a negative errno comes with @err filled).
 */
int kb_export_end(const struct kb_barman *barman, struct kb_out *out, int damage,
		  struct kb_error *err);

#endif
