/* SPDX-License-Identifier: MIT */
/*
 * Which of the files that a capture knows have one path, as those of containers do and
 * those before and after an update.
 */
#ifndef KBARMAN_SYM_NAMESAKES_H
#define KBARMAN_SYM_NAMESAKES_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>

#define KB_NAMESAKES_MAX	64U	/* of one name; a hostile file may have any number */

struct kb_namesakes {
	const struct kb_map **rows;	/* one of each file, by name */
	uint32_t nr;
	bool made;
};

/*
 * A row of each file that the rows of @header tell apart by the name @name: *@rows, which
 * stay until kb_namesakes_release(), and how many, at most KB_NAMESAKES_MAX. 0 if there are
 * none, or no memory.
 */
uint32_t kb_namesakes_find(struct kb_namesakes *namesakes, const struct kb_header *header,
			   const char *name, const struct kb_map *const **rows);

void kb_namesakes_release(struct kb_namesakes *namesakes);

#endif
