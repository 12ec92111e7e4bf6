/* SPDX-License-Identifier: GPL-2.0-only */
/* /dev/kbarman: open, ioctl, mmap, poll, write. Checks arguments; sessions/ does the work. */
#ifndef KBARMAN_CHARDEV_H
#define KBARMAN_CHARDEV_H

#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/types.h>
#include <linux/uaccess.h>

struct file;
struct kbarman_former;
struct kbarman_wanted;
struct vm_area_struct;

int kbarman_chardev_init(void);
void kbarman_chardev_exit(void);

/*
 * KBARMAN_CONFIGURE on @file: take @wanted->config, whose pointers are the caller's, and set its
 * bad_offset, bad_index and bad_member if it is refused.
 */
int kbarman_chardev_configure(struct file *file, struct kbarman_wanted *wanted);

/* KBARMAN_FORMER on @file. 0 or a negative errno. */
int kbarman_chardev_former(struct file *file, struct kbarman_former *former);

/* A map of what the descriptor's session has recorded. */
int kbarman_chardev_mmap(struct file *file, struct vm_area_struct *vma);

/* ---- elements of arrays that callers have, of whichever size they know ---- */

/*
 * Copy element @i of the array at @user, where it has @bytes, or back. Of both sides the longer one
 * has zeroes beyond the other.
 */
static inline int kbarman_element_get(void *to, u32 known, u64 user, u32 bytes, u32 i)
{
	return copy_struct_from_user(to, known, u64_to_user_ptr(user) + (size_t)i * bytes, bytes);
}

static inline int kbarman_element_put(u64 user, u32 bytes, u32 i, const void *from,
				      u32 known)
{
	void __user *to = u64_to_user_ptr(user) + (size_t)i * bytes;
	u32 both = min(bytes, known);

	return copy_to_user(to, from, both) || clear_user(to + both, bytes - both) ? -EFAULT : 0;
}

/* The size of the @count elements of an array, as the caller knows them. */
static inline bool kbarman_element_is_good(u32 count, u32 bytes, u32 first)
{
	return !count || (bytes >= first && bytes <= PAGE_SIZE);
}

#endif /* KBARMAN_CHARDEV_H */
