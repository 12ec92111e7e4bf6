/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Words of the current task's memory, read without a call: for chains, which follow many of them.
 * Context: between kbarman_user_faults_off() and kbarman_user_faults_on(); preemption off, up to
 * NMI.
 */
#ifndef KBARMAN_USER_WORDS_H
#define KBARMAN_USER_WORDS_H

#include <linux/kernel.h>

#include "compat/user_access.h"
#include "stacks/user_memory.h"

/* Read *@to, a word or a part of it, from address @from. True if it was read. */
#define kbarman_user_get(to, from)							\
({											\
	__label__ __failed;								\
	typeof(to) __to = (to);								\
	const typeof(*__to) __user *__from = (const typeof(*__to) __user *)(from);	\
	bool __got = false;								\
											\
	if (kbarman_user_access_begin(__from, sizeof(*__from))) {			\
		unsafe_get_user(*__to, __from, __failed);				\
		__got = true;								\
__failed:										\
		user_access_end();							\
	}										\
	__got;										\
})

/* The frame record at @from: two words of @word bytes. False if it can't be read. */
static __always_inline bool kbarman_user_record(unsigned long record[2], unsigned long from,
						unsigned int word)
{
	const unsigned long __user *longs = (const unsigned long __user *)from;
	const u32 __user *shorts = (const u32 __user *)from;
	bool got = false;

	if (!IS_ALIGNED(from, word) || !kbarman_user_access_begin(shorts, 2 * word))
		return false;
	if (word == sizeof(*longs)) {
		unsafe_get_user(record[0], longs, failed);
		unsafe_get_user(record[1], longs + 1, failed);
	} else {
		unsafe_get_user(record[0], shorts, failed);
		unsafe_get_user(record[1], shorts + 1, failed);
	}
	got = true;
failed:
	user_access_end();
	return got;
}

#endif /* KBARMAN_USER_WORDS_H */
