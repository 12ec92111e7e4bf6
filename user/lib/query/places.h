/* SPDX-License-Identifier: MIT */
/*
 * Where a capture may be read from: every few hundred KiB a place with the times of the records from
 * there to the next place, and with what the timeline knows there. So a question about a time, or
 * about one record, reads only a part of the capture.
 */
#ifndef KB_LIB_QUERY_PLACES_H
#define KB_LIB_QUERY_PLACES_H

#include <signal.h>

#include "analysis/trace/inside.h"

struct kb_place {
	uint64_t position;	/* of a block: see barman_position() */
	int64_t first, last;	/* ns; of the records there, which may be out of order */
};

struct kb_places {
	bool read;		/* what follows is known */
	uint64_t records;
	int64_t first, last;	/* ns: kb_trace_first(), kb_trace_last() */
	uint64_t duration;	/* ns */
	bool readings;		/* the first sample has no PC: see analysis/samples/carry.h */
	struct kb_place *rows;
	uint32_t nr;		/* 0: the capture has to be read from its beginning */
	char *states;		/* of the timeline, by place */
	size_t room;		/* bytes of one */
};

/*
 * Read all of @trace, which stands before its first record. Returns 0, -ENOMEM, or -EINTR if *@stop
 * becomes true. kb_places_release() frees what @places has, also if nothing was read.
 */
int kb_places_read(struct kb_places *places, struct kb_trace *trace,
		   const volatile sig_atomic_t *stop, struct kb_error *err);
void kb_places_release(struct kb_places *places);

/* The number of the last place at or before @position. */
uint32_t kb_places_at(const struct kb_places *places, uint64_t position);

/* The number of the first place that has a record at or behind @ns; nr: there is none. */
uint32_t kb_places_from(const struct kb_places *places, int64_t ns);

/* The position behind the last place with a record at or before @ns; 0: there is none. */
uint64_t kb_places_until(const struct kb_places *places, int64_t ns);

/* Let @trace, which stands before its first record, go on with place number @i. */
void kb_places_go(const struct kb_places *places, uint32_t i, struct kb_trace *trace);

#endif
