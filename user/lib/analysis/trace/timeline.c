// SPDX-License-Identifier: MIT
/*
 * One small state machine for each CPU. It makes no slice for unknown time: a CPU is UNKNOWN
 * until a record says which task runs, and again after a gap. A record that is out of order is
 * treated as if it had the time of the record before it, so slices never overlap.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <uapi/kbarman.h>

#include "analysis/facts/losses_read.h"
#include "analysis/facts/recorded.h"
#include "analysis/facts/stops.h"
#include "analysis/trace/timeline.h"

enum cpu_state {
	CPU_UNKNOWN,
	CPU_RUNS,
	CPU_HALTS,
};

struct cpu {
	enum cpu_state state;
	bool has_task;
	bool seen;		/* the CPU has a record */
	int idle_state;
	uint32_t task_id;
	int64_t since;		/* ns: start of the open slice */
	int64_t last;		/* ns: its last record */
	uint64_t lost;		/* lost records, from the capture's facts */
	uint64_t told;		/* lost records, from records at the gaps */
};

struct kb_timeline {
	const struct kb_barman *barman;
	uint32_t lost_series, stop_series;
	uint32_t max_cores;
	uint32_t next;		/* for kb_timeline_end(): the next core to close */
	bool has_tasks;
	struct kb_recorded recorded;
	struct cpu *cpus;
};

/*
 * Take the number of lost records of each CPU. It is larger than the sum in the records if the
 * CPU ended with a loss. It is not used if the ring was overwritten, because records about
 * losses were overwritten, too.
 */
static void take_losses(struct kb_timeline *timeline, const struct kb_losses *losses)
{
	uint32_t i;

	for (i = 0; i < losses->nr_rows && !losses->overwritten; i++)
		if (losses->rows[i].core < timeline->max_cores)
			timeline->cpus[losses->rows[i].core].lost += losses->rows[i].count;
}

int kb_timeline_create(struct kb_timeline **out, const struct kb_barman *barman,
		       const struct kb_losses *losses, struct kb_error *err)
{
	uint32_t max_cores = kb_barman_header(barman)->max_cores;
	struct kb_timeline *timeline = calloc(1, sizeof(*timeline));
	uint32_t core;

	if (timeline)
		timeline->cpus = calloc((size_t)max_cores + 1, sizeof(*timeline->cpus));
	if (!timeline || !timeline->cpus) {
		kb_timeline_destroy(timeline);
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory for %u CPUs",
				    max_cores);
	}
	timeline->barman = barman;
	timeline->max_cores = max_cores;
	for (core = 0; core < max_cores; core++)
		timeline->cpus[core].last = INT64_MIN;
	take_losses(timeline, losses);
	kb_recorded_init(&timeline->recorded, barman, losses);
	timeline->lost_series = kb_losses_series(kb_barman_header(barman));
	timeline->stop_series = kb_stops_series(kb_barman_header(barman));
	timeline->has_tasks = kb_barman_header(barman)->max_task_infos;
	*out = timeline;
	return 0;
}

void kb_timeline_destroy(struct kb_timeline *timeline)
{
	if (!timeline)
		return;
	free(timeline->cpus);
	free(timeline);
}

/* Close the open slice of @cpu at @now: fills @slice and returns 1, or returns 0 if unknown. */
static unsigned int close_slice(const struct cpu *cpu, uint32_t core, int64_t now,
				enum kb_slice_end how, struct kb_slice *slice)
{
	if (cpu->state == CPU_UNKNOWN)
		return 0;
	*slice = (struct kb_slice){
		.kind = cpu->state == CPU_HALTS ? KB_SLICE_IDLE : KB_SLICE_RUN,
		.how = how,
		.core = core,
		.task_id = cpu->task_id,
		.has_task = cpu->has_task,
		.idle_state = cpu->state == CPU_HALTS ? cpu->idle_state : KB_STATE_UNKNOWN,
		.prev_state = KB_STATE_UNKNOWN,
		.start = cpu->since,
		.end = now,
	};
	return 1;
}

static unsigned int feed_switch(struct cpu *cpu, int64_t now, const struct kb_event *event,
				struct kb_slice *slice)
{
	enum kb_slice_end how = event->task_switch.reason == KB_SWITCH_PREEMPTED ?
				KB_END_PREEMPTED : KB_END_BLOCKED;
	unsigned int n = close_slice(cpu, event->core, now, how, slice);

	if (n) {
		slice->prev_state = event->task_switch.prev_state;
		slice->next_task = event->task_id;
	}
	cpu->state = CPU_RUNS;
	cpu->has_task = true;
	cpu->task_id = event->task_id;
	cpu->since = now;
	return n;
}

static unsigned int feed_halt(struct cpu *cpu, int64_t now, const struct kb_event *event,
			      struct kb_slice *slice)
{
	unsigned int n;

	if (event->halt.entered) {
		n = close_slice(cpu, event->core, now, KB_END_HALT, slice);
		cpu->state = CPU_HALTS;
		cpu->idle_state = event->halt.idle_state;
	} else if (cpu->state == CPU_HALTS) {
		n = close_slice(cpu, event->core, now, KB_END_RESUME, slice);
		cpu->state = cpu->has_task ? CPU_RUNS : CPU_UNKNOWN;
	} else {
		return 0;	/* the matching record is missing */
	}
	cpu->since = now;
	return n;
}

/* The first sample after the start or a gap shows which task runs. */
static void feed_sample(const struct kb_timeline *timeline, struct cpu *cpu, int64_t now,
			const struct kb_event *event)
{
	if (cpu->state != CPU_UNKNOWN || !timeline->has_tasks)
		return;
	cpu->state = CPU_RUNS;
	cpu->has_task = true;
	cpu->task_id = event->task_id;
	cpu->since = now;
}

/* The slice of @cpu from @start to @now, in which records are missing. */
static struct kb_slice lost_slice(const struct kb_timeline *timeline, const struct cpu *cpu,
				  int64_t start, int64_t now, uint64_t lost)
{
	return (struct kb_slice){
		.kind = KB_SLICE_LOST,
		.how = KB_END_FOUND,
		.core = (uint32_t)(cpu - timeline->cpus),
		.idle_state = KB_STATE_UNKNOWN,
		.prev_state = KB_STATE_UNKNOWN,
		.start = start,
		.end = now,
		.lost = lost,
	};
}

/*
 * A capture that does not say when the gap began has it behind the last record. One that does has it
 * a little before that, if an interrupt came in between.
 */
static int64_t begin_of_gap(const struct kb_timeline *timeline, const struct cpu *cpu, int64_t now,
			    const struct kb_event *event)
{
	int64_t least = cpu->seen ? cpu->last : INT64_MIN, begin;

	if (!event->custom_counter.lost && !event->custom_counter.begin)
		return cpu->seen ? cpu->last : now;
	begin = kb_barman_ns(timeline->barman, event->custom_counter.begin);
	begin = begin > least ? begin : least;
	return begin < now ? begin : now;
}

static unsigned int feed_loss(const struct kb_timeline *timeline, struct cpu *cpu, int64_t now,
			      const struct kb_event *event, struct kb_slice *slices)
{
	int64_t begin = begin_of_gap(timeline, cpu, now, event);
	unsigned int n;

	cpu->told += event->custom_counter.value;
	/* Only marks of programs are missing. */
	if (event->custom_counter.lost == KBARMAN_LOST_RATE + 1)
		return 0;
	n = close_slice(cpu, event->core, begin, KB_END_LOST, slices);
	slices[n] = lost_slice(timeline, cpu, begin, now, event->custom_counter.value);
	slices[n].reason = event->custom_counter.lost;
	cpu->state = CPU_UNKNOWN;
	cpu->has_task = false;
	return n + 1;
}

/* The CPU does nothing until a record says which task runs. */
static unsigned int feed_offline(struct cpu *cpu, int64_t now, const struct kb_event *event,
				 struct kb_slice *slice)
{
	unsigned int n = close_slice(cpu, event->core, now, KB_END_LOST, slice);

	cpu->state = CPU_UNKNOWN;
	cpu->has_task = false;
	return n;
}

unsigned int kb_timeline_feed(struct kb_timeline *timeline, const struct kb_event *event,
			      int64_t ns, struct kb_slice slices[KB_WALK_SLICES])
{
	unsigned int n = 0;
	struct cpu *cpu;

	kb_recorded_add(&timeline->recorded, ns);
	if (event->core >= timeline->max_cores || event->type == KB_EVENT_UNKNOWN)
		return 0;
	cpu = &timeline->cpus[event->core];
	if (ns < cpu->last)
		ns = cpu->last;
	switch (event->type) {
	case KB_EVENT_TASK_SWITCH:
		n = feed_switch(cpu, ns, event, slices);
		break;
	case KB_EVENT_HALT:
		n = feed_halt(cpu, ns, event, slices);
		break;
	case KB_EVENT_SAMPLE:
		feed_sample(timeline, cpu, ns, event);
		break;
	case KB_EVENT_CUSTOM_COUNTER:
		if (event->custom_counter.counter == timeline->lost_series &&
		    event->custom_counter.value)
			n = feed_loss(timeline, cpu, ns, event, slices);
		else if (kb_stops_offline(event, timeline->stop_series))
			n = feed_offline(cpu, ns, event, slices);
		break;
	default:
		break;
	}
	cpu->seen = true;
	cpu->last = ns;
	return n;
}

int64_t kb_timeline_first(const struct kb_timeline *timeline)
{
	return kb_recorded_first(&timeline->recorded);
}

int64_t kb_timeline_last(const struct kb_timeline *timeline)
{
	return kb_recorded_last(&timeline->recorded);
}

uint64_t kb_timeline_duration(const struct kb_timeline *timeline)
{
	return kb_recorded_duration(&timeline->recorded);
}

/*
 * The next open slice of a CPU; if records are missing at its end, then the slice of that loss.
 */
static bool end_cpu(struct kb_timeline *timeline, struct cpu *cpu, struct kb_slice *slice)
{
	int64_t last = kb_timeline_last(timeline);
	const struct kb_error *damage;
	bool lost = cpu->lost > cpu->told && !kb_barman_damage(timeline->barman, &damage);
	bool open = cpu->state != CPU_UNKNOWN;

	if (open) {
		close_slice(cpu, (uint32_t)(cpu - timeline->cpus), lost ? cpu->last : last,
			    lost ? KB_END_LOST : KB_END_CAPTURE, slice);
		cpu->state = CPU_UNKNOWN;
	} else if (lost) {
		*slice = lost_slice(timeline, cpu, cpu->seen ? cpu->last : last, last,
				    cpu->lost - cpu->told);
		cpu->told = cpu->lost;
	}
	return open || lost;
}

bool kb_timeline_end(struct kb_timeline *timeline, struct kb_slice *slice)
{
	while (timeline->next < timeline->max_cores) {
		if (end_cpu(timeline, &timeline->cpus[timeline->next], slice))
			return true;
		timeline->next++;
	}
	return false;
}

bool kb_timeline_running(const struct kb_timeline *timeline, uint32_t core, uint32_t *task_id)
{
	if (core >= timeline->max_cores || !timeline->cpus[core].has_task)
		return false;
	*task_id = timeline->cpus[core].task_id;
	return true;
}

/* ---- going on from a moment ---- */

size_t kb_timeline_room(const struct kb_timeline *timeline)
{
	return sizeof(timeline->recorded) + timeline->max_cores * sizeof(*timeline->cpus);
}

void kb_timeline_save(const struct kb_timeline *timeline, void *state)
{
	memcpy(state, &timeline->recorded, sizeof(timeline->recorded));
	memcpy((char *)state + sizeof(timeline->recorded), timeline->cpus,
	       timeline->max_cores * sizeof(*timeline->cpus));
}

void kb_timeline_restore(struct kb_timeline *timeline, const void *state)
{
	const struct kb_barman *barman = timeline->recorded.barman;

	memcpy(&timeline->recorded, state, sizeof(timeline->recorded));
	timeline->recorded.barman = barman;
	memcpy(timeline->cpus, (const char *)state + sizeof(timeline->recorded),
	       timeline->max_cores * sizeof(*timeline->cpus));
}

int64_t kb_timeline_oldest(const struct kb_timeline *timeline)
{
	int64_t oldest = INT64_MAX;

	for (uint32_t core = 0; core < timeline->max_cores; core++) {
		const struct cpu *cpu = &timeline->cpus[core];

		/* a gap begins with the last record */
		if (cpu->seen && cpu->last < oldest)
			oldest = cpu->last;
		if (cpu->state != CPU_UNKNOWN && cpu->since < oldest)
			oldest = cpu->since;
	}
	return oldest;
}
