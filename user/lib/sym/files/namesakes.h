/* SPDX-License-Identifier: MIT */
/* Files of a capture that have the same path, as in containers, or before and after an update. */
#ifndef KB_LIB_SYM_FILES_NAMESAKES_H
#define KB_LIB_SYM_FILES_NAMESAKES_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>

#define KB_NAMESAKES_MAX	64U	/* of one name; a hostile capture may have any number */

struct kb_namesakes {
	const struct kb_map **rows;	/* one of each file, ordered by name */
	uint32_t nr;
	bool made;
};

/*
 * Find the files that the rows of @header distinguish for @name. Sets *@rows to one row of
 * each, which hold until kb_namesakes_release(). Returns their number, at most
 * KB_NAMESAKES_MAX; 0 if there are none, or no memory.
 */
uint32_t kb_namesakes_find(struct kb_namesakes *namesakes, const struct kb_header *header,
			   const char *name, const struct kb_map *const **rows);

void kb_namesakes_release(struct kb_namesakes *namesakes);

#endif
