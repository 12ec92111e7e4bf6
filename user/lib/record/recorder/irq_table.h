/* SPDX-License-Identifier: MIT */
/* The names that /proc/interrupts has for the handlers of interrupts. */
#ifndef KB_LIB_RECORD_RECORDER_IRQ_TABLE_H
#define KB_LIB_RECORD_RECORDER_IRQ_TABLE_H

#include <stdint.h>

#define KB_IRQ_TABLE_NAMES	256	/* bytes of the names of one, with the NUL */

/*
 * Call @take for each interrupt that has a handler: several are "NAME, NAME", in the order in which
 * Linux calls them. @proc: the folder, NULL for /proc. Returns 0, or the first value of @take that
 * is not 0. A file that can't be read has no interrupts; nor are there those with longer names.
 */
int kb_irq_table_read(const char *proc, int (*take)(void *context, uint32_t irq, const char *names),
		       void *context);

#endif
