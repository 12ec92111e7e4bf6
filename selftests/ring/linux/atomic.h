/* SPDX-License-Identifier: MIT */
/* For kmod/ring/wake.h in user space. */
#define smp_mb()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define xchg(p, value)		__atomic_exchange_n(p, value, __ATOMIC_SEQ_CST)
#define smp_store_mb(x, value)	((void)xchg(&(x), value))
