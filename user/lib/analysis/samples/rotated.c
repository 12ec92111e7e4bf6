// SPDX-License-Identifier: MIT
/* See rotated.h; turns.h has how a count and its error come from turns. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/core_fact.h"
#include "analysis/samples/rotated.h"
#include "analysis/samples/turns.h"
#include "base/table.h"

#define NONE		UINT32_MAX
/*
 * Between two turns of a counter there is one of another group, unless they are next to each other
 * and make one. All of them take longer than this. All cores change turns in less time.
 */
#define GAP_NS		3000000
/* Counters are read a moment before their record has its time: at both edges of a turn. */
#define EDGES_NS	1000

/* A counter in a task. */
struct part {
	double time;			/* in which it could have been counted; ns */
	struct kb_turns turns;		/* those that are over */
	double turn_value, turn_time;	/* the last one, */
	int64_t until;			/* and its end */
};

struct row {
	uint64_t task;			/* key */
	struct part parts[];		/* nr */
};

struct kb_rotated {
	const struct kb_names *names;
	uint32_t nr;			/* counters that take turns */
	uint32_t nr_ids;
	uint32_t *place;		/* of each id among them, or NONE */
	uint32_t max_cores;
	int64_t *since;			/* of each core: when it was read last; INT64_MIN: never */
	struct kb_table tasks;		/* struct row */
};

static void take_turn(struct kb_rotated *rotated, const char *string)
{
	uint32_t core, index, id;

	if (!kb_core_fact(string, "kbarman.turn.", &core, &index) ||
	    index >= kb_names_of_core(rotated->names, core))
		return;
	id = kb_names_counter_id(rotated->names, core, index);
	if (id < rotated->nr_ids && rotated->place[id] == NONE)
		rotated->place[id] = rotated->nr++;
}

static int allocate(struct kb_rotated *rotated, const struct kb_header *header)
{
	rotated->nr_ids = kb_names_nr_counters(rotated->names);
	rotated->max_cores = header->max_cores;
	rotated->place = calloc((size_t)rotated->nr_ids + 1, sizeof(*rotated->place));
	rotated->since = calloc((size_t)header->max_cores + 1, sizeof(*rotated->since));
	if (!rotated->place || !rotated->since)
		return -ENOMEM;
	for (uint32_t id = 0; id < rotated->nr_ids; id++)
		rotated->place[id] = NONE;
	for (uint32_t core = 0; core < header->max_cores; core++)
		rotated->since[core] = INT64_MIN;
	return 0;
}

int kb_rotated_create(struct kb_rotated **out, const struct kb_header *header,
		      const struct kb_names *names)
{
	struct kb_rotated *rotated = calloc(1, sizeof(*rotated));
	int ret = -ENOMEM;

	*out = NULL;
	if (rotated) {
		rotated->names = names;
		ret = allocate(rotated, header);
	}
	for (size_t at = 0; !ret && at < header->string_table_length;
	     at += strlen(header->strings + at) + 1)
		take_turn(rotated, header->strings + at);
	if (ret || !rotated->nr) {
		kb_rotated_destroy(rotated);
		return ret;
	}
	kb_table_init(&rotated->tasks,
		      sizeof(struct row) + rotated->nr * (uint32_t)sizeof(struct part), 1);
	*out = rotated;
	return 0;
}

void kb_rotated_destroy(struct kb_rotated *rotated)
{
	if (!rotated)
		return;
	kb_table_release(&rotated->tasks);
	free(rotated->place);
	free(rotated->since);
	free(rotated);
}

static void end_turn(struct part *part)
{
	if (part->turn_time > 0)
		kb_turns_add(&part->turns, part->turn_value, part->turn_time);
	part->turn_value = 0;
	part->turn_time = 0;
}

/* Has the turn ended long before @ns? */
static bool is_over(const struct part *part, int64_t ns)
{
	return ns > part->until && (uint64_t)ns - (uint64_t)part->until >= GAP_NS;
}

/* @task ran from @since to @ns, and was read then. */
static int add_reading(struct kb_rotated *rotated, uint64_t task, const struct kb_event *event,
		       int64_t since, int64_t ns)
{
	struct row *row = kb_table_get(&rotated->tasks, &task);
	uint32_t nr = kb_names_of_core(rotated->names, event->core);
	double time = (double)((uint64_t)ns - (uint64_t)since);

	if (!row)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr && i < event->sample.nr_counters; i++) {
		uint32_t place = rotated->place[kb_names_counter_id(rotated->names, event->core, i)];
		struct part *part;

		if (place == NONE)
			continue;
		part = &row->parts[place];
		part->time += time;
		if (is_over(part, since))
			end_turn(part);
		if (event->sample.counters[i] == KB_COUNTER_INVALID)
			continue;
		part->turn_value += (double)event->sample.counters[i];
		part->turn_time += time;
		part->until = ns;
	}
	return 0;
}

int kb_rotated_feed(struct kb_rotated *rotated, const struct kb_event *event, int64_t ns, bool wanted)
{
	bool sample = event->type == KB_EVENT_SAMPLE;
	int64_t since;

	if ((!sample && event->type != KB_EVENT_TASK_SWITCH) || event->core >= rotated->max_cores)
		return 0;
	since = rotated->since[event->core];
	rotated->since[event->core] = ns;
	if (!sample || !wanted || since == INT64_MIN || ns < since)
		return 0;
	return add_reading(rotated, event->task_id, event, since, ns) ?:
	       add_reading(rotated, KB_ROTATED_ALL, event, since, ns);
}

bool kb_rotated_has(const struct kb_rotated *rotated, uint32_t id)
{
	return rotated && id < rotated->nr_ids && rotated->place[id] != NONE;
}

struct kb_report_count kb_rotated_get(const struct kb_rotated *rotated, uint64_t task, uint32_t id)
{
	const struct row *row = kb_table_find(&rotated->tasks, &task);
	struct kb_estimate estimate;
	struct part part;

	if (!row)
		return (struct kb_report_count){ .value = NAN, .error = INFINITY };
	part = row->parts[rotated->place[id]];
	end_turn(&part);
	if (!(part.turns.time > 0))
		return (struct kb_report_count){ .value = NAN, .error = INFINITY };
	estimate = kb_turns_estimate(&part.turns, part.time);
	estimate.error += estimate.value * EDGES_NS * (double)part.turns.nr / part.turns.time;
	return (struct kb_report_count){ .value = estimate.value, .error = estimate.error,
					 .part = part.turns.time / part.time };
}
