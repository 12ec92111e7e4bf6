/* SPDX-License-Identifier: MIT */
/*
 * kmod/capture/table_env.h for user space: with this one first, by its include guard, string_table.c
 * and shares.c of the module compile unchanged.
 */
#ifndef KBARMAN_TABLE_ENV_H
#define KBARMAN_TABLE_ENV_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#define min(a, b)	((a) < (b) ? (a) : (b))
#define max(a, b)	((a) > (b) ? (a) : (b))
#define ilog2(x)	(31 - __builtin_clz(x))
#define roundup_pow_of_two(x)	(1U << (ilog2((x) - 1) + 1))
#define smp_wmb()	((void)0)
#define WRITE_ONCE(x, value)	((x) = (value))
#define WARN_ON_ONCE(x)	((x) ? abort(), true : false)

/* The test's: a hash that is as bad as can be finds the same strings. */
typedef struct {
	u64 key;
} siphash_key_t;

u64 siphash(const void *data, size_t length, const siphash_key_t *key);

static inline void get_random_bytes(void *to, size_t length)
{
	memset(to, 0, length);
}

#endif /* KBARMAN_TABLE_ENV_H */
