/* SPDX-License-Identifier: MIT */
/*
 * What each task has mapped at one moment, which moves on with the rows that are added. A reader of
 * a finished capture asks maps.h, which knows all moments.
 */
#ifndef KB_LIB_SYM_UNWIND_SPACES_H
#define KB_LIB_SYM_UNWIND_SPACES_H

#include <stdint.h>

struct kb_spaces;

struct kb_space_range {
	uint64_t first, last;	/* addresses */
	uint64_t offset;	/* in the file, of the byte at `first` */
	uint32_t file;		/* the caller's number of it */
};

/* Returns 0 or -ENOMEM. */
int kb_spaces_create(struct kb_spaces **out);
void kb_spaces_destroy(struct kb_spaces *spaces);

/*
 * From now on @task has @range mapped. What it had mapped there before is gone. Returns 0; -ENOMEM;
 * -EINVAL: the range ends before it begins.
 */
int kb_spaces_map(struct kb_spaces *spaces, uint32_t task, const struct kb_space_range *range);

/* The range of @task that has @address; NULL: none. It is valid until the next row. */
const struct kb_space_range *kb_spaces_find(const struct kb_spaces *spaces, uint32_t task,
					    uint64_t address);

/* How often kb_spaces_map() has changed what @task has mapped. */
uint64_t kb_spaces_changes(const struct kb_spaces *spaces, uint32_t task);

#endif
