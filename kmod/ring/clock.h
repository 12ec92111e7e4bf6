/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The clock of the timestamps. This is the machine's counter, if the counter has the same rate on
 * all CPUs, else CLOCK_MONOTONIC_RAW. Probes store its ticks without arithmetic. Ticks are converted to
 * ns of CLOCK_MONOTONIC_RAW later, by pairs of readings of both clocks that are taken at start and
 * stop.
 */
#ifndef KBARMAN_CLOCK_H
#define KBARMAN_CLOCK_H

#include "ring/clock_env.h"
#include "uapi/kbarman.h"

/* The clock is KBARMAN_COUNTER(), without a correction. It is chosen when nobody holds it, and
 * becomes false in a suspend: kbarman_clock_resume(). */
extern bool kbarman_clock_raw;

/* kbarman_clock() for all other cases. Context: any, NMI included. */
u64 kbarman_clock_called(void);

/* The time now, in ticks. Context: any, NMI included. */
static __always_inline u64 kbarman_clock(void)
{
	return likely(kbarman_clock_raw) ? KBARMAN_COUNTER() : kbarman_clock_called();
}

/* Choose the clock. Context: module init. */
void kbarman_clock_init(void);

/*
 * Choose the clock again, by what Linux knows of the counter now. Context: task, and nobody holds
 * the clock: kbarman_clocks_hold().
 */
void kbarman_clock_choose(void);

/*
 * True if ticks are those of the counter, and Linux has found since that the counter can't be
 * trusted.
 * Context: any.
 */
bool kbarman_clock_is_unsteady(void);

/* True if ticks are those of the counter, not of CLOCK_MONOTONIC_RAW. */
bool kbarman_clock_counts(void);

/*
 * Called before and after a suspend in which the counter may restart, as a TSC does that loses its
 * power. Timestamps go on from the value before the suspend. Whoever reads the counter alone has to
 * look at kbarman_clock_raw again. Context: one CPU online, interrupts off.
 */
void kbarman_clock_suspend(void);
void kbarman_clock_resume(void);

/* The nominal rate, in ticks per second. */
u64 kbarman_clock_hz(void);

/* Read all clocks at the same moment, as nearly as possible. Context: task. */
void kbarman_clock_read(struct kbarman_clock_pair *pair);

/*
 * How far the clocks advanced while the machine was suspended, in all suspends together.
 * CLOCK_MONOTONIC_RAW stands still during a suspend, a counter may go on.
 */
struct kbarman_clock_sleep {
	u64 ticks;
	u64 raw_ns;
};

/*
 * The fraction that converts ticks to ns. If @to is NULL, this is the nominal rate. Otherwise it is
 * the rate between @from and @to, without the time @asleep. The multiplier times all ticks between
 * @from and @to fits into 64 bits, for readers without wider arithmetic. The multiplier may always
 * be as large as 2^20 - 1, because the product then fits for about an hour or more.
 */
void kbarman_clock_fit(const struct kbarman_clock_pair *from, const struct kbarman_clock_pair *to,
		       const struct kbarman_clock_sleep *asleep, u64 *multiplier, u64 *divisor);

/* Nanoseconds that the ticks advanced between the pairs while CLOCK_MONOTONIC_RAW stood still. */
u64 kbarman_clock_slept(const struct kbarman_clock_pair *from, const struct kbarman_clock_pair *to,
			const struct kbarman_clock_sleep *asleep);

#endif /* KBARMAN_CLOCK_H */
