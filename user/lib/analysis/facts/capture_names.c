// SPDX-License-Identifier: MIT
/*
 * Every record needs names. Names of tasks come from struct kb_tasks through a small cache.
 * Counters get numbers once, by core and index. Facts that Barman has no field for come from
 * one pass over the string table.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/tasks.h>

#include "analysis/facts/capture_names.h"
#include "analysis/facts/irq_names.h"
#include "analysis/facts/object_names.h"
#include "base/hash.h"
#include "format/call_names.h"

#define CACHED_TASKS	256	/* a power of two */
#define MAX_COUNTERS	1024	/* different ones; the last one stands for all further ones */
#define FALLBACK_BYTES	32	/* "PMU event 0x…", "task …" */
#define AGENT_CYCLES	0xffffffffu	/* number of the cycle counter in files of Arm's agent */

/* The name of a task during some time. */
struct cached_task {
	bool used;
	uint32_t task_id;
	uint64_t since, until;	/* ticks, inclusive */
	struct kb_task_name name;
	char fallback[FALLBACK_BYTES];
};

struct counter {
	struct kb_text name;
	char fallback[FALLBACK_BYTES];
};

struct kb_names {
	const struct kb_tasks *tasks;
	struct cached_task cache[CACHED_TASKS];

	uint32_t max_cores;
	uint32_t *first_counter;	/* max_cores + 1 */
	uint32_t *counter_ids;		/* by first_counter[core] + index; until numbered: 1 +
					 * the offset of the name, 0 = none */
	bool one_weight;
	uint32_t nr_counters;
	struct counter counters[MAX_COUNTERS];	/* by id */
	uint16_t slots[2 * MAX_COUNTERS];	/* hash table of ids: id + 1, 0 = free */
	uint64_t seed;			/* of the hash, so that no capture can force collisions */
	struct kb_irq_names irqs;
	struct kb_irq_names disks;	/* by device: numbers with names as well */
	struct kb_object_names objects;
	const char *machine;		/* of the recorded kernel; NULL: not known */
};

/* ---- tasks ---- */

/* Printable ASCII that needs no escape in any format. */
static bool is_simple(struct kb_text text)
{
	size_t i;

	for (i = 0; i < text.length; i++)
		if (text.data[i] < ' ' || text.data[i] > '~' || strchr("\"\\&<>'%;", text.data[i]))
			return false;
	return true;
}

static void set_label(struct kb_task_name *task)
{
	task->label_length = 0;
	if (task->name.length > KB_SHORT_NAME || !is_simple(task->name))
		return;
	memset(task->label, 0, KB_SHORT_NAME);
	memcpy(task->label, task->name.data, task->name.length);
	task->label_length = (uint8_t)task->name.length;
}

static void look_up(struct kb_names *names, struct cached_task *entry, uint32_t task_id,
		    uint64_t timestamp)
{
	struct kb_task_hit hit;

	kb_tasks_find(names->tasks, task_id, timestamp, &hit);
	entry->used = true;
	entry->task_id = task_id;
	entry->since = hit.since;
	entry->until = hit.until;
	entry->name.tgid = hit.tgid;
	entry->name.name = kb_text(hit.row ? hit.row->name : NULL);
	if (!entry->name.name.length) {
		snprintf(entry->fallback, sizeof(entry->fallback), "task %u", task_id);
		entry->name.name = kb_text(entry->fallback);
	}
	set_label(&entry->name);
}

const struct kb_task_name *kb_names_task(struct kb_names *names, uint32_t task_id,
					 uint64_t timestamp)
{
	struct cached_task *entry = &names->cache[task_id % CACHED_TASKS];

	if (!entry->used || entry->task_id != task_id || timestamp < entry->since ||
	    timestamp > entry->until)
		look_up(names, entry, task_id, timestamp);
	return &entry->name;
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
	names->counter_ids = calloc((size_t)total + 1, sizeof(*names->counter_ids));
	return names->counter_ids ? 0 : -ENOMEM;
}

static struct kb_text fallback_name(char text[FALLBACK_BYTES], uint32_t type)
{
	if (type == AGENT_CYCLES)
		return kb_text("CPU cycles");
	snprintf(text, FALLBACK_BYTES, "PMU event 0x%x", type);
	return kb_text(text);
}

/* The slot of the counter called @name, or the free slot where it belongs. */
static uint16_t *slot_of(struct kb_names *names, struct kb_text name)
{
	uint64_t hash = kb_hash_bytes(names->seed, name.data, name.length);
	uint32_t at = (uint32_t)hash % (2 * MAX_COUNTERS);

	while (names->slots[at]) {
		struct kb_text other = names->counters[names->slots[at] - 1].name;

		if (other.length == name.length &&
		    memcmp(other.data, name.data, name.length) == 0)
			break;
		at = (at + 1) % (2 * MAX_COUNTERS);
	}
	return &names->slots[at];
}

/* @name is "" or lives as long as @names. A counter without a name is named after its @type. */
static uint32_t id_of(struct kb_names *names, struct kb_text name, uint32_t type)
{
	char fallback[FALLBACK_BYTES];
	struct counter *counter;
	uint16_t *slot;
	bool named = name.length;

	if (!named)
		name = fallback_name(fallback, type);
	slot = slot_of(names, name);
	if (*slot)
		return *slot - 1u;
	if (names->nr_counters == MAX_COUNTERS)
		return MAX_COUNTERS - 1;
	counter = &names->counters[names->nr_counters++];
	counter->name = named ? name : fallback_name(counter->fallback, type);
	if (names->nr_counters == MAX_COUNTERS)
		counter->name = kb_text("further counters");
	*slot = (uint16_t)names->nr_counters;
	return names->nr_counters - 1;
}

/*
 * Is the first counter the same on all cores that have counters? Those of one event may have a name
 * on some of them only.
 */
static bool find_one_weight(const struct kb_names *names, const struct kb_header *header)
{
	const uint32_t *offsets = names->counter_ids;	/* not numbered yet */
	uint32_t core, offset, type, last_offset = 0, last_type = 0;
	bool any = false;

	for (core = 0; core < header->max_cores; core++) {
		if (!header->pmus[core].num_counters)
			continue;
		offset = offsets[names->first_counter[core]];
		type = header->pmus[core].counter_types[0];
		if (any && (offset && last_offset ? strcmp(header->strings + offset - 1,
							   header->strings + last_offset - 1) != 0 :
						    type != last_type))
			return false;
		any = true;
		last_offset = offset ? offset : last_offset;
		last_type = type;
	}
	return true;
}

static void index_counters(struct kb_names *names, const struct kb_header *header)
{
	uint32_t core, index, *id = names->counter_ids;

	for (core = 0; core < header->max_cores; core++)
		for (index = 0; index < header->pmus[core].num_counters; index++, id++)
			*id = id_of(names, kb_text(*id ? header->strings + *id - 1 : NULL),
				    header->pmus[core].counter_types[index]);
}

uint32_t kb_names_nr_counters(const struct kb_names *names)
{
	return names->nr_counters;
}

struct kb_text kb_names_counter(const struct kb_names *names, uint32_t id)
{
	return names->counters[id].name;
}

uint32_t kb_names_of_core(const struct kb_names *names, uint32_t core)
{
	if (core >= names->max_cores)
		return 0;
	return names->first_counter[core + 1] - names->first_counter[core];
}

uint32_t kb_names_most_of_core(const struct kb_names *names)
{
	uint32_t core, nr, most = 0;

	for (core = 0; core < names->max_cores; core++) {
		nr = kb_names_of_core(names, core);
		if (nr > most)
			most = nr;
	}
	return most;
}

uint32_t kb_names_fewest_of_core(const struct kb_names *names)
{
	uint32_t core, nr, fewest = UINT32_MAX;

	for (core = 0; core < names->max_cores; core++) {
		nr = kb_names_of_core(names, core);
		if (nr < fewest)
			fewest = nr;
	}
	return names->max_cores ? fewest : 0;
}

bool kb_names_one_weight(const struct kb_names *names)
{
	return names->one_weight;
}

const uint32_t *kb_names_ids(const struct kb_names *names, uint32_t core)
{
	return names->counter_ids + names->first_counter[core];
}

uint32_t kb_names_counter_id(const struct kb_names *names, uint32_t core, uint32_t index)
{
	return names->counter_ids[names->first_counter[core] + index];
}

uint32_t kb_names_find(const struct kb_names *names, const char *name, const char *other)
{
	uint32_t id, nr = kb_names_nr_counters(names);

	for (id = 0; id < nr; id++) {
		struct kb_text text = kb_names_counter(names, id);
		/* "cycles:u" is "cycles" as well */
		const char *colon = memchr(text.data, ':', text.length);
		size_t length = colon ? (size_t)(colon - text.data) : text.length;

		if ((length == strlen(name) && memcmp(text.data, name, length) == 0) ||
		    (length == strlen(other) && memcmp(text.data, other, length) == 0))
			return id;
	}
	return UINT32_MAX;
}

/* ---- facts ---- */

/* Parse a decimal number at *@text that is followed by @end. Moves *@text behind @end. */
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

/* Store the place of NAME of a fact "kbarman.counter.CPU.N=NAME". */
static void take_counter(struct kb_names *names, const char *strings, const char *fact)
{
	uint32_t core, index;

	if (number(&fact, '.', &core) && number(&fact, '=', &index) &&
	    index < kb_names_of_core(names, core))
		names->counter_ids[names->first_counter[core] + index] =
			(uint32_t)(fact - strings) + 1;
}

static int take_fact(struct kb_names *names, const char *strings, const char *fact)
{
	if (strncmp(fact, "kbarman.counter.", 16) == 0)
		take_counter(names, strings, fact + 16);
	if (strncmp(fact, "kbarman.irq.", 12) == 0)
		return kb_irq_names_take(&names->irqs, fact + 12);
	if (strncmp(fact, "kbarman.disk.", 13) == 0)
		return kb_irq_names_take(&names->disks, fact + 13);
	if (strncmp(fact, "kbarman.object.", 15) == 0)
		return kb_object_names_take(&names->objects, fact + 15);
	return 0;
}

static int take_facts(struct kb_names *names, const struct kb_header *header)
{
	const char *at = header->strings, *end;
	int ret = 0;

	if (!at)
		return 0;
	for (end = at + header->string_table_length; !ret && at < end; at += strlen(at) + 1)
		ret = take_fact(names, header->strings, at);
	return ret;
}

struct kb_text kb_names_irq(const struct kb_names *names, uint32_t irq, uint32_t behind)
{
	return kb_irq_names_find(&names->irqs, irq, behind);
}

const char *kb_names_numbered_call(const struct kb_names *names, bool compat, uint32_t number)
{
	return kb_call_name(names->machine, compat, number);
}

const char *kb_names_disk(const struct kb_names *names, uint32_t device)
{
	struct kb_text name = kb_irq_names_find(&names->disks, device, UINT32_MAX);

	return name.length ? name.data : NULL;
}

const char *kb_names_call(const struct kb_names *names, const struct kb_event *event)
{
	const struct kb_object *object = kb_event_object(event);

	if (object && event->type == KB_EVENT_CUSTOM_COUNTER && event->custom_counter.what == KB_WHAT_SYSCALL)
		return kb_names_numbered_call(names, event->custom_counter.cpu & KB_SYSCALL_COMPAT,
					      event->custom_counter.id);
	return object ? kb_object_call_name(names->machine, object) : NULL;
}

const char *kb_names_object(const struct kb_names *names, const struct kb_event *event, uint32_t task_id)
{
	const struct kb_object *object = kb_event_object(event);
	const char *name = kb_object_names_find(&names->objects, event, task_id), *call;

	if (name || !object || object->kind != KB_OBJECT_ANON)
		return name;
	call = kb_object_call_name(names->machine, object);
	if (!call || (strcmp(call, "epoll_wait") != 0 && strncmp(call, "epoll_pwait", 11) != 0))
		return NULL;
	return kb_eventpoll;
}

uint32_t kb_names_object_id(const struct kb_names *names, const struct kb_event *event, uint32_t task_id)
{
	const struct kb_object *object = kb_event_object(event);
	uint32_t id = object ? object->id : 0;
	struct kb_task_hit waiter, holder;

	if (!id || object->kind != KB_OBJECT_FUTEX)
		return id;
	kb_tasks_find(names->tasks, task_id, event->timestamp, &waiter);
	kb_tasks_find(names->tasks, id, event->timestamp, &holder);
	return id != task_id && waiter.tgid == holder.tgid ? id : 0;
}

int kb_names_create(struct kb_names **out, const struct kb_barman *barman,
		    const struct kb_tasks *tasks, struct kb_error *err)
{
	const struct kb_header *header = kb_barman_header(barman);
	struct kb_names *names = calloc(1, sizeof(*names));

	if (names)
		kb_irq_names_init(&names->irqs);
	kb_irq_names_init(&names->disks);
	if (names)
		kb_object_names_init(&names->objects);
	if (names)
		names->seed = kb_hash_seed(names);
	if (names)
		names->machine = kb_barman_fact(barman, "machine");
	if (!names || take_counters(names, header) || take_facts(names, header)) {
		kb_names_destroy(names);
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET,
				    "out of memory for the capture's names");
	}
	names->tasks = tasks;
	names->one_weight = find_one_weight(names, header);
	index_counters(names, header);
	*out = names;
	return 0;
}

void kb_names_destroy(struct kb_names *names)
{
	if (!names)
		return;
	free(names->counter_ids);
	free(names->first_counter);
	kb_irq_names_release(&names->irqs);
	kb_irq_names_release(&names->disks);
	kb_object_names_release(&names->objects);
	free(names);
}
