/* SPDX-License-Identifier: MIT */
/*
 * Code made at run time: the map that a JIT compiler writes as /tmp/perf-PID.map, with lines
 * "START SIZE NAME" and hexadecimal numbers. The last of overlapping entries counts, because
 * new code may replace old code at the same place.
 */
#ifndef KB_LIB_SYM_JIT_PERFMAP_H
#define KB_LIB_SYM_JIT_PERFMAP_H

#include "sym/tables/symtab.h"

/*
 * Add the symbols of the map of process @pid below @symfs ("" for the root) and sort them.
 * Returns 0, -ENOENT, another negative errno of reading the map, or -ENOMEM.
 */
int kb_perfmap_read(struct kb_symtab *symtab, const char *symfs, uint32_t pid);

/* The same for the map that is open as @fd, in this process. */
int kb_perfmap_read_fd(struct kb_symtab *symtab, int fd);

/* The same for @size bytes of text. */
int kb_perfmap_parse(struct kb_symtab *symtab, const char *text, size_t size);

#endif
