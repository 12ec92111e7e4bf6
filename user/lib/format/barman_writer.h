/* SPDX-License-Identifier: MIT */
/*
 * The writer's insides, shared by its files:
 *
 *	barman_writer.c		the public face; header and tables, in memory
 *	barman_encode.c		struct kb_event -> block
 *	barman_output.c		blocks and header -> file, pipe or ring
 */
#ifndef KBARMAN_BARMAN_WRITER_H
#define KBARMAN_BARMAN_WRITER_H

#include <kbarman/barman.h>

#include "behind.h"
#include "barman_places.h"
#include "wire.h"

#define BARMAN_OUT_BYTES	((size_t)256 << 10)	/* buffered before they are written */
#define BARMAN_RECORD_MAX	((size_t)8 << 20)	/* the reader takes twice that */

struct kb_barman_writer {
	int fd;
	bool seekable;			/* a regular file: the header can be written last */
	bool header_sent;		/* to what can't seek */
	bool swap;
	bool extended;			/* kbarman.ext=1 was given */
	bool wide_states;		/* kbarman.states was */
	uint64_t base;			/* of the capture, in the file */
	bool spare_series;		/* as in the layout */
	uint64_t limit;			/* of a linear buffer; UINT64_MAX: none */

	/* The header as it will stand in the file. Unused rows are untouched pages. */
	struct barman_shape shape;
	struct barman_places places;
	uint8_t *header;
	uint32_t nr_tasks, nr_maps, nr_charts, nr_series;
	uint32_t string_bytes;
	uint32_t *string_index;		/* hash table of offset + 1 */
	uint32_t string_slots, nr_strings;
	uint32_t *num_counters;		/* by core */
	uint64_t last_timestamp;

	/* What the file has of the tables already. */
	uint32_t synced_tasks, synced_maps, synced_strings;
	bool synced_rest;		/* PMU and custom tables */

	/* Linear: blocks on their way to the file. */
	uint8_t *buffer;
	size_t used, room;
	uint64_t flushed;		/* bytes of the record buffer in the file */

	/* Circular: all of the record buffer; offsets are monotonic. */
	uint8_t *ring;
	uint64_t ring_bytes, write, read, synced_ring;

	struct kb_behind *behind;	/* NULL: what is written is written at once */
	struct kb_error error;		/* of input/output: the first one */
};

static inline uint8_t *barman_header_field(struct kb_barman_writer *w, uint64_t offset)
{
	return w->header + offset;
}

/*
 * Room for a block with @length bytes behind the length word, which is written;
 * NULL with *@error set: -E2BIG, -ENOSPC (a linear buffer of given length is full)
 * or what the file says.
 */
uint8_t *barman_reserve(struct kb_barman_writer *writer, uint64_t length, int *error);

/* Flush buffered blocks; sends the header first where it can't come last. */
int barman_flush(struct kb_barman_writer *writer);

/*
 * From now on, until finish, a thread writes to the file if it is a regular one, and errors
 * are told later; wait until it has done all of which it knows.
 */
int barman_write_behind(struct kb_barman_writer *writer);
int barman_wait(struct kb_barman_writer *writer);

int barman_sync_output(struct kb_barman_writer *writer);
int barman_write_rows(struct kb_barman_writer *writer);
int barman_write_header(struct kb_barman_writer *writer);
int barman_write_ring(struct kb_barman_writer *writer);
int barman_finish_output(struct kb_barman_writer *writer, bool compact);
int barman_copy_compact(const struct kb_barman_writer *writer, int fd);

/* Give unused custom rows values that are legal; before the header is written. */
void barman_complete_header(struct kb_barman_writer *writer);

#endif
