// SPDX-License-Identifier: MIT
/*
 * Names are looked up for every record, so they are ordered once: task rows by id and
 * time behind a hash table of ids, counters by core and index. Facts that Barman has
 * no place for come from one pass over the string table.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "analysis/names.h"

#define FALLBACK_BYTES	32	/* "PMU event 0x…", "task …" */
#define AGENT_CYCLES	0xffffffffu	/* the cycle counter in files of Arm's agent */

struct task_row {
	uint64_t timestamp;
	uint32_t task_id;
	uint32_t row;		/* in the header: of two with one time the later one counts */
	struct kb_task_name name;
};

/* Where the rows of a task are in names->rows. */
struct task_slot {
	uint32_t task_id;
	uint32_t first, count;	/* count 0: the slot is free */
};

struct kb_names {
	struct task_row *rows;
	struct task_slot *slots;	/* a power of two of them, at most half in use */
	uint32_t slot_mask;
	uint32_t seed;		/* of the hashes: nobody can make a slow capture */
	struct kb_task_name unknown;	/* of a task without a row */
	char unknown_text[FALLBACK_BYTES];

	uint32_t max_cores;
	uint32_t nr_counters;
	struct kb_text *counters;	/* by id */
	uint32_t *counter_ids;		/* by first_counter[core] + index */
	uint32_t *first_counter;	/* max_cores + 1 */
	char (*fallbacks)[FALLBACK_BYTES];	/* as counter_ids; NULL: none needed */

	uint32_t lost_series;
};

static uint32_t hash32(uint32_t value)
{
	value ^= value >> 16;
	value *= 0x7feb352du;
	value ^= value >> 15;
	return value;
}

static uint32_t hash_text(struct kb_text text, uint32_t seed)
{
	uint32_t hash = 2166136261u ^ seed;
	size_t i;

	for (i = 0; i < text.length; i++)
		hash = (hash ^ (uint8_t)text.data[i]) * 16777619u;
	return hash32(hash);
}

/* A power of two that is at least twice @count. */
static uint32_t table_size(uint32_t count)
{
	uint32_t size = 16;

	while (size / 2 < count && size < 1u << 31)
		size *= 2;
	return size;
}

/* ---- tasks ---- */

static int by_task_and_time(const void *a, const void *b)
{
	const struct task_row *x = a, *y = b;

	if (x->task_id != y->task_id)
		return x->task_id < y->task_id ? -1 : 1;
	if (x->timestamp != y->timestamp)
		return x->timestamp < y->timestamp ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static struct task_slot *slot_of(const struct kb_names *names, uint32_t task_id)
{
	uint32_t at = hash32(task_id ^ names->seed) & names->slot_mask;

	while (names->slots[at].count && names->slots[at].task_id != task_id)
		at = (at + 1) & names->slot_mask;
	return &names->slots[at];
}

static void index_tasks(struct kb_names *names, uint32_t nr_rows)
{
	uint32_t i;

	if (nr_rows)
		qsort(names->rows, nr_rows, sizeof(*names->rows), by_task_and_time);
	for (i = 0; i < nr_rows; i++) {
		struct task_slot *slot = slot_of(names, names->rows[i].task_id);

		if (!slot->count) {
			slot->task_id = names->rows[i].task_id;
			slot->first = i;
		}
		slot->count++;
	}
}

static int take_tasks(struct kb_names *names, const struct kb_header *header)
{
	uint32_t size = table_size(header->nr_tasks), i;

	names->rows = calloc((size_t)header->nr_tasks + 1, sizeof(*names->rows));
	names->slots = calloc(size, sizeof(*names->slots));
	names->slot_mask = size - 1;
	if (!names->rows || !names->slots)
		return -ENOMEM;
	for (i = 0; i < header->nr_tasks; i++) {
		const struct kb_task *task = &header->tasks[i];
		struct task_row *row = &names->rows[i];

		row->timestamp = task->timestamp;
		row->task_id = task->task_id;
		row->row = i;
		row->name.name = kb_text(task->name);
		row->name.tgid = task->task_id;
	}
	return 0;
}

const struct kb_task_name *kb_names_task(struct kb_names *names, uint32_t task_id,
					 uint64_t timestamp)
{
	const struct task_slot *slot = slot_of(names, task_id);
	const struct task_row *row = &names->rows[slot->first];
	uint32_t low = 0, high = slot->count;

	/* the last row that is not later; the first one even if it is */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (row[middle].timestamp <= timestamp)
			low = middle;
		else
			high = middle;
	}
	if (slot->count && row[low].name.name.length)
		return &row[low].name;
	snprintf(names->unknown_text, sizeof(names->unknown_text), "task %u", task_id);
	names->unknown.name = kb_text(names->unknown_text);
	names->unknown.tgid = slot->count ? row[low].name.tgid : task_id;
	return &names->unknown;
}

/* ---- counters ---- */

static int take_counters(struct kb_names *names, const struct kb_header *header)
{
	uint32_t total = 0, core;

	names->max_cores = header->max_cores;
	names->first_counter = calloc((size_t)header->max_cores + 1, sizeof(uint32_t));
	if (!names->first_counter)
		return -ENOMEM;
	for (core = 0; core < header->max_cores; core++) {
		names->first_counter[core] = total;
		if (header->pmus[core].num_counters > UINT32_MAX / 2 - total)
			return -ENOMEM;
		total += header->pmus[core].num_counters;
	}
	names->first_counter[core] = total;
	names->counters = calloc((size_t)total + 1, sizeof(*names->counters));
	names->counter_ids = calloc((size_t)total + 1, sizeof(*names->counter_ids));
	names->fallbacks = calloc((size_t)total + 1, sizeof(*names->fallbacks));
	return names->counters && names->counter_ids && names->fallbacks ? 0 : -ENOMEM;
}

static struct kb_text fallback_counter(char (*text)[FALLBACK_BYTES], uint32_t type)
{
	if (type == AGENT_CYCLES)
		return kb_text("CPU cycles");
	snprintf(*text, sizeof(*text), "PMU event 0x%x", type);
	return kb_text(*text);
}

/* One id for one name; names->counters holds them by core and index before. */
static int index_counters(struct kb_names *names, const struct kb_header *header)
{
	uint32_t total = names->first_counter[header->max_cores];
	uint32_t size = table_size(total), core, index, at = 0;
	uint32_t *table = calloc(size, sizeof(*table));		/* id + 1 */

	if (!table)
		return -ENOMEM;
	for (core = 0; core < header->max_cores; core++) {
		for (index = 0; index < header->pmus[core].num_counters; index++, at++) {
			struct kb_text name = names->counters[at];
			uint32_t slot, id;

			if (!name.length)
				name = fallback_counter(&names->fallbacks[at],
							header->pmus[core].counter_types[index]);
			slot = hash_text(name, names->seed) & (size - 1);
			for (; (id = table[slot]); slot = (slot + 1) & (size - 1)) {
				struct kb_text other = names->counters[id - 1];

				if (other.length == name.length &&
				    memcmp(other.data, name.data, name.length) == 0)
					break;
			}
			if (!id) {	/* never above `at`, whose name was taken already */
				names->counters[names->nr_counters++] = name;
				table[slot] = id = names->nr_counters;
			}
			names->counter_ids[at] = id - 1;
		}
	}
	free(table);
	return 0;
}

uint32_t kb_names_nr_counters(const struct kb_names *names)
{
	return names->nr_counters;
}

struct kb_text kb_names_counter(const struct kb_names *names, uint32_t id)
{
	return names->counters[id];
}

uint32_t kb_names_of_core(const struct kb_names *names, uint32_t core)
{
	if (core >= names->max_cores)
		return 0;
	return names->first_counter[core + 1] - names->first_counter[core];
}

uint32_t kb_names_counter_id(const struct kb_names *names, uint32_t core, uint32_t index)
{
	return names->counter_ids[names->first_counter[core] + index];
}

uint32_t kb_names_lost_series(const struct kb_names *names)
{
	return names->lost_series;
}

/* ---- facts ---- */

/* A decimal number at *@text that ends with @end; moves *@text behind it. */
static bool number(const char **text, char end, uint32_t *value)
{
	char *stop;
	unsigned long long n;

	if (**text < '0' || **text > '9')
		return false;
	n = strtoull(*text, &stop, 10);
	if (*stop != end || n > UINT32_MAX)
		return false;
	*text = stop + 1;
	*value = (uint32_t)n;
	return true;
}

static void take_fact(struct kb_names *names, const struct kb_header *header, const char *fact)
{
	uint32_t first, second;

	if (strncmp(fact, "tgid.", 5) == 0) {
		fact += 5;
		if (number(&fact, '=', &first) && number(&fact, 0, &second) &&
		    first < header->nr_tasks)
			names->rows[first].name.tgid = second;
	} else if (strncmp(fact, "counter.", 8) == 0) {
		fact += 8;
		if (number(&fact, '.', &first) && number(&fact, '=', &second) &&
		    first < header->max_cores && second < header->pmus[first].num_counters)
			names->counters[names->first_counter[first] + second] = kb_text(fact);
	}
}

static void take_facts(struct kb_names *names, const struct kb_header *header)
{
	const char *at = header->strings, *end;

	if (!at)
		return;
	for (end = at + header->string_table_length; at < end; at += strlen(at) + 1)
		if (strncmp(at, "kbarman.", 8) == 0)
			take_fact(names, header, at + 8);
}

int kb_names_create(struct kb_names **out, const struct kb_barman *barman, struct kb_error *err)
{
	const struct kb_header *header = kb_barman_header(barman);
	struct kb_names *names = calloc(1, sizeof(*names));
	uint32_t i;

	if (names && getrandom(&names->seed, sizeof(names->seed), GRND_NONBLOCK) < 0)
		names->seed = (uint32_t)(uintptr_t)names;
	if (!names || take_tasks(names, header) || take_counters(names, header))
		goto err_memory;
	take_facts(names, header);
	index_tasks(names, header->nr_tasks);
	if (index_counters(names, header))
		goto err_memory;
	names->lost_series = KB_NO_SERIES;
	for (i = 0; i < header->nr_series; i++)
		if (header->series[i].name && strcmp(header->series[i].name, KB_LOST_SERIES) == 0)
			names->lost_series = i;
	*out = names;
	return 0;

err_memory:
	kb_names_destroy(names);
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory for the capture's names");
}

void kb_names_destroy(struct kb_names *names)
{
	if (!names)
		return;
	free(names->rows);
	free(names->slots);
	free(names->counters);
	free(names->counter_ids);
	free(names->first_counter);
	free(names->fallbacks);
	free(names);
}
