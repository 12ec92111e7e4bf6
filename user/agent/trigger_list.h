/* SPDX-License-Identifier: MIT */
#ifndef KB_AGENT_TRIGGER_LIST_H
#define KB_AGENT_TRIGGER_LIST_H

#include <kbarman/trigger.h>

/*
 * Makes triggers of @list, with blanks between them. Returns 0, or a negative errno and @err, which
 * says what is wrong. The caller destroys *@triggers in any case.
 */
int agent_triggers(struct kb_triggers **triggers, const char *list, struct kb_error *err);

/* Whether @list, which may be NULL, has one of @kind. */
bool agent_triggers_have(const char *list, enum kb_trigger_kind kind);

#endif
