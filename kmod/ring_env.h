/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All that ring.c and record.c know of their surroundings. User space compiles the
 * very same two files with a header of its own in this one's place.
 */
#ifndef KBARMAN_RING_ENV_H
#define KBARMAN_RING_ENV_H

#include <linux/align.h>
#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
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
/* It is no instruction here, but a function. */
#define ring_clock_is_called()	unlikely(!kbarman_clock_raw)
#define ring_page_crossed(ring)	kbarman_wake()

#endif /* KBARMAN_RING_ENV_H */
