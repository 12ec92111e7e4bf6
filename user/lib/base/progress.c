// SPDX-License-Identifier: MIT
/* The one listener of the process; see <kbarman/progress.h>. */
#include <stddef.h>

#include "base/progress_tell.h"

static struct {
	void (*tell)(void *context, const char *what, uint64_t done, uint64_t total);
	void *context;
} listener;

void kb_progress_listen(void (*tell)(void *context, const char *what, uint64_t done,
				     uint64_t total), void *context)
{
	listener.tell = tell;
	listener.context = context;
}

void kb_progress_tell(const char *what, uint64_t done, uint64_t total)
{
	if (listener.tell)
		listener.tell(listener.context, what, done, total);
}
