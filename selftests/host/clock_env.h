/* SPDX-License-Identifier: MIT */
/*
 * kmod/ring/clock_env.h for user space: with this one first, by its include guard, clock.c of
 * the module compiles unchanged, for a machine whose counter and clocks are the test's.
 */
#ifndef KBARMAN_CLOCK_ENV_H
#define KBARMAN_CLOCK_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/types.h>

#include "base/wide.h"

typedef __u32 u32;
typedef __u64 u64;

#undef __always_inline
#define __always_inline		inline __attribute__((always_inline))
#define __init
#define __ro_after_init
#define __read_mostly
#define likely(x)		__builtin_expect(!!(x), 1)
#define U64_MAX			UINT64_MAX
#define NSEC_PER_SEC		1000000000L

#define min(a, b)		((a) < (b) ? (a) : (b))
#define max_t(type, a, b)	((type)(a) > (type)(b) ? (type)(a) : (type)(b))
#define swap(a, b)		do { __typeof__(a) c_ = (a); (a) = (b); (b) = c_; } while (0)

/* Interrupts would only make a bracket longer; the test's clocks do that themselves. */
#define local_irq_save(flags)		((flags) = 0)
#define local_irq_restore(flags)	((void)(flags))

/* The counter of an arm64 machine, the clocks that Linux makes of it. */
#define CONFIG_ARM_ARCH_TIMER
#define KBARMAN_COUNTER()	counter_alone()
#define KBARMAN_COUNTER_OF_LINUX()	arch_timer_read_counter()
#define KBARMAN_COUNTER_IS_PLAIN()	counter_is_plain()
#define KBARMAN_COUNTER_IS_STEADY()	counter_is_steady()
bool counter_is_steady(void);
bool counter_is_plain(void);
u64 counter_alone(void);
u64 arch_timer_read_counter(void);
u32 arch_timer_get_cntfrq(void);
#define KBARMAN_CLOCK_OF_LINUX()	ktime_get_raw_fast_ns()
u64 ktime_get_raw_fast_ns(void);
u64 ktime_get_raw_ns(void);
u64 ktime_get_ns(void);
u64 ktime_get_real_ns(void);

/*
 * include/linux/math64.h and lib/math/div64.c. Where the product has more than 64 bits,
 * machines without a wider division lose the lowest bits: all do so here.
 */
static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

static inline u64 div64_u64_rem(u64 dividend, u64 divisor, u64 *remainder)
{
	*remainder = dividend % divisor;
	return dividend / divisor;
}

static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 c)
{
	struct kb_wide product = kb_wide_mul(a, b);
	uint64_t rest;

	if (product.high)
		product.low &= ~(u64)0xffffff;
	return kb_wide_div(product, c, &rest).low;
}

#endif /* KBARMAN_CLOCK_ENV_H */
