// SPDX-License-Identifier: MIT
/* A heap holds the next record of each capture. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/capture_tables.h"
#include "base/heap.h"
#include "format/barman/identity.h"
#include "record/merge/captures.h"

/* ---- what must be the same ---- */

static bool same_name(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_custom(const struct kb_header *a, const struct kb_header *b)
{
	if (a->nr_charts != b->nr_charts || a->nr_series != b->nr_series)
		return false;
	for (uint32_t i = 0; i < a->nr_charts; i++) {
		if (!same_name(a->charts[i].name, b->charts[i].name))
			return false;
	}
	for (uint32_t i = 0; i < a->nr_series; i++) {
		const struct kb_series *x = &a->series[i], *y = &b->series[i];

		if (x->chart_index != y->chart_index || !same_name(x->name, y->name) ||
		    x->series_class != y->series_class || x->display != y->display ||
		    memcmp(&x->multiplier, &y->multiplier,	/* NOLINT: the bits, a NaN's too */
			   sizeof(x->multiplier)))
			return false;
	}
	return true;
}

static bool same_counters(const struct kb_header *a, const struct kb_header *b)
{
	uint32_t cores = a->max_cores < b->max_cores ? a->max_cores : b->max_cores;

	for (uint32_t core = 0; core < cores; core++) {
		const struct kb_pmu *x = &a->pmus[core], *y = &b->pmus[core];

		if (!x->num_counters || !y->num_counters)
			continue;
		if (x->num_counters != y->num_counters ||
		    memcmp(x->counter_types, y->counter_types,
			   x->num_counters * sizeof(*x->counter_types)))
			return false;
	}
	return true;
}

static bool same_states(const struct kb_barman *a, const struct kb_barman *b)
{
	const char *of_a = kb_barman_fact(a, "states"), *of_b = kb_barman_fact(b, "states");

	return of_a && of_b ? strcmp(of_a, of_b) == 0 : of_a == of_b;
}

static bool disagree(struct kb_merge_conflict *conflict, unsigned int left, unsigned int right,
		     const char *why)
{
	*conflict = (struct kb_merge_conflict){ left, right, why };
	return false;
}

bool kb_captures_agree(struct kb_barman *const *captures, unsigned int count,
		       struct kb_merge_conflict *conflict)
{
	const struct kb_header *a = kb_barman_header(captures[0]);
	unsigned int of = 0, copy;

	for (unsigned int i = 1; i < count; i++) {
		const struct kb_header *b = kb_barman_header(captures[i]);

		if (a->word_size != b->word_size || a->big_endian != b->big_endian)
			return disagree(conflict, 0, i, "they are of different machines");
		if (a->timestamp_base != b->timestamp_base ||
		    a->timestamp_multiplier != b->timestamp_multiplier ||
		    a->timestamp_divisor != b->timestamp_divisor)
			return disagree(conflict, 0, i, "their clocks differ: they are not of one "
					"session");
		if (!a->max_task_infos != !b->max_task_infos || a->extended != b->extended)
			return disagree(conflict, 0, i, "only one of them has a table of tasks, or "
					"only one has kbarman.ext=1");
		if (!same_states(captures[0], captures[i]))
			return disagree(conflict, 0, i, "their kernels number the states of tasks "
					"differently");
		if (!same_custom(a, b))
			return disagree(conflict, 0, i, "their custom charts differ");
	}
	for (unsigned int i = 0; i < count; i++) {
		for (unsigned int k = 0; k < i; k++) {
			if (!same_counters(kb_barman_header(captures[k]),
					   kb_barman_header(captures[i])))
				return disagree(conflict, k, i, "their counters of a core differ");
		}
	}
	copy = barman_find_copy(captures, count, &of);
	if (copy < count)
		return disagree(conflict, of, copy, "they are the same capture: give one of them");
	return true;
}

/* ---- records ---- */

struct input {
	struct kb_barman *barman;
	struct kb_event event;		/* the next record */
	uint64_t order;			/* its timestamp, or the last known one */
};

/* Equal times keep the order of the arguments. */
static bool before(struct input *const *a, struct input *const *b)
{
	return (*a)->order < (*b)->order || ((*a)->order == (*b)->order && *a < *b);
}

KB_HEAP(first, struct input *, before)

/* Reads the input's next record. False: the input has ended. */
static bool advance(struct input *input)
{
	if (kb_barman_next(input->barman, &input->event, NULL) != 1)
		return false;
	/* Version 3 may write "the last known time" as a timestamp, which has no order. */
	if (input->event.timestamp != UINT64_MAX)
		input->order = input->event.timestamp;
	return true;
}

static int merge_records(struct input *inputs, unsigned int count,
			 struct kb_barman_writer *writer, uint64_t *records)
{
	struct input **heap = malloc(count * sizeof(*heap));
	size_t nr = 0;
	int ret = 0;

	if (!heap)
		return -ENOMEM;
	for (unsigned int i = 0; i < count; i++) {
		if (advance(&inputs[i])) {
			heap[nr] = &inputs[i];
			first_up(heap, nr++);
		}
	}
	while (nr && !ret) {
		struct input *first = heap[0];

		ret = kb_barman_writer_event(writer, &first->event);
		++*records;
		if (!advance(first))
			heap[0] = heap[--nr];
		first_down(heap, nr);
	}
	free(heap);
	return ret;
}

static int write_facts(const char *const *facts, struct kb_barman_writer *writer)
{
	int64_t ret = 0;

	for (; facts && *facts && ret >= 0; facts++)
		ret = kb_barman_writer_string(writer, *facts);
	return ret < 0 ? (int)ret : 0;
}

int kb_captures_merge(struct kb_barman *const *captures, unsigned int count, const char *const *facts,
		      int fd, uint64_t *records, struct kb_error *err)
{
	struct input *inputs = calloc(count, sizeof(*inputs));
	struct kb_error why = { 0 };
	struct kb_barman_layout layout;
	struct kb_barman_writer *writer;
	int ret;

	*records = 0;
	for (unsigned int i = 0; inputs && i < count; i++) {
		inputs[i].barman = captures[i];
		kb_barman_set_counters(captures[i], KB_COUNTERS_DELTA);
	}
	kb_tables_merged_layout(captures, count, &layout);
	for (unsigned int i = 0; facts && facts[i]; i++)
		layout.max_string_table_length += (uint32_t)strlen(facts[i]) + 1;
	ret = inputs ? kb_barman_writer_create(&writer, fd, &layout, &why) : -ENOMEM;
	if (!ret) {
		ret = kb_tables_merge(captures, count, writer) ?: write_facts(facts, writer);
		if (!ret)
			ret = merge_records(inputs, count, writer, records);
		/* kb_barman_writer_finish() knows the error of the file and its message. */
		if (!ret || ret == kb_barman_writer_sync(writer))
			ret = kb_barman_writer_finish(writer, true, &why);
		kb_barman_writer_destroy(writer);
	}
	free(inputs);
	if (ret && !why.code)
		kb_error_set(&why, ret, KB_NO_OFFSET, "%s", strerror(-ret));
	if (ret && err)
		*err = why;
	return ret;
}
