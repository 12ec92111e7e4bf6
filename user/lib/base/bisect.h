/* SPDX-License-Identifier: MIT */
/* Search in what is sorted. */
#ifndef KB_LIB_BASE_BISECT_H
#define KB_LIB_BASE_BISECT_H

/*
 * The first number from @from on of which @before, an expression with the number @i, is not true; if
 * there is none, @until. @before is true of the first numbers, and then of no more.
 */
#define KB_BISECT(i, from, until, before)				\
({									\
	__typeof__(+(until)) low_ = (from), high_ = (until);		\
									\
	while (low_ < high_) {						\
		__typeof__(+(until)) i = low_ + (high_ - low_) / 2;	\
									\
		if (before)						\
			low_ = i + 1;					\
		else							\
			high_ = i;					\
	}								\
	low_;								\
})

#endif
