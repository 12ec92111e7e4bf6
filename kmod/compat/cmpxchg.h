/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_COMPAT_CMPXCHG_H
#define KBARMAN_COMPAT_CMPXCHG_H

#include <linux/atomic.h>

/* 5.10 has it on x86 alone; everywhere it is a macro. */
#ifndef try_cmpxchg
#define try_cmpxchg(pointer, old, new)				\
({								\
	typeof(old) __old = (old);				\
	typeof(*__old) __expected = *__old;			\
								\
	*__old = cmpxchg(pointer, __expected, new);		\
	*__old == __expected;					\
})
#endif

#endif /* KBARMAN_COMPAT_CMPXCHG_H */
