// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "query/query_file.h"

/* Of the records that a walk has in memory: a join has several walks. */
#define WINDOW	((size_t)1 << 20)

int query_file_open(struct query_file *file, const char *path,
		    const struct kb_symbol_options *symbols, struct kb_error *err)
{
	const struct kb_trace_options how = { .size = sizeof(how), .symbols = symbols };
	int ret = kb_trace_open(&file->trace, path, &how, err);

	if (ret)
		return ret;
	file->path = path;
	file->symbols = symbols;
	kb_barman_set_window(kb_trace_barman(file->trace), WINDOW);
	kb_trace_barman(file->trace)->stop = file->stop;
	file->header = kb_trace_header(file->trace);
	file->tasks = kb_trace_tasks(file->trace, err);
	file->names = file->tasks ? kb_trace_names(file->trace, err) : NULL;
	if (!file->names || kb_idle_states_create(&file->states, file->header))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	kb_name_ids_init(&file->comms, file->tasks);
	return 0;
}

void query_file_close(struct query_file *file)
{
	for (unsigned int i = 0; i < QUERY_SPARE_WALKS; i++)
		kb_trace_close(file->spare[i]);
	for (unsigned int i = 0; i < KB_QUERY_LINES; i++)
		kb_out_destroy(file->lines[i]);
	if (file->tasks)
		kb_name_ids_release(&file->comms);
	kb_places_release(&file->places);
	kb_idle_states_release(&file->states);
	kb_trace_close(file->trace);
}

struct kb_trace *query_file_walk(struct query_file *file, struct kb_error *err)
{
	struct kb_trace *trace = NULL;

	for (unsigned int i = 0; i < QUERY_SPARE_WALKS && !trace; i++) {
		trace = file->spare[i];
		file->spare[i] = NULL;
	}
	if (!trace) {
		if (kb_trace_open(&trace, file->path, NULL, err))
			return NULL;
		kb_barman_set_window(kb_trace_barman(trace), WINDOW);
		kb_trace_barman(trace)->stop = file->stop;
	}
	if (kb_trace_rewind(trace, err)) {
		kb_trace_close(trace);
		return NULL;
	}
	return trace;
}

void query_file_done(struct query_file *file, struct kb_trace *trace)
{
	for (unsigned int i = 0; trace && i < QUERY_SPARE_WALKS; i++) {
		if (file->spare[i])
			continue;
		file->spare[i] = trace;
		return;
	}
	kb_trace_close(trace);
}

void query_file_ended(struct query_file *file, struct kb_trace *trace, int ret,
		      const struct kb_error *err)
{
	const struct kb_error *first;

	if (file->damage.code)
		return;
	if (ret < 0)
		file->damage = *err;
	else if (kb_barman_damage(kb_trace_barman(trace), &first))
		file->damage = *first;
}

const char *query_file_task(struct query_file *file, uint32_t task_id, uint64_t ticks)
{
	const struct kb_name_id *comm = kb_name_ids_find(&file->comms, task_id, ticks);

	return comm ? comm->name : "";
}

uint32_t query_file_pid(const struct query_file *file, uint32_t task_id, uint64_t ticks)
{
	struct kb_task_hit hit;

	kb_tasks_find(file->tasks, task_id, ticks, &hit);
	return hit.tgid;
}

struct kb_process_note query_file_note(struct query_file *file, uint32_t process, uint64_t ticks)
{
	const struct kb_process_notes *notes = kb_trace_notes(file->trace, NULL);

	return notes ? kb_process_notes_find(notes, process, ticks) : (struct kb_process_note){ 0 };
}

struct kb_symbolizer *query_file_symbolizer(struct query_file *file, struct kb_error *err)
{
	if (!file->symbolizer)
		file->symbolizer = kb_trace_symbolizer(file->trace, err);
	return file->symbolizer;
}

const struct kb_places *query_file_places(struct query_file *file, struct kb_error *err)
{
	struct kb_trace *trace;
	int ret;

	if (!file->places.read) {
		trace = query_file_walk(file, err);
		if (!trace)
			return NULL;
		ret = kb_places_read(&file->places, trace, file->stop, err);
		query_file_done(file, trace);
		if (ret)
			return NULL;
	}
	err->code = 0;
	return file->places.nr ? &file->places : NULL;
}
