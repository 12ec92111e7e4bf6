/* SPDX-License-Identifier: GPL-2.0-only */
/* The current task's memory, where nothing may sleep. Context: preemption off, up to NMI. */
#ifndef KBARMAN_USER_MEMORY_H
#define KBARMAN_USER_MEMORY_H

#include <linux/kernel.h>
#include <linux/uaccess.h>

/*
 * Read *@to from address @from of the current task's memory. True if all bytes were read.
 *
 * copy_from_user_nofault() can't be used: before 6.4, hardened usercopy takes a lock to check the
 * destination. Copies of constant size are not checked.
 */
#define kbarman_read_user(to, from)							\
({											\
	const void __user *__from = (const void __user *)(from);			\
	typeof(to) __to = (to);								\
	bool __read;									\
											\
	/* An interrupt leaves the count as it was. */					\
	data_race((pagefault_disable(), 0));						\
	__read = access_ok(__from, sizeof(*__to)) &&					\
		 !__copy_from_user_inatomic(__to, __from, sizeof(*__to));		\
	/* As above. */									\
	data_race((pagefault_enable(), 0));						\
	__read;										\
})

/*
 * The same for @size bytes that are in one page, and in memory, but marked as old: after fork(), or
 * after Linux has looked which pages are in use. A CPU that does not keep that mark itself faults
 * on such a page, as those of Armv8.0 do. This is slow, and false in an NMI and with PREEMPT_RT.
 */
bool kbarman_read_old_page(void *to, unsigned long from, size_t size);

#endif /* KBARMAN_USER_MEMORY_H */
