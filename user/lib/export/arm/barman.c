// SPDX-License-Identifier: MIT
/*
 * The same capture for readers that know numbers of tasks alone, and no processes. The records are
 * read twice: the first time says which threads were sampled, which need rows, and how long the
 * records are, which the header says.
 */
#include <errno.h>
#include <string.h>

#include "analysis/facts/capture_tables.h"
#include "export/arm/barman_rows.h"
#include "export/list.h"
#include "export/run.h"
#include "format/barman/writer.h"

#define OF_PROCESSES	"maps=process"

struct barman {
	struct kb_trace *trace;
	struct kb_header header;	/* of the output; strings and rows are those of the capture */
	struct kb_table sampled;	/* numbers of tasks */
	struct kb_barman_rows rows;
	uint64_t bytes;			/* of all blocks */
	uint64_t refused;		/* records that can't be written */
};

static int write_nothing(void *context, const void *data, size_t size)
{
	(void)context;
	(void)data;
	(void)size;
	return 0;
}

/* The task to which the addresses of the record belong; a switch has those of the one that leaves. */
static int note_task(struct barman *x, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	uint64_t task_id = event->task_id;

	if (event->type == KB_EVENT_TASK_SWITCH && walk->known && event->task_switch.nr_chain)
		task_id = walk->running;
	else if (event->type != KB_EVENT_SAMPLE || !event->sample.has_pc)
		return 0;
	return kb_table_get(&x->sampled, &task_id) ? 0 : -ENOMEM;
}

/* Write what is shown of the records, and note their tasks if nobody has done it. */
static int write_records(struct barman *x, struct kb_barman_writer *writer, bool note,
			 struct kb_error *err)
{
	const struct kb_walk *walk;
	int ret = 0;

	while (!ret && kb_export_next(x->trace, err)) {
		walk = kb_shown(x->trace);
		/* Of some records only slices are wanted. */
		if (!walk || (walk->event.type == KB_EVENT_UNKNOWN &&
			      x->trace->walk.event.type != KB_EVENT_UNKNOWN))
			continue;
		if (note)
			ret = note_task(x, &x->trace->walk);
		ret = ret ?: kb_barman_writer_event(writer, &walk->event);
		if (ret == -EINVAL || ret == -ERANGE || ret == -E2BIG) {
			x->refused += note;
			ret = 0;
		}
	}
	return ret;
}

/* One pass over the records, into @out. */
static int pass(struct barman *x, struct kb_out *out, bool note, struct kb_error *err)
{
	struct kb_barman_writer *writer;
	struct kb_barman_layout layout;
	int ret = kb_export_begin(x->trace, err);

	if (ret)
		return ret;
	kb_tables_layout(&x->header, &layout);
	layout.buffer_length = x->bytes;
	ret = kb_barman_writer_create(&writer, -1, &layout, err);
	if (ret)
		return ret;
	barman_write_to(writer, out);
	ret = kb_tables_copy(&x->header, OF_PROCESSES, writer) ?:
	      write_records(x, writer, note, err) ?: kb_barman_writer_finish(writer, false, err);
	if (ret && !err->code)
		kb_error_set(err, ret, KB_NO_OFFSET, "the capture can't be written: %s",
			     strerror(-ret));
	x->bytes = writer->flushed;
	x->header.last_timestamp = writer->last_timestamp;
	kb_barman_writer_destroy(writer);
	return ret;
}

static int count(struct barman *x, struct kb_error *err)
{
	struct kb_out *nothing;
	int ret = kb_out_function(&nothing, write_nothing, NULL);

	if (ret)
		return kb_error_set(err, ret, KB_NO_OFFSET, "out of memory");
	x->header.nr_maps = 0;
	ret = pass(x, nothing, true, err);
	kb_out_destroy(nothing);
	return ret;
}

static int make_rows(struct barman *x, struct kb_error *err)
{
	const struct kb_header *header = kb_trace_header(x->trace);
	const char *whose = kb_barman_fact(kb_trace_barman(x->trace), "maps");
	int ret;

	x->header.nr_maps = header->nr_maps;
	if (!whose || strcmp(whose, "process") != 0)
		return 0;	/* they have numbers of tasks */
	ret = kb_barman_rows_make(&x->rows, header, x->trace->tasks, &x->sampled);
	if (ret == -E2BIG)
		return kb_error_set(err, ret, KB_NO_OFFSET, "%u threads were sampled, and their "
				    "mappings would take %llu rows; a capture has at most %u: "
				    "choose fewer threads with --task or --tid, or less time",
				    x->sampled.nr, (unsigned long long)x->rows.wanted,
				    KB_BARMAN_ROWS_MAX);
	if (ret)
		return kb_error_set(err, ret, KB_NO_OFFSET, "out of memory");
	x->header.maps = x->rows.rows;
	x->header.nr_maps = x->rows.nr;
	if (x->rows.nr)
		x->header.max_mmap_layout = x->rows.nr;
	return 0;
}

static int run(struct kb_trace *trace, const struct kb_export_options *options,
	       struct kb_out *out, struct kb_error *err)
{
	struct kb_error ignored, *why = err ?: &ignored;
	struct barman x = { .trace = trace, .header = *kb_trace_header(trace) };
	uint64_t shown = trace->nr_shown;
	int ret;

	why->code = 0;
	kb_table_init(&x.sampled, sizeof(uint64_t), 1);
	/* A capture from a pipe is read twice, too. */
	ret = kb_barman_keep(trace->barman, why);
	if (!ret && !kb_trace_tasks(trace, why))
		ret = why->code;
	ret = ret ?: count(&x, why) ?: make_rows(&x, why);
	trace->nr_shown = shown;
	if (!ret) {
		if (x.refused)
			kb_export_say(options, "%llu records are damaged and were left out",
				      (unsigned long long)x.refused);
		ret = pass(&x, out, false, why);
	}
	if (!ret)
		ret = kb_export_end(trace, out, false, err);
	kb_barman_rows_release(&x.rows);
	kb_table_release(&x.sampled);
	return ret;
}

const struct kb_export kb_export_barman = {
	.name = "barman",
	.extension = ".barman",
	.description = "the capture again, for readers that know threads and no processes",
	.run = run,
};
