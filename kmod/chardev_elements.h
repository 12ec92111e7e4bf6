/* SPDX-License-Identifier: GPL-2.0-only */
/* Elements of arrays that callers of /dev/kbarman have, of whichever size they know. */
#ifndef KBARMAN_CHARDEV_ELEMENTS_H
#define KBARMAN_CHARDEV_ELEMENTS_H

#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/types.h>
#include <linux/uaccess.h>

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

#endif /* KBARMAN_CHARDEV_ELEMENTS_H */
