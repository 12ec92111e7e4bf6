/* SPDX-License-Identifier: MIT */
/*
 * Names of what tasks wait for, from facts "kbarman.object.KIND.VALUE.ID.TASK=NAME": the path of a file, the
 * ends of a pipe or a socket, what it is that has no place in a file system.
 */
#ifndef KB_LIB_ANALYSIS_FACTS_OBJECT_NAMES_H
#define KB_LIB_ANALYSIS_FACTS_OBJECT_NAMES_H

#include <kbarman/event.h>

#include "base/table.h"

#define KB_ANON_NAMES	64U	/* different ones: Linux has fewer */

struct kb_object_names {
	struct kb_table rows;
	const char *anon[KB_ANON_NAMES];
};

/* What epoll_wait(2) waits for, also if nobody has found that out: the same pointer as the name. */
extern const char kb_eventpoll[];

void kb_object_names_init(struct kb_object_names *names);
void kb_object_names_release(struct kb_object_names *names);

/*
 * Take "KIND.VALUE.ID.TASK=NAME", which lives as long as @names. The first fact of an object counts. Other texts
 * are ignored, and more than any recorder writes. Returns 0 or -ENOMEM.
 */
int kb_object_names_take(struct kb_object_names *names, const char *fact);

/*
 * The name of what @task_id waits for at @event, a task switch; NULL: not known. Equal names of what has no
 * place in a file system are the same pointer.
 */
const char *kb_object_names_find(const struct kb_object_names *names, const struct kb_event *event, uint32_t task_id);

/* Whether @name, of a socket (NULL: not known), is that of a connection whose both ends are on one machine. */
bool kb_object_names_is_local(const char *name);

#endif
