// SPDX-License-Identifier: MIT
/*
 * The public functions of the reader. All that can be read is delivered, also around damage.
 * Damage is reported at the end.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "barman_decode.h"

static int next_32(struct kb_barman *b, struct kb_event *event)
{
	return decode_next(b, event, 4, false);
}

static int next_32_swapped(struct kb_barman *b, struct kb_event *event)
{
	return decode_next(b, event, 4, true);
}

static int next_64(struct kb_barman *b, struct kb_event *event)
{
	return decode_next(b, event, 8, false);
}

static int next_64_swapped(struct kb_barman *b, struct kb_event *event)
{
	return decode_next(b, event, 8, true);
}

void barman_finding(struct kb_barman *b, uint64_t offset, const char *format, ...)
{
	struct kb_error *err;
	va_list args;
	char *text;

	if (b->probe_end)
		return;
	if (b->nr_findings >= BARMAN_FINDINGS_MAX && b->failure.code) {
		b->nr_findings += b->nr_findings != UINT_MAX;
		return;
	}
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	err = b->nr_findings < BARMAN_FINDINGS_MAX ? &b->findings[b->nr_findings] : NULL;
	b->nr_findings++;
	if (!err)
		err = &b->failure;
	if (offset == KB_NO_OFFSET)
		kb_error_set(err, -EBADMSG, offset, "%s: damaged: %s", b->source.name,
			     text ? text : "out of memory");
	else
		kb_error_set(err, -EBADMSG, offset, "%s: damaged at byte %llu: %s", b->source.name,
			     (unsigned long long)offset, text ? text : "out of memory");
	free(text);
	/* Damage in the header is not an error of the records. */
	if (b->window_offset && !b->failure.code)
		b->failure = *err;
}

void barman_bad_record(struct kb_barman *b, const uint8_t *record, uint64_t length,
		       uint64_t offset, bool swap)
{
	uint32_t type, core;

	if (length < sizeof(struct bm_protocol_record_header)) {
		barman_finding(b, offset, "a record of %" PRIu64 " bytes is too short for any type",
			       length);
		return;
	}
	type = kb_load32(record, swap);
	core = kb_load32(record + 4, swap);
	if (core >= b->header.max_cores)
		barman_finding(b, offset, "a record of core %" PRIu32 ", but there are %" PRIu32
					  " cores",
			       core, b->header.max_cores);
	else
		barman_finding(b, offset, "a record of type %" PRIu32 " that does not fit into "
					  "its %" PRIu64 " bytes, or names a custom series that "
					  "does not exist",
			       type, length);
}

static int allocate(struct kb_barman *b)
{
	uint32_t most = 0;

	for (uint32_t core = 0; core < b->header.max_cores; core++) {
		if (b->header.pmus[core].num_counters > most)
			most = b->header.pmus[core].num_counters;
	}
	b->counters = calloc(most ? most : 1, sizeof(*b->counters));
	b->custom = calloc(b->header.nr_series ? b->header.nr_series : 1, sizeof(*b->custom));
	if (b->header.extended)
		b->chain = malloc(BARMAN_CHAIN_MAX * sizeof(*b->chain));
	return b->counters && b->custom && (b->chain || !b->header.extended) ? 0 : -ENOMEM;
}

/* The source is open: read the header, and prepare for the first record. */
static int open_capture(struct kb_barman *b, struct kb_error *err)
{
	static int (*const instances[2][2])(struct kb_barman *, struct kb_event *) = {
		{ next_32, next_32_swapped },
		{ next_64, next_64_swapped },
	};
	struct kb_header *h = &b->header;
	int ret = barman_header_read(b, err);

	if (ret)
		return ret;
	b->has_tasks = h->max_task_infos > 0;
	b->has_custom = h->num_custom_counters > 0;
	b->next = instances[h->word_size == 8][h->big_endian != KB_HOST_BIG_ENDIAN];
	barman_clock_init(&b->clock, h->timestamp_base, h->timestamp_multiplier,
			  h->timestamp_divisor);
	barman_clock_measure(b);
	ret = allocate(b);
	if (ret)
		return kb_error_set(err, ret, KB_NO_OFFSET, "%s: out of memory", b->source.name);
	barman_cursor_init(b);
	/* The end of a wrapped ring stands in front of its beginning. */
	if (b->nr_segments > 1)
		return kb_source_spool(&b->source, err);
	return 0;
}

static int finish_open(struct kb_barman **out, struct kb_barman *b, int ret, struct kb_error *why,
		       struct kb_error *err)
{
	if (!ret)
		ret = open_capture(b, why);
	if (ret) {
		if (err)
			*err = *why;
		kb_barman_close(b);
		return why->code ? why->code : ret;
	}
	*out = b;
	return 0;
}

static struct kb_barman *new_barman(struct kb_error *why)
{
	struct kb_barman *b = calloc(1, sizeof(*b));

	memset(why, 0, sizeof(*why));
	if (!b)
		kb_error_set(why, -ENOMEM, KB_NO_OFFSET, "out of memory");
	else
		b->source.fd = -1;
	return b;
}

int kb_barman_open(struct kb_barman **out, const char *path, struct kb_error *err)
{
	struct kb_error why;
	struct kb_barman *b = new_barman(&why);

	*out = NULL;
	if (!b) {
		if (err)
			*err = why;
		return why.code;
	}
	return finish_open(out, b, kb_source_open(&b->source, path, &why), &why, err);
}

int kb_barman_open_memory(struct kb_barman **out, const void *data, size_t size,
			  struct kb_error *err)
{
	struct kb_error why;
	struct kb_barman *b = new_barman(&why);

	*out = NULL;
	if (!b) {
		if (err)
			*err = why;
		return why.code;
	}
	return finish_open(out, b, kb_source_open_memory(&b->source, data, size, &why), &why, err);
}

void kb_barman_close(struct kb_barman *b)
{
	if (!b)
		return;
	barman_header_free(b);
	free(b->counters);
	free(b->custom);
	free(b->chain);
	free(b->counter_state);
	kb_source_close(&b->source);
	free(b);
}

void kb_barman_set_counters(struct kb_barman *b, enum kb_counters how)
{
	b->how = how;
	b->decided = false;
}

void kb_barman_set_window(struct kb_barman *b, size_t bytes)
{
	size_t least = (size_t)64 << 10;

	kb_source_set_window(&b->source, bytes < least ? least :
					 bytes > KB_SOURCE_WANT_MAX ? KB_SOURCE_WANT_MAX : bytes);
}

const struct kb_header *kb_barman_header(const struct kb_barman *b)
{
	return &b->header;
}

const char *kb_barman_fact(const struct kb_barman *b, const char *key)
{
	size_t length = strlen(key);

	for (size_t i = 0; i < b->nr_facts; i++) {
		const char *fact = b->facts[i] + strlen("kbarman.");

		if (strncmp(fact, key, length) == 0 && fact[length] == '=')
			return fact + length + 1;
	}
	return NULL;
}

/* The end: return the first damage of the records once. */
int barman_tell_end(struct kb_barman *b, struct kb_error *err)
{
	b->ended = true;
	if (!b->failure.code || b->told)
		return 0;
	b->told = true;
	if (err)
		*err = b->failure;
	return b->failure.code;
}

int barman_end_early(struct kb_barman *b, const struct kb_error *why, struct kb_error *err)
{
	b->ended = true;
	barman_finding(b, KB_NO_OFFSET, "%s", kb_error_text(why));
	if (err)
		*err = *why;
	return why->code;
}

int barman_next_window(struct kb_barman *b, struct kb_event *event, struct kb_error *err)
{
	struct kb_error why;
	int ret = 1;

	if (!b->decided && barman_counters_decide(b, &why))
		ret = why.code;
	while (ret == 1) {
		if (b->next(b, event) == 1)
			return 1;
		if (b->ended)
			return 0;
		ret = barman_cursor_advance(b, &why);
	}
	return ret ? barman_end_early(b, &why, err) : barman_tell_end(b, err);
}

int kb_barman_next(struct kb_barman *b, struct kb_event *event, struct kb_error *err)
{
	return barman_next(b, event, err);
}

int kb_barman_rewind(struct kb_barman *b)
{
	if (b->source.kind == KB_SOURCE_STREAM && b->nr_segments &&
	    b->source.offset > b->segments[0].start)
		return -ESPIPE;
	barman_cursor_init(b);
	barman_counters_reset(b);
	return 0;
}

int kb_barman_keep(struct kb_barman *b, struct kb_error *err)
{
	return kb_source_spool(&b->source, err);
}

unsigned int kb_barman_damage(const struct kb_barman *b, const struct kb_error **first)
{
	if (first)
		*first = b->nr_findings ? &b->findings[0] : NULL;
	return b->nr_findings;
}

const struct kb_error *kb_barman_finding(const struct kb_barman *b, unsigned int index)
{
	return index < b->nr_findings && index < BARMAN_FINDINGS_MAX ? &b->findings[index] : NULL;
}
