// SPDX-License-Identifier: GPL-2.0-only
#include <linux/gcd.h>
#include <linux/irqflags.h>
#include <linux/limits.h>
#include <linux/math64.h>

#include "clock.h"

#if defined(CONFIG_X86)
#include <asm/cpufeature.h>
#include <asm/tsc.h>
#elif defined(CONFIG_ARM_ARCH_TIMER)
#include <asm/arch_timer.h>
#endif

#define PAIR_TRIES	8
#define MULTIPLIER_MAX	(1U << 20)

bool kbarman_clock_raw __ro_after_init;

void __init kbarman_clock_init(void)
{
#if defined(CONFIG_X86)
	kbarman_clock_raw = boot_cpu_has(X86_FEATURE_CONSTANT_TSC) &&
			    boot_cpu_has(X86_FEATURE_NONSTOP_TSC) && !check_tsc_unstable();
#elif defined(CONFIG_ARM_ARCH_TIMER)
	kbarman_clock_raw = arch_timer_get_cntfrq() != 0;
#endif
}

u64 kbarman_clock_hz(void)
{
	if (kbarman_clock_raw) {
#if defined(CONFIG_X86)
		return tsc_khz * 1000ULL;
#elif defined(CONFIG_ARM_ARCH_TIMER)
		return arch_timer_get_cntfrq();
#endif
	}
	return NSEC_PER_SEC;
}

/* @now of the system's clocks in the middle of the shortest of some tries in ticks. */
static u64 bracket(u64 (*now)(void), u64 *ns)
{
	u64 best = U64_MAX, middle = 0;
	int tries;

	for (tries = 0; tries < PAIR_TRIES; tries++) {
		unsigned long flags;
		u64 before, value, took;

		local_irq_save(flags);
		before = kbarman_clock();
		value = now();
		took = kbarman_clock() - before;
		local_irq_restore(flags);
		if (took >= best)
			continue;
		best = took;
		middle = before + took / 2;
		*ns = value;
	}
	return middle;
}

void kbarman_clock_read(struct kbarman_clock_pair *pair)
{
	u64 hz = kbarman_clock_hz();
	u64 ticks;

	pair->timestamp = bracket(ktime_get_raw_ns, &pair->raw_ns);
	/* The other two a moment later, brought back to the first one's. */
	ticks = bracket(ktime_get_ns, &pair->monotonic_ns) - pair->timestamp;
	pair->monotonic_ns -= mul_u64_u64_div_u64(ticks, NSEC_PER_SEC, hz);
	ticks = bracket(ktime_get_real_ns, &pair->realtime_ns) - pair->timestamp;
	pair->realtime_ns -= mul_u64_u64_div_u64(ticks, NSEC_PER_SEC, hz);
}

/*
 * The best fraction for numerator / denominator with a numerator below
 * MULTIPLIER_MAX: the last convergent of the continued fraction that has one. It is
 * off by less than one part in its denominator times the next one.
 */
static void approximate(u64 numerator, u64 denominator, u64 *multiplier, u64 *divisor)
{
	u64 n0 = 0, n1 = 1, d0 = 1, d1 = 0;

	while (denominator) {
		u64 rest, quotient = div64_u64_rem(numerator, denominator, &rest);
		u64 n2, d2;

		if (n1 && quotient > div64_u64(MULTIPLIER_MAX, n1))
			break;
		n2 = quotient * n1 + n0;
		d2 = quotient * d1 + d0;
		if (n2 >= MULTIPLIER_MAX)
			break;
		n0 = n1, n1 = n2;
		d0 = d1, d1 = d2;
		numerator = denominator;
		denominator = rest;
	}
	*multiplier = n1;
	*divisor = d1;
}

void kbarman_clock_fit(const struct kbarman_clock_pair *from, const struct kbarman_clock_pair *to,
		       u64 *multiplier, u64 *divisor)
{
	u64 hz = kbarman_clock_hz();
	u64 ticks, ns, nominal, off;

	approximate(NSEC_PER_SEC, hz, multiplier, divisor);
	if (!to || to->timestamp <= from->timestamp || to->raw_ns <= from->raw_ns)
		return;
	ticks = to->timestamp - from->timestamp;
	ns = to->raw_ns - from->raw_ns;
	/* Further off than one part in 16 is no drift: the session was too short. */
	nominal = mul_u64_u64_div_u64(ticks, NSEC_PER_SEC, hz);
	off = ns > nominal ? ns - nominal : nominal - ns;
	if (off <= nominal / 16)
		approximate(ns, ticks, multiplier, divisor);
}
