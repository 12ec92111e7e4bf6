// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>

#include "query/places.h"

/* Between two places. Inputs of fuzzers are small. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define LEAST_BYTES	((uint64_t)256)
#else
#define LEAST_BYTES	((uint64_t)64 << 10)
#endif
#define MOST_PLACES	4096U
#define MOST_STATES	((size_t)4 << 20)	/* bytes of the states of all places */

static int out_of_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

/* Bytes of records, as far as the file has them. */
static uint64_t data_bytes(const struct kb_barman *barman)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < barman->nr_segments; i++) {
		uint64_t end = barman->segments[i].end;

		if (end > barman->source.size)
			end = barman->source.size;
		if (end > barman->segments[i].start)
			bytes += end - barman->segments[i].start;
	}
	return bytes;
}

static void add_place(struct kb_places *places, struct kb_trace *trace, uint64_t position)
{
	kb_timeline_save(trace->timeline, places->states + places->nr * places->room);
	places->rows[places->nr++] = (struct kb_place){
		.position = position, .first = INT64_MAX, .last = INT64_MIN,
	};
}

/* The record that was read last. */
static void add_record(struct kb_places *places, struct kb_trace *trace)
{
	struct kb_place *place = &places->rows[places->nr ? places->nr - 1 : 0];
	struct kb_walk *walk = &trace->walk;

	walk->ns = barman_clock_ns(&trace->barman->clock, walk->event.timestamp);
	kb_timeline_feed(trace->timeline, &walk->event, walk->ns, walk->slices);
	if (walk->ns < place->first)
		place->first = walk->ns;
	if (walk->ns > place->last)
		place->last = walk->ns;
}

static int read_places(struct kb_places *places, struct kb_trace *trace, uint32_t most,
		       const volatile sig_atomic_t *stop, struct kb_error *err)
{
	const struct kb_event *event = &trace->walk.event;
	uint64_t each = data_bytes(trace->barman) / most, next = 0, position;
	unsigned int word = trace->barman->header.word_size;
	struct kb_error damage = { 0 };	/* is told by who reads the records */
	bool sampled = false;

	if (each < LEAST_BYTES)
		each = LEAST_BYTES;
	while (trace_next_event(trace, &damage) > 0) {
		position = barman_position(trace->barman, event->offset - word);
		if (position >= next && position != UINT64_MAX && places->nr < most) {
			add_place(places, trace, position);
			next = position + each;
		}
		add_record(places, trace);
		if (event->type == KB_EVENT_SAMPLE && !sampled) {
			sampled = true;
			places->readings = !event->sample.has_pc;
		}
		if (!(++places->records & 0xffff) && *stop)
			return kb_error_set(err, -EINTR, KB_NO_OFFSET, "interrupted");
	}
	if (damage.code == -EINTR) {
		*err = damage;
		return -EINTR;
	}
	places->first = kb_trace_first(trace);
	places->last = kb_trace_last(trace);
	places->duration = kb_trace_duration(trace);
	return 0;
}

int kb_places_read(struct kb_places *places, struct kb_trace *trace,
		   const volatile sig_atomic_t *stop, struct kb_error *err)
{
	uint32_t most;
	int ret;

	if (!trace->barman->decided && barman_counters_decide(trace->barman, err))
		return err->code;
	places->room = (kb_timeline_room(trace->timeline) + 15) & ~(size_t)15;
	most = MOST_STATES / places->room < MOST_PLACES ? (uint32_t)(MOST_STATES / places->room)
							 : MOST_PLACES;
	if (most < 8)
		most = 8;
	places->rows = calloc(most, sizeof(*places->rows));
	places->states = malloc(most * places->room);
	if (!places->rows || !places->states) {
		kb_places_release(places);
		return out_of_memory(err);
	}
	ret = read_places(places, trace, most, stop, err);
	if (ret)
		kb_places_release(places);
	else
		places->read = true;
	if (trace->barman->cumulative)
		places->nr = 0;		/* the first values have to be read */
	return ret;
}

void kb_places_release(struct kb_places *places)
{
	free(places->rows);
	free(places->states);
	*places = (struct kb_places){ 0 };
}

uint32_t kb_places_at(const struct kb_places *places, uint64_t position)
{
	uint32_t low = 0, high = places->nr;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (places->rows[middle].position <= position)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint32_t kb_places_from(const struct kb_places *places, int64_t ns)
{
	uint32_t i = 0;

	while (i < places->nr && places->rows[i].last < ns)
		i++;
	return i;
}

uint64_t kb_places_until(const struct kb_places *places, int64_t ns)
{
	uint32_t i = places->nr;

	while (i && places->rows[i - 1].first > ns)
		i--;
	return !i ? 0 : i < places->nr ? places->rows[i].position : UINT64_MAX;
}

void kb_places_go(const struct kb_places *places, uint32_t i, struct kb_trace *trace)
{
	barman_go(trace->barman, places->rows[i].position);
	kb_timeline_restore(trace->timeline, places->states + i * places->room);
}
