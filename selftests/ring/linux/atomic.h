/* SPDX-License-Identifier: MIT */
/* For kmod/ring/wake.h in user space. */
#define smp_mb()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define cmpxchg(p, old, value)	__sync_val_compare_and_swap(p, old, value)
