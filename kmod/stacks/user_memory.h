/* SPDX-License-Identifier: GPL-2.0-only */
/* The current task's memory, where nothing may sleep. Context: preemption off, up to NMI. */
#ifndef KBARMAN_USER_MEMORY_H
#define KBARMAN_USER_MEMORY_H

#include <linux/kernel.h>
#include <linux/uaccess.h>

/*
 * In between, a page that is not in memory makes a read fail. An interrupt leaves the count of those
 * who want that as it was.
 */
static __always_inline void kbarman_user_faults_off(void)
{
	data_race((pagefault_disable(), 0));
}

static __always_inline void kbarman_user_faults_on(void)
{
	data_race((pagefault_enable(), 0));
}

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
	kbarman_user_faults_off();							\
	__read = access_ok(__from, sizeof(*__to)) &&					\
		 !__copy_from_user_inatomic(__to, __from, sizeof(*__to));		\
	kbarman_user_faults_on();							\
	__read;										\
})

/*
 * The same for @size bytes that are in one page, and in memory, but marked as old:
 * after fork(), or after Linux has looked which pages are in use. A CPU that does not keep that
 * mark itself faults on such a page, as those of Armv8.0 do. This is slow, and false in an NMI and
 * with PREEMPT_RT.
 */
bool kbarman_read_old_page(void *to, unsigned long from, size_t size);

#endif /* KBARMAN_USER_MEMORY_H */
