/* SPDX-License-Identifier: MIT */
/*
 * A thread that writes one buffer of an output while the output's owner fills the other one. The
 * owner waits if it is faster.
 */
#ifndef KB_LIB_BASE_OUT_THREAD_H
#define KB_LIB_BASE_OUT_THREAD_H

#include <stddef.h>
#include <stdint.h>

#include <kbarman/out.h>

struct kb_out_thread;

/* A thread that calls @write; with a buffer of @room bytes. Returns 0 or a negative errno. */
int kb_out_thread_start(struct kb_out_thread **out, size_t room, kb_out_write write, void *context);

/* End it when it has written what it was given. @thread may be NULL. */
void kb_out_thread_end(struct kb_out_thread *thread);

/*
 * Give away *@buffer, of *@room bytes with @size to be written, and get an empty one. Returns 0, or
 * the first error of what was written before: then nothing is given, or ever written again.
 */
int kb_out_thread_give(struct kb_out_thread *thread, uint8_t **buffer, size_t *room, size_t size);

/* Wait until all is written. Returns 0 or the first error. */
int kb_out_thread_wait(struct kb_out_thread *thread);

#endif
