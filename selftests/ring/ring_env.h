/* SPDX-License-Identifier: MIT */
/*
 * kmod/ring/ring_env.h for user space: with this one first, by its include guard, ring.c
 * and record.c of the module compile unchanged. The "CPU" is the thread that writes,
 * its interrupts are signal handlers of that thread.
 */
#ifndef KBARMAN_RING_ENV_H
#define KBARMAN_RING_ENV_H
#include <errno.h>
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BM_WORD_BITS		__BITS_PER_LONG

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#define U64_MAX			UINT64_MAX
#define BITS_PER_LONG		(8 * (int)sizeof(long))
#undef __always_inline
#define __always_inline		inline __attribute__((always_inline))
#define noinline		__attribute__((noinline))
#define __packed		__attribute__((packed))
#define __aligned(n)		__attribute__((aligned(n)))
#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)

#define ALIGN(x, a)		(((x) + (a) - 1) & ~((__typeof__(x))(a) - 1))
#define ALIGN_DOWN(x, a)	((x) & ~((__typeof__(x))(a) - 1))
#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))

#define barrier()		__asm__ volatile("" ::: "memory")
#define data_race(x)		(x)
#define READ_ONCE(x)		(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, value)	(*(volatile __typeof__(x) *)&(x) = (value))
#define smp_load_acquire(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define smp_store_release(p, v)	__atomic_store_n(p, v, __ATOMIC_RELEASE)
/* ring_*_barrier(): a test may want to know, or to do something just there. */
#define smp_wmb()		do { __atomic_thread_fence(__ATOMIC_RELEASE); ring_write_barrier(); } while (0)
#define smp_rmb()		do { __atomic_thread_fence(__ATOMIC_ACQUIRE); ring_read_barrier(); } while (0)

/* One instruction where the kernel has one: a handler must not get in between. */
typedef struct {
	long value;
} local_t;

static __always_inline long local_read(const local_t *l)
{
	return READ_ONCE(l->value);
}

static __always_inline void local_set(local_t *l, long value)
{
	WRITE_ONCE(l->value, value);
}

#if defined(__x86_64__) || defined(__i386__)
#ifdef __x86_64__
#define ADD_LONG "addq"
#define XADD_LONG "xaddq"
#else
#define ADD_LONG "addl"
#define XADD_LONG "xaddl"
#endif

static __always_inline void local_add(long n, local_t *l)
{
	__asm__ volatile(ADD_LONG " %1, %0" : "+m"(l->value) : "er"(n));
}

static __always_inline void local_inc(local_t *l)
{
	__asm__ volatile(ADD_LONG " $1, %0" : "+m"(l->value));
}

static __always_inline long local_add_return(long n, local_t *l)
{
	long was = n;

	__asm__ volatile(XADD_LONG " %0, %1" : "+r"(was), "+m"(l->value) : : "memory");
	return was + n;
}

static __always_inline unsigned long cmpxchg_local(unsigned long *p, unsigned long old,
						   unsigned long new)
{
	__asm__ volatile("cmpxchg %2, %1" : "+a"(old), "+m"(*p) : "r"(new) : "memory");
	return old;
}

static __always_inline bool ring_try_cmpxchg(unsigned long *p, unsigned long old,
					     unsigned long new)
{
	bool exchanged;

	__asm__ volatile("cmpxchg %3, %1" : "=@ccz"(exchanged), "+m"(*p), "+a"(old)
			 : "r"(new) : "memory");
	return exchanged;
}
#else
static __always_inline void local_add(long n, local_t *l)
{
	__atomic_fetch_add(&l->value, n, __ATOMIC_RELAXED);
}

static __always_inline long local_add_return(long n, local_t *l)
{
	return __atomic_add_fetch(&l->value, n, __ATOMIC_RELAXED);
}

static __always_inline void local_inc(local_t *l)
{
	local_add(1, l);
}

static __always_inline unsigned long cmpxchg_local(unsigned long *p, unsigned long old,
						   unsigned long new)
{
	__atomic_compare_exchange_n(p, &old, new, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return old;
}

static __always_inline bool ring_try_cmpxchg(unsigned long *p, unsigned long old,
					     unsigned long new)
{
	return cmpxchg_local(p, old, new) == old;
}
#endif

static __always_inline long local_xchg(local_t *l, long value)
{
	return __atomic_exchange_n(&l->value, value, __ATOMIC_RELAXED);
}

struct kbarman_ring;

/* Each program gives its own, as functions or as macros. */
#ifndef ring_clock
u64 ring_clock(void);
u64 ring_counter(void);
bool ring_clock_is_called(void);
void ring_pages_crossed(struct kbarman_ring *ring, unsigned long pages);
void ring_write_barrier(void);
void ring_read_barrier(void);
#endif

#endif /* KBARMAN_RING_ENV_H */
