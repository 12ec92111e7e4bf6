/* SPDX-License-Identifier: MIT */
/* Expressions inside of the library. */
#ifndef KB_LIB_TRIGGER_TRIGGERS_H
#define KB_LIB_TRIGGER_TRIGGERS_H

#include <kbarman/trigger.h>

/*
 * Parse @expression. Its strings are the caller's to free, with kb_trigger_release(). Returns 0,
 * -ENOMEM, or -EINVAL with a sentence that says what to write.
 */
int kb_trigger_parse(struct kb_trigger *trigger, const char *expression, struct kb_error *err);
void kb_trigger_release(struct kb_trigger *trigger);

/* The word of a kind, such as "latency". */
const char *kb_trigger_word(enum kb_trigger_kind kind);

#endif
