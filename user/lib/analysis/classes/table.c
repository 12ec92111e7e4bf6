// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/classes/table.h"
#include "analysis/facts/capture_names.h"
#include "analysis/latency/waited.h"
#include "analysis/time/ended.h"

#define WAITS_MOST	65536U		/* then one for all others of a kind */
#define STATE		(1ULL << 32)	/* in the number of a wait: the letter of a state alone */
#define INFERRED	8		/* ... and what is inferred, from this bit on */

struct group {
	uint64_t key;			/* task id << 32 | number of its name */
	bool wanted, recorded;
	uint32_t tgid;
	uint64_t lived;
};

struct sum {
	uint64_t key[2];	/* group << 32 | class, and what tells rows of a class apart */
	uint64_t ns;
};

/* What tells rows of calls and faults apart. */
#define KNOWN		(1ULL << 33)
#define COMPAT		(1ULL << 32)

struct wait {
	uint64_t key[KB_WAITED_KEY];
	struct kb_waits_row row;
};

int kb_class_table_init(struct kb_class_table *table, struct kb_trace *trace,
			const struct kb_classes_options *how, struct kb_error *err)
{
	const struct kb_tasks *tasks = kb_trace_tasks(trace, err);

	kb_table_init(&table->groups, sizeof(struct group), 1);
	kb_table_init(&table->rows, sizeof(struct sum), 2);
	kb_table_init(&table->waits, sizeof(struct wait), KB_WAITED_KEY);
	table->names = tasks ? kb_trace_names(trace, err) : NULL;
	if (!table->names)
		return -ENOMEM;
	kb_name_ids_init(&table->comms, tasks);
	table->max_cores = kb_trace_header(trace)->max_cores;
	table->cpus = calloc((size_t)table->max_cores + 1, sizeof(*table->cpus));
	table->seen = calloc((size_t)table->max_cores + 1, sizeof(*table->seen));
	if (!table->cpus || !table->seen)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory for %u CPUs",
				    table->max_cores);
	table->by_name = how->by_name;
	return kb_wanted_init(&table->wanted, trace, how->filter, err);
}

void kb_class_table_release(struct kb_class_table *table)
{
	kb_table_release(&table->groups);
	kb_table_release(&table->rows);
	kb_table_release(&table->waits);
	if (table->comms.tasks)
		kb_name_ids_release(&table->comms);
	free(table->cpus);
	free(table->seen);
	free(table->shown_tasks);
	free(table->shown_rows);
	free(table->shown_cpus);
}

int kb_class_table_group(struct kb_class_table *table, uint32_t task_id, uint64_t ticks,
			 uint32_t *group)
{
	const struct kb_name_id *comm = kb_name_ids_find(&table->comms, task_id, ticks);
	uint32_t before = table->groups.nr;
	struct kb_task_hit hit;
	struct group *row;
	uint64_t key;

	if (!comm)
		return -ENOMEM;
	key = (uint64_t)task_id << 32 | comm->id;
	*group = kb_table_number(&table->groups, &key, kb_table_hash(&table->groups, &key));
	if (*group == KB_TABLE_NONE)
		return -ENOMEM;
	if (table->groups.nr == before)
		return 0;
	row = kb_table_row(&table->groups, *group);
	row->wanted = kb_wanted_task(&table->wanted, task_id, ticks);
	kb_tasks_find(table->comms.tasks, task_id, ticks, &hit);
	row->tgid = hit.tgid;
	return 0;
}

int kb_class_table_wait(struct kb_class_table *table, const struct kb_event *event,
			uint32_t task_id, uint64_t *number)
{
	const struct kb_header *header = kb_trace_header(table->wanted.trace);
	const struct kb_object *object = &event->task_switch.object;
	uint64_t key[KB_WAITED_KEY];
	struct kb_waits_row row;
	uint32_t found;

	if (object->kind == KB_OBJECT_NONE) {
		*number = STATE | (uint8_t)kb_state_letter(header, event->task_switch.prev_state);
		return 0;
	}
	row = kb_waited(table->names, table->comms.tasks, object, task_id, event->timestamp);
	kb_waited_unite(&row, object, key);
	if (table->waits.nr >= WAITS_MOST && !kb_table_find(&table->waits, key))
		kb_waited_others(&row, key);
	found = kb_table_number(&table->waits, key, kb_table_hash(&table->waits, key));
	if (found == KB_TABLE_NONE)
		return -ENOMEM;
	*number = found;
	((struct wait *)kb_table_row(&table->waits, found))->row = row;
	return 0;
}

uint64_t kb_class_table_infer(uint64_t number, enum kb_inferred inferred)
{
	return number & STATE && !(number >> INFERRED & 0xff) ? number | (uint64_t)inferred << INFERRED : number;
}

void kb_class_table_show(struct kb_class_table *table, uint32_t group)
{
	((struct group *)kb_table_row(&table->groups, group))->recorded = true;
}

void kb_class_table_live(struct kb_class_table *table, uint32_t group, uint64_t ns)
{
	((struct group *)kb_table_row(&table->groups, group))->lived += ns;
}

static int add(struct kb_class_table *table, uint32_t core, uint32_t group, uint64_t ns,
	       enum kb_class kind, uint64_t number)
{
	const struct group *of = kb_table_row(&table->groups, group);
	uint64_t key[2] = { (uint64_t)group << 32 | kind, number };
	struct sum *sum;

	if (!ns || !of->wanted || !kb_wanted_cpu(&table->wanted, core))
		return 0;
	sum = kb_table_get(&table->rows, key);
	if (!sum)
		return -ENOMEM;
	sum->ns += ns;
	return 0;
}

int kb_class_table_take(struct kb_class_table *table, uint32_t core, uint32_t group, uint64_t ns,
			const struct kb_decision *is)
{
	uint64_t number = is->known ? KNOWN | (is->compat ? COMPAT : 0) | is->number : 0;

	table->cpus[core][is->kind] += ns;
	return add(table, core, group, ns, is->kind, number);
}

int kb_class_table_away(struct kb_class_table *table, uint32_t core, uint32_t group, uint64_t ns,
			enum kb_class kind, uint64_t wait)
{
	return add(table, core, group, ns, kind, kind == KB_CLASS_WAIT ? wait : 0);
}

/* ---- the results ---- */

struct sorted {
	uint32_t task;			/* number of a result */
	uint64_t number;
	struct kb_class_row row;
};

static int compare_what(const void *left, const void *right)
{
	const struct sorted *a = left, *b = right;

	if (a->task != b->task)
		return a->task < b->task ? -1 : 1;
	if (a->row.kind != b->row.kind)
		return a->row.kind < b->row.kind ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

static int compare_ns(const void *left, const void *right)
{
	const struct sorted *a = left, *b = right;

	if (a->task == b->task && a->row.ns != b->row.ns)
		return a->row.ns > b->row.ns ? -1 : 1;
	return compare_what(left, right);
}

static int compare_tasks(const void *left, const void *right)
{
	const struct kb_classes_task *a = left, *b = right;

	if (a->lived_ns != b->lived_ns)
		return a->lived_ns > b->lived_ns ? -1 : 1;
	return (a->tid > b->tid) - (a->tid < b->tid) ?: strcmp(a->name, b->name);
}

static struct kb_class_row make_row(const struct kb_class_table *table, const struct sum *sum)
{
	struct kb_class_row row = { .kind = (enum kb_class)(uint32_t)sum->key[0], .ns = sum->ns };
	uint64_t number = sum->key[1];

	if (row.kind == KB_CLASS_WAIT && number & STATE) {
		row.state = (char)number;
		row.inferred = (uint8_t)(number >> INFERRED);
	} else if (row.kind == KB_CLASS_WAIT) {
		row.wait =
			&((const struct wait *)kb_table_row(&table->waits, (uint32_t)number))->row;
	} else if (number & KNOWN) {
		row.known = true;
		row.number = (uint32_t)number;
		row.compat = number & COMPAT;
		row.name = row.kind == KB_CLASS_FAULT
				   ? kb_fault_kind_name(row.number)
				   : kb_names_numbered_call(table->names, row.compat, row.number);
	}
	return row;
}

#define NOT_SHOWN	UINT32_MAX

/*
 * Make the results that are tasks: one for each group, or for each name. Fills @numbers with that
 * of each group. Returns how many there are.
 */
static uint32_t number_tasks(struct kb_class_table *table, uint32_t *numbers, uint32_t *of_name)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < table->comms.nr; i++)
		of_name[i] = NOT_SHOWN;
	for (uint32_t i = 0; i < table->groups.nr; i++) {
		const struct group *group = kb_table_row(&table->groups, i);
		uint32_t comm = (uint32_t)group->key;
		struct kb_classes_task *task;

		numbers[i] = !group->wanted || !group->recorded ? NOT_SHOWN :
			     table->by_name && of_name[comm] != NOT_SHOWN ? of_name[comm] : nr++;
		if (numbers[i] == NOT_SHOWN)
			continue;
		of_name[comm] = numbers[i];
		task = &table->shown_tasks[numbers[i]];
		task->name = kb_name_ids_name(&table->comms, comm);
		task->tid = table->by_name ? 0 : (uint32_t)(group->key >> 32);
		task->tgid = table->by_name ? 0 : group->tgid;
		task->lived_ns += group->lived;
	}
	return nr;
}

/* All rows that are shown, those of a task behind each other. Returns their number. */
static uint32_t sort_rows(const struct kb_class_table *table, const uint32_t *numbers,
			  struct sorted *sorted)
{
	uint32_t nr = 0, kept = 0;

	for (uint32_t i = 0; i < table->rows.nr; i++) {
		const struct sum *sum = kb_table_row(&table->rows, i);
		uint32_t task = numbers[sum->key[0] >> 32];

		if (task != NOT_SHOWN)
			sorted[nr++] = (struct sorted){ task, sum->key[1], make_row(table, sum) };
	}
	qsort(sorted, nr, sizeof(*sorted), compare_what);
	for (uint32_t i = 0; i < nr; i++) {
		if (kept && !compare_what(&sorted[kept - 1], &sorted[i]))
			sorted[kept - 1].row.ns += sorted[i].row.ns;
		else
			sorted[kept++] = sorted[i];
	}
	qsort(sorted, kept, sizeof(*sorted), compare_ns);
	return kept;
}

static void show_tasks(struct kb_class_table *table, const struct sorted *sorted, uint32_t nr,
		       uint32_t nr_tasks, struct kb_classes *shown)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < nr_tasks; i++) {
		struct kb_classes_task *task = &table->shown_tasks[shown->nr_tasks];

		*task = table->shown_tasks[i];
		task->rows = &table->shown_rows[at];
		for (; at < nr && sorted[at].task == i; at++) {
			table->shown_rows[at] = sorted[at].row;
			task->ns[sorted[at].row.kind] += sorted[at].row.ns;
			shown->ns[sorted[at].row.kind] += sorted[at].row.ns;
			task->nr++;
		}
		shown->nr_tasks += task->nr != 0;
	}
	qsort(table->shown_tasks, shown->nr_tasks, sizeof(*table->shown_tasks), compare_tasks);
	shown->tasks = table->shown_tasks;
}

/* What is in front of a CPU's first record, and behind its last one, is not known. */
static void show_cpus(struct kb_class_table *table, struct kb_classes *shown)
{
	const struct kb_trace *trace = table->wanted.trace;
	uint64_t whole =
		kb_wanted_span(&table->wanted, kb_trace_first(trace), kb_trace_last(trace));

	for (uint32_t core = 0; core < table->max_cores; core++) {
		struct kb_classes_cpu *cpu = &table->shown_cpus[shown->nr_cpus];
		uint64_t sum = 0;

		if (!table->seen[core] || !kb_wanted_cpu(&table->wanted, core))
			continue;
		cpu->cpu = core;
		memcpy(cpu->ns, table->cpus[core], sizeof(cpu->ns));
		for (unsigned int i = 0; i < KB_CLASSES; i++)
			sum += cpu->ns[i];
		cpu->ns[KB_CLASS_UNKNOWN] += whole > sum ? whole - sum : 0;
		shown->nr_cpus++;
	}
	shown->cpus = table->shown_cpus;
}

int kb_class_table_finish(struct kb_class_table *table, struct kb_classes *shown)
{
	struct sorted *sorted = calloc((size_t)table->rows.nr + 1, sizeof(*sorted));
	uint32_t *numbers = calloc((size_t)table->groups.nr + 1, sizeof(*numbers));
	uint32_t *of_name = calloc((size_t)table->comms.nr + 1, sizeof(*of_name)), nr;
	int ret = -ENOMEM;

	table->shown_tasks = calloc((size_t)table->groups.nr + 1, sizeof(*table->shown_tasks));
	table->shown_rows = calloc((size_t)table->rows.nr + 1, sizeof(*table->shown_rows));
	table->shown_cpus = calloc((size_t)table->max_cores + 1, sizeof(*table->shown_cpus));
	if (sorted && numbers && of_name && table->shown_tasks && table->shown_rows &&
	    table->shown_cpus) {
		nr = number_tasks(table, numbers, of_name);
		show_tasks(table, sorted, sort_rows(table, numbers, sorted), nr, shown);
		show_cpus(table, shown);
		ret = 0;
	}
	free(sorted);
	free(numbers);
	free(of_name);
	return ret;
}
