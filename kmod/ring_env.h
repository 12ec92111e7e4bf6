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

#include "clock.h"
#include "wake.h"

#define ring_clock()		kbarman_clock()
/* In the kernel, reading the clock may be a function call instead of an instruction. */
#define ring_clock_is_called()	unlikely(!kbarman_clock_raw)
#define ring_page_crossed(ring)	kbarman_wake_soon((ring)->wake)

#endif /* KBARMAN_RING_ENV_H */
