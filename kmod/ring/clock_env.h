/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All that clock.c uses of the kernel: the machine's counter and the system's clocks. User-space
 * builds compile the same clock.c: they include a header of their own first, which has the same
 * include guard.
 */
#ifndef KBARMAN_CLOCK_ENV_H
#define KBARMAN_CLOCK_ENV_H

#include <linux/irqflags.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/types.h>

#if defined(CONFIG_X86)
#include <asm/cpufeature.h>
#include <asm/msr.h>
#include <asm/tsc.h>
#elif defined(CONFIG_ARM_ARCH_TIMER)
#include <asm/arch_timer.h>
#include <clocksource/arm_arch_timer.h>
#endif

/*
 * KBARMAN_COUNTER() is for probes, KBARMAN_COUNTER_OF_LINUX() the same counter as Linux reads it.
 * They are the same if KBARMAN_COUNTER_IS_PLAIN(). Machines without a counter that is known here
 * have CLOCK_MONOTONIC_RAW. CLOCK_MONOTONIC, read where no lock can be taken, may go back a little
 * when Linux adjusts its rate. The other one is never adjusted.
 */
#define KBARMAN_CLOCK_OF_LINUX()	ktime_get_raw_fast_ns()

#if defined(CONFIG_X86)
#define KBARMAN_COUNTER()	rdtsc()
#elif defined(CONFIG_ARM_ARCH_TIMER) && defined(CONFIG_ARM64)
#define KBARMAN_COUNTER()	kbarman_counter()
#define KBARMAN_COUNTER_OF_LINUX()	arch_timer_read_counter()
#define KBARMAN_COUNTER_IS_PLAIN()	kbarman_counter_is_plain()
#elif defined(CONFIG_ARM_ARCH_TIMER)
#define KBARMAN_COUNTER()	arch_timer_read_counter()
#else
#define KBARMAN_COUNTER()	KBARMAN_CLOCK_OF_LINUX()
#endif

#ifndef KBARMAN_COUNTER_IS_PLAIN
#define KBARMAN_COUNTER_OF_LINUX()	KBARMAN_COUNTER()
#define KBARMAN_COUNTER_IS_PLAIN()	true
#endif

#if defined(CONFIG_ARM_ARCH_TIMER) && defined(CONFIG_ARM64)
/*
 * The virtual counter. Linux calls a function by a pointer, which would cost a probe more than all
 * else that the clock costs it. The ISB keeps the CPU from reading it ahead.
 */
static __always_inline u64 kbarman_counter(void)
{
	u64 ticks;

	asm volatile("isb\n\tmrs %0, cntvct_el0" : "=r" (ticks) : : "memory");
	return ticks;
}

/*
 * No CPU reads its counter in a way of its own, because of an erratum, and Linux reads the virtual
 * counter, or one that has the same value. Linux decides both when it boots.
 */
static inline bool kbarman_counter_is_plain(void)
{
	u64 before, now, after;

#if defined(CONFIG_ARM_ARCH_TIMER_OOL_WORKAROUND)
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct arch_timer_erratum_workaround *workaround =
			per_cpu(timer_unstable_counter_workaround, cpu);

		if (workaround && (workaround->read_cntvct_el0 || workaround->read_cntpct_el0))
			return false;
	}
#endif
	before = kbarman_counter();
	now = arch_timer_read_counter();
	after = kbarman_counter();
	return before <= now && now <= after;
}
#endif

/* What Linux knows now. Its watchdog compares the TSC with other clocks all the time. */
#if defined(CONFIG_X86)
#define KBARMAN_COUNTER_IS_STEADY()	(!check_tsc_unstable())
#else
#define KBARMAN_COUNTER_IS_STEADY()	true
#endif

#endif /* KBARMAN_CLOCK_ENV_H */
