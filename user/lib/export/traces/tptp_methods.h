/* SPDX-License-Identifier: MIT */
/*
 * Images are TPTP's classes, and symbols are its methods. Both are numbered densely from 1 on
 * and defined in the trace before their first use.
 */
#ifndef KB_LIB_EXPORT_TRACES_TPTP_METHODS_H
#define KB_LIB_EXPORT_TRACES_TPTP_METHODS_H

#include <stdint.h>

#include <kbarman/symbol.h>
#include <kbarman/tptp.h>

struct tptp_methods;

/* Without @symbolizer (NULL) everything is [unknown]. */
struct tptp_methods *tptp_methods_create(struct kb_tptp_writer *writer,
					 struct kb_symbolizer *symbolizer);
void tptp_methods_destroy(struct tptp_methods *methods);

/*
 * The method of @pc in @task_id at @timestamp (ticks). @time is the same time in the trace. 0
 * without memory.
 */
uint32_t tptp_methods_resolve(struct tptp_methods *methods, uint32_t task_id, uint64_t timestamp,
			      uint64_t pc, int64_t time);

/* The class of a method that tptp_methods_resolve() returned. */
uint32_t tptp_methods_class(const struct tptp_methods *methods, uint32_t method);

#endif
