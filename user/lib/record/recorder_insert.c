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
#include "record/recorder_inside.h"

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
static void plausible_rate(const struct kb_recorder *r, uint64_t *rate, uint64_t *span)
{
	uint64_t nominal = (uint64_t)ticks_in((int64_t)*span, r->clock_hz, KB_NS_PER_S);
	uint64_t off = *rate > nominal ? *rate - nominal : nominal - *rate;

	/* Two readings close to each other are less exact than the nominal rate. */
	if (*span >= CLOCK_OLD_NS && off <= nominal / 1000)
		return;
	*span = KB_NS_PER_S;
	*rate = r->clock_hz;
}

/*
 * CLOCK_MONOTONIC_RAW to ticks, with a recent pair of readings. A time before the start becomes
 * the start, and a time in the future becomes now: a record can't have either.
 */
static int ticks_of(struct kb_recorder *r, int64_t raw_ns, uint64_t *ticks, struct kb_error *err)
{
	const struct kbarman_clock_pair *start = &r->clock.start, *near = &r->clock.now;
	int64_t now = kb_clock_ns(CLOCK_MONOTONIC_RAW), read_now = kb_clock_ns(CLOCK_BOOTTIME);
	uint64_t span, rate;

	if (raw_ns > now)
		raw_ns = now;
	if (!near->raw_ns || read_now - r->clock_read > CLOCK_OLD_NS) {
		int ret = kb_device_clock(r->device, &r->clock, err);

		if (ret)
			return ret;
		r->clock_read = read_now;
	}
	*ticks = start->timestamp;
	if (raw_ns <= (int64_t)start->raw_ns)
		return 0;
	span = near->raw_ns - start->raw_ns;
	rate = near->timestamp - start->timestamp;
	plausible_rate(r, &rate, &span);
	*ticks = near->timestamp +
		 (uint64_t)ticks_in(raw_ns - (int64_t)near->raw_ns, rate, span);
	if (*ticks < start->timestamp)
		*ticks = start->timestamp;
	return 0;
}

static int insert_at(struct kb_recorder *r, void *record, size_t length, uint32_t type,
		     uint32_t core, uint64_t ticks, struct kb_error *err)
{
	struct bm_protocol_record_header *header = record;

	if (r->insert_source < 0)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "no records are expected");
	header->record_type = type;
	header->core = core;
	header->timestamp = ticks;
	if (kb_insert_add(&r->insert, record, length))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	return 0;
}

static int insert(struct kb_recorder *r, void *record, size_t length, uint32_t type,
		  uint32_t core, int64_t raw_ns, struct kb_error *err)
{
	uint64_t ticks;
	int ret = ticks_of(r, raw_ns, &ticks, err);

	return ret ? ret : insert_at(r, record, length, type, core, ticks, err);
}

int kb_recorder_expect(struct kb_recorder *r, unsigned int late_ms, struct kb_error *err)
{
	uint64_t late = (uint64_t)((double)r->clock_hz * late_ms / 1e3);

	if (late > r->hold_back)
		r->hold_back = late;
	if (r->insert_source >= 0)
		return 0;
	if (kb_insert_create(&r->insert, INSERT_BYTES, !r->stream))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	/* From now on the merge waits for inserted records, too. */
	r->insert_source = kb_merge_add(r->merge, r->insert.ring, r->insert.size, 0, err);
	return r->insert_source < 0 ? r->insert_source : 0;
}

/* Insert an annotation at @raw_ns, or, if it is NULL, at @ticks. */
static int annotate(struct kb_recorder *r, const int64_t *raw_ns, uint64_t ticks, uint32_t core,
		    uint32_t task_id, const struct kbarman_mark *mark, const char *text,
		    struct kb_error *err)
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
	ret = raw_ns ? insert(r, annotation, sizeof(*annotation) + data, BM_RECORD_ANNOTATION, core,
			      *raw_ns, err)
		     : insert_at(r, annotation, sizeof(*annotation) + data, BM_RECORD_ANNOTATION,
				 core, ticks, err);
	free(annotation);
	return ret;
}

int kb_recorder_annotation(struct kb_recorder *r, int64_t raw_ns, uint32_t task_id,
			   const struct kbarman_mark *mark, const char *text, struct kb_error *err)
{
	return annotate(r, &raw_ns, 0, r->rings[0].cpu, task_id, mark, text, err);
}

int kb_recorder_bookmark(struct kb_recorder *r, uint64_t ticks, uint32_t core, uint32_t task_id,
			 const char *text, struct kb_error *err)
{
	const struct kbarman_mark mark = {
		.type = KBARMAN_MARK_BOOKMARK, .text_bytes = (uint32_t)strlen(text),
	};
	int ret;

	if (!r->is_frozen)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "the recording is not frozen");
	ret = kb_recorder_expect(r, 0, err);
	return ret ? ret : annotate(r, NULL, ticks, core < r->nr_cpus ? core : r->rings[0].cpu,
				    task_id, &mark, text, err);
}

int kb_recorder_value(struct kb_recorder *r, int64_t raw_ns, uint32_t core, uint32_t task_id,
		      uint32_t series, uint64_t value, struct kb_error *err)
{
	struct bm_protocol_custom_counter counter = {
		.task_id = task_id, .counter = series, .value = value };

	return insert(r, &counter, sizeof(counter), BM_RECORD_CUSTOM_COUNTER,
		      core < r->nr_cpus ? core : r->rings[0].cpu, raw_ns, err);
}
