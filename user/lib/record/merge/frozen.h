/* SPDX-License-Identifier: MIT */
/*
 * Copies of the maps of a running session, as of one moment: one header and all rings. The
 * session goes on undisturbed.
 */
#ifndef KB_LIB_RECORD_MERGE_FROZEN_H
#define KB_LIB_RECORD_MERGE_FROZEN_H

#include <kbarman/device.h>

struct kb_frozen {
	uint8_t *header;	/* the header up to and including the first CPU's store */
	void **rings;		/* nr_rings copies of a store and its ring */
	unsigned int nr_rings;
	bool recycled;		/* rows of tables were reused during the copy */
};

/*
 * Copy what the @nr @maps show, and turn @maps into views of the copies; the mapped pages are
 * unmapped. All views share the first map's tables. -EAGAIN: a ring was overwritten faster than
 * it could be copied. Release @frozen in any case.
 */
int kb_frozen_create(struct kb_frozen *frozen, struct kb_device *device,
		     struct kb_mapped **maps, unsigned int nr, struct kb_error *err);
void kb_frozen_release(struct kb_frozen *frozen);

#endif
