/* SPDX-License-Identifier: GPL-2.0-only */
/* mmap() of /dev/kbarman: a map of what the descriptor's session has recorded. */
#ifndef KBARMAN_CHARDEV_MAP_H
#define KBARMAN_CHARDEV_MAP_H

struct file;
struct vm_area_struct;

int kbarman_chardev_mmap(struct file *file, struct vm_area_struct *vma);

#endif /* KBARMAN_CHARDEV_MAP_H */
