/* SPDX-License-Identifier: MIT */
/*
 * export/html/: the page that needs no other file. page/ has its parts, which scripts/embed turns
 * into C; a page of more records than a browser holds gets pieces, an overview and sums.
 *
 * A page of more events than a browser can hold: all events in pieces, which the page unpacks when
 * they are in view, and an overview with exact sums. Memory does not depend on the number of events.
 */
#ifndef KB_LIB_EXPORT_HTML_THIN_H
#define KB_LIB_EXPORT_HTML_THIN_H

#include "export/html/cells.h"
#include "export/html/pack.h"
#include "export/html/sums.h"

#define KB_HTML_GROUP	16U		/* pieces that have their sums together */

struct kb_html_thin {
	struct kb_html_cells cells;
	struct kb_html_pack piece, overview, summary;
	struct kb_out *columns[KB_HTML_COLUMNS];	/* of the piece, in memory */
	struct kb_html_sums sums, group, all;	/* of the piece, of its group, of the capture */
	uint64_t piece_events;		/* where a piece ends */
	uint32_t pieces, in_group;
	bool no_memory;
};

/* For @records from @first to @last. Returns 0 or -ENOMEM. A zeroed struct may be released. */
int kb_html_thin_init(struct kb_html_thin *thin, uint32_t cpus, int64_t first, int64_t last,
		      uint64_t records);
void kb_html_thin_release(struct kb_html_thin *thin);

/* Add a number to a column of the piece. */
static inline void kb_html_thin_put(struct kb_html_thin *thin, enum kb_html_column column,
				    uint64_t value)
{
	struct kb_out *out = thin->columns[column];
	uint8_t *at = kb_out_reserve(out, KB_HTML_VARINT);

	if (at)
		kb_out_commit(out, kb_proto_put_varint(at, value));
	else
		thin->no_memory = true;
}

/* Take an event. @busy: the slice is the run of a task, not of the idle task. */
void kb_html_thin_slice(struct kb_html_thin *thin, const struct kb_html_slice *slice, bool busy);
void kb_html_thin_sample(struct kb_html_thin *thin, const struct kb_html_sample *sample);
void kb_html_thin_value(struct kb_html_thin *thin, const struct kb_html_value *value);

static inline void kb_html_thin_handler(struct kb_html_thin *thin,
					const struct kb_html_handler *handler)
{
	kb_html_cells_handler(&thin->cells, thin->overview.in, handler);
}

static inline void kb_html_thin_wakeup(struct kb_html_thin *thin,
				       const struct kb_html_wakeup *wakeup)
{
	kb_html_cells_wakeup(&thin->cells, thin->overview.in, wakeup);
}

/* A mark is in the overview only. */
static inline void kb_html_thin_mark(struct kb_html_thin *thin, const struct kb_html_mark *mark)
{
	kb_html_cells_mark(&thin->cells, thin->overview.in, mark);
}

/* Whether the piece is long enough. */
static inline bool kb_html_thin_is_full(const struct kb_html_thin *thin)
{
	return thin->cells.nr >= thin->piece_events;
}

/* End the piece, whose events are in its columns. Returns 0 or a negative errno. */
int kb_html_thin_end_piece(struct kb_html_thin *thin, struct kb_out *page);
/* The same for the last one, and all that follows it. */
int kb_html_thin_end(struct kb_html_thin *thin, struct kb_out *page);

#endif
