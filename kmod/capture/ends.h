/* SPDX-License-Identifier: GPL-2.0-only */
/* Notes in reserved memory how the recordings of this boot end: at a panic, a reboot, a kexec. */
#ifndef KBARMAN_ENDS_H
#define KBARMAN_ENDS_H

/* Behind kbarman_reserved_init(). 0, or why Linux takes no notifier. Context: module init, exit. */
int kbarman_ends_init(void);
void kbarman_ends_exit(void);

#endif /* KBARMAN_ENDS_H */
