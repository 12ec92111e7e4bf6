// SPDX-License-Identifier: MIT
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "record/perf/turn_draw.h"

/* xorshift64*: what counts is that no load follows it. */
static uint64_t draw_below(struct kb_turn_draw *draw, uint64_t below)
{
	draw->random ^= draw->random >> 12;
	draw->random ^= draw->random << 25;
	draw->random ^= draw->random >> 27;
	return (draw->random * UINT64_C(2685821657736338717) >> 32) % below;
}

void kb_turn_draw_begin(struct kb_turn_draw *draw, unsigned int nr)
{
	draw->nr = nr;
	draw->left = 0;
	if (getrandom(&draw->random, sizeof(draw->random), 0) != sizeof(draw->random) ||
	    !draw->random)
		draw->random = (uint64_t)kb_clock_ns(CLOCK_MONOTONIC) | 1;
}

unsigned int kb_turn_draw_next(struct kb_turn_draw *draw)
{
	if (!draw->left) {
		for (unsigned int i = 0; i < draw->nr; i++) {
			unsigned int j = (unsigned int)draw_below(draw, i + 1);

			draw->order[i] = draw->order[j];
			draw->order[j] = i + 1;
		}
		draw->left = draw->nr;
	}
	return draw->order[--draw->left];
}

int64_t kb_turn_draw_length(struct kb_turn_draw *draw, uint64_t ms)
{
	uint64_t least = ms * KB_NS_PER_MS * 2 / 3;

	return (int64_t)(least + draw_below(draw, least + 1));
}
