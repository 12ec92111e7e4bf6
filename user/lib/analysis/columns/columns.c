// SPDX-License-Identifier: MIT
/* The walk that fills the tables of kbarman/columns.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/losses.h>
#include <kbarman/names.h>

#include "analysis/columns/fill.h"
#include "analysis/facts/process_notes.h"
#include "analysis/trace/parts.h"
#include "base/array.h"
#include "base/options.h"

static bool wants_frames(const kb_columns_wanted wanted)
{
	return wanted[KB_TABLE_switches] >> KB_AT_switches_frames & 1 ||
	       wanted[KB_TABLE_samples] >> KB_AT_samples_frames & 1;
}

static int out_of_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory for the tables");
}

/* ---- create, destroy ---- */

static int begin(struct kb_columns *columns, struct kb_error *err)
{
	int ret = kb_trace_rewind(columns->trace, err);

	if (!ret && wants_frames(columns->wanted) && !kb_trace_symbolizer(columns->trace, err))
		ret = err && err->code ? err->code : -ENOMEM;
	if (!ret && (columns->wanted[KB_TABLE_counters] || columns->wanted[KB_TABLE_syscalls] ||
		     columns->wanted[KB_TABLE_block] || WANTED_OBJECT(columns, switches) ||
		     WANTED_OBJECT(columns, wakeups))) {
		columns->names = kb_trace_names(columns->trace, err);
		ret = columns->names ? 0 : -ENOMEM;
	}
	if (!ret && columns->wanted[KB_TABLE_interrupts] &&
	    kb_handlers_init(&columns->handlers, columns->trace))
		ret = out_of_memory(err);
	return ret;
}

int kb_columns_create(struct kb_columns **out, struct kb_trace *trace,
		      const struct kb_columns_options *options, struct kb_error *err)
{
	struct kb_columns_options how;
	struct kb_columns *columns;
	struct kb_error why = { 0 };
	int ret = KB_OPTIONS(&how, options, err);

	*out = NULL;
	if (ret)
		return ret;
	columns = calloc(1, sizeof(*columns));
	if (!columns)
		return out_of_memory(err);
	columns->trace = trace;
	kb_table_init(&columns->frames, 2 * sizeof(uint64_t), 2);
	kb_table_init(&columns->handler_names, sizeof(uint64_t), 1);
	ret = kb_columns_want(columns->wanted, how.tables, &why);
	if (!ret)
		ret = begin(columns, &why);
	if (ret) {
		if (err)
			*err = why;
		kb_columns_destroy(columns);
		return ret;
	}
	*out = columns;
	return 0;
}

void kb_columns_destroy(struct kb_columns *columns)
{
	if (!columns)
		return;
	kb_handlers_release(&columns->handlers);
	kb_table_release(&columns->frames);
	kb_table_release(&columns->handler_names);
	free(columns);
}

void kb_columns_watch(struct kb_columns *columns, kb_columns_watcher watch, void *context)
{
	columns->watch = watch;
	columns->watch_context = context;
}

/* ---- the tables that are not of records ---- */

static void put_string(struct kb_columns_part *part, struct kb_part_table *table, unsigned int at,
		       const char *string)
{
	kb_columns_part_text(part, table, at, string ? string : "", string ? strlen(string) : 0);
}

static int put_tasks(struct kb_columns *columns, struct kb_part_table *at)
{
	const struct kb_header *header = kb_trace_header(columns->trace);
	const struct kb_tasks *tasks = kb_trace_tasks(columns->trace, NULL);
	const struct kb_process_notes *notes = kb_trace_notes(columns->trace, NULL);
	struct kb_barman *barman = kb_trace_barman(columns->trace);

	if (!tasks || !notes)
		return -ENOMEM;
	for (uint32_t i = 0; i < header->nr_tasks; i++) {
		const struct kb_task *task = &header->tasks[i];
		struct kb_process_note note;
		struct kb_task_hit hit;

		if (!kb_part_row(columns->part, at))
			return -ENOMEM;
		kb_tasks_find(tasks, task->task_id, task->timestamp, &hit);
		KB_PUT(at, tasks, ticks, task->timestamp);
		KB_PUT(at, tasks, since_ns, kb_barman_ns(barman, task->timestamp));
		KB_PUT(at, tasks, tid, task->task_id);
		KB_PUT(at, tasks, pid, hit.tgid);
		put_string(columns->part, at, KB_AT_tasks_task, task->name);
		note = kb_process_notes_find(notes, hit.tgid, task->timestamp);
		put_string(columns->part, at, KB_AT_tasks_cgroup, note.cgroup);
		put_string(columns->part, at, KB_AT_tasks_command, note.command);
	}
	return 0;
}

static int put_images(struct kb_columns *columns, struct kb_part_table *at)
{
	const struct kb_header *header = kb_trace_header(columns->trace);
	struct kb_barman *barman = kb_trace_barman(columns->trace);

	for (uint32_t i = 0; i < header->nr_maps; i++) {
		const struct kb_map *map = &header->maps[i];

		if (!kb_part_row(columns->part, at))
			return -ENOMEM;
		KB_PUT(at, images, ticks, map->timestamp);
		KB_PUT(at, images, since_ns, kb_barman_ns(barman, map->timestamp));
		KB_PUT(at, images, tid, map->task_id);
		KB_PUT(at, images, address, map->base_address);
		KB_PUT(at, images, length, map->length);
		KB_PUT(at, images, offset, map->image_offset);
		put_string(columns->part, at, KB_AT_images_image, map->image);
		KB_PUT_TEXT(columns->part, at, images, identity, map->file.data, map->file.length);
	}
	return 0;
}

static int put_series(struct kb_columns *columns, struct kb_part_table *at)
{
	const struct kb_header *header = kb_trace_header(columns->trace);

	for (uint32_t i = 0; i < header->nr_series; i++) {
		const struct kb_series *series = &header->series[i];

		if (!kb_part_row(columns->part, at))
			return -ENOMEM;
		put_string(columns->part, at, KB_AT_series_names_series, series->name);
		put_string(columns->part, at, KB_AT_series_names_units, series->units);
		put_string(columns->part, at, KB_AT_series_names_description, series->description);
		KB_PUT(at, series_names, kind, series->series_class < KB_WORDS_SERIES ?
					 series->series_class : 0);
		KB_PUT(at, series_names, multiplier, series->multiplier);
	}
	return 0;
}

static int put_events(struct kb_columns *columns, struct kb_part_table *at)
{
	const struct kb_header *header = kb_trace_header(columns->trace);
	struct kb_names *names = kb_trace_names(columns->trace, NULL);

	if (!names)
		return -ENOMEM;
	for (uint32_t core = 0; core < header->max_cores; core++) {
		for (uint32_t place = 0; place < kb_names_of_core(names, core); place++) {
			uint32_t id = kb_names_counter_id(names, core, place);
			struct kb_text name = kb_names_counter(names, id);

			if (!kb_part_row(columns->part, at))
				return -ENOMEM;
			KB_PUT(at, events, cpu, core);
			KB_PUT(at, events, place, place);
			KB_PUT(at, events, id, id);
			KB_PUT_TEXT(columns->part, at, events, event, name.data, name.length);
		}
	}
	return 0;
}

static void put_loss(struct kb_columns *columns, struct kb_part_table *at, uint8_t kind,
		     uint32_t core, const char *what, uint64_t count)
{
	if (!kb_part_row(columns->part, at))
		return;
	KB_PUT(at, losses, kind, kind);
	KB_PUT(at, losses, cpu, core);
	put_string(columns->part, at, KB_AT_losses_what, what);
	KB_PUT(at, losses, count, count);
}

static int put_losses(struct kb_columns *columns, struct kb_part_table *at)
{
	const struct kb_losses *losses = kb_trace_losses(columns->trace, NULL);

	if (!losses)
		return -ENOMEM;
	if (losses->stated) {
		put_loss(columns, at, KB_WORD_WRITTEN, KB_CORE_NONE, "", losses->written);
		put_loss(columns, at, KB_WORD_OVERWRITTEN, KB_CORE_NONE, "", losses->overwritten);
	}
	for (uint32_t i = 0; i < losses->nr_rows; i++)
		put_loss(columns, at, KB_WORD_LOST, losses->rows[i].core, losses->rows[i].what,
			 losses->rows[i].count);
	for (uint32_t i = 0; i < losses->nr_missed; i++)
		put_loss(columns, at, KB_WORD_MISSED, KB_CORE_NONE, losses->missed[i].what,
			 losses->missed[i].count);
	for (uint32_t i = 0; i < losses->nr_stopped; i++)
		put_loss(columns, at, KB_WORD_STOPPED, losses->stopped[i].core,
			 losses->stopped[i].what, losses->stopped[i].count);
	return 0;
}

static int put_facts(struct kb_columns *columns, struct kb_part_table *at)
{
	static const char prefix[] = "kbarman.";
	const struct kb_header *header = kb_trace_header(columns->trace);
	size_t from, length;

	for (from = 0; from < header->string_table_length; from += length + 1) {
		const char *string = header->strings + from, *equals;

		length = strlen(string);
		equals = strchr(string, '=');
		if (strncmp(string, prefix, strlen(prefix)) != 0 || !equals)
			continue;
		string += strlen(prefix);
		if (!kb_part_row(columns->part, at))
			return -ENOMEM;
		KB_PUT_TEXT(columns->part, at, facts, key, string, (size_t)(equals - string));
		put_string(columns->part, at, KB_AT_facts_value, equals + 1);
	}
	return 0;
}

static int put_header(struct kb_columns *columns, struct kb_part_table *at)
{
	const struct kb_header *header = kb_trace_header(columns->trace);

	if (!kb_part_row(columns->part, at))
		return -ENOMEM;
	put_string(columns->part, at, KB_AT_header_target, header->target_name);
	KB_PUT(at, header, version, header->protocol_version);
	KB_PUT(at, header, word_size, header->word_size);
	KB_PUT(at, header, big_endian, header->big_endian);
	KB_PUT(at, header, cpus, header->max_cores);
	KB_PUT(at, header, sample_rate, header->timer_sample_rate);
	KB_PUT(at, header, timestamp_base, header->timestamp_base);
	KB_PUT(at, header, unix_base_ns, header->unix_base_ns);
	KB_PUT(at, header, last_timestamp, header->last_timestamp);
	return 0;
}

static int put_tables(struct kb_columns *columns)
{
	static const struct {
		enum kb_column_table_index table;
		int (*put)(struct kb_columns *columns, struct kb_part_table *at);
	} known[] = {
		{ KB_TABLE_tasks, put_tasks },	 { KB_TABLE_images, put_images },
		{ KB_TABLE_series_names, put_series }, { KB_TABLE_events, put_events },
		{ KB_TABLE_losses, put_losses }, { KB_TABLE_facts, put_facts },
		{ KB_TABLE_header, put_header },
	};
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(known) && !ret; i++)
		if (columns->wanted[known[i].table])
			ret = known[i].put(columns, &columns->part->tables[known[i].table]);
	return ret;
}

/* ---- parts ---- */

/* What the capture says at its end: times that are still open. */
static void put_end(struct kb_columns *columns)
{
	struct kb_slice slice;

	while (kb_trace_end(columns->trace, &slice))
		kb_columns_fill_slice(columns, &slice);
}

/* Fill the part. Returns 1, 0 or a negative errno, as kb_columns_next(). */
static int fill_part(struct kb_columns *columns, uint64_t records, uint64_t bytes,
		     struct kb_error *err)
{
	struct kb_columns_part *part = columns->part;
	const struct kb_walk *walk;
	bool first = !columns->begun;
	int ret = first ? put_tables(columns) : 0;

	columns->begun = true;
	while (!ret && part->records < records && part->bytes < bytes) {
		int more = kb_trace_next(columns->trace, &walk, &columns->damage);

		if (more <= 0) {
			columns->ended = true;
			columns->result = more;
			put_end(columns);
			break;
		}
		ret = kb_columns_fill(columns, walk);
		if (kb_unlikely(columns->watch) && !ret)
			ret = columns->watch(columns->watch_context, walk);
	}
	if (ret || part->failed)
		return kb_error_set(err, ret ? ret : -ENOMEM, KB_NO_OFFSET,
				    "out of memory for the tables: read smaller parts");
	return first || part->records || !columns->ended || part->bytes;
}

/* The part to fill: the one given back, if nobody else holds it. */
static struct kb_columns_part *take_part(struct kb_columns *columns, struct kb_columns_part *old)
{
	if (old && atomic_load_explicit(&old->holders, memory_order_acquire) == 1 &&
	    memcmp(old->wanted, columns->wanted, sizeof(old->wanted)) == 0) {
		kb_columns_part_clear(old);
		return old;
	}
	kb_columns_part_free(old);
	return kb_columns_part_create(columns->wanted);
}

int kb_columns_next(struct kb_columns *columns, uint64_t records, uint64_t bytes,
		    struct kb_columns_part **part, struct kb_error *err)
{
	struct kb_columns_part *taken = take_part(columns, *part);
	int ret;

	*part = NULL;
	if (!taken)
		return out_of_memory(err);
	columns->part = taken;
	ret = columns->ended ? 0 :
	      fill_part(columns, records ? records : 1, bytes ? bytes : 1, err);
	columns->part = NULL;
	if (ret > 0) {
		*part = taken;
		return 1;
	}
	kb_columns_part_free(taken);
	if (!ret && columns->result < 0) {
		ret = columns->result;
		columns->result = 0;
		if (err)
			*err = columns->damage;
	}
	return ret;
}
