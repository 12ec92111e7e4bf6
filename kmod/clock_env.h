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
#include <linux/types.h>

#if defined(CONFIG_X86)
#include <asm/cpufeature.h>
#include <asm/msr.h>
#include <asm/tsc.h>
#elif defined(CONFIG_ARM_ARCH_TIMER)
#include <asm/arch_timer.h>
#include <clocksource/arm_arch_timer.h>
#endif

#if defined(CONFIG_X86)
#define KBARMAN_COUNTER()	rdtsc()
#elif defined(CONFIG_ARM_ARCH_TIMER)
#define KBARMAN_COUNTER()	arch_timer_read_counter()
#else
#define KBARMAN_COUNTER()	ktime_get_mono_fast_ns()
#endif

/* What Linux knows now. Its watchdog compares the TSC with other clocks all the time. */
#if defined(CONFIG_X86)
#define KBARMAN_COUNTER_IS_STEADY()	(!check_tsc_unstable())
#else
#define KBARMAN_COUNTER_IS_STEADY()	true
#endif

#endif /* KBARMAN_CLOCK_ENV_H */
