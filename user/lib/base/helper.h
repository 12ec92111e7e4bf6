/* SPDX-License-Identifier: MIT */
/* A thread that does one thing at a time beside its owner. */
#ifndef KB_LIB_BASE_HELPER_H
#define KB_LIB_BASE_HELPER_H

struct kb_helper;

/* Returns 0 or a negative errno. */
int kb_helper_start(struct kb_helper **out);

/* It ends when it has done what it was given. @helper may be NULL. */
void kb_helper_end(struct kb_helper *helper);

/* It is to call @work. It has nothing else to do: kb_helper_wait() has returned since. */
void kb_helper_give(struct kb_helper *helper, void (*work)(void *context), void *context);

/* Wait until it has nothing to do. */
void kb_helper_wait(struct kb_helper *helper);

#endif
