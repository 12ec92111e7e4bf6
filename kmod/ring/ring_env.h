/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All that ring.c and record.c use of the kernel. User-space builds compile the same two files:
 * they include a header of their own first, which has the same include guard.
 */
#ifndef KBARMAN_RING_ENV_H
#define KBARMAN_RING_ENV_H

#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/barrier.h>
#include <asm/bitsperlong.h>
#include <asm/local.h>

#include "ring/clock.h"
#include "ring/wake.h"

#define ring_clock()		kbarman_clock()
/* The clock, unless ring_clock_is_called(): then the counter alone is not the clock. */
#define ring_counter()		KBARMAN_COUNTER()
#define ring_clock_is_called()	(!kbarman_clock_raw)
#define ring_pages_crossed(ring, pages)	kbarman_wake_soon((ring)->wake, pages)

/*
 * cmpxchg_local(); true if *@p was @old. On x86 the instruction says so itself; cmpxchg_local()
 * returns what *@p was, which would have to be compared again.
 */
static __always_inline bool ring_try_cmpxchg(unsigned long *p, unsigned long old,
					     unsigned long new)
{
#if defined(CONFIG_X86)
	bool exchanged;

	asm volatile("cmpxchg %[new], %[p]"
		     : "=@ccz" (exchanged), [p] "+m" (*p), "+a" (old)
		     : [new] "r" (new)
		     : "memory");
	return exchanged;
#else
	return cmpxchg_local(p, old, new) == old;
#endif
}

#endif /* KBARMAN_RING_ENV_H */
