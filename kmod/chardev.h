/* SPDX-License-Identifier: GPL-2.0-only */
/* /dev/kbarman: open, ioctl, mmap, poll, write. Checks arguments; sessions/ does the work. */
#ifndef KBARMAN_CHARDEV_H
#define KBARMAN_CHARDEV_H

int kbarman_chardev_init(void);
void kbarman_chardev_exit(void);

#endif /* KBARMAN_CHARDEV_H */
