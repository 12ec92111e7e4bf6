// SPDX-License-Identifier: MIT
/*
 * Records with sparse stacks become records with call chains. A stack may need a file that is not
 * read yet, or a mapping that the kernel has not written yet. Then its record waits here, and with
 * it all later ones, so that their order stays.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "format/barman/writer.h"
#include "record/recorder/inside.h"
#include "record/recorder/map_rows.h"
#include "record/recorder/waiting.h"
#include "sym/unwind/stacks.h"

#define WAITING_MAX	((size_t)64 << 20)	/* bytes of records */
#define LATE_MS		300	/* after a stack its mappings are there, or were lost */

struct recorder_stacks {
	struct kb_stacks *stacks;
	struct kb_map_rows rows;
	uint32_t *running;		/* by CPU: the task */
	uint32_t max_stack;		/* addresses of a chain */
	uint64_t late;			/* LATE_MS in ticks */
	uint64_t read_ticks;		/* a reading of the clock, */
	int64_t read_ns;		/* and CLOCK_MONOTONIC then; 0: none yet */

	struct kb_waiting waiting;

	uint8_t *record;		/* the one that is made */
	size_t max_record;
	uint64_t ended[KB_UNWIND_ENDS + 1];	/* how the chains ended; the last one: in damage */
};

static const char *const end_names[KB_UNWIND_ENDS + 1] = {
	[KB_UNWIND_WHOLE]	= "whole",
	[KB_UNWIND_ZERO]	= "zero",
	[KB_UNWIND_LIMIT]	= "limit",
	[KB_UNWIND_OUTSIDE]	= "outside",
	[KB_UNWIND_NO_ROWS]	= "no_rows",
	[KB_UNWIND_REFUSED]	= "refused",
	[KB_UNWIND_NO_REGISTER]	= "no_register",
	[KB_UNWIND_NO_PROGRESS]	= "no_progress",
	[KB_UNWIND_ENDS]	= "damaged",
};

/* ---- one record ---- */

/* What stands behind the stack of a task switch. */
static size_t object_bytes(const void *data)
{
	const struct bm_protocol_task_switch *record = data;

	return record->header.record_type == BM_RECORD_TASK_SWITCH && record->flags & BM_TASK_SWITCH_OBJECT ?
	       sizeof(struct bm_kbarman_object) : 0;
}

/* Where a record has its chain; NULL: it has no chain with a stack. */
static const struct bm_kbarman_callchain *find_chain(const struct kb_recorder *recorder,
						     const void *data, size_t length)
{
	const struct bm_protocol_record_header *header = data;
	const struct bm_kbarman_callchain *chain;
	size_t at;

	if (header->record_type == BM_RECORD_TASK_SWITCH)
		at = BM_TASK_SWITCH_CHAIN_OFFSET;
	else if (header->record_type == BM_RECORD_SAMPLE_WITH_PC &&
		 header->core < recorder->nr_cpus)
		at = sizeof(struct bm_protocol_sample) + sizeof(bm_uintptr) +
		     8 * (size_t)kb_mapped_count(
				 &recorder_header(recorder)->pmus[header->core].num_counters);
	else
		return NULL;
	if (length < at + sizeof(*chain))
		return NULL;
	chain = (const void *)((const uint8_t *)data + at);
	length -= at + sizeof(*chain);
	return chain->nr_kernel & BM_KBARMAN_CHAIN_STACK && object_bytes(data) <= length &&
	       chain->nr <= (length - object_bytes(data)) / sizeof(bm_uintptr) ? chain : NULL;
}

/* The task whose stack @data has: a switch has that of the task that leaves. */
static uint32_t task_of(const struct kb_recorder *recorder, const void *data)
{
	const struct bm_protocol_record_header *header = data;

	if (header->record_type == BM_RECORD_TASK_SWITCH)
		return header->core < recorder->nr_cpus ? recorder->stacks->running[header->core]
							: 0;
	return ((const struct bm_protocol_sample *)data)->task_id;
}

static void note_switch(struct kb_recorder *recorder, const void *data)
{
	const struct bm_protocol_task_switch *record = data;

	if (record->header.record_type == BM_RECORD_TASK_SWITCH &&
	    record->header.core < recorder->nr_cpus)
		recorder->stacks->running[record->header.core] = record->task_id;
}

/* Make the record without its stack: the kernel's addresses, then those of @frames, then the object. */
static size_t make_record(struct recorder_stacks *s, const void *data, size_t length,
			  const struct bm_kbarman_callchain *from,
			  const struct kb_unwind_chain *frames)
{
	size_t object = object_bytes(data);
	size_t before = (size_t)((const uint8_t *)from - (const uint8_t *)data);
	uint32_t kernel = from->nr_kernel & ~BM_KBARMAN_CHAIN_STACK, nr = from->nr;
	struct bm_kbarman_callchain *chain = (void *)(s->record + before);
	bm_uintptr *addresses = (bm_uintptr *)(chain + 1);

	memcpy(s->record, data, before + sizeof(*chain) + nr * sizeof(*addresses));
	for (uint32_t i = 1; i < frames->nr && nr < s->max_stack; i++)
		addresses[nr++] = (bm_uintptr)frames->frames[i].pc;
	chain->nr = nr;
	chain->nr_kernel = kernel;
	memcpy(&addresses[nr], (const uint8_t *)data + length - object, object);
	return (size_t)((uint8_t *)&addresses[nr] - s->record) + object;
}

/* How urgent it is. */
enum urgency {
	PATIENT,	/* wait for files and mappings */
	LATE,		/* its mappings will not come any more */
	AT_ONCE,	/* take what is there */
};

/* CLOCK_MONOTONIC at @timestamp, which is not long ago; without a reading, the end of all times. */
static uint64_t monotonic_at(const struct kb_recorder *recorder, uint64_t timestamp)
{
	const struct recorder_stacks *s = recorder->stacks;
	double since = (double)(int64_t)(timestamp - s->read_ticks) * 1e9;

	return s->read_ns && recorder->clock_hz ?
	       (uint64_t)(s->read_ns + (int64_t)(since / (double)recorder->clock_hz)) : UINT64_MAX;
}

/* Write one record. -EAGAIN: it has to wait. */
static int write_one(struct kb_recorder *recorder, const struct kb_raw_record *record,
		     enum urgency urgency)
{
	const void *data = record->data;
	size_t length = record->length;
	const struct bm_kbarman_callchain *chain = find_chain(recorder, data, length);
	struct recorder_stacks *s = recorder->stacks;
	const struct kb_unwind_chain *frames;
	size_t stack;
	int ret;

	if (!chain) {
		note_switch(recorder, data);
		return kb_barman_writer_record(recorder->writer, data, length);
	}
	stack = (size_t)((const uint8_t *)((const bm_uintptr *)(chain + 1) + chain->nr) -
			 (const uint8_t *)data);
	if (!KB_ARRAY_ROOM(s->record, s->max_record,
			   length + s->max_stack * sizeof(bm_uintptr)))
		return -ENOMEM;
	ret = kb_map_rows_until(&s->rows, recorder_header(recorder), recorder->mounts, s->stacks,
				record->timestamp);
	if (ret)
		return ret;
	kb_stacks_at(s->stacks, monotonic_at(recorder, record->timestamp));
	ret = kb_stacks_unwind(s->stacks, kb_map_rows_process(&s->rows, task_of(recorder, data)),
			       (const uint8_t *)data + stack, length - stack - object_bytes(data), &frames);
	if ((ret == -EAGAIN && urgency < AT_ONCE) || (ret == -ENOENT && urgency == PATIENT))
		return -EAGAIN;
	if (ret == -ENOMEM)
		return ret;
	/* Of the others, these two leave a chain. */
	s->ended[ret && ret != -EAGAIN && ret != -ENOENT ? KB_UNWIND_ENDS : frames->end]++;
	recorder->totals.stacks++;
	recorder->totals.stacks_whole += !ret && frames->end == KB_UNWIND_WHOLE;
	note_switch(recorder, data);
	return kb_barman_writer_record(recorder->writer, s->record,
				       make_record(s, data, length, chain, frames));
}

/* ---- records that wait ---- */

/* The first record that waits can't wait any longer. */
static enum urgency urgency_of(const struct recorder_stacks *s, uint64_t timestamp, uint64_t now)
{
	if (kb_waiting_bytes(&s->waiting) > WAITING_MAX)
		return AT_ONCE;
	return now > timestamp && now - timestamp > s->late ? LATE : PATIENT;
}

int recorder_stacks_write(struct kb_recorder *recorder, const struct kb_raw_record *record)
{
	struct recorder_stacks *s = recorder->stacks;
	int ret = -EAGAIN;

	if (!s)
		return kb_barman_writer_record(recorder->writer, record->data, record->length);
	if (kb_waiting_is_empty(&s->waiting))
		ret = write_one(recorder, record, PATIENT);
	return ret == -EAGAIN ? kb_waiting_add(&s->waiting, record) : ret;
}

static int go_on(struct kb_recorder *recorder, uint64_t now)
{
	struct recorder_stacks *s = recorder->stacks;
	int ret = 0;

	while (!ret && !kb_waiting_is_empty(&s->waiting)) {
		struct kb_raw_record record = kb_waiting_first(&s->waiting);

		ret = write_one(recorder, &record, urgency_of(s, record.timestamp, now));
		if (!ret)
			kb_waiting_remove_first(&s->waiting);
	}
	return ret == -EAGAIN ? 0 : ret;
}

int recorder_stacks_go_on(struct kb_recorder *recorder, uint64_t now, struct kb_error *err)
{
	int ret;

	if (!recorder->stacks)
		return 0;
	recorder->stacks->read_ticks = now;
	recorder->stacks->read_ns = kb_clock_ns(CLOCK_MONOTONIC);
	ret = go_on(recorder, now);
	return ret ? recorder_write_failed(err, ret) : 0;
}

int recorder_stacks_end(struct kb_recorder *recorder, struct kb_error *err)
{
	struct recorder_stacks *s = recorder->stacks;
	int ret = s ? go_on(recorder, UINT64_MAX) : 0;

	while (s && !ret && !kb_waiting_is_empty(&s->waiting)) {
		kb_stacks_wait(s->stacks);
		ret = go_on(recorder, UINT64_MAX);
	}
	return ret ? recorder_write_failed(err, ret) : 0;
}

const struct kb_waiting *recorder_stacks_waiting(const struct kb_recorder *recorder)
{
	return recorder->stacks ? &recorder->stacks->waiting : NULL;
}

int recorder_stacks_facts(struct kb_recorder *recorder, struct kb_error *err)
{
	struct recorder_stacks *s = recorder->stacks;
	int ret = 0;

	for (unsigned int i = 0; s && i <= KB_UNWIND_ENDS && !ret; i++)
		if (s->ended[i])
			ret = recorder_number_fact(recorder, s->ended[i], "stacks.%s",
						   end_names[i]);
	return ret ? recorder_write_failed(err, ret) : 0;
}

/* ---- begin and end ---- */

/* The value of the fact @key of the session; NULL: there is none. */
static const char *find_fact(const struct kb_recorder *recorder, const char *key)
{
	const char *string;
	uint32_t offset = 0;

	while ((string = kb_mapped_string(recorder_header(recorder), offset))) {
		if (!strncmp(string, key, strlen(key)))
			return string + strlen(key);
		offset += (uint32_t)strlen(string) + 1;
	}
	return NULL;
}

static int begin(struct kb_recorder *recorder, uint32_t max_stack)
{
	struct recorder_stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	recorder->stacks = s;
	kb_map_rows_init(&s->rows);
	s->max_stack = max_stack;
	s->late = recorder->clock_hz / 1000 * LATE_MS;
	s->running = calloc(recorder->nr_cpus, sizeof(*s->running));
	return s->running ? kb_stacks_create(&s->stacks, max_stack) : -ENOMEM;
}

int recorder_stacks_begin(struct kb_recorder *recorder, struct kb_error *err)
{
	const char *chains, *max_stack;
	int ret = 0;

	if (!recorder->asked_for_stacks) {
		recorder->asked_for_stacks = true;
		chains = find_fact(recorder, "kbarman.callchain=");
		max_stack = find_fact(recorder, "kbarman.max_stack=");
		if (chains && strstr(chains, ",stack") && max_stack)
			ret = begin(recorder, (uint32_t)strtoul(max_stack, NULL, 10));
	}
	if (!ret && recorder->stacks)
		ret = kb_map_rows_look(&recorder->stacks->rows, recorder_header(recorder));
	return ret ? kb_error_set(err, ret, KB_NO_OFFSET, "stacks can't be unwound: %s",
				  strerror(-ret)) : 0;
}

void recorder_stacks_destroy(struct kb_recorder *recorder)
{
	struct recorder_stacks *s = recorder->stacks;

	if (!s)
		return;
	kb_stacks_destroy(s->stacks);
	free(s->running);
	kb_waiting_release(&s->waiting);
	free(s->record);
	kb_map_rows_release(&s->rows);
	free(s);
	recorder->stacks = NULL;
}
