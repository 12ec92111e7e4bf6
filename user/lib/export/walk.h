/* SPDX-License-Identifier: MIT */
/* How exports go over a capture: every record, with what the timeline says of it. */
#ifndef KB_LIB_WALK_H
#define KB_LIB_WALK_H

#include "analysis/names.h"
#include "analysis/timeline.h"
#include "export/export.h"

struct kb_walk {
	struct kb_barman *barman;
	struct kb_names *names;
	struct kb_timeline *timeline;
	int damage;		/* what kb_barman_next() gave last, for kb_export_end() */

	/* the record */
	struct kb_event event;
	int64_t ns;		/* kb_barman_ns() of it */
	uint32_t running;	/* on its CPU before it, 0: nobody knows */
	struct kb_slice slices[KB_TIMELINE_SLICES];	/* that ended with it */
	unsigned int nr_slices;
};

/* To before the first record of @barman. Needs a release, even when it fails. */
int kb_walk_init(struct kb_walk *walk, struct kb_barman *barman, struct kb_error *err);
void kb_walk_release(struct kb_walk *walk);

/* To the next record; false: there is none, or it is damaged. */
bool kb_walk_next(struct kb_walk *walk, struct kb_error *err);

/* kb_export_end(), unless memory was short. */
int kb_walk_end(const struct kb_walk *walk, struct kb_out *out, bool no_memory,
		struct kb_error *err);

#endif
