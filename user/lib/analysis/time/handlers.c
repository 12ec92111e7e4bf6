// SPDX-License-Identifier: MIT
#include "analysis/time/handlers.h"
#include "analysis/time/origin.h"
#include "analysis/time/tiles_depth.h"

int kb_handlers_init(struct kb_handlers *handlers, struct kb_trace *trace)
{
	return kb_tiles_create(&handlers->tiles, trace, NULL);
}

void kb_handlers_release(struct kb_handlers *handlers)
{
	kb_tiles_destroy(handlers->tiles);
}

int kb_handlers_feed(struct kb_handlers *handlers, const struct kb_walk *walk,
		     struct kb_handler *done)
{
	struct kb_tile tiles[KB_TILES_MOST];
	int nr = kb_tiles_feed(handlers->tiles, walk, tiles), i;

	for (i = 0; i < nr; i++) {
		if (!tiles[i].ends || !kb_origin_interrupts(tiles[i].kind))
			continue;
		*done = (struct kb_handler){
			.origin = kb_origin_in(&tiles[i]),
			.core = tiles[i].core,
			.task_id = tiles[i].task_id,
			.has_task = tiles[i].has_task,
			.depth = kb_tiles_depth(handlers->tiles, tiles[i].core),
			.timestamp = walk->event.timestamp,
			.start = tiles[i].began,
			.end = tiles[i].end,
			.own = tiles[i].own,
		};
		return 1;
	}
	return nr < 0 ? nr : 0;
}
