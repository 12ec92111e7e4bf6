// SPDX-License-Identifier: MIT
/* One walk. Memory use grows with names of tasks and numbers of calls, not with records. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/names.h>
#include <kbarman/syscalls.h>

#include "analysis/facts/name_ids.h"
#include "analysis/facts/sources.h"
#include "analysis/time/histogram.h"
#include "analysis/time/syscall.h"
#include "analysis/trace/wanted.h"
#include "base/options.h"
#include "base/table.h"

struct tally {
	uint64_t key;			/* number of the task's name; flags and number of the call */
	struct kb_syscalls_row row;
	struct kb_histogram times;
};

struct syscalls {
	struct kb_syscalls shown;	/* the results; the first member */
	struct kb_syscalls_options how;
	struct kb_wanted wanted;
	struct kb_trace *trace;
	const struct kb_names *names;
	struct kb_name_ids comms;
	struct kb_table table;		/* struct tally */
	struct kb_syscalls_row *rows;
	int ended;			/* what the last step of the walk said */
};

static int no_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

static struct tally *tally_of(struct syscalls *syscalls, const struct kb_event *event)
{
	const struct kb_name_id *comm = kb_name_ids_find(&syscalls->comms, event->task_id, event->timestamp);
	bool compat = event->custom_counter.cpu & KB_SYSCALL_COMPAT;
	uint64_t key = comm ? (uint64_t)comm->id << 32 | (uint32_t)compat << 31 | (event->custom_counter.id & INT32_MAX) : 0;
	struct tally *tally = comm ? kb_table_get(&syscalls->table, &key) : NULL;

	if (!tally || tally->row.task)
		return tally;
	tally->row = (struct kb_syscalls_row){
		.task = comm->name, .call = kb_names_call(syscalls->names, event),
		.number = event->custom_counter.id, .compat = compat,
	};
	return tally;
}

static int add_call(struct syscalls *syscalls, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	int64_t result = event->custom_counter.result;
	struct tally *tally;

	if (!kb_wanted_cpu(&syscalls->wanted, event->core) || !kb_wanted_time(&syscalls->wanted, walk->ns) ||
	    !kb_wanted_task(&syscalls->wanted, event->task_id, event->timestamp))
		return 0;
	tally = tally_of(syscalls, event);
	if (!tally)
		return -ENOMEM;
	tally->row.count++;
	tally->row.errors += result < 0 && result >= -4095;
	return !event->custom_counter.begin ? 0 :
	       kb_histogram_add(&tally->times,
				(uint64_t)kb_syscall_ns(kb_trace_barman(syscalls->trace), event));
}

static int read_all(struct syscalls *syscalls, struct kb_error *err)
{
	const struct kb_walk *walk;
	int ret = 0;

	while (!ret && (syscalls->ended = kb_trace_next(syscalls->trace, &walk, err)) > 0)
		if (walk->event.type == KB_EVENT_CUSTOM_COUNTER &&
		    walk->event.custom_counter.what == KB_WHAT_SYSCALL &&
		    kb_syscall_is_own(syscalls->names, &walk->event))
			ret = add_call(syscalls, walk);
	return ret || syscalls->ended == -ENOMEM ? no_memory(err) : 0;
}

static int prepare(struct syscalls *syscalls, struct kb_error *err)
{
	const struct kb_tasks *tasks = kb_trace_tasks(syscalls->trace, err);

	syscalls->names = tasks ? kb_trace_names(syscalls->trace, err) : NULL;
	if (!syscalls->names)
		return -ENOMEM;
	syscalls->shown.recorded = kb_has_source(kb_trace_barman(syscalls->trace), "syscalls");
	kb_name_ids_init(&syscalls->comms, tasks);
	return kb_trace_rewind(syscalls->trace, err) ?:
	       kb_wanted_init(&syscalls->wanted, syscalls->trace, syscalls->how.filter, err);
}

/* ---- the results ---- */

static int compare(const void *left, const void *right)
{
	const struct kb_syscalls_row *a = left, *b = right;
	int order;

	if (a->stats.sum_ns != b->stats.sum_ns)
		return a->stats.sum_ns > b->stats.sum_ns ? -1 : 1;
	order = strcmp(a->task, b->task);
	return order ?: (a->number > b->number) - (a->number < b->number);
}

static int finish(struct syscalls *syscalls, struct kb_error *err)
{
	struct kb_syscalls *shown = &syscalls->shown;
	const struct kb_error *first;

	syscalls->rows = calloc((size_t)syscalls->table.nr + 1, sizeof(*syscalls->rows));
	if (!syscalls->rows)
		return no_memory(err);
	for (uint32_t i = 0; i < syscalls->table.nr; i++) {
		const struct tally *tally = kb_table_row(&syscalls->table, i);
		struct kb_syscalls_row *row = &syscalls->rows[shown->nr++];

		*row = tally->row;
		row->stats = kb_histogram_stats(&tally->times);
		shown->count += row->count;
		shown->sum_ns += row->stats.sum_ns;
	}
	qsort(syscalls->rows, shown->nr, sizeof(*syscalls->rows), compare);
	shown->rows = syscalls->rows;
	shown->duration_ns = kb_trace_duration(syscalls->trace);
	shown->damaged = syscalls->ended < 0;
	if (!shown->damaged && kb_barman_damage(kb_trace_barman(syscalls->trace), &first)) {
		shown->damaged = true;
		if (err)
			*err = *first;
	}
	return 0;
}

static void destroy(struct syscalls *syscalls)
{
	for (uint32_t i = 0; i < syscalls->table.nr; i++)
		kb_histogram_release(&((struct tally *)kb_table_row(&syscalls->table, i))->times);
	kb_table_release(&syscalls->table);
	kb_name_ids_release(&syscalls->comms);
	free(syscalls->rows);
	free(syscalls);
}

int kb_syscalls_create(const struct kb_syscalls **out, struct kb_trace *trace,
		       const struct kb_syscalls_options *options, struct kb_error *err)
{
	struct syscalls *syscalls = calloc(1, sizeof(*syscalls));
	int ret;

	if (!syscalls)
		return no_memory(err);
	syscalls->trace = trace;
	kb_table_init(&syscalls->table, sizeof(struct tally), 1);
	ret = KB_OPTIONS(&syscalls->how, options, err) ?: prepare(syscalls, err) ?: read_all(syscalls, err) ?:
	      finish(syscalls, err);
	if (ret) {
		destroy(syscalls);
		return ret;
	}
	*out = &syscalls->shown;
	return syscalls->shown.damaged;
}

void kb_syscalls_destroy(const struct kb_syscalls *syscalls)
{
	if (syscalls)
		destroy((struct syscalls *)syscalls);	/* NOLINT: it is its first member */
}
