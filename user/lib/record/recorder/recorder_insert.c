// SPDX-License-Identifier: MIT
/*
 * Inserted records: those that the kernel did not write. They get the timestamp that the kernel
 * would have used, and wait in a ring of their own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/wide.h"
#include "record/recorder/inside.h"

#define INSERT_BYTES	(16 << 20)	/* of records that wait for their turn */
#define CLOCK_OLD_NS	100000000	/* age at which the pair of clock readings is renewed */

/* @ns, which may be negative, in ticks. @rate ticks pass in @span ns. */
static int64_t ticks_in(int64_t ns, uint64_t rate, uint64_t span)
{
	uint64_t length = ns < 0 ? -(uint64_t)ns : (uint64_t)ns, rest;
	uint64_t ticks = kb_wide_div(kb_wide_mul(length, rate), span, &rest).low;

	return (int64_t)(ns < 0 ? -ticks : ticks);
}

/*
 * @rate ticks took @span ns. Use the nominal rate if that is implausible because the machine
 * slept meanwhile.
 */
static void plausible_rate(const struct kb_recorder *recorder, uint64_t *rate, uint64_t *span)
{
	uint64_t nominal = (uint64_t)ticks_in((int64_t)*span, recorder->clock_hz, KB_NS_PER_S);
	uint64_t off = *rate > nominal ? *rate - nominal : nominal - *rate;

	/* Two readings close to each other are less exact than the nominal rate. */
	if (*span >= CLOCK_OLD_NS && off <= nominal / 1000)
		return;
	*span = KB_NS_PER_S;
	*rate = recorder->clock_hz;
}

/*
 * CLOCK_MONOTONIC_RAW to ticks, with a recent pair of readings. A time before the start becomes
 * the start, and a time in the future becomes now: a record can't have either.
 */
static int ticks_of(struct kb_recorder *recorder, int64_t raw_ns, uint64_t *ticks,
		    struct kb_error *err)
{
	const struct kbarman_clock_pair *start = &recorder->clock.start,
					*near = &recorder->clock.now;
	int64_t now = kb_clock_ns(CLOCK_MONOTONIC_RAW), read_now = kb_clock_ns(CLOCK_BOOTTIME);
	uint64_t span, rate;

	if (raw_ns > now)
		raw_ns = now;
	if (!near->raw_ns || read_now - recorder->clock_read > CLOCK_OLD_NS) {
		int ret = kb_device_clock(recorder->device, &recorder->clock, err);

		if (ret)
			return ret;
		recorder->clock_read = read_now;
	}
	*ticks = start->timestamp;
	if (raw_ns <= (int64_t)start->raw_ns)
		return 0;
	span = near->raw_ns - start->raw_ns;
	rate = near->timestamp - start->timestamp;
	plausible_rate(recorder, &rate, &span);
	*ticks = near->timestamp +
		 (uint64_t)ticks_in(raw_ns - (int64_t)near->raw_ns, rate, span);
	if (*ticks < start->timestamp)
		*ticks = start->timestamp;
	return 0;
}

static int insert_at(struct kb_recorder *recorder, void *record, size_t length, uint32_t type,
		     uint32_t core, uint64_t ticks, struct kb_error *err)
{
	struct bm_protocol_record_header *header = record;

	if (recorder->insert_source < 0)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "no records are expected");
	header->record_type = type;
	header->core = core;
	header->timestamp = ticks;
	if (kb_insert_add(&recorder->insert, record, length))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	return 0;
}

static int insert(struct kb_recorder *recorder, void *record, size_t length, uint32_t type,
		  uint32_t core, int64_t raw_ns, struct kb_error *err)
{
	uint64_t ticks;
	int ret = ticks_of(recorder, raw_ns, &ticks, err);

	return ret ? ret : insert_at(recorder, record, length, type, core, ticks, err);
}

int kb_recorder_expect(struct kb_recorder *recorder, unsigned int late_ms, struct kb_error *err)
{
	uint64_t late = (uint64_t)((double)recorder->clock_hz * late_ms / 1e3);

	if (late > recorder->hold_back)
		recorder->hold_back = late;
	if (recorder->insert_source >= 0)
		return 0;
	if (kb_insert_create(&recorder->insert, INSERT_BYTES, !recorder->stream))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	/* From now on the merge waits for inserted records, too. */
	recorder->insert_source =
		kb_merge_add(recorder->merge, recorder->insert.ring, recorder->insert.size, 0, err);
	return recorder->insert_source < 0 ? recorder->insert_source : 0;
}

/* Insert an annotation at @raw_ns, or, if it is NULL, at @ticks. */
static int annotate(struct kb_recorder *recorder, const int64_t *raw_ns, uint64_t ticks,
		    uint32_t core, uint32_t task_id, const struct kbarman_mark *mark,
		    const char *text, struct kb_error *err)
{
	struct bm_protocol_annotation *annotation;
	size_t data = mark->text_bytes ? (size_t)mark->text_bytes + 1 : 0;
	int ret;

	annotation = calloc(1, sizeof(*annotation) + data);
	if (!annotation)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	annotation->task_id = task_id;
	annotation->data_length = (bm_uintptr)data;
	annotation->channel = mark->channel;
	annotation->group = mark->group;
	annotation->colour = mark->colour;
	annotation->type = (uint8_t)mark->type;
	memcpy(annotation->data, text, mark->text_bytes);
	ret = raw_ns ? insert(recorder, annotation, sizeof(*annotation) + data,
			      BM_RECORD_ANNOTATION, core, *raw_ns, err)
		     : insert_at(recorder, annotation, sizeof(*annotation) + data,
				 BM_RECORD_ANNOTATION, core, ticks, err);
	free(annotation);
	return ret;
}

int kb_recorder_annotation(struct kb_recorder *recorder, int64_t raw_ns, uint32_t task_id,
			   const struct kbarman_mark *mark, const char *text, struct kb_error *err)
{
	return annotate(recorder, &raw_ns, 0, recorder->rings[0].cpu, task_id, mark, text, err);
}

int kb_recorder_bookmark(struct kb_recorder *recorder, uint64_t ticks, uint32_t core,
			 uint32_t task_id, const char *text, struct kb_error *err)
{
	const struct kbarman_mark mark = {
		.type = KBARMAN_MARK_BOOKMARK, .text_bytes = (uint32_t)strlen(text),
	};
	int ret;

	if (!recorder->is_frozen)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "the recording is not frozen");
	ret = kb_recorder_expect(recorder, 0, err);
	return ret ? ret
		   : annotate(recorder, NULL, ticks,
			      core < recorder->nr_cpus ? core : recorder->rings[0].cpu, task_id,
			      &mark, text, err);
}

int kb_recorder_value(struct kb_recorder *recorder, int64_t raw_ns, uint32_t core, uint32_t task_id,
		      uint32_t series, uint64_t value, struct kb_error *err)
{
	struct bm_protocol_custom_counter counter = {
		.task_id = task_id, .counter = series, .value = value };

	return insert(recorder, &counter, sizeof(counter), BM_RECORD_CUSTOM_COUNTER,
		      core < recorder->nr_cpus ? core : recorder->rings[0].cpu, raw_ns, err);
}
