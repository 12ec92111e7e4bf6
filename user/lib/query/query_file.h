/* SPDX-License-Identifier: MIT */
/* A capture that is asked: what its tables share, and the readers that walk over its records. */
#ifndef KB_LIB_QUERY_QUERY_FILE_H
#define KB_LIB_QUERY_QUERY_FILE_H

#include <signal.h>

#include <kbarman/names.h>

#include "analysis/facts/idle_states.h"
#include "analysis/facts/name_ids.h"
#include "analysis/facts/process_notes.h"
#include "analysis/trace/inside.h"
#include "query/make_lines.h"
#include "query/places.h"

#define QUERY_SPARE_WALKS	4

struct query_file {
	unsigned int number;
	const char *path, *name;	/* to open it (again); for people */
	struct kb_trace *trace;		/* for names and reports; tables walk with others */
	const struct kb_header *header;
	const struct kb_tasks *tasks;
	struct kb_names *names;
	struct kb_name_ids comms;
	struct kb_idle_states states;
	const struct kb_symbol_options *symbols;
	struct kb_symbolizer *symbolizer;	/* NULL: not asked for yet */
	struct kb_error damage;		/* code 0: none seen */
	struct kb_places places;
	struct kb_trace *spare[QUERY_SPARE_WALKS];
	struct kb_out *lines[KB_QUERY_LINES];	/* NULL: not made yet */
	const volatile sig_atomic_t *stop;	/* not 0: the question is to end */
};

int query_file_open(struct query_file *file, const char *path,
		    const struct kb_symbol_options *symbols, struct kb_error *err);
void query_file_close(struct query_file *file);

/* A trace of the same capture at its first record. NULL and @err: it can't be opened (again). */
struct kb_trace *query_file_walk(struct query_file *file, struct kb_error *err);

/* Give it back. */
void query_file_done(struct query_file *file, struct kb_trace *trace);

/* Remember what was wrong with the records, if something was; @ret is of the last step. */
void query_file_ended(struct query_file *file, struct kb_trace *trace, int ret,
		      const struct kb_error *err);

/* The name of a task at a time; lives as long as the file. "": no memory. */
const char *query_file_task(struct query_file *file, uint32_t task_id, uint64_t ticks);

/* Its process. */
uint32_t query_file_pid(const struct query_file *file, uint32_t task_id, uint64_t ticks);

/* What was noted of that process. */
struct kb_process_note query_file_note(struct query_file *file, uint32_t process, uint64_t ticks);

/* NULL and @err: kb_trace_symbolizer() failed. */
struct kb_symbolizer *query_file_symbolizer(struct query_file *file, struct kb_error *err);

/* Where records are; NULL: this capture has to be read from its beginning. @err if it failed. */
const struct kb_places *query_file_places(struct query_file *file, struct kb_error *err);

#endif
