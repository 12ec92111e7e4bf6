// SPDX-License-Identifier: MIT
/*
 * The public functions of the reader. All that can be read is delivered, also around damage.
 * Damage is reported at the end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/barman/decode.h"
#include "format/barman/reader.h"

static int next_32(struct kb_barman *barman, struct kb_event *event)
{
	return decode_next(barman, event, 4, false);
}

static int next_32_swapped(struct kb_barman *barman, struct kb_event *event)
{
	return decode_next(barman, event, 4, true);
}

static int next_64(struct kb_barman *barman, struct kb_event *event)
{
	return decode_next(barman, event, 8, false);
}

static int next_64_swapped(struct kb_barman *barman, struct kb_event *event)
{
	return decode_next(barman, event, 8, true);
}

static int allocate(struct kb_barman *barman)
{
	uint32_t most = 0;

	for (uint32_t core = 0; core < barman->header.max_cores; core++) {
		if (barman->header.pmus[core].num_counters > most)
			most = barman->header.pmus[core].num_counters;
	}
	barman->counters = calloc(most ? most : 1, sizeof(*barman->counters));
	barman->custom = calloc(barman->header.nr_series ? barman->header.nr_series : 1,
				sizeof(*barman->custom));
	if (barman->header.extended)
		barman->chain = malloc(BARMAN_CHAIN_MAX * sizeof(*barman->chain));
	return barman->counters && barman->custom && (barman->chain || !barman->header.extended)
		       ? 0
		       : -ENOMEM;
}

/* The source is open: read the header, and prepare for the first record. */
static int open_capture(struct kb_barman *barman, struct kb_error *err)
{
	static int (*const instances[2][2])(struct kb_barman *, struct kb_event *) = {
		{ next_32, next_32_swapped },
		{ next_64, next_64_swapped },
	};
	struct kb_header *h = &barman->header;
	int ret = barman_header_read(barman, err);

	if (ret)
		return ret;
	barman->has_tasks = h->max_task_infos > 0;
	barman->has_custom = h->num_custom_counters > 0;
	barman->next = instances[h->word_size == 8][h->big_endian != KB_HOST_BIG_ENDIAN];
	barman_clock_init(&barman->clock, h->timestamp_base, h->timestamp_multiplier,
			  h->timestamp_divisor);
	barman_clock_measure(barman);
	ret = allocate(barman);
	if (ret)
		return kb_error_set(err, ret, KB_NO_OFFSET, "%s: out of memory",
				    barman->source.name);
	barman_cursor_init(barman);
	/* The end of a wrapped ring stands before its beginning. */
	if (barman->nr_segments > 1)
		return kb_source_spool(&barman->source, err);
	return 0;
}

int kb_barman_open_source(struct kb_barman **out, struct kb_source *source, struct kb_error *err)
{
	struct kb_barman *barman = calloc(1, sizeof(*barman));
	struct kb_error why = { 0 };
	int ret;

	*out = NULL;
	if (!barman) {
		kb_source_close(source);
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	}
	barman->source = *source;
	ret = open_capture(barman, &why);
	if (ret) {
		if (err)
			*err = why;
		kb_barman_close(barman);
		return why.code ? why.code : ret;
	}
	*out = barman;
	return 0;
}

int kb_barman_open(struct kb_barman **out, const char *path, struct kb_error *err)
{
	struct kb_source source;
	int ret = kb_source_open(&source, path, err);

	*out = NULL;
	return ret ? ret : kb_barman_open_source(out, &source, err);
}

int kb_barman_open_memory(struct kb_barman **out, const void *data, size_t size,
			  struct kb_error *err)
{
	struct kb_source source;
	int ret = kb_source_open_memory(&source, data, size, err);

	*out = NULL;
	return ret ? ret : kb_barman_open_source(out, &source, err);
}

void kb_barman_close(struct kb_barman *barman)
{
	if (!barman)
		return;
	barman_header_free(barman);
	free(barman->counters);
	free(barman->custom);
	free(barman->chain);
	free(barman->counter_state);
	kb_source_close(&barman->source);
	free(barman);
}

void kb_barman_set_counters(struct kb_barman *barman, enum kb_counters how)
{
	barman->how = how;
	barman->decided = false;
}

void kb_barman_set_window(struct kb_barman *barman, size_t bytes)
{
	size_t least = (size_t)64 << 10;

	kb_source_set_window(&barman->source, bytes < least ? least :
					 bytes > KB_SOURCE_WANT_MAX ? KB_SOURCE_WANT_MAX : bytes);
}

const struct kb_header *kb_barman_header(const struct kb_barman *barman)
{
	return &barman->header;
}

int barman_next_window(struct kb_barman *barman, struct kb_event *event, struct kb_error *err)
{
	struct kb_error why;
	int ret = 1;

	if (!barman->decided && barman_counters_decide(barman, &why))
		ret = why.code;
	while (ret == 1) {
		if (barman->next(barman, event) == 1)
			return 1;
		if (barman->ended)
			return 0;
		ret = barman_cursor_advance(barman, &why);
	}
	return ret ? barman_end_early(barman, &why, err) : barman_tell_end(barman, err);
}

int kb_barman_next(struct kb_barman *barman, struct kb_event *event, struct kb_error *err)
{
	return barman_next(barman, event, err);
}

int barman_decode_block(struct kb_barman *barman, const void *block, size_t bytes,
			struct kb_event *event)
{
	barman->at = barman->window = block;
	barman->end = barman->at + bytes;
	barman->window_offset = 0;
	return barman->next(barman, event);
}

int barman_set_nr_counters(struct kb_barman *barman, uint32_t core, uint32_t nr)
{
	uint64_t *counters = reallocarray(barman->counters, (size_t)nr + 1, sizeof(*counters));

	if (!counters)
		return -ENOMEM;
	barman->counters = counters;
	barman->header.pmus[core].num_counters = nr;
	return 0;
}

int kb_barman_rewind(struct kb_barman *barman)
{
	if (barman->source.kind == KB_SOURCE_STREAM && barman->nr_segments &&
	    barman->source.offset > barman->segments[0].start)
		return -ESPIPE;
	barman_cursor_init(barman);
	barman_counters_reset(barman);
	return 0;
}

int kb_barman_keep(struct kb_barman *barman, struct kb_error *err)
{
	return kb_source_spool(&barman->source, err);
}
