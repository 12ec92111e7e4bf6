/* SPDX-License-Identifier: MIT */
/*
 * The files whose unwind rows a recording needs. A thread finds and reads them, so that who asks
 * never waits for a disk, or for a process that decodes.
 */
#ifndef KB_LIB_SYM_UNWIND_FILES_H
#define KB_LIB_SYM_UNWIND_FILES_H

#include "sym/unwind/file.h"

struct kb_unwind_files;

/* Returns 0 or a negative errno. While the thread lives, nobody else may ask the decoder. */
int kb_unwind_files_create(struct kb_unwind_files **out);
void kb_unwind_files_destroy(struct kb_unwind_files *files);

/*
 * The number of the file that is mapped at @place, which is copied. @key is the same for all places
 * of a file, and for no other file. A file that could not be read is tried again at a place of
 * another process, a few times. Returns 0 or -ENOMEM.
 */
int kb_unwind_files_number(struct kb_unwind_files *files, uint64_t key,
			   const struct kb_unwind_place *place, uint32_t *number);

/*
 * The file in *@out, NULL if it can't be had. -EAGAIN: the thread has not read it yet. It begins at
 * the first call. What was given out stays until kb_unwind_files_destroy().
 */
int kb_unwind_files_get(struct kb_unwind_files *files, uint32_t number,
			const struct kb_unwind_file **out);

/* Wait until the thread has read what it was asked for. */
void kb_unwind_files_wait(struct kb_unwind_files *files);

#endif
