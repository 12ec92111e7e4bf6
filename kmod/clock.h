/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The clock of the timestamps: the machine's counter as it is where it counts at
 * one rate on all CPUs, else CLOCK_MONOTONIC. It is made nanoseconds of
 * CLOCK_MONOTONIC_RAW after the fact, from pairs of both taken at start and stop:
 * the probe does no arithmetic.
 */
#ifndef KBARMAN_CLOCK_H
#define KBARMAN_CLOCK_H

#include "clock_env.h"
#include "uapi/kbarman.h"

/* Set once at module init: the counter can be used. */
extern bool kbarman_clock_raw;

/* Ticks now. Context: any, NMI included. */
static __always_inline u64 kbarman_clock(void)
{
	return likely(kbarman_clock_raw) ? KBARMAN_COUNTER() : ktime_get_mono_fast_ns();
}

/* Choose the clock. */
void kbarman_clock_init(void);

/* Its nominal rate. */
u64 kbarman_clock_hz(void);

/* Read all clocks at, as near as can be, one moment. Context: task. */
void kbarman_clock_read(struct kbarman_clock_pair *pair);

/*
 * The fraction that makes ticks nanoseconds: by the nominal rate if @to is NULL,
 * else such that @from and @to fit. The product of the multiplier and all ticks
 * between them fits into 64 bits, for readers that have no more; a multiplier
 * below 2^20 is good in any case, which is so for an hour.
 */
void kbarman_clock_fit(const struct kbarman_clock_pair *from, const struct kbarman_clock_pair *to,
		       u64 *multiplier, u64 *divisor);

#endif /* KBARMAN_CLOCK_H */
