/* SPDX-License-Identifier: MIT */
/*
 * export/: a capture as another format, on top of codecs and names. list.h has all exports, run.h
 * what each of them has, and sink.h their walk; the rest here is what several share: numbers for tasks
 * and call chains, labels, marks with an end.
 *
 * The exports, one in each file: the file defines a struct kb_export, which export.c lists.
 */
#ifndef KB_LIB_EXPORT_LIST_H
#define KB_LIB_EXPORT_LIST_H

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
extern const struct kb_export kb_export_parquet;
extern const struct kb_export kb_export_barman;

#endif
