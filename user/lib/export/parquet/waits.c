// SPDX-License-Identifier: MIT
/* See waits.h. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "export/parquet/waits.h"

static int take(void *context, const struct kb_late *late)
{
	struct kb_parquet_waits *waits = context;

	waits->ns[waits->nr - 1] = late->wait.ns <= INT64_MAX ? (int64_t)late->wait.ns : -1;
	return 0;
}

int kb_parquet_waits_begin(struct kb_parquet_waits *waits, struct kb_trace *trace, struct kb_error *err)
{
	const struct kb_wakeups_parts parts = {
		.wanted = &waits->wanted, .gaps = &waits->gaps, .take = take, .context = waits,
	};
	int ret = kb_wanted_init(&waits->wanted, trace, NULL, err) ?: kb_gaps_read(&waits->gaps, trace, err);

	if (!ret && kb_wakeups_create(&waits->wakeups, &parts))
		ret = kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	return ret;
}

void kb_parquet_waits_release(struct kb_parquet_waits *waits)
{
	kb_wakeups_destroy(waits->wakeups);
	kb_gaps_release(&waits->gaps);
	free(waits->ns);
}

int kb_parquet_waits_feed(void *context, const struct kb_walk *walk)
{
	struct kb_parquet_waits *waits = context;

	if (walk->event.type == KB_EVENT_TASK_SWITCH) {
		if (!KB_ARRAY_ROOM(waits->ns, waits->max, waits->nr + 1))
			return -ENOMEM;
		waits->ns[waits->nr++] = -1;
	}
	return kb_wakeups_feed(waits->wakeups, walk);
}
