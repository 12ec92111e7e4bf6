/* SPDX-License-Identifier: MIT */
/*
 * Takes a sparse stack out of a record: struct bm_kbarman_stack of barman_v2.h says how it is laid
 * out.
 */
#ifndef KB_LIB_UNWIND_SPARSE_H
#define KB_LIB_UNWIND_SPARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/walker.h"

/* Why no more of the stack is there. The values are those of enum bm_kbarman_stack_end. */
enum kb_unwind_scan_end {
	KB_UNWIND_SCAN_WHOLE,
	KB_UNWIND_SCAN_LIMIT,
	KB_UNWIND_SCAN_FULL,
	KB_UNWIND_SCAN_ABSENT,
	KB_UNWIND_SCAN_TIME,
	KB_UNWIND_SCAN_ENDS,
};

/* With what a walk begins. `stack` points to `words`, for which the caller has memory. */
struct kb_unwind_sparse {
	struct kb_unwind_registers registers;
	struct kb_unwind_stack stack;
	enum kb_unwind_scan_end end;
	struct kb_unwind_word *words;
	size_t max_words;
};

/* Where the @size bytes at @data have the values of registers. */
struct kb_unwind_sparse_registers {
	uint64_t known;		/* a bit for each, as in struct kb_unwind_registers */
	size_t from, to;	/* bytes; 8 for each, the lowest number first */
};

/* False: the bytes are too few for their registers. */
bool kb_unwind_sparse_find_registers(struct kb_unwind_sparse_registers *found, const void *data,
				     size_t size, bool swap);

/* The bytes of a word of the program, as the @size bytes at @data say; 0: they are too few. */
unsigned int kb_unwind_sparse_word(const void *data, size_t size, bool swap);

/*
 * Fill @sparse from the @size bytes at @data, in the other byte order if @swap. Returns 0; -EBADMSG:
 * the bytes are no sparse stack of @machine; -ENOBUFS: there are more words than @max_words, which
 * size / 4 never are.
 */
int kb_unwind_sparse_take(struct kb_unwind_sparse *sparse, const struct kb_unwind_machine *machine,
			  const void *data, size_t size, bool swap);

#endif
