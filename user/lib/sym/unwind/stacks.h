/* SPDX-License-Identifier: MIT */
/*
 * sym/unwind/: from a sparse stack of a task to its call chain: what the task has mapped
 * (spaces.h), the unwind rows of these files (files.h) and of code that is made meanwhile
 * (dumps.h).
 *
 * Unwinds the sparse stacks of a recording: a task, what it had mapped at that moment, and the unwind
 * rows of the files there. Rows of mappings and stacks come in the order of time.
 */
#ifndef KB_LIB_SYM_UNWIND_STACKS_H
#define KB_LIB_SYM_UNWIND_STACKS_H

#include <stddef.h>

#include "sym/unwind/file.h"
#include "unwind/walker.h"

struct kb_stacks;

/* @max: frames of a chain. Returns 0 or a negative errno. */
int kb_stacks_create(struct kb_stacks **out, uint32_t max);
void kb_stacks_destroy(struct kb_stacks *stacks);

/*
 * From now on @task has the file of @key (files.h) mapped at @place. Its pid need not be the
 * task. Returns 0 or a negative errno.
 */
int kb_stacks_map(struct kb_stacks *stacks, uint32_t task, uint64_t key,
		  const struct kb_unwind_place *place);

/*
 * Unwind the @size bytes at @data, a sparse stack of @task of this machine. *@chain belongs to
 * @stacks and holds until the next call. Returns 0; -EBADMSG: the bytes are no sparse stack;
 * -EAGAIN: a file is being read; -ENOENT: nothing is mapped where the task was, because rows of
 * mappings come a little later than the first stack that needs them. *@chain then ends there.
 */
int kb_stacks_unwind(struct kb_stacks *stacks, uint32_t task, const void *data, size_t size,
		     const struct kb_unwind_chain **chain);

/*
 * The next stacks are of @time (CLOCK_MONOTONIC, in ns), which says what code they were in that was
 * made at run time. Without a call, they are of the end.
 */
void kb_stacks_at(struct kb_stacks *stacks, uint64_t time);

/* Wait until the files that stacks needed are read. */
void kb_stacks_wait(struct kb_stacks *stacks);

#endif
