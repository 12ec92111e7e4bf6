/* SPDX-License-Identifier: MIT */
/*
 * analysis/time/: what each CPU did when, to the nanosecond: tiles, their history, slices, gaps;
 * tasks by the time that they ran or waited; and what woke whom.
 *
 * Origins as keys of tables.
 */
#ifndef KB_LIB_ANALYSIS_TIME_ORIGIN_H
#define KB_LIB_ANALYSIS_TIME_ORIGIN_H

#include <kbarman/latency.h>

static inline uint64_t kb_origin_key(const struct kb_origin *origin)
{
	return (uint64_t)origin->kind << 48 | (uint64_t)origin->behind << 32 | origin->id;
}

static inline struct kb_origin kb_origin_of(uint64_t key)
{
	return (struct kb_origin){ .kind = (enum kb_tile_kind)(key >> 48), .id = (uint32_t)key,
				   .behind = (uint16_t)(key >> 32) };
}

/* What runs in @tile. */
static inline struct kb_origin kb_origin_in(const struct kb_tile *tile)
{
	return (struct kb_origin){ .kind = tile->kind, .behind = tile->behind,
				   .id = tile->kind == KB_TILE_TASK ? tile->task_id : tile->id };
}

static inline bool kb_origin_interrupts(enum kb_tile_kind kind)
{
	return kind == KB_TILE_SOFTIRQ || kind == KB_TILE_IRQ || kind == KB_TILE_IPI;
}

#endif
