// SPDX-License-Identifier: MIT
/* See cells.h; html.c has the form of the output. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/html/cells.h"

#define CELLS		(1U << 20)	/* of all CPUs, */
#define CPU_CELLS_MAX	(1U << 15)	/* of one */
#define CPU_CELLS_MIN	(1U << 10)
#define RECORDS		16U		/* at least, in a cell of a capture of few records */

/* Open cells of a CPU; `nr` is 0 if there is none. */
struct kb_html_cpu_cells {
	int64_t last[KB_HTML_KINDS];	/* times that were written; that of RUN is of all slices */
	bool ran;			/* in this piece */

	struct {
		uint64_t cell, nr, busy, longest;
		int64_t start, end;
		uint64_t task;		/* of the longest run, + 1; 0 = none */
	} slices;
	struct {
		uint64_t cell, nr, kernel;
		int64_t ns;		/* of the first one */
		uint32_t task, node;
	} samples;
	struct {
		uint64_t cell, nr;
		struct kb_html_handler longest;
	} handlers;
};

struct point {
	uint64_t nr;			/* of the value in the cell */
	int64_t ns;
	uint64_t value;
};

struct track {
	uint64_t key;			/* CPU << 33 | id << 1 | whether it is a series */
	uint64_t cell, nr, sum;
	struct point first, least, most, last;
	bool adds_up;
};

static uint64_t cell_of(const struct kb_html_cells *cells, int64_t ns)
{
	return ((uint64_t)ns - (uint64_t)cells->first) >> cells->shift;
}

static uint64_t most_cells(uint32_t cpus, uint64_t records)
{
	uint64_t most = CELLS / (cpus + 1), few = records / RECORDS / (cpus + 1);

	most = most < CPU_CELLS_MIN ? CPU_CELLS_MIN : most > CPU_CELLS_MAX ? CPU_CELLS_MAX : most;
	return few < CPU_CELLS_MIN ? CPU_CELLS_MIN : few < most ? few : most;
}

static void begin_piece(struct kb_html_cells *cells)
{
	cells->border = cells->latest;
	cells->from = INT64_MAX;
	cells->to = INT64_MIN;
	cells->nr = 0;
	for (uint32_t cpu = 0; cpu <= cells->cpus; cpu++) {
		memset(cells->rows[cpu].last, 0, sizeof(cells->rows[cpu].last));
		cells->rows[cpu].ran = false;
	}
}

int kb_html_cells_init(struct kb_html_cells *cells, uint32_t cpus, int64_t first, int64_t last,
		       uint64_t records)
{
	uint64_t most = most_cells(cpus, records);

	*cells = (struct kb_html_cells) { .first = first, .latest = INT64_MIN, .cpus = cpus };
	while (cell_of(cells, last) >= most)
		cells->shift++;
	kb_table_init(&cells->tracks, sizeof(struct track), 1);
	cells->rows = calloc((size_t)cpus + 1, sizeof(*cells->rows));
	if (!cells->rows)
		return -ENOMEM;
	begin_piece(cells);
	return 0;
}

void kb_html_cells_release(struct kb_html_cells *cells)
{
	kb_table_release(&cells->tracks);
	free(cells->rows);
	cells->rows = NULL;
}

static void take_time(struct kb_html_cells *cells, int64_t ns)
{
	cells->nr++;
	if (ns < cells->from)
		cells->from = ns;
	if (ns > cells->to)
		cells->to = ns;
	if (ns > cells->latest)
		cells->latest = ns;
}

static void put(struct kb_html_cells *cells, struct kb_out *out, uint32_t cpu, enum kb_html_kind kind,
		enum kb_html_kind clock, int64_t ns, const uint64_t *fields, unsigned int nr)
{
	uint8_t *at = kb_out_reserve(out, KB_HTML_EVENT_BYTES);

	if (!at)
		return;
	at = kb_proto_put_varint(at, (uint64_t)cpu << 4 | kind);
	at = kb_proto_put_varint(at, kb_html_time(&cells->rows[cpu].last[clock], ns));
	for (unsigned int i = 0; i < nr; i++)
		at = kb_proto_put_varint(at, fields[i]);
	kb_out_commit(out, at);
}

#define PUT(cells, out, cpu, kind, ns, ...)						\
	put(cells, out, cpu, kind, kind, ns, (const uint64_t[]) { __VA_ARGS__ },		\
	    sizeof((const uint64_t[]) { __VA_ARGS__ }) / sizeof(uint64_t))

/* ---- slices ---- */

static void put_slice(struct kb_html_cells *cells, struct kb_out *out, uint32_t cpu,
		      enum kb_html_kind kind, int64_t start, int64_t end, const uint64_t *more,
		      unsigned int nr)
{
	uint64_t fields[4] = { (uint64_t)end - (uint64_t)start };

	memcpy(fields + 1, more, nr * sizeof(*more));
	put(cells, out, cpu, kind, KB_HTML_RUN, start, fields, nr + 1);
	cells->rows[cpu].last[KB_HTML_RUN] = end;
}

static void end_slices(struct kb_html_cells *cells, struct kb_out *out, uint32_t cpu)
{
	struct kb_html_cpu_cells *row = &cells->rows[cpu];

	if (row->slices.nr)
		put_slice(cells, out, cpu, KB_HTML_CELL, row->slices.start, row->slices.end,
			  (uint64_t[]) { row->slices.busy, row->slices.task, row->slices.nr }, 3);
	row->slices.nr = 0;
}

void kb_html_cells_slice(struct kb_html_cells *cells, struct kb_out *out,
			 const struct kb_html_slice *slice, bool busy)
{
	struct kb_html_cpu_cells *row = &cells->rows[slice->cpu];
	uint64_t length = (uint64_t)slice->end - (uint64_t)slice->start;
	uint64_t cell = cell_of(cells, slice->start);

	take_time(cells, slice->end);
	if (!row->ran && slice->start < cells->border)
		PUT(cells, out, slice->cpu, KB_HTML_CROSSING, slice->start, length, slice->kind,
		    slice->what);
	row->ran = true;
	if (row->slices.nr && row->slices.cell != cell)
		end_slices(cells, out, slice->cpu);
	if (slice->kind == KB_HTML_LOST || length >> cells->shift) {
		end_slices(cells, out, slice->cpu);
		put_slice(cells, out, slice->cpu, slice->kind, slice->start, slice->end, &slice->what,
			  1);
		return;
	}
	if (!row->slices.nr++) {
		row->slices.cell = cell;
		row->slices.start = slice->start;
		row->slices.busy = row->slices.longest = row->slices.task = 0;
	}
	row->slices.end = slice->end;
	if (!busy)
		return;
	row->slices.busy += length;
	if (length >= row->slices.longest) {
		row->slices.longest = length;
		row->slices.task = (slice->what >> 2) + 1;
	}
}

/* ---- samples, handlers and wakeups ---- */

static void end_samples(struct kb_html_cells *cells, struct kb_out *out, uint32_t cpu)
{
	struct kb_html_cpu_cells *row = &cells->rows[cpu];

	if (row->samples.nr)
		PUT(cells, out, cpu, KB_HTML_SAMPLE, row->samples.ns, row->samples.task,
		    row->samples.node, row->samples.nr, row->samples.kernel);
	row->samples.nr = 0;
}

void kb_html_cells_sample(struct kb_html_cells *cells, struct kb_out *out,
			  const struct kb_html_sample *sample)
{
	struct kb_html_cpu_cells *row = &cells->rows[sample->cpu];
	uint64_t cell = cell_of(cells, sample->ns);

	take_time(cells, sample->ns);
	if (row->samples.cell != cell)
		end_samples(cells, out, sample->cpu);
	if (!row->samples.nr++) {
		row->samples.cell = cell;
		row->samples.ns = sample->ns;
		row->samples.task = sample->task;
		row->samples.node = sample->node;
		row->samples.kernel = 0;
	}
	row->samples.kernel += sample->kernel;
}

static void end_handlers(struct kb_html_cells *cells, struct kb_out *out, uint32_t cpu)
{
	struct kb_html_cpu_cells *row = &cells->rows[cpu];
	const struct kb_html_handler *longest = &row->handlers.longest;

	if (row->handlers.nr)
		PUT(cells, out, cpu, KB_HTML_SOURCE, longest->start, KB_HTML_HANDLER,
		    (uint64_t)longest->end - (uint64_t)longest->start, longest->task,
		    longest->number, longest->depth, row->handlers.nr);
	row->handlers.nr = 0;
}

void kb_html_cells_handler(struct kb_html_cells *cells, struct kb_out *out,
			   const struct kb_html_handler *handler)
{
	struct kb_html_cpu_cells *row = &cells->rows[handler->cpu];
	struct kb_html_handler *longest = &row->handlers.longest;
	uint64_t cell = cell_of(cells, handler->start);

	take_time(cells, handler->end);
	if (row->handlers.cell != cell)
		end_handlers(cells, out, handler->cpu);
	if (!row->handlers.nr++ || (uint64_t)handler->end - (uint64_t)handler->start >
				   (uint64_t)longest->end - (uint64_t)longest->start)
		*longest = *handler;
	row->handlers.cell = cell;
}

static void end_waits(struct kb_html_cells *cells, struct kb_out *out)
{
	const struct kb_html_wakeup *longest = &cells->waits.longest;

	if (cells->waits.nr)
		PUT(cells, out, longest->cpu, KB_HTML_SOURCE, longest->from, KB_HTML_WAKEUP,
		    (uint64_t)longest->to - (uint64_t)longest->from, longest->waker,
		    longest->woken, longest->to_cpu, longest->context, cells->waits.nr);
	cells->waits.nr = 0;
}

void kb_html_cells_wakeup(struct kb_html_cells *cells, struct kb_out *out,
			  const struct kb_html_wakeup *wakeup)
{
	struct kb_html_wakeup *longest = &cells->waits.longest;
	uint64_t cell = cell_of(cells, wakeup->to);

	take_time(cells, wakeup->to);
	if (cells->waits.cell != cell)
		end_waits(cells, out);
	if (!cells->waits.nr++ || (uint64_t)wakeup->to - (uint64_t)wakeup->from >
				  (uint64_t)longest->to - (uint64_t)longest->from)
		*longest = *wakeup;
	cells->waits.cell = cell;
}

/* ---- values and marks ---- */

static void put_point(struct kb_html_cells *cells, struct kb_out *out, const struct track *track,
		      const struct point *point, uint64_t value)
{
	PUT(cells, out, (uint32_t)(track->key >> 33),
	    track->key & 1 ? KB_HTML_SERIES : KB_HTML_COUNTER, point->ns,
	    (uint32_t)(track->key >> 1), value);
}

/*
 * A sum has the first value, and all others together where the last one was. Of a level the first, the
 * largest, the smallest and the last value are kept, in their order.
 */
static void end_track(struct kb_html_cells *cells, struct kb_out *out, struct track *track)
{
	const struct point *one = &track->least, *other = &track->most;

	if (!track->nr)
		return;
	put_point(cells, out, track, &track->first, track->first.value);
	if (track->adds_up) {
		if (track->nr > 1)
			put_point(cells, out, track, &track->last,
				  track->sum - track->first.value);
		track->nr = 0;
		return;
	}
	if (one->nr > other->nr) {
		one = &track->most;
		other = &track->least;
	}
	if (one->nr > 0 && one->nr < track->nr - 1)
		put_point(cells, out, track, one, one->value);
	if (other->nr > one->nr && other->nr < track->nr - 1)
		put_point(cells, out, track, other, other->value);
	if (track->nr > 1)
		put_point(cells, out, track, &track->last, track->last.value);
	track->nr = 0;
}

bool kb_html_cells_value(struct kb_html_cells *cells, struct kb_out *out,
			 const struct kb_html_value *value)
{
	uint64_t key = (uint64_t)value->cpu << 33 | (uint64_t)value->id << 1 |
		       (value->kind == KB_HTML_SERIES);
	struct track *track = kb_table_get(&cells->tracks, &key);
	uint64_t cell = cell_of(cells, value->ns);

	if (!track)
		return false;
	take_time(cells, value->ns);
	if (track->cell != cell)
		end_track(cells, out, track);
	track->last = (struct point) { track->nr, value->ns, value->value };
	if (!track->nr++) {
		track->cell = cell;
		track->adds_up = value->adds_up;
		track->first = track->least = track->most = track->last;
		track->sum = 0;
	}
	track->sum += value->value;
	if (value->value < track->least.value)
		track->least = track->last;
	if (value->value > track->most.value)
		track->most = track->last;
	return true;
}

void kb_html_cells_mark(struct kb_html_cells *cells, struct kb_out *out,
			const struct kb_html_mark *mark)
{
	take_time(cells, mark->ns);
	PUT(cells, out, mark->cpu, KB_HTML_MARK, mark->ns, mark->task, mark->type, mark->channel,
	    mark->colour, mark->length);
	kb_out_bytes(out, mark->text, mark->length);
}

/* ---- pieces ---- */

static void put_number(struct kb_out *out, uint64_t value)
{
	value = htole64(value);
	kb_out_bytes(out, &value, sizeof(value));
}

void kb_html_cells_end_piece(struct kb_html_cells *cells, struct kb_out *out)
{
	for (uint32_t cpu = 0; cpu <= cells->cpus; cpu++) {
		end_slices(cells, out, cpu);
		end_samples(cells, out, cpu);
		end_handlers(cells, out, cpu);
	}
	end_waits(cells, out);
	for (uint32_t i = 0; i < cells->tracks.nr; i++)
		end_track(cells, out, kb_table_row(&cells->tracks, i));
	put_number(out, (uint64_t)cells->from);
	put_number(out, (uint64_t)cells->to);
	put_number(out, cells->nr);
	begin_piece(cells);
}
