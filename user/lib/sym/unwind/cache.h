/* SPDX-License-Identifier: MIT */
/*
 * Unwind rows of files that were read before, in a folder of the user. A file is known by its
 * build-id and its size. Anybody can make a file that claims to be libc: rows are kept and looked
 * up only for files that root or this user owns, and that nobody else can write to.
 */
#ifndef KB_LIB_SYM_UNWIND_CACHE_H
#define KB_LIB_SYM_UNWIND_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "sym/tables/elf_data.h"

#define KB_UNWIND_CACHE_LIMIT	(256ULL << 20)	/* bytes of all files */

struct kb_unwind_cache {
	int folder;
	uint64_t limit;		/* of all entries, in bytes */
	uint64_t size;		/* of the file */
};

/* Open the cache for the file that is open as @fd. False: there is none, or none for this file. */
bool kb_unwind_cache_open(struct kb_unwind_cache *cache, int fd);
void kb_unwind_cache_close(struct kb_unwind_cache *cache);

/* Take the rows of the file with that build-id. False: there are none, or they are damaged. */
bool kb_unwind_cache_get(const struct kb_unwind_cache *cache, const struct kb_build_id *build_id,
			 struct kb_unwind_rows *rows);

/*
 * Keep the rows of the file with that build-id, if possible. Above the limit, entries go that were
 * not used for longest.
 */
void kb_unwind_cache_put(const struct kb_unwind_cache *cache, const struct kb_build_id *build_id,
			 const struct kb_unwind_rows *rows);

#endif
