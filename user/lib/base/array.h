/* SPDX-License-Identifier: MIT */
/*
 * base/: what knows of no format: arrays and tables in memory, hashes, a heap, clocks, options of
 * functions, threads, large numbers. Beside it are input and output (base/io/) and text
 * (base/text/). Everything in the library may include it, and it includes nothing else but the
 * public headers of its own.
 *
 * Arrays of fixed length, and arrays that grow.
 */
#ifndef KB_LIB_ARRAY_H
#define KB_LIB_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

/*
 * Give @rows, which has room for *@max rows of @size bytes, room for at least @wanted rows, which
 * are more. The room doubles. It has at most @limit rows. Returns the array, which may have
 * moved, and sets *@max; or returns NULL and changes nothing: there is no memory, or @wanted is
 * above @limit. The new rows have any content.
 */
void *kb_array_grow(void *rows, size_t *max, size_t wanted, size_t size, size_t limit);

/*
 * Make room for @wanted rows. @rows and @max are variables: a pointer, NULL at first, and the
 * number of rows for which there is room, a uint32_t or a size_t, 0 at first. False: no memory.
 */
#define KB_ARRAY_ROOM(rows, max, wanted)						\
({											\
	size_t wanted_ = (wanted), max_ = (max);					\
	bool ok_ = wanted_ <= max_;							\
											\
	if (!ok_) {									\
		void *rows_ = kb_array_grow((rows), &max_, wanted_, sizeof(*(rows)),	\
					    sizeof(max) < sizeof(size_t) ?		\
					    UINT32_MAX : SIZE_MAX);			\
											\
		ok_ = rows_;								\
		if (ok_) {								\
			(rows) = rows_;							\
			(max) = (__typeof__(max))max_;					\
		}									\
	}										\
	ok_;										\
})

#endif
