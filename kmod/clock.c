// SPDX-License-Identifier: GPL-2.0-only
#include "clock.h"

#define PAIR_TRIES	8
#define MULTIPLIER_MAX	((1U << 20) - 1)

/*
 * Without these bits the rate may change with the CPU's, the counter stop when the CPU
 * idles, or the virtual machine move: the kernel finds out when it happens.
 */
#if defined(CONFIG_X86)
#define SAYS_INVARIANT	(boot_cpu_has(X86_FEATURE_CONSTANT_TSC) && \
			 boot_cpu_has(X86_FEATURE_NONSTOP_TSC))

static bool trust_tsc;
module_param(trust_tsc, bool, 0444);
MODULE_PARM_DESC(trust_tsc, "Use a TSC that the CPU does not call invariant");
#endif

bool kbarman_clock_raw __ro_after_init;

void __init kbarman_clock_init(void)
{
#if defined(CONFIG_X86)
	kbarman_clock_raw = (SAYS_INVARIANT || trust_tsc) && !check_tsc_unstable();
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
 * The fraction nearest to numerator / denominator, above 0, of those with a numerator up
 * to @limit: a convergent of the continued fraction, or one between two of them.
 */
static void approximate(u64 numerator, u64 denominator, u64 limit, u64 *multiplier, u64 *divisor)
{
	u64 n0 = 0, n1 = 1, d0 = 1, d1 = 0;

	while (denominator) {
		u64 rest, quotient = div64_u64_rem(numerator, denominator, &rest);
		u64 most = n1 ? div64_u64(limit - n0, n1) : U64_MAX;
		u64 part = min(quotient, most);

		/* Up to half of the quotient the last convergent is nearer. */
		if (part < quotient && part <= quotient / 2 && d1)
			break;
		swap(n0, n1);
		swap(d0, d1);
		n1 += part * n0;
		d1 += part * d0;
		if (part < quotient)
			break;
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

	approximate(NSEC_PER_SEC, hz, MULTIPLIER_MAX, multiplier, divisor);
	if (!to || to->timestamp <= from->timestamp || to->raw_ns <= from->raw_ns)
		return;
	ticks = to->timestamp - from->timestamp;
	ns = to->raw_ns - from->raw_ns;
	/* Further off than one part in 16 is no drift: the session was too short. */
	nominal = mul_u64_u64_div_u64(ticks, NSEC_PER_SEC, hz);
	off = ns > nominal ? ns - nominal : nominal - ns;
	if (off <= nominal / 16)
		approximate(ns, ticks, max_t(u64, MULTIPLIER_MAX, div64_u64(U64_MAX, ticks)),
			    multiplier, divisor);
}
