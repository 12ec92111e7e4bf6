// SPDX-License-Identifier: MIT
/* Words of critical paths: how people ask for one, and what its links are called. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/path.h>

#include "analysis/latency/waited.h"
#include "base/array.h"

void kb_path_parse(struct kb_path_options *options, char *text)
{
	char *dots = strstr(text, ".."), *end;
	unsigned long tid;

	if (dots && dots != text && dots[2]) {
		*dots = '\0';
		options->from = text;
		options->until = dots + 2;
		return;
	}
	errno = 0;
	tid = strtoul(text, &end, 10);
	options->has_tid = *text >= '0' && *text <= '9' && !*end && !errno && tid <= UINT32_MAX;
	options->tid = (uint32_t)tid;
	options->task = text;
}

const char *kb_link_name(enum kb_link_kind kind)
{
	static const char *const names[] = {
		[KB_LINK_RUN] = "run",			[KB_LINK_QUEUE] = "queue",
		[KB_LINK_PREEMPTED] = "preempted",	[KB_LINK_WAIT] = "wait",
		[KB_LINK_UNKNOWN] = "unknown",		[KB_LINK_UNSEEN] = "unseen",
		[KB_LINK_THROTTLED] = "throttled",
	};

	return (unsigned int)kind < ARRAY_SIZE(names) ? names[kind] : "unknown";
}

struct kb_waits_row kb_link_wait(const struct kb_link *link, struct kb_trace *trace,
				 char name[KB_TASK_NAME_BUFFER])
{
	const struct kb_tasks *tasks = kb_trace_tasks(trace, NULL);
	struct kb_waits_row row = kb_waited(kb_trace_names(trace, NULL), tasks, &link->object, link->waiter, link->ticks);

	row.task = kb_tasks_name(tasks, link->waiter, link->ticks, name);
	return row;
}
