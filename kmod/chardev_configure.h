/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_CHARDEV_CONFIGURE_H
#define KBARMAN_CHARDEV_CONFIGURE_H

struct file;
struct kbarman_wanted;

/*
 * KBARMAN_CONFIGURE on @file: take @wanted->config, whose pointers are the caller's, and set its
 * bad_offset, bad_index and bad_member if it is refused.
 */
int kbarman_chardev_configure(struct file *file, struct kbarman_wanted *wanted);

#endif /* KBARMAN_CHARDEV_CONFIGURE_H */
