/* SPDX-License-Identifier: MIT */
/* Events as options name them. Lists of several -e are one list, as with perf. */
#ifndef KB_CLI_SESSION_EVENT_LIST_H
#define KB_CLI_SESSION_EVENT_LIST_H

/*
 * Append @text, what stands behind one -e, to *@list, which is NULL at first. The caller frees
 * *@list. Returns 0, or CLI_IMPOSSIBLE after a message.
 */
int event_list_add(char **list, const char *text);

#endif /* KB_CLI_SESSION_EVENT_LIST_H */
