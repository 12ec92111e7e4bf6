/* SPDX-License-Identifier: MIT */
/* What verbs that record do on a kernel that can't give everything (kbarman_query.absent). */
#ifndef KB_CLI_SESSION_ABSENT_H
#define KB_CLI_SESSION_ABSENT_H

#include <kbarman/device.h>

/*
 * Leaves the sources of @absent out of @configure, and says on standard error what will be missing.
 * Returns 0, or CLI_IMPOSSIBLE if nothing can be recorded, which is said, too.
 */
int absent_leave_out(struct kbarman_configure *configure, uint32_t absent);

#endif /* KB_CLI_SESSION_ABSENT_H */
