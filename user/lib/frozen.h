/* SPDX-License-Identifier: MIT */
/*
 * The maps of a running session as if it had stopped at one moment: copies in our
 * memory, of one header and of each ring. The session runs on, and notices nothing.
 */
#ifndef KB_LIB_FROZEN_H
#define KB_LIB_FROZEN_H

#include <kbarman/device.h>

struct kb_frozen {
	uint8_t *header;	/* up to and with the first CPU's store */
	void **rings;		/* nr_rings: a store and a ring each */
	unsigned int nr_rings;
	bool recycled;		/* rows of tables were used again while they were copied */
};

/*
 * Copy what @maps, @nr of them, show, and make them views of the copies; their own
 * pages are unmapped. The first one's tables are those of all. -EAGAIN: a ring went
 * round faster than it could be copied. To be released, whatever is returned.
 */
int kb_frozen_create(struct kb_frozen *frozen, struct kb_device *device,
		     struct kb_mapped **maps, unsigned int nr, struct kb_error *err);
void kb_frozen_release(struct kb_frozen *frozen);

#endif
