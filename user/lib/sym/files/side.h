/* SPDX-License-Identifier: MIT */
/*
 * Side files of a capture: CAPTURE.kallsyms, CAPTURE.symbols and CAPTURE.annotate-side. A
 * capture contains its name at the time of recording (fact kbarman.name), so the files are
 * found after the capture was renamed.
 */
#ifndef KB_LIB_SYM_FILES_SIDE_H
#define KB_LIB_SYM_FILES_SIDE_H

#include <kbarman/barman.h>

/*
 * The path of the side file of @capture (NULL and "-": none) with @suffix; the caller frees it.
 * NULL: there is none, or no memory.
 */
char *kb_side_find(const struct kb_barman *barman, const char *capture, const char *suffix);

/* The name of the capture at the time of recording, without directories; NULL: unknown. */
const char *kb_side_name(const struct kb_barman *barman);

#endif
