/* SPDX-License-Identifier: MIT */
/* Triggers of Linux's PSI: a descriptor that reports POLLPRI. */
#ifndef KB_LIB_TRIGGER_PRESSURE_H
#define KB_LIB_TRIGGER_PRESSURE_H

#include <kbarman/trigger.h>

/*
 * Returns the descriptor, which the caller closes; -ENOTSUP: this kernel has no PSI; or another
 * negative errno with a sentence. @root: the folder of the files, NULL for /proc/pressure.
 */
int kb_pressure_open(const struct kb_trigger *trigger, const char *root, struct kb_error *err);

#endif
