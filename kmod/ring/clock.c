// SPDX-License-Identifier: GPL-2.0-only
#include "ring/clock.h"

#define PAIR_TRIES	8
#define MULTIPLIER_MAX	((1U << 20) - 1)

/*
 * On a CPU without these bits, the TSC's rate may change with the CPU's frequency, the TSC may stop
 * when the CPU idles, or the move of a virtual machine may change it. Linux notices this only
 * afterwards.
 */
#if defined(CONFIG_X86)
#define SAYS_INVARIANT	(boot_cpu_has(X86_FEATURE_CONSTANT_TSC) && \
			 boot_cpu_has(X86_FEATURE_NONSTOP_TSC))

static bool trust_tsc;
module_param(trust_tsc, bool, 0444);
MODULE_PARM_DESC(trust_tsc, "Use the TSC even if the CPU does not report it as invariant");
#endif

bool kbarman_clock_raw __read_mostly;

static bool counts __read_mostly;
static bool plain __read_mostly;	/* but for `missing`, kbarman_clock_raw */

/* Written while nobody holds the clock, or with one CPU online and interrupts off. */
static u64 missing;		/* ticks to add to the counter, because it restarted in a suspend */
static u64 fell_asleep;

void __init kbarman_clock_init(void)
{
#if defined(CONFIG_X86)
	counts = SAYS_INVARIANT || trust_tsc;
#elif defined(CONFIG_ARM_ARCH_TIMER)
	counts = arch_timer_get_cntfrq() != 0;
#endif
#if defined(CONFIG_X86) || defined(CONFIG_ARM_ARCH_TIMER)
	plain = counts && KBARMAN_COUNTER_IS_PLAIN();
#else
	plain = true;	/* Linux's clock, either way */
#endif
	kbarman_clock_choose();
}

void kbarman_clock_choose(void)
{
	if (kbarman_clock_is_unsteady()) {
		counts = false;
		plain = false;
	}
	/* A counter that restarted in a suspend goes on from there: no record is of before. */
	missing = 0;
	kbarman_clock_raw = plain;
}

bool kbarman_clock_is_unsteady(void)
{
	return counts && !KBARMAN_COUNTER_IS_STEADY();
}

bool kbarman_clock_counts(void)
{
	return counts;
}

u64 kbarman_clock_called(void)
{
	return counts ? KBARMAN_COUNTER_OF_LINUX() + missing : KBARMAN_CLOCK_OF_LINUX();
}

void kbarman_clock_suspend(void)
{
	fell_asleep = kbarman_clock();
}

void kbarman_clock_resume(void)
{
	u64 now = kbarman_clock();

	if (now >= fell_asleep)
		return;
	missing += fell_asleep - now;
	kbarman_clock_raw = false;
}

u64 kbarman_clock_hz(void)
{
	if (counts) {
#if defined(CONFIG_X86)
		return tsc_khz * 1000ULL;
#elif defined(CONFIG_ARM_ARCH_TIMER)
		return arch_timer_get_cntfrq();
#endif
	}
	return NSEC_PER_SEC;
}

/*
 * Read the clock @now between two reads of the ticks. Of some tries, the one with the fewest ticks
 * is used. Returns the ticks in the middle between its two reads, and stores the reading in *@ns.
 */
static u64 clock_bracket(u64 (*now)(void), u64 *ns)
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

	pair->timestamp = clock_bracket(ktime_get_raw_ns, &pair->raw_ns);
	/* The other two clocks are read a moment later; subtract that moment. */
	ticks = clock_bracket(ktime_get_ns, &pair->monotonic_ns) - pair->timestamp;
	pair->monotonic_ns -= mul_u64_u64_div_u64(ticks, NSEC_PER_SEC, hz);
	ticks = clock_bracket(ktime_get_real_ns, &pair->realtime_ns) - pair->timestamp;
	pair->realtime_ns -= mul_u64_u64_div_u64(ticks, NSEC_PER_SEC, hz);
}

/*
 * The fraction nearest to numerator / denominator and above 0 whose numerator is at most @limit. It
 * is a convergent of the continued fraction, or lies between two convergents.
 */
static void fraction_approximate(u64 numerator, u64 denominator, u64 limit, u64 *multiplier,
				 u64 *divisor)
{
	u64 n0 = 0, n1 = 1, d0 = 1, d1 = 0;

	while (denominator) {
		u64 rest, quotient = div64_u64_rem(numerator, denominator, &rest);
		u64 most = n1 ? div64_u64(limit - n0, n1) : U64_MAX;
		u64 part = min(quotient, most);

		/* With no more than half of the quotient, the last convergent is nearer. */
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

/*
 * The numbers of ticks and of ns that passed while the machine was awake. Returns false and leaves
 * *@ticks and *@ns alone if the pairs do not allow a measurement.
 */
static bool clock_measure(const struct kbarman_clock_pair *from,
			  const struct kbarman_clock_pair *to,
			  const struct kbarman_clock_sleep *asleep, u64 *ticks, u64 *ns)
{
	u64 awake = to->timestamp - from->timestamp - asleep->ticks;
	u64 took = to->raw_ns - from->raw_ns - asleep->raw_ns;
	u64 nominal, off;

	if (to->timestamp <= from->timestamp || to->raw_ns <= from->raw_ns || !awake || !took)
		return false;
	/*
	 * An error of more than one part in 16 is no drift: the session was too short to measure.
	 */
	nominal = mul_u64_u64_div_u64(awake, NSEC_PER_SEC, kbarman_clock_hz());
	off = took > nominal ? took - nominal : nominal - took;
	if (off > nominal / 16)
		return false;
	*ticks = awake;
	*ns = took;
	return true;
}

void kbarman_clock_fit(const struct kbarman_clock_pair *from, const struct kbarman_clock_pair *to,
		       const struct kbarman_clock_sleep *asleep, u64 *multiplier, u64 *divisor)
{
	u64 ticks = kbarman_clock_hz(), ns = NSEC_PER_SEC, limit = MULTIPLIER_MAX;

	if (to && clock_measure(from, to, asleep, &ticks, &ns))
		limit = max_t(u64, limit, div64_u64(U64_MAX, to->timestamp - from->timestamp));
	fraction_approximate(ns, ticks, limit, multiplier, divisor);
}

u64 kbarman_clock_slept(const struct kbarman_clock_pair *from, const struct kbarman_clock_pair *to,
			const struct kbarman_clock_sleep *asleep)
{
	u64 ticks = kbarman_clock_hz(), ns = NSEC_PER_SEC;

	clock_measure(from, to, asleep, &ticks, &ns);
	ns = mul_u64_u64_div_u64(asleep->ticks, ns, ticks);
	return ns > asleep->raw_ns ? ns - asleep->raw_ns : 0;
}
