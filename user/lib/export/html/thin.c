// SPDX-License-Identifier: MIT
/* See thin.h. */
#include <errno.h>

#include "export/html/thin.h"

#define EVENTS_MAX	(1U << 18)	/* of a piece */
#define EVENTS_MIN	(1U << 12)
#define PIECES		64U		/* at least, unless they would be too small */

int kb_html_thin_init(struct kb_html_thin *thin, uint32_t cpus, int64_t first, int64_t last,
		      uint64_t records)
{
	uint64_t events = records / PIECES;

	thin->piece_events = events < EVENTS_MIN ? EVENTS_MIN :
			     events > EVENTS_MAX ? EVENTS_MAX : events;
	kb_html_sums_init(&thin->sums);
	kb_html_sums_init(&thin->group);
	kb_html_sums_init(&thin->all);
	for (unsigned int i = 0; i < KB_HTML_COLUMNS; i++)
		if (kb_out_memory(&thin->columns[i]))
			return -ENOMEM;
	if (kb_html_pack_begin(&thin->piece) || kb_html_pack_begin(&thin->overview) ||
	    kb_html_pack_begin(&thin->summary))
		return -ENOMEM;
	return kb_html_cells_init(&thin->cells, cpus, first, last, records);
}

void kb_html_thin_release(struct kb_html_thin *thin)
{
	kb_html_cells_release(&thin->cells);
	kb_html_pack_release(&thin->piece);
	kb_html_pack_release(&thin->overview);
	kb_html_pack_release(&thin->summary);
	kb_html_sums_release(&thin->sums);
	kb_html_sums_release(&thin->group);
	kb_html_sums_release(&thin->all);
	for (unsigned int i = 0; i < KB_HTML_COLUMNS; i++)
		kb_out_destroy(thin->columns[i]);
}

void kb_html_thin_slice(struct kb_html_thin *thin, const struct kb_html_slice *slice, bool busy)
{
	uint64_t length = (uint64_t)slice->end - (uint64_t)slice->start;

	kb_html_cells_slice(&thin->cells, thin->overview.in, slice, busy);
	if (slice->kind == KB_HTML_IDLE)
		thin->sums.idle += length;
	else if (slice->kind == KB_HTML_LOST)
		thin->sums.lost += length;
	else if (!kb_html_sums_run(&thin->sums, (uint32_t)(slice->what >> 2), length,
				   slice->what & 3))
		thin->no_memory = true;
}

void kb_html_thin_sample(struct kb_html_thin *thin, const struct kb_html_sample *sample)
{
	kb_html_cells_sample(&thin->cells, thin->overview.in, sample);
	if (!kb_html_sums_sample(&thin->sums, sample->task, sample->node, sample->weight))
		thin->no_memory = true;
}

void kb_html_thin_value(struct kb_html_thin *thin, const struct kb_html_value *value)
{
	if (!kb_html_cells_value(&thin->cells, thin->overview.in, value))
		thin->no_memory = true;
}

/* Write @sums, add them to @to (NULL: to nothing), and begin again. */
static int end_sums(struct kb_html_thin *thin, struct kb_out *page, struct kb_html_sums *sums,
		    struct kb_html_sums *to, const char *class)
{
	if (to && !kb_html_sums_add(to, sums))
		return -ENOMEM;
	kb_html_sums_put(sums, thin->summary.in);
	kb_html_sums_release(sums);
	kb_html_sums_init(sums);
	return kb_html_pack_end(&thin->summary, page, class);
}

static int end_group(struct kb_html_thin *thin, struct kb_out *page)
{
	thin->in_group = 0;
	return end_sums(thin, page, &thin->group, &thin->all, "group");
}

/* The length of each column in front of it. */
static void put_columns(struct kb_html_thin *thin)
{
	struct kb_out *to = thin->piece.in;
	const uint8_t *bytes;
	uint8_t *at;
	size_t size;

	for (unsigned int i = 0; i < KB_HTML_COLUMNS; i++) {
		bytes = kb_out_data(thin->columns[i], &size);
		at = kb_out_reserve(to, KB_HTML_VARINT);
		if (at)
			kb_out_commit(to, kb_proto_put_varint(at, size));
		kb_out_bytes(to, bytes, size);
		kb_out_clear(thin->columns[i]);
	}
}

int kb_html_thin_end_piece(struct kb_html_thin *thin, struct kb_out *page)
{
	int error;

	if (thin->no_memory)
		return -ENOMEM;
	put_columns(thin);
	kb_html_cells_end_piece(&thin->cells, thin->overview.in);
	error = kb_html_pack_end(&thin->piece, page, "piece") ?:
		kb_html_pack_end(&thin->overview, page, "overview") ?:
		end_sums(thin, page, &thin->sums, &thin->group, "sums");
	if (error)
		return error;
	thin->pieces++;
	return ++thin->in_group == KB_HTML_GROUP ? end_group(thin, page) : 0;
}

int kb_html_thin_end(struct kb_html_thin *thin, struct kb_out *page)
{
	/* An empty capture has one, too: the page needs no other way then. */
	int error = thin->cells.nr || !thin->pieces ? kb_html_thin_end_piece(thin, page) : 0;

	if (!error && thin->in_group)
		error = end_group(thin, page);
	return error ?: end_sums(thin, page, &thin->all, NULL, "all");
}
