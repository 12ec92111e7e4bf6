/* SPDX-License-Identifier: GPL-2.0-only */
/* /dev/kbarman: open, ioctl, mmap, poll, write. Checks arguments; sessions/ does the work. */
#ifndef KBARMAN_CHARDEV_H
#define KBARMAN_CHARDEV_H

struct file;
struct kbarman_wanted;
struct vm_area_struct;

int kbarman_chardev_init(void);
void kbarman_chardev_exit(void);

/*
 * KBARMAN_CONFIGURE on @file: take @wanted->config, whose pointers are the caller's, and set its
 * bad_offset, bad_index and bad_member if it is refused.
 */
int kbarman_chardev_configure(struct file *file, struct kbarman_wanted *wanted);

/* A map of what the descriptor's session has recorded. */
int kbarman_chardev_mmap(struct file *file, struct vm_area_struct *vma);

#endif /* KBARMAN_CHARDEV_H */
