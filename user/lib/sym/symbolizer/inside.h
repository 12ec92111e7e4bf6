/* SPDX-License-Identifier: MIT */
/*
 * sym/symbolizer/: from an address, a task and a time to a name: the top of sym/. It asks all other
 * folders, keeps what several captures share (symbol_cache.h), and says what lacks names
 * (complaints).
 *
 * The symbolizer for its own files: symbolizer.c resolves, complaints.c says what was missing.
 */
#ifndef KB_LIB_SYM_SYMBOLIZER_INSIDE_H
#define KB_LIB_SYM_SYMBOLIZER_INSIDE_H

#include <kbarman/symbol.h>
#include <kbarman/tasks.h>

#include "sym/jit/clock.h"
#include "sym/jit/rows.h"
#include "sym/symbolizer/place.h"
#include "sym/symbolizer/symbol_cache.h"
#include "sym/tasks/maps.h"

struct kb_symbolizer {
	const struct kb_tasks *tasks;
	struct kb_maps *maps;
	struct kb_symbol_cache *cache;
	struct kb_image **row_images;	/* by row of the mmap table; NULL: not requested yet */
	bool wide;			/* 64-bit addresses */
	struct kb_image *jit;		/* of process jit_pid, the last one requested; NULL: none */
	bool jit_asked;
	uint32_t jit_pid;
	struct kb_jit_rows jit_rows;	/* the jitdumps of processes, */
	const struct kb_map *dump_row;	/* the one that was requested last, */
	struct kb_image *dump;		/* and its image */
	struct kb_jit_clock jit_clock;
	bool unmapped;			/* an address was in no mapping */
	bool nameless_kernel;		/* a kernel address was resolved without kernel symbols */

	struct kb_frame frame;
	struct kb_image *place;		/* image of the answer, if it is in a file, */
	uint64_t place_offset;		/* at offset pc + this */
	struct kb_maps_hit holds;	/* where the answer is valid; low > high: nowhere */
	uint32_t holds_for;		/* task id for which it is valid */
	struct kb_place where;		/* of the answer */

	struct kb_tasks *own_tasks;	/* NULL: the index of somebody else */
	struct kb_symbol_cache *own_cache;
};

#endif
