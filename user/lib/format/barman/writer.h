/* SPDX-License-Identifier: MIT */
/*
 * Internals of the writer, shared by its files:
 *
 *	writer.c		public functions; header and tables in memory
 *	encode.c		struct kb_event -> block
 *	output.c		blocks and header -> file, pipe or ring; sync and finish
 */
#ifndef KB_LIB_FORMAT_BARMAN_WRITER_H
#define KB_LIB_FORMAT_BARMAN_WRITER_H

#include <kbarman/barman.h>

#include "base/io/behind.h"
#include "format/barman/places.h"
#include "format/wire.h"

#define BARMAN_OUT_BYTES	((size_t)256 << 10)	/* size of the buffer */
#define BARMAN_RECORD_MAX	((size_t)8 << 20)	/* the reader accepts twice that */

struct kb_barman_writer {
	int fd;
	struct kb_out *out;		/* in place of fd; NULL: fd */
	bool seekable;			/* a regular file: the header can be written last */
	bool header_sent;		/* the header was written to a file that can't seek */
	bool swap;
	bool extended;			/* the fact kbarman.ext=1 was given */
	bool wide_states;		/* the fact kbarman.states was given */
	uint64_t base;			/* offset of the capture in the file */
	bool spare_series;		/* as in the layout */
	uint64_t limit;			/* length of a linear buffer; UINT64_MAX: no limit */

	/* The header as it will be in the file. Unused rows are untouched pages. */
	struct barman_shape shape;
	struct barman_places places;
	uint8_t *header;
	uint32_t nr_tasks, nr_maps, nr_charts, nr_series;
	uint32_t string_bytes;
	uint32_t *string_index;		/* hash table of offset + 1 */
	uint32_t string_slots, nr_strings;
	uint64_t string_seed;		/* of the hash, so that no names can force collisions */
	uint32_t *num_counters;		/* by core */
	uint64_t last_timestamp;

	/* What the file already has of the tables. */
	uint32_t synced_tasks, synced_maps, synced_strings;
	bool synced_rest;		/* PMU and custom tables */

	/* Linear: blocks that are not in the file yet. */
	uint8_t *buffer;
	size_t used, room;
	uint64_t flushed;		/* bytes of the record buffer in the file */
	uint64_t tail;			/* bytes behind these, until more are flushed */

	/* Circular: the whole record buffer. Offsets only grow. */
	uint8_t *ring;
	uint64_t ring_bytes, write, read, synced_ring;

	struct kb_behind *behind;	/* NULL: writes are done at once */
	struct kb_error error;		/* the first input/output error */
};

static inline uint8_t *barman_header_field(struct kb_barman_writer *w, uint64_t offset)
{
	return w->header + offset;
}

/*
 * Reserve a block with @length bytes after the length word, and write the length word. NULL
 * with *@error set: -E2BIG, -ENOSPC (a linear buffer of given length is full) or the error of
 * the file.
 */
uint8_t *barman_reserve(struct kb_barman_writer *writer, uint64_t length, int *error);

/* Append whole blocks to a linear store. Returns 0, -ENOSPC as above, or the error of the file. */
int barman_append(struct kb_barman_writer *writer, const void *blocks, size_t bytes);

/*
 * From now on write to @out, which can't seek: all rows come before the first record. If the layout
 * has the length of all blocks, so has the header.
 */
void barman_write_to(struct kb_barman_writer *writer, struct kb_out *out);

/* Write buffered blocks. If the header can't come last, it is written first. */
int barman_flush(struct kb_barman_writer *writer);

/*
 * Write whole blocks behind all that was flushed, and behind those of earlier calls; nothing may be
 * buffered. The header does not count them: they are for kb_barman_salvage(), if this process is
 * killed. They are gone when more is flushed. Files that can't seek get none.
 */
int barman_write_tail(struct kb_barman_writer *writer, const void *blocks, size_t bytes);

/*
 * barman_write_behind(): from now on, until finish, a thread writes to the file if it is a
 * regular file, and errors are returned by later calls. barman_wait(): wait until the thread
 * has done all its work.
 */
int barman_write_behind(struct kb_barman_writer *writer);
int barman_wait(struct kb_barman_writer *writer);

int barman_write_rows(struct kb_barman_writer *writer);
int barman_write_header(struct kb_barman_writer *writer);
int barman_write_ring(struct kb_barman_writer *writer);

/* Give unused custom rows valid values, before the header is written. */
void barman_complete_header(struct kb_barman_writer *writer);

#endif
