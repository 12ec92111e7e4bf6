/* SPDX-License-Identifier: MIT */
/* What a record of a system call says, which is written when it ends. */
#ifndef KB_LIB_ANALYSIS_TIME_SYSCALL_H
#define KB_LIB_ANALYSIS_TIME_SYSCALL_H

#include <kbarman/barman.h>
#include <kbarman/names.h>

/* How long the call @event took, ns; 0 where its begin is not known. */
uint64_t kb_syscall_ns(const struct kb_barman *barman, const struct kb_event *event);

/*
 * Whether @event is a call of a program. The first return of a new task from the call that made it is
 * none: its parent made that call, which has a record of its own.
 */
bool kb_syscall_is_own(const struct kb_names *names, const struct kb_event *event);

#endif
