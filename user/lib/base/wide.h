/* SPDX-License-Identifier: MIT */
/*
 * Products and quotients of 128 bits, also for 32-bit hosts, whose compilers have no 128-bit
 * type.
 */
#ifndef KB_LIB_BASE_WIDE_H
#define KB_LIB_BASE_WIDE_H

#include <stdint.h>

struct kb_wide {
	uint64_t high, low;
};

#ifdef __SIZEOF_INT128__
static inline struct kb_wide kb_wide_mul(uint64_t a, uint64_t b)
{
	unsigned __int128 p = (unsigned __int128)a * b;

	return (struct kb_wide){ p >> 64, (uint64_t)p };
}

/* a / divisor. Callers may need *remainder only. */
static inline struct kb_wide kb_wide_div(struct kb_wide a, uint64_t divisor, uint64_t *remainder)
{
	unsigned __int128 n = (unsigned __int128)a.high << 64 | a.low;
	unsigned __int128 q = n / divisor;

	*remainder = (uint64_t)(n - q * divisor);
	return (struct kb_wide){ q >> 64, (uint64_t)q };
}
#else
static inline struct kb_wide kb_wide_mul(uint64_t a, uint64_t b)
{
	uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
	uint64_t low = al * bl, mid = ah * bl + (low >> 32);
	uint64_t mid2 = al * bh + (uint32_t)mid;

	return (struct kb_wide){ ah * bh + (mid >> 32) + (mid2 >> 32),
				 mid2 << 32 | (uint32_t)low };
}

static inline struct kb_wide kb_wide_div(struct kb_wide a, uint64_t divisor, uint64_t *remainder)
{
	uint64_t rest = a.high % divisor;
	struct kb_wide q = { a.high / divisor, 0 };

	/*
	 * One bit in each step. rest < divisor, so after one more bit it contains divisor at
	 * most once.
	 */
	for (int bit = 63; bit >= 0; bit--) {
		uint64_t carry = rest >> 63;

		rest = rest << 1 | (a.low >> bit & 1);
		if (carry || rest >= divisor) {
			rest -= divisor;
			q.low |= UINT64_C(1) << bit;
		}
	}
	*remainder = rest;
	return q;
}
#endif

/* 0 <= by < 64 */
static inline struct kb_wide kb_wide_shift_left(uint64_t a, unsigned int by)
{
	return (struct kb_wide){ by ? a >> (64 - by) : 0, a << by };
}

/* The low 64 bits of it. */
static inline uint64_t kb_wide_shift_right(struct kb_wide a, unsigned int by)
{
	return a.high << 1 << (63 - by) | a.low >> by;
}

#endif
