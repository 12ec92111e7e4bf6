// SPDX-License-Identifier: MIT
/* One walk. Memory use grows with names of tasks, calls, functions and disks, not with records. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/ended.h>
#include <kbarman/names.h>
#include <kbarman/symbol.h>

#include "analysis/facts/capture_names.h"
#include "analysis/facts/name_ids.h"
#include "analysis/facts/sources.h"
#include "analysis/time/ended.h"
#include "analysis/time/histogram.h"
#include "analysis/trace/parts.h"
#include "analysis/trace/wanted.h"
#include "base/options.h"
#include "base/table.h"

struct tally {
	uint64_t key[2];		/* number of the task's name, and of the row; what else tells rows apart */
	struct kb_ended_row row;
	struct kb_histogram times;
};

#define NO_TASK	UINT32_MAX		/* number of the name of nobody */

struct ended {
	struct kb_ended shown;	/* the results; the first member */
	struct kb_ended_options how;
	struct kb_wanted wanted;
	struct kb_trace *trace;
	const struct kb_names *names;
	struct kb_symbolizer *symbolizer;	/* of faults */
	struct kb_name_ids comms;
	struct kb_table table;		/* struct tally */
	struct kb_ended_row *rows;
	int walked;			/* what the last step of the walk said */
};

static int no_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

/* The function whose instruction wanted the page of @event; NULL: it is no fault. */
static const struct kb_symbol *symbol_of(struct ended *ended, const struct kb_event *event)
{
	const struct kb_frame *frames;
	uint32_t nr;

	if (event->custom_counter.what != KB_WHAT_FAULT)
		return NULL;
	nr = kb_symbolizer_frames(ended->symbolizer, event->task_id, event->timestamp,
				  event->custom_counter.arguments[KB_FAULT_PC], &frames);
	return &frames[nr - 1].symbol;
}

/* What tells rows of a task apart, with the function of a fault. */
static void number_row(struct kb_ended_row *row, const struct kb_event *event)
{
	switch (event->custom_counter.what) {
	case KB_WHAT_SYSCALL:
		row->number = event->custom_counter.id;
		row->flags = event->custom_counter.cpu & KB_SYSCALL_COMPAT;
		break;
	case KB_WHAT_FAULT:
		row->number = kb_fault_kind(event);
		break;
	default:
		row->number = (uint32_t)event->custom_counter.arguments[KB_BLOCK_DEVICE];
		row->flags = event->custom_counter.cpu & KB_BLOCK_OPERATION;
	}
}

static void name_row(struct ended *ended, const struct kb_event *event, const struct kb_symbol *symbol,
		     struct kb_ended_row *row)
{
	if (symbol) {
		row->name = *symbol->name ? symbol->name : NULL;
		row->image = symbol->image_base;
	} else if (event->custom_counter.what == KB_WHAT_SYSCALL) {
		row->name = kb_names_call(ended->names, event);
	} else {
		row->name = kb_names_disk(ended->names, row->number);
	}
}

static struct tally *tally_of(struct ended *ended, const struct kb_event *event)
{
	uint32_t task_id = kb_ended_task(event), before = ended->table.nr;
	bool known = task_id || event->custom_counter.what != KB_WHAT_BLOCK;
	const struct kb_name_id *comm = known ? kb_name_ids_find(&ended->comms, task_id, event->timestamp) : NULL;
	const struct kb_symbol *symbol = symbol_of(ended, event);
	struct kb_ended_row row = { .task = comm ? comm->name : NULL };
	struct tally *tally;
	uint64_t key[2];

	if (known && !comm)
		return NULL;
	number_row(&row, event);
	key[0] = (uint64_t)(comm ? comm->id : NO_TASK) << 32 | row.number;
	key[1] = symbol ? symbol->id : row.flags;
	tally = kb_table_get(&ended->table, key);
	if (!tally || ended->table.nr == before)
		return tally;
	name_row(ended, event, symbol, &row);
	tally->row = row;
	return tally;
}

static int add(struct ended *ended, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	int64_t result = event->custom_counter.result;
	struct tally *tally;

	if (!kb_wanted_cpu(&ended->wanted, event->core) || !kb_wanted_time(&ended->wanted, walk->ns) ||
	    !kb_wanted_task(&ended->wanted, kb_ended_task(event), event->timestamp))
		return 0;
	tally = tally_of(ended, event);
	if (!tally)
		return -ENOMEM;
	tally->row.count++;
	tally->row.errors += result < 0 && result >= -4095;
	if (event->custom_counter.what == KB_WHAT_BLOCK)
		tally->row.bytes += event->custom_counter.arguments[KB_BLOCK_BYTES];
	return kb_ended_is_timed(event) ?
	       kb_histogram_add(&tally->times, kb_ended_ns(kb_trace_barman(ended->trace), event)) : 0;
}

static int read_all(struct ended *ended, struct kb_error *err)
{
	const struct kb_walk *walk;
	int ret = 0;

	while (!ret && (ended->walked = kb_trace_next(ended->trace, &walk, err)) > 0)
		if (walk->event.type == KB_EVENT_CUSTOM_COUNTER &&
		    walk->event.custom_counter.what == ended->how.what &&
		    (ended->how.what != KB_WHAT_SYSCALL || kb_syscall_is_own(ended->names, &walk->event)))
			ret = add(ended, walk);
	return ret || ended->walked == -ENOMEM ? no_memory(err) : 0;
}

/* NULL: what takes no time. */
static const char *source_of(enum kb_what what)
{
	return what == KB_WHAT_SYSCALL ? "syscalls" :
	       what == KB_WHAT_FAULT   ? "faults" :
	       what == KB_WHAT_BLOCK   ? "block" : NULL;
}

static int prepare(struct ended *ended, struct kb_error *err)
{
	const char *source = source_of(ended->how.what);
	const struct kb_tasks *tasks;

	if (!source)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "system calls, page faults and block requests take time");
	tasks = kb_trace_tasks(ended->trace, err);
	ended->names = tasks ? kb_trace_names(ended->trace, err) : NULL;
	if (!ended->names)
		return -ENOMEM;
	if (ended->how.what == KB_WHAT_FAULT)
		ended->symbolizer = kb_trace_symbolizer(ended->trace, err);
	if (ended->how.what == KB_WHAT_FAULT && !ended->symbolizer)
		return -ENOMEM;
	ended->shown.what = ended->how.what;
	ended->shown.recorded = kb_has_source(kb_trace_barman(ended->trace), source);
	kb_name_ids_init(&ended->comms, tasks);
	return kb_trace_rewind(ended->trace, err) ?:
	       kb_wanted_init(&ended->wanted, ended->trace, ended->how.filter, err);
}

/* ---- the results ---- */

static int compare(const void *left, const void *right)
{
	const struct kb_ended_row *a = left, *b = right;
	int order;

	if (a->stats.sum_ns != b->stats.sum_ns)
		return a->stats.sum_ns > b->stats.sum_ns ? -1 : 1;
	order = strcmp(a->task ?: "", b->task ?: "") ?: strcmp(a->name ?: "", b->name ?: "");
	order = order ?: (a->number > b->number) - (a->number < b->number);
	return order ?: (a->flags > b->flags) - (a->flags < b->flags);
}

static int finish(struct ended *ended, struct kb_error *err)
{
	struct kb_ended *shown = &ended->shown;

	ended->rows = calloc((size_t)ended->table.nr + 1, sizeof(*ended->rows));
	if (!ended->rows)
		return no_memory(err);
	for (uint32_t i = 0; i < ended->table.nr; i++) {
		const struct tally *tally = kb_table_row(&ended->table, i);
		struct kb_ended_row *row = &ended->rows[shown->nr++];

		*row = tally->row;
		row->stats = kb_histogram_stats(&tally->times);
		shown->count += row->count;
		shown->sum_ns += row->stats.sum_ns;
	}
	qsort(ended->rows, shown->nr, sizeof(*ended->rows), compare);
	shown->rows = ended->rows;
	shown->duration_ns = kb_trace_duration(ended->trace);
	shown->damaged = kb_trace_is_damaged(ended->trace, ended->walked, err);
	return 0;
}

static void destroy(struct ended *ended)
{
	for (uint32_t i = 0; i < ended->table.nr; i++)
		kb_histogram_release(&((struct tally *)kb_table_row(&ended->table, i))->times);
	kb_table_release(&ended->table);
	kb_name_ids_release(&ended->comms);
	free(ended->rows);
	free(ended);
}

int kb_ended_create(const struct kb_ended **out, struct kb_trace *trace,
		       const struct kb_ended_options *options, struct kb_error *err)
{
	struct ended *ended = calloc(1, sizeof(*ended));
	int ret;

	if (!ended)
		return no_memory(err);
	ended->trace = trace;
	kb_table_init(&ended->table, sizeof(struct tally), 2);
	ret = KB_OPTIONS(&ended->how, options, err) ?: prepare(ended, err) ?: read_all(ended, err) ?:
	      finish(ended, err);
	if (ret) {
		destroy(ended);
		return ret;
	}
	*out = &ended->shown;
	return ended->shown.damaged;
}

void kb_ended_destroy(const struct kb_ended *ended)
{
	if (ended)
		destroy((struct ended *)ended);	/* NOLINT: it is its first member */
}
