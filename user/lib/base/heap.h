/* SPDX-License-Identifier: MIT */
/*
 * A binary heap in an array: every item comes before the two below it, so the first of all is
 * heap[0]. KB_HEAP(name, type, before) defines two functions, with before(a, b) inlined:
 *
 *	name_up(heap, at)	item @at, which is new at the end, moves up to its place
 *	name_down(heap, nr)	heap[0] of @nr items, which has changed, moves down
 */
#ifndef KB_LIB_HEAP_H
#define KB_LIB_HEAP_H

#include <stddef.h>

#define KB_HEAP(name, type, before)						\
static inline void name##_up(type *heap, size_t at)				\
{										\
	type moved = heap[at];							\
										\
	while (at) {								\
		size_t parent = (at - 1) / 2;					\
										\
		if (!before(&moved, &heap[parent]))				\
			break;							\
		heap[at] = heap[parent];					\
		at = parent;							\
	}									\
	heap[at] = moved;							\
}										\
										\
static inline void name##_down(type *heap, size_t nr)				\
{										\
	type moved = heap[0];							\
	size_t at = 0, child;							\
										\
	while ((child = 2 * at + 1) < nr) {					\
		if (child + 1 < nr && before(&heap[child + 1], &heap[child]))	\
			child++;						\
		if (!before(&heap[child], &moved))				\
			break;							\
		heap[at] = heap[child];						\
		at = child;							\
	}									\
	heap[at] = moved;							\
}

#endif
