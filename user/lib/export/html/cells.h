/* SPDX-License-Identifier: MIT */
/*
 * The overview of a capture with more records than a page can show: the time of each CPU in cells, as
 * wide as 2^n ns. A cell keeps exact sums. What is as long as a cell, and what is lost, is kept as it
 * is, and so are marks.
 */
#ifndef KB_LIB_EXPORT_HTML_CELLS_H
#define KB_LIB_EXPORT_HTML_CELLS_H

#include "base/io/out_packet.h"
#include "base/table.h"
#include "export/html/kinds.h"

struct kb_html_cpu_cells;

/* The longest wait that ended in a cell. */
struct kb_html_wait_cell {
	uint64_t cell, nr;
	struct kb_html_wakeup longest;
};

struct kb_html_cells {
	int64_t first;			/* where the first cell begins */
	unsigned int shift;		/* a cell has 2^shift ns */
	uint32_t cpus;
	struct kb_html_cpu_cells *rows;	/* of each CPU, and of events without one */
	struct kb_table tracks;		/* of counters and series, by CPU */
	struct kb_html_wait_cell waits;
	int64_t border;			/* where the piece began: the last time of all before it */
	int64_t latest;			/* of all so far */
	int64_t from, to;		/* the times in this piece; from > to: none yet */
	uint64_t nr;			/* its events */
};

/* Cells for @records from @first to @last. Returns 0 or -ENOMEM. A zeroed struct may be released. */
int kb_html_cells_init(struct kb_html_cells *cells, uint32_t cpus, int64_t first, int64_t last,
		       uint64_t records);
void kb_html_cells_release(struct kb_html_cells *cells);

/* Take an event of the current piece. Cells that are complete go to @out. */
void kb_html_cells_slice(struct kb_html_cells *cells, struct kb_out *out,
			 const struct kb_html_slice *slice, bool busy);
void kb_html_cells_sample(struct kb_html_cells *cells, struct kb_out *out,
			  const struct kb_html_sample *sample);
/* False: no memory. */
bool kb_html_cells_value(struct kb_html_cells *cells, struct kb_out *out,
			 const struct kb_html_value *value);
void kb_html_cells_handler(struct kb_html_cells *cells, struct kb_out *out,
			   const struct kb_html_handler *handler);
void kb_html_cells_wakeup(struct kb_html_cells *cells, struct kb_out *out,
			  const struct kb_html_wakeup *wakeup);
void kb_html_cells_mark(struct kb_html_cells *cells, struct kb_out *out,
			const struct kb_html_mark *mark);

/*
 * End the piece: all cells are complete, and what follows is of the next one. The last bytes are its
 * first and last time and the number of its events, 24 bytes, lowest first.
 */
void kb_html_cells_end_piece(struct kb_html_cells *cells, struct kb_out *out);

#endif
