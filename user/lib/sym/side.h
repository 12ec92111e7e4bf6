/* SPDX-License-Identifier: MIT */
/*
 * The files that stand beside a capture: CAPTURE.kallsyms, CAPTURE.symbols and
 * CAPTURE.annotate-side. The capture says what it was called when it was recorded (fact
 * kbarman.name), so that they are found after it was renamed.
 */
#ifndef KB_LIB_SYM_SIDE_H
#define KB_LIB_SYM_SIDE_H

#include <kbarman/barman.h>

/*
 * The path of the file that stands beside @capture (NULL and "-": none), with @suffix, to
 * be freed. NULL: it is not there, or no memory.
 */
char *kb_side_find(const struct kb_barman *barman, const char *capture, const char *suffix);

/* What the capture was called when it was recorded, without directories; NULL: unknown. */
const char *kb_side_name(const struct kb_barman *barman);

#endif
