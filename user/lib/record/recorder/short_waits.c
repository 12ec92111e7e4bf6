// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/device.h>

#include "base/table.h"
#include "record/recorder/short_waits.h"
#include "record/recorder/waiting.h"

#define LOST_SERIES	0U	/* the module's first series: records were lost there */

/* The wait of a task that has begun last. */
struct wait {
	uint64_t task;			/* the key */
	uint64_t since;			/* ticks */
	uint64_t place;			/* of its switch */
	uint64_t lasts;			/* 0: the task does not wait */
};

struct kb_short_waits {
	struct kb_waiting records;
	struct kb_table by_task;
	uint64_t min, now, count;
	size_t max_bytes;
	unsigned int nr_cpus;
	uint32_t running[];		/* by CPU: the task; 0: idle, or not known */
};

int kb_short_waits_create(struct kb_short_waits **out, uint64_t min, unsigned int nr_cpus,
			  size_t max_bytes)
{
	struct kb_short_waits *waits = calloc(1, sizeof(*waits) + nr_cpus * sizeof(*waits->running));

	*out = waits;
	if (!waits)
		return -ENOMEM;
	waits->min = min;
	waits->nr_cpus = nr_cpus;
	waits->max_bytes = max_bytes;
	kb_table_init(&waits->by_task, sizeof(struct wait), 1);
	return 0;
}

void kb_short_waits_destroy(struct kb_short_waits *waits)
{
	if (!waits)
		return;
	kb_waiting_release(&waits->records);
	kb_table_release(&waits->by_task);
	free(waits);
}

static bool is_switch(const struct kb_raw_record *record)
{
	const struct bm_protocol_record_header *header = record->data;

	return header->record_type == BM_RECORD_TASK_SWITCH &&
	       record->length >= sizeof(struct bm_protocol_task_switch);
}

static bool has_chain(const struct kb_raw_record *record)
{
	const struct bm_kbarman_callchain *chain =
		(const void *)((const uint8_t *)record->data + BM_TASK_SWITCH_CHAIN_OFFSET);

	return is_switch(record) &&
	       record->length >= BM_TASK_SWITCH_CHAIN_OFFSET + sizeof(*chain) && chain->nr;
}

/* The switch loses its chain, and keeps what the task waits for. */
static void leave_out_chain(struct kb_waiting *records, uint64_t place)
{
	const size_t end = BM_TASK_SWITCH_CHAIN_OFFSET + sizeof(struct bm_kbarman_callchain),
		     object = sizeof(struct bm_kbarman_object);
	size_t length, left = BM_TASK_SWITCH_CHAIN_OFFSET;
	uint8_t *record = kb_waiting_at(records, place, &length);

	if (((struct bm_protocol_task_switch *)record)->flags & BM_TASK_SWITCH_OBJECT &&
	    length >= end + object) {
		memset(record + left, 0, sizeof(struct bm_kbarman_callchain));
		memmove(record + end, record + length - object, object);
		left = end + object;
	}
	kb_waiting_cut(records, place, left);
}

/* The wait of @task ends. If it was short, its switch loses its chain, if that is still here. */
static void end_wait(struct kb_short_waits *waits, uint32_t task, uint64_t timestamp)
{
	uint64_t key = task;
	struct wait *wait = kb_table_find(&waits->by_task, &key);

	if (!wait || !wait->lasts)
		return;
	if (timestamp - wait->since < waits->min && wait->place >= waits->records.removed) {
		leave_out_chain(&waits->records, wait->place);
		waits->count++;
	}
	wait->lasts = 0;
}

static int begin_wait(struct kb_short_waits *waits, uint32_t task,
		      const struct kb_raw_record *record)
{
	uint64_t key = task;
	struct wait *wait = kb_table_get(&waits->by_task, &key);

	if (!wait)
		return -ENOMEM;
	wait->since = record->timestamp;
	wait->place = kb_waiting_place(&waits->records);
	wait->lasts = 1;
	return 0;
}

/* Who leaves the CPU now, and who runs there from now on. Not known where records were lost. */
static uint32_t follow(struct kb_short_waits *waits, const struct kb_raw_record *record)
{
	const struct bm_protocol_record_header *header = record->data;
	const struct bm_protocol_custom_counter *counter = record->data;
	uint32_t leaves;

	if (header->core >= waits->nr_cpus)
		return 0;
	leaves = waits->running[header->core];
	if (is_switch(record))
		waits->running[header->core] =
			((const struct bm_protocol_task_switch *)record->data)->task_id;
	else if (header->record_type == BM_RECORD_CUSTOM_COUNTER &&
		 record->length >= sizeof(*counter) && counter->counter == LOST_SERIES)
		waits->running[header->core] = 0;
	return leaves;
}

int kb_short_waits_add(struct kb_short_waits *waits, const struct kb_raw_record *record)
{
	const struct bm_protocol_task_switch *to = record->data;
	uint32_t leaves = follow(waits, record);
	int ret = 0;

	if (record->timestamp > waits->now)
		waits->now = record->timestamp;
	if (is_switch(record))
		end_wait(waits, to->task_id, record->timestamp);
	if (leaves && has_chain(record))
		ret = begin_wait(waits, leaves, record);
	return ret ? ret : kb_waiting_add(&waits->records, record);
}

bool kb_short_waits_first(struct kb_short_waits *waits, uint64_t now, struct kb_raw_record *record)
{
	if (kb_waiting_is_empty(&waits->records))
		return false;
	if (now > waits->now)
		waits->now = now;
	*record = kb_waiting_first(&waits->records);
	return !has_chain(record) || kb_waiting_bytes(&waits->records) > waits->max_bytes ||
	       (waits->now >= record->timestamp &&
		waits->now - record->timestamp >= waits->min);
}

void kb_short_waits_remove_first(struct kb_short_waits *waits)
{
	kb_waiting_remove_first(&waits->records);
}

const struct kb_waiting *kb_short_waits_records(const struct kb_short_waits *waits)
{
	return &waits->records;
}

uint64_t kb_short_waits_count(const struct kb_short_waits *waits)
{
	return waits->count;
}
