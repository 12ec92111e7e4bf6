// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>

#include "query/query_put.h"
#include "query/query_walk.h"

#define BETWEEN_STOPS	0xfff	/* records between two looks whether the question is to end */

int64_t query_walk_ns(const struct query_walk *walk)
{
	return barman_clock_ns(&walk->trace->barman->clock, walk->event->timestamp);
}

/* ---- where to begin, and where to end ---- */

static bool may_seek(const struct query_walk *walk)
{
	const struct query_bounds *bounds = &walk->bounds;

	if (!walk->table->seeks ||
	    (walk->table->readings && kb_barman_fact(walk->trace->barman, "counts")))
		return false;
	return bounds->has_record || bounds->from != INT64_MIN || bounds->until != INT64_MAX;
}

static int seek_record(struct query_walk *walk, const struct kb_places *places)
{
	struct kb_barman *barman = walk->trace->barman;
	uint64_t position = barman_position(barman, walk->bounds.record - barman->header.word_size);

	if (position == UINT64_MAX) {
		walk->bounds.nothing = true;
		return 0;
	}
	kb_places_go(places, kb_places_at(places, position), walk->trace);
	walk->stop = position + 1;
	return 0;
}

static int seek(struct query_walk *walk, struct kb_error *err)
{
	const struct kb_places *places = query_file_places(walk->file, err);
	uint32_t from;

	if (!places)
		return err->code == -EINTR || err->code == -ENOMEM ? err->code : 0;
	if (walk->table->readings && places->readings)
		return 0;
	if (!walk->trace->barman->decided && barman_counters_decide(walk->trace->barman, err))
		return err->code;
	if (walk->bounds.has_record)
		return seek_record(walk, places);
	from = kb_places_from(places, walk->bounds.from);
	walk->stop = kb_places_until(places, walk->bounds.until);
	/* a row may begin in front of its record, but no row ends before it begins */
	if (from == places->nr || !walk->stop)
		walk->bounds.nothing = !walk->table->begins;
	else
		kb_places_go(places, from, walk->trace);
	return 0;
}

int query_walk_begin(struct query_walk *walk, const struct query_table *table,
		     struct query_file *file, const struct query_bounds *bounds,
		     struct kb_error *err)
{
	int ret;

	*walk = (struct query_walk){
		.table = table, .file = file, .bounds = *bounds, .stop = UINT64_MAX,
	};
	walk->trace = query_file_walk(file, err);
	if (!walk->trace)
		return err->code ? err->code : -ENOMEM;
	walk->event = &walk->trace->walk.event;
	walk->state = calloc(1, table->state_bytes + 1);
	ret = walk->state ? 0 : -ENOMEM;
	if (!ret && table->begin)
		ret = table->begin(walk, err);
	if (!ret && may_seek(walk))
		ret = seek(walk, err);
	if (ret)
		query_walk_end(walk);
	return ret;
}

bool query_walk_resume(struct query_walk *walk, const struct query_bounds *bounds)
{
	const struct kb_places *places = &walk->file->places;
	const struct kb_barman *barman = walk->trace->barman;
	unsigned int word = barman->header.word_size;
	uint64_t here, there;

	if (!walk->bounds.has_record || !bounds->has_record || walk->stop == UINT64_MAX ||
	    (walk->behind && !walk->again) || walk->file->number != bounds->file)
		return false;
	here = barman_position(barman, walk->event->offset - word);
	there = barman_position(barman, bounds->record - word);
	/* it must be ahead, with no place between that is nearer */
	if (here == UINT64_MAX || there == UINT64_MAX || there < here + !walk->again ||
	    places->rows[kb_places_at(places, there)].position > here)
		return false;
	walk->bounds = *bounds;
	walk->stop = there + 1;
	walk->behind = false;
	walk->nr_rows = 0;
	walk->number = 0;
	return true;
}

void query_walk_end(struct query_walk *walk)
{
	if (!walk->trace)
		return;
	if (walk->table->end && walk->state)
		walk->table->end(walk);
	free(walk->state);
	query_file_done(walk->file, walk->trace);
	walk->trace = NULL;
	walk->state = NULL;
}

/* ---- rows ---- */

/* Is the current row wanted? Fills walk->row. */
static kb_always_inline bool fits(struct query_walk *walk)
{
	const struct query_bounds *bounds = &walk->bounds;
	struct query_row *row = &walk->row;

	if (walk->table->place) {
		walk->table->place(walk);
	} else {
		row->ticks = walk->event->timestamp;
		row->core = walk->event->core;
		row->task_id = walk->event->task_id;
		row->has_task = true;
	}
	if (kb_likely(!bounds->any))
		return true;
	if ((bounds->has_core && row->core != bounds->core) ||
	    (bounds->has_task && (row->task_id != bounds->task_id || !row->has_task)) ||
	    (bounds->has_record && walk->event->offset != bounds->record))
		return false;
	if (!walk->table->place)
		row->at = query_walk_ns(walk);
	return row->at >= bounds->from && row->at <= bounds->until;
}

/*
 * Is no row wanted from the record on that was read last? Where rows begin in front of their records, that
 * record has ended one, which may be wanted: the next one has no rows.
 */
static bool is_behind(struct query_walk *walk)
{
	bool ended = walk->ended;
	const struct kb_barman *barman = walk->trace->barman;
	uint64_t position = barman_position(barman, walk->event->offset - barman->header.word_size);

	if (position < walk->stop || position == UINT64_MAX)
		return false;
	if (!walk->table->begins || walk->bounds.has_record)
		return true;
	walk->ended = kb_timeline_oldest(walk->trace->timeline) > walk->bounds.until;
	return ended;
}

/* Go to the next record of a type that has rows. 1, 0 at the end, -EINTR. */
static int next_record(struct query_walk *walk, struct kb_error *err)
{
	const struct query_table *table = walk->table;
	const struct kb_walk *at;
	int ret;

	for (;;) {
		if (kb_unlikely(walk->again))
			ret = 1;
		else if (table->follows)
			ret = kb_trace_next(walk->trace, &at, err);
		else
			ret = trace_next_event(walk->trace, err);
		walk->again = false;
		if (kb_unlikely(ret <= 0)) {
			if (ret == -ENOMEM || ret == -EINTR)
				return ret;
			query_file_ended(walk->file, walk->trace, ret, err);
			return 0;
		}
		if (kb_unlikely(!(++walk->steps & BETWEEN_STOPS)) && *walk->file->stop)
			return -EINTR;
		if (kb_unlikely(walk->stop != UINT64_MAX) && is_behind(walk)) {
			walk->behind = true;
			walk->again = true;
			walk->bounds.nothing = true;
			return 0;
		}
		if (table->types >> walk->event->type & 1)
			return 1;
	}
}

static int next_rows(struct query_walk *walk, struct kb_error *err)
{
	int ret;

	walk->number = 0;
	walk->nr_rows = 0;
	if (!walk->behind) {
		ret = next_record(walk, err);
		if (ret > 0)
			return walk->table->rows ? walk->table->rows(walk) : 1;
		if (ret < 0)
			return ret;
		walk->behind = true;
	}
	walk->rests++;
	return walk->table->rest && !walk->bounds.nothing ? walk->table->rest(walk) : 0;
}

int query_walk_next(struct query_walk *walk, struct kb_error *err)
{
	int nr;

	if (walk->bounds.nothing)
		return 0;
	for (;;) {
		while (++walk->number < walk->nr_rows)
			if (fits(walk))
				return 1;
		do {
			nr = next_rows(walk, err);
			if (nr < 0)
				return nr;
		} while (!nr && !walk->behind);
		if (!nr)
			return 0;
		walk->nr_rows = (uint32_t)nr;
		if (fits(walk))
			return 1;
	}
}

/* ---- values ---- */

void query_walk_common(struct query_walk *walk, struct sqlite3_context *context, int column)
{
	const struct query_row *row = &walk->row;

	switch (column) {
	case QUERY_FILE:
		query_put_i64(context, walk->file->number + 1);
		break;
	case QUERY_RECORD:
		if (!walk->behind)
			query_put_u64(context, walk->event->offset);
		break;
	case QUERY_AT:
		query_put_i64(context, walk->table->place ? row->at : query_walk_ns(walk));
		break;
	case QUERY_CPU:
		if (row->core != KB_CORE_NONE)
			query_put_u64(context, row->core);
		break;
	case QUERY_TID:
		if (row->has_task)
			query_put_u64(context, row->task_id);
		break;
	case QUERY_PID:
		if (row->has_task)
			query_put_u64(context, query_file_pid(walk->file, row->task_id, row->ticks));
		break;
	case QUERY_TASK:
		if (row->has_task)
			query_put_text(context, query_file_task(walk->file, row->task_id,
								row->ticks));
		break;
	default:
		break;
	}
}

/*
 * SQLite distinguishes rows by it. The number of the file, the offset of the record and the number
 * of the row there have room in captures of up to 1 TiB: 7 bits, 40 and 16. Rows behind the last
 * record are few: their numbers are those of offsets in the header.
 */
long long query_walk_rowid(const struct query_walk *walk)
{
	uint64_t place = walk->behind ? walk->rests : walk->event->offset;

	return (long long)((uint64_t)walk->file->number << 56 | (place & 0xffffffffff) << 16 |
			   (walk->number & 0xffff));
}
