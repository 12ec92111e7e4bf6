/* SPDX-License-Identifier: MIT */
/*
 * What the module's files for sparse stacks use of the kernel, so that they run in user space. The
 * memory of "the current task" is the stack that perf copied.
 */
#ifndef COMPARE_KERNEL_H
#define COMPARE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <linux/types.h>

#define BM_WORD_BITS	__BITS_PER_LONG

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#undef __always_inline
#define __always_inline		inline __attribute__((always_inline))
#undef noinline
#define noinline		__attribute__((noinline))
#ifndef IS_ENABLED			/* some tests are built as for other machines */
#define IS_ENABLED(option)	0
#ifdef __x86_64__
#define CONFIG_X86_64		1
#endif
#endif
#define __user
#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define swap(a, b)		({ typeof(a) __a = (a); (a) = (b); (b) = __a; })
#undef PAGE_SIZE			/* of <sys/user.h> */
#define PAGE_SIZE		4096UL
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#define ALIGN_DOWN(value, to)	((value) & ~((typeof(value))(to) - 1))
#define IS_ALIGNED(value, to)	(!((value) & ((to) - 1)))
#define ALIGN(value, to)	ALIGN_DOWN((value) + (to) - 1, to)
#define hweight32(value)	((unsigned int)__builtin_popcount(value))
#define __ffs64(value)		((unsigned int)__builtin_ctzll(value))
#define OPTIMIZER_HIDE_VAR(var)	__asm__("" : "=r" (var) : "0" (var))
#if defined(__x86_64__)
#define array_index_nospec(index, size)							\
({											\
	unsigned long __mask;								\
											\
	__asm__("cmp %1, %2; sbb %0, %0" : "=r" (__mask) : "g" (size), "r" (index) : "cc"); \
	(index) & __mask;								\
})
#else
#define array_index_nospec(index, size)	((index) < (size) ? (index) : 0)
#endif
/* Tests of the time that a scan takes have a clock of their own. */
#ifndef KBARMAN_CLOCK_H
#define KBARMAN_CLOCK_H
static inline u64 kbarman_clock(void)
{
	return 0;
}
#endif
#define READ_ONCE(x)		(x)
#define READ_ONCE_NOCHECK(x)	(x)
#define WRITE_ONCE(x, value)	((x) = (value))
#define smp_wmb()		__asm__ volatile("" ::: "memory")
#define smp_rmb()		__asm__ volatile("" ::: "memory")
#define data_race(x)		((void)(x))
#define pagefault_disable()	((void)0)
#define pagefault_enable()	((void)0)
#define access_ok(address, size) ((void)(address), (void)(size), true)

struct mm_struct {
	unsigned long start_code, end_code;
};

static inline u32 hash_ptr(const void *pointer, unsigned int bits)
{
	return (u32)((u64)pointer * 0x61C8864680B583EBULL >> (64 - bits));
}

/* As in the kernel, it returns the number of bytes that are not there. */
unsigned long __copy_from_user_inatomic(void *to, const void *from, unsigned long size);

#endif
