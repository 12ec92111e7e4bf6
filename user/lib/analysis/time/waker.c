// SPDX-License-Identifier: MIT
#include <errno.h>

#include "analysis/time/origin.h"
#include "analysis/time/sched.h"
#include "analysis/time/sender.h"
#include "analysis/time/waker.h"

/* The number + 1. Those of the machine's other kind of programs are others. */
static uint16_t call_of(const struct kb_object *object)
{
	return object->kind == KB_OBJECT_NONE || object->flags & KB_OBJECT_COMPAT ? 0 : (uint16_t)(object->call + 1);
}

static struct kb_origin task_of(const struct kb_event *event)
{
	return (struct kb_origin){
		.kind = event->task_id ? KB_TILE_TASK : KB_TILE_IDLE,
		.id = event->task_id,
		.call = call_of(&event->custom_counter.object),
	};
}

/* What the task sent arrived in the softirq for which it asked. */
static struct kb_origin softirq_of(const struct kb_tiles *tiles, const struct kb_event *event,
				   const struct kb_tile *tile)
{
	if (kb_softirq_is_net_rx(tile->id) && event->task_id &&
	    kb_tiles_sender(tiles, event->core) == event->task_id)
		return task_of(event);
	return kb_origin_in(tile);
}

struct kb_origin kb_waker(const struct kb_tiles *tiles, const struct kb_event *event)
{
	struct kb_origin origin = { .id = KB_ORIGIN_ANY };
	struct kb_tile tile;
	bool known = kb_tiles_now(tiles, event->core, &tile);

	switch (event->custom_counter.context) {
	case KB_CONTEXT_TASK:
		origin = task_of(event);
		break;
	case KB_CONTEXT_IDLE:
		origin.kind = KB_TILE_IDLE;
		origin.id = 0;
		break;
	case KB_CONTEXT_SOFTIRQ:
		origin.kind = KB_TILE_SOFTIRQ;
		if (known && tile.kind == KB_TILE_SOFTIRQ)
			origin = softirq_of(tiles, event, &tile);
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

int kb_waker_feed(struct kb_tiles **followed, struct kb_trace *trace, const struct kb_walk *walk,
		  struct kb_sched *sched)
{
	const struct kb_event *event = &walk->event;
	bool wakes = event->type == KB_EVENT_CUSTOM_COUNTER && event->custom_counter.what == KB_WHAT_WAKING;
	struct kb_tile tiles[KB_TILES_MOST];
	struct kb_origin waker;
	int ret;

	if (!wakes && !*followed)
		return 0;
	if (!*followed && kb_tiles_create(followed, trace, NULL))
		return -ENOMEM;
	ret = kb_tiles_feed(*followed, walk, tiles);
	if (ret < 0 || !wakes)
		return ret < 0 ? ret : 0;
	waker = kb_waker(*followed, event);
	kb_sched_woken(sched, event->custom_counter.id, &waker, event->timestamp);
	return 0;
}
