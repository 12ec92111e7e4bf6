// SPDX-License-Identifier: MIT
/*
 * The public functions of the reader. All that can be read is delivered, also around damage.
 * Damage is reported at the end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/barman_decode.h"

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

int barman_decode_block(struct kb_barman *b, const void *block, size_t bytes,
			struct kb_event *event)
{
	b->at = b->window = block;
	b->end = b->at + bytes;
	b->window_offset = 0;
	return b->next(b, event);
}

int barman_set_nr_counters(struct kb_barman *b, uint32_t core, uint32_t nr)
{
	uint64_t *counters = reallocarray(b->counters, (size_t)nr + 1, sizeof(*counters));

	if (!counters)
		return -ENOMEM;
	b->counters = counters;
	b->header.pmus[core].num_counters = nr;
	return 0;
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
