// SPDX-License-Identifier: MIT
#include "analysis/time/origin.h"
#include "analysis/time/waker.h"

struct kb_origin kb_waker(const struct kb_tiles *tiles, const struct kb_event *event)
{
	struct kb_origin origin = { .id = KB_ORIGIN_ANY };
	struct kb_tile tile;
	bool known = kb_tiles_now(tiles, event->core, &tile);

	switch (event->custom_counter.context) {
	case KB_CONTEXT_TASK:
		origin.kind = event->task_id ? KB_TILE_TASK : KB_TILE_IDLE;
		origin.id = event->task_id;
		break;
	case KB_CONTEXT_IDLE:
		origin.kind = KB_TILE_IDLE;
		origin.id = 0;
		break;
	case KB_CONTEXT_SOFTIRQ:
		origin.kind = KB_TILE_SOFTIRQ;
		if (known && tile.kind == KB_TILE_SOFTIRQ)
			origin = kb_origin_in(&tile);
		break;
	case KB_CONTEXT_IRQ:
		origin.kind = KB_TILE_IRQ;
		if (known && (tile.kind == KB_TILE_IRQ || tile.kind == KB_TILE_IPI))
			origin = kb_origin_in(&tile);
		break;
	default:
		break;
	}
	return origin;
}
