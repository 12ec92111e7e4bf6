// SPDX-License-Identifier: MIT
/*
 * Samples are added to rows, which are in one hash table. There may be many more rows than fit into
 * a cache, and a sample may need any of them. So with many rows samples wait in a queue while their
 * rows are prefetched.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/samples/hot_inside.h"
#include "analysis/time/idle.h"
#include "base/array.h"

#define FEW_ROWS	512U	/* so few rows stay in the cache */

int kb_hot_create(struct kb_hot **out, const struct kb_tasks *tasks, struct kb_spots *spots,
		  unsigned int sort, struct kb_error *err)
{
	struct kb_hot *hot = calloc(1, sizeof(*hot));
	uint32_t words;

	if (!hot)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	hot->sort = sort;
	hot->spots = spots;
	hot->judged = KB_SPOT_NOWHERE;
	/* A symbol is of one image. */
	hot->image_key = sort & (KB_SORT_IMAGE | KB_SORT_LINE) && !(sort & KB_SORT_SYMBOL);
	hot->line_key = sort & KB_SORT_LINE;
	hot->by_task = (sort & ~KB_SORT_IDLE) == KB_SORT_TID;
	hot->cgroup_key = sort & KB_SORT_CGROUP;
	hot->pid_key = sort & KB_SORT_PID;
	words = 2 + hot->image_key + hot->line_key + hot->cgroup_key + hot->pid_key;
	kb_table_init(&hot->rows, words * sizeof(uint64_t) + sizeof(struct hot_tally), words);
	kb_name_ids_init(&hot->comms, tasks);
	*out = hot;
	return 0;
}

void kb_hot_destroy(struct kb_hot *hot)
{
	if (!hot)
		return;
	kb_table_release(&hot->rows);
	kb_name_ids_release(&hot->comms);
	free(hot->order);
	free(hot->more);
	free(hot->counters);
	free(hot->sums);
	for (unsigned int set = 0; set < KB_COUNT_SETS; set++)
		free(hot->sets[set].sums);
	free(hot);
}

void kb_hot_take_notes(struct kb_hot *hot, const struct kb_process_notes *notes)
{
	hot->notes = notes;
}

int kb_hot_sum_counters(struct kb_hot *hot, const struct kb_names *names)
{
	hot->max_of_core = kb_names_most_of_core(names);
	hot->counters = calloc(hot->max_of_core + 1, KB_HOT_QUEUE * sizeof(*hot->counters));
	if (!hot->counters)
		return -ENOMEM;
	hot->names = names;
	hot->nr_counters = kb_names_nr_counters(names);
	hot->single = hot->nr_counters == 1 && kb_names_fewest_of_core(names) == 1;
	return 0;
}

/* Make room in @sums, which has room for @max rows, for the sums of row number @row. */
static int __attribute__((noinline)) grow_sums(const struct kb_hot *hot, uint64_t **sums,
					       uint32_t *max, uint32_t row)
{
	size_t nr = hot->nr_counters, room = *max;
	uint64_t *grown;

	grown = kb_array_grow(*sums, &room, (size_t)row + 1, nr * sizeof(*grown), UINT32_MAX);
	if (!grown)
		return -ENOMEM;
	memset(grown + *max * nr, 0, (room - *max) * nr * sizeof(*grown));
	*sums = grown;
	*max = (uint32_t)room;
	return 0;
}

static int add_counters(const struct kb_hot *hot, const struct kb_share *share, uint32_t row,
			uint64_t **sums, uint32_t *max)
{
	uint64_t *sum;
	uint32_t i;

	if (row >= *max && grow_sums(hot, sums, max, row))
		return -ENOMEM;
	sum = *sums + (size_t)row * hot->nr_counters;
	for (i = 0; i < share->nr_counters; i++)
		if (share->counters[i] != KB_COUNTER_INVALID)
			sum[share->ids[i]] += share->counters[i];
	return 0;
}

static int sum_counters(struct kb_hot *hot, const struct kb_share *share, uint32_t row)
{
	int ret = hot->single ? 0 : add_counters(hot, share, row, &hot->sums, &hot->max_sums);

	return ret || !share->set ? ret :
		add_counters(hot, share, row, &hot->sets[share->set].sums,
			     &hot->sets[share->set].max);
}

/* What most rows have nothing of, for row number @row; NULL without memory. */
static struct hot_more *more_of(struct kb_hot *hot, uint32_t row)
{
	uint32_t old = hot->max_more;

	if (row >= old) {
		if (!KB_ARRAY_ROOM(hot->more, hot->max_more, (size_t)row + 1))
			return NULL;
		memset(hot->more + old, 0, (hot->max_more - old) * sizeof(*hot->more));
	}
	return &hot->more[row];
}

/* Add the weight of a sample to @sum, or count it in @unweighed if it has none. */
static void add_weight(const struct kb_share *share, uint64_t *sum, uint64_t *unweighed)
{
	if (share->weighed && share->weight <= UINT64_MAX - *sum)
		*sum += share->weight;
	else
		++*unweighed;
}

/* Add what most samples have nothing of. */
static int __attribute__((noinline)) add_more(struct kb_hot *hot, const struct kb_share *share,
					      uint64_t sample, uint32_t number)
{
	struct hot_more *more = more_of(hot, number);

	if (!more)
		return -ENOMEM;
	more->partial += share->partial;
	more->last_sample = sample;
	add_weight(share, &hot_tally(hot, number)->weight, &more->unweighed);
	return 0;
}

/* Add a sample that fell into row number @number. */
static int add_to_row(struct kb_hot *hot, const struct kb_share *share, uint64_t sample,
		      uint32_t number)
{
	struct hot_tally *tally = hot_tally(hot, number);

	tally->samples++;
	if (share->weighed && !share->partial && !(hot->sort & KB_SORT_CALLERS) &&
	    share->weight <= UINT64_MAX - tally->weight)
		tally->weight += share->weight;
	else if (add_more(hot, share, sample, number))
		return -ENOMEM;
	return hot->names && share->nr_counters ? sum_counters(hot, share, number) : 0;
}

/* Add a sample of which the row is a caller, once. */
static int add_to_caller(struct kb_hot *hot, const struct kb_share *share, uint64_t sample,
			 uint32_t number)
{
	struct hot_more *more = more_of(hot, number);

	if (!more)
		return -ENOMEM;
	if (more->last_sample == sample)
		return 0;
	more->last_sample = sample;
	more->nr_callers++;
	add_weight(share, &more->children, &more->callers_unweighed);
	return 0;
}

/* Where the row of a task is remembered. */
static uint32_t place_of(uint32_t task_id, bool idle)
{
	return idle ? KB_HOT_TASKS : task_id % KB_HOT_TASKS;
}

/* Add a frame to its row. */
static int add_frame(struct kb_hot *hot, const struct hot_waiting *frame)
{
	uint32_t before = hot->rows.nr, number, place;

	number = kb_table_number(&hot->rows, frame->key, frame->hash);
	if (number == KB_TABLE_NONE)
		return -ENOMEM;
	if (number == before)
		*hot_tally(hot, number) = (struct hot_tally) {
			.task_id = frame->task_id,
			.comm = frame->comm,
			.core = frame->share.core,
			.symbol = frame->spot.symbol,
			.line = frame->spot.line,
			.inlined = frame->spot.inlined,
			.idle = frame->idle,
		};
	if (hot->by_task) {
		place = place_of(frame->task_id, frame->idle);
		hot->tasks[place].task_id = frame->task_id;
		hot->tasks[place].row = number + 1;
	}
	return frame->caller ? add_to_caller(hot, &frame->share, frame->sample, number) :
			       add_to_row(hot, &frame->share, frame->sample, number);
}

int hot_add_first(struct kb_hot *hot)
{
	return add_frame(hot, &hot->queue[hot->first++ % KB_HOT_QUEUE]);
}

/*
 * Prefetch the row of the frame in the middle of a full queue; its slot is in the cache by now.
 */
static void fetch_row(const struct kb_hot *hot)
{
	uint64_t hash = hot->queue[(hot->next - KB_HOT_QUEUE / 2) % KB_HOT_QUEUE].hash;
	uint32_t number = kb_table_fetch_row(&hot->rows, hash);

	if (number < hot->max_sums)
		__builtin_prefetch(&hot->sums[(size_t)number * hot->nr_counters], 1);
}

/* Let a frame wait: its counters are copied, because they hold until the next event. */
static int enqueue(struct kb_hot *hot, struct hot_waiting *frame)
{
	uint64_t *counters = hot->counters + (hot->next % KB_HOT_QUEUE) * hot->max_of_core;
	uint32_t i;

	if (hot->first == hot->next && (hot->rows.nr < FEW_ROWS || hot->by_task))
		return add_frame(hot, frame);
	for (i = 0; hot->names && i < frame->share.nr_counters; i++)
		counters[i] = frame->share.counters[i];
	frame->share.counters = counters;
	kb_table_fetch_slot(&hot->rows, frame->hash);
	hot->next++;
	if (hot->next - hot->first < KB_HOT_QUEUE)
		return 0;
	fetch_row(hot);
	return hot_add_first(hot);
}

void kb_share_take(struct kb_share *share, const struct kb_names *names,
		   const struct kb_event *event, bool partial)
{
	uint32_t nr = event->sample.nr_counters, known;

	*share = (struct kb_share) {
		.weighed = nr && event->sample.counters[0] != KB_COUNTER_INVALID,
		.partial = partial,
		.core = event->core,
		.counters = event->sample.counters,
	};
	if (share->weighed)
		share->weight = event->sample.counters[0];
	if (!names || !nr)
		return;
	known = kb_names_of_core(names, event->core);
	share->nr_counters = nr < known ? nr : known;
	if (known)
		share->ids = kb_names_ids(names, event->core);
}

static uint32_t pid_of(const struct kb_hot *hot, const struct kb_event *event)
{
	struct kb_task_hit hit;

	kb_tasks_find(hot->comms.tasks, event->task_id, event->timestamp, &hit);
	return hit.tgid;
}

/* The highest bit of a core's number is free. */
static uint64_t mode_of(const struct kb_hot *hot, const struct kb_spot *spot)
{
	return (uint64_t)kb_spots_symbol(hot->spots, spot->symbol)->kernel << 31;
}

static void make_key(const struct kb_hot *hot, const struct kb_event *event,
		     const struct kb_spot *spot, uint32_t comm, uint64_t key[6])
{
	uint64_t *word = key;

	*word++ = (hot->sort & KB_SORT_TASK ? (uint64_t)comm << 32 : 0) |
		  (hot->sort & KB_SORT_TID ? event->task_id : 0) | (uint64_t)hot->idle << 63;
	*word++ = (hot->sort & KB_SORT_SYMBOL ? (uint64_t)spot->symbol << 32 : 0) |
		  (hot->sort & KB_SORT_MODE ? mode_of(hot, spot) : 0) |
		  (hot->sort & KB_SORT_CPU ? event->core : 0);
	if (hot->image_key)
		*word++ = (uintptr_t)kb_spots_symbol(hot->spots, spot->symbol)->image;
	if (hot->line_key)
		*word++ = spot->line;
	if (hot->cgroup_key)
		*word++ = (uintptr_t)kb_process_notes_find(hot->notes, pid_of(hot, event),
							   event->timestamp).cgroup;
	if (hot->pid_key)
		*word = pid_of(hot, event);
}

/* Add a frame at @spot of the sample that @share is of. */
static int take_frame(struct kb_hot *hot, const struct kb_event *event, const struct kb_spot *spot,
		      const struct kb_share *share, bool caller)
{
	struct hot_waiting *waiting = &hot->queue[hot->next % KB_HOT_QUEUE];
	const struct kb_name_id *comm = kb_name_ids_find(&hot->comms, event->task_id,
							 event->timestamp);

	if (!comm)
		return -ENOMEM;
	make_key(hot, event, spot, comm->id, waiting->key);
	waiting->hash = kb_table_hash(&hot->rows, waiting->key);
	waiting->sample = hot->samples;
	waiting->share = *share;
	waiting->task_id = event->task_id;
	waiting->comm = comm->id;
	waiting->spot = *spot;
	waiting->caller = caller;
	waiting->idle = hot->idle;
	return enqueue(hot, waiting);
}

/* Whether the idle loop waits in @symbol. Most idle samples are in the same function. */
static bool is_idle(struct kb_hot *hot, uint32_t symbol)
{
	const struct kb_spot_symbol *spot;

	if (symbol != hot->judged) {
		spot = kb_spots_symbol(hot->spots, symbol);
		hot->judged = symbol;
		hot->judged_idle = spot->kernel && kb_idle_name(spot->name);
	}
	return hot->judged_idle;
}

int kb_hot_add_share(struct kb_hot *hot, const struct kb_event *event, const struct kb_spot *spot,
		     const struct kb_share *share)
{
	uint32_t place;

	hot->samples++;
	hot->idle = hot->sort & KB_SORT_IDLE && !event->task_id && is_idle(hot, spot->symbol);
	place = place_of(event->task_id, hot->idle);
	if (hot->tasks[place].row && hot->tasks[place].task_id == event->task_id)
		return add_to_row(hot, share, hot->samples, hot->tasks[place].row - 1);
	return take_frame(hot, event, spot, share, false);
}

int kb_hot_add(struct kb_hot *hot, const struct kb_event *event, const struct kb_frame *frame)
{
	struct kb_share share;
	struct kb_spot spot;

	kb_share_take(&share, hot->names, event, false);
	return kb_spots_note(hot->spots, frame, &spot) ?: kb_hot_add_share(hot, event, &spot, &share);
}

int kb_hot_add_caller(struct kb_hot *hot, const struct kb_event *event,
		      const struct kb_frame *frame)
{
	struct kb_share share;
	struct kb_spot spot;

	kb_share_take(&share, NULL, event, false);
	return kb_spots_note(hot->spots, frame, &spot) ?: take_frame(hot, event, &spot, &share, true);
}
