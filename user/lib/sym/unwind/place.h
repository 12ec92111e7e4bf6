/* SPDX-License-Identifier: MIT */
/*
 * Opens the file of a mapping that a recording knows. The process that had the mapping may have
 * ended, and there may be another file of that path by now.
 */
#ifndef KB_LIB_SYM_UNWIND_PLACE_H
#define KB_LIB_SYM_UNWIND_PLACE_H

#include <stdint.h>

#include <kbarman/error.h>
#include <kbarman/text.h>

/* A mapping of code, as a row of a capture says it: the whole of the kernel's mapping or a part. */
struct kb_unwind_place {
	uint32_t pid;		/* a process that had it, which may have ended; 0: none is known */
	uint64_t start, length, offset;
	const char *image;	/* as mapped: a path, "[vdso]", ... */
	struct kb_text file;	/* identity, as in struct kb_map; empty: not known */
};

/*
 * Open the regular file of @place for reading. A process that still has the mapping says which one
 * it is, also if it was deleted or is in a container. Otherwise a file at the path of the image is
 * taken if it has the identity; without an identity none is. Returns a descriptor or a negative
 * errno: -ESTALE, the path has another file now; -ENOEXEC, it has no regular file; or that of
 * open(2). @err then has a sentence that names the image.
 */
int kb_unwind_place_open(const struct kb_unwind_place *place, struct kb_error *err);

#endif
