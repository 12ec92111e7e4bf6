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

/* The counter is the clock as it is. */
extern bool kbarman_clock_raw;

/* Ticks where it is not. Context: any, NMI included. */
u64 kbarman_clock_called(void);

/* Ticks now. Context: any, NMI included. */
static __always_inline u64 kbarman_clock(void)
{
	return likely(kbarman_clock_raw) ? KBARMAN_COUNTER() : kbarman_clock_called();
}

/* Choose the clock. */
void kbarman_clock_init(void);

/* Choose it anew, by what is known of the counter now. Context: task; nobody records. */
void kbarman_clock_choose(void);

/* Ticks are the counter's, and it turned out since that it can't be trusted. Context: any. */
bool kbarman_clock_is_unsteady(void);

/* Ticks are the counter's, not CLOCK_MONOTONIC's. */
bool kbarman_clock_counts(void);

/*
 * Before and after a sleep in which the counter may begin anew, as TSCs do that lose their
 * power: time goes on from where it was. Context: one CPU is there, interrupts are off.
 */
void kbarman_clock_suspend(void);
void kbarman_clock_resume(void);

/* Its nominal rate. */
u64 kbarman_clock_hz(void);

/* Read all clocks at, as near as can be, one moment. Context: task. */
void kbarman_clock_read(struct kbarman_clock_pair *pair);

/*
 * How far the clocks went, altogether, while the machine was suspended:
 * CLOCK_MONOTONIC_RAW stands still then, a counter may go on.
 */
struct kbarman_clock_sleep {
	u64 ticks;
	u64 raw_ns;
};

/*
 * The fraction that makes ticks nanoseconds: by the nominal rate if @to is NULL,
 * else such that @from and @to fit, but for what was @asleep between them. The product
 * of the multiplier and all ticks between them fits into 64 bits, for readers that have
 * no more; a multiplier below 2^20 is good in any case, which is so for an hour.
 */
void kbarman_clock_fit(const struct kbarman_clock_pair *from, const struct kbarman_clock_pair *to,
		       const struct kbarman_clock_sleep *asleep, u64 *multiplier, u64 *divisor);

/* Nanoseconds that the ticks went on between the pairs while CLOCK_MONOTONIC_RAW stood still. */
u64 kbarman_clock_slept(const struct kbarman_clock_pair *from, const struct kbarman_clock_pair *to,
			const struct kbarman_clock_sleep *asleep);

#endif /* KBARMAN_CLOCK_H */
