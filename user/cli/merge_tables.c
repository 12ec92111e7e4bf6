// SPDX-License-Identifier: MIT
/*
 * Merges the tables of several captures. Captures of one session share their tables. If these were
 * copied at different times, some captures have more rows. Each row is taken once, in the order of
 * timestamps.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "merge.h"

static bool refuse(const struct merge_input *a, const struct merge_input *b, const char *what)
{
	cli_warn("%s and %s can't be merged: %s", a->path, b->path, what);
	return false;
}

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

bool merge_check(const struct merge_input *inputs, unsigned int count)
{
	const struct merge_input *first = &inputs[0];
	const struct kb_header *a = first->header;

	for (unsigned int i = 1; i < count; i++) {
		const struct kb_header *b = inputs[i].header;

		if (a->word_size != b->word_size || a->big_endian != b->big_endian)
			return refuse(first, &inputs[i], "they are of different machines");
		if (a->timestamp_base != b->timestamp_base ||
		    a->timestamp_multiplier != b->timestamp_multiplier ||
		    a->timestamp_divisor != b->timestamp_divisor)
			return refuse(first, &inputs[i], "their clocks differ: they are not of one "
				      "session");
		if (!a->max_task_infos != !b->max_task_infos || a->extended != b->extended)
			return refuse(first, &inputs[i], "only one of them has a table of tasks, or "
				      "only one has kbarman.ext=1");
		if (!same_states(inputs[0].barman, inputs[i].barman))
			return refuse(first, &inputs[i], "their kernels number the states of tasks "
				      "differently");
		if (!same_custom(a, b))
			return refuse(first, &inputs[i], "their custom charts differ");
	}
	for (unsigned int i = 0; i < count; i++) {
		for (unsigned int k = 0; k < i; k++) {
			if (!same_counters(inputs[k].header, inputs[i].header))
				return refuse(&inputs[k], &inputs[i],
					      "their counters of a core differ");
		}
	}
	return true;
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

void merge_layout(const struct merge_input *inputs, unsigned int count,
		  struct kb_barman_layout *layout)
{
	const struct kb_header *first = inputs[0].header;

	*layout = (struct kb_barman_layout){
		.word_size = first->word_size,
		.big_endian = first->big_endian,
		.max_custom_charts = first->nr_charts,
		.max_custom_series = first->nr_series,
	};
	/* Counts rows that are in several captures several times; compacting removes the copies. */
	for (unsigned int i = 0; i < count; i++) {
		const struct kb_header *h = inputs[i].header;

		layout->max_cores = max_u32(layout->max_cores, h->max_cores);
		layout->max_pmu_counters = max_u32(layout->max_pmu_counters, h->max_pmu_counters);
		layout->max_task_infos += h->nr_tasks;
		layout->max_mmap_layout += h->nr_maps;
		layout->max_string_table_length += h->string_table_length + 64;
	}
	/* Without this table records would lose a field. */
	if (first->max_task_infos && !layout->max_task_infos)
		layout->max_task_infos = 1;
	if (first->max_mmap_layout && !layout->max_mmap_layout)
		layout->max_mmap_layout = 1;
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_names(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_tasks(const void *left, const void *right)
{
	const struct kb_task *a = *(const struct kb_task *const *)left;
	const struct kb_task *b = *(const struct kb_task *const *)right;
	int order = compare_u64(a->timestamp, b->timestamp);

	if (!order)
		order = compare_u64(a->task_id, b->task_id);
	return order ? order : compare_names(a->name, b->name);
}

static int compare_maps(const void *left, const void *right)
{
	const struct kb_map *a = *(const struct kb_map *const *)left;
	const struct kb_map *b = *(const struct kb_map *const *)right;
	int order = compare_u64(a->timestamp, b->timestamp);

	if (!order)
		order = compare_u64(a->task_id, b->task_id);
	if (!order)
		order = compare_u64(a->base_address, b->base_address);
	if (!order)
		order = compare_u64(a->length, b->length);
	if (!order)
		order = compare_u64(a->image_offset, b->image_offset);
	if (!order)
		order = compare_names(a->image, b->image);
	if (!order)
		order = compare_u64(a->file.length, b->file.length);
	return order ? order : memcmp(a->file.data ?: "", b->file.data ?: "", a->file.length);
}

static int merge_tasks(const struct merge_input *inputs, unsigned int count,
		       struct kb_barman_writer *writer)
{
	const struct kb_task **rows;
	size_t n = 0;
	int ret = 0;

	for (unsigned int i = 0; i < count; i++)
		n += inputs[i].header->nr_tasks;
	rows = malloc((n ? n : 1) * sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	n = 0;
	for (unsigned int i = 0; i < count; i++) {
		for (uint32_t k = 0; k < inputs[i].header->nr_tasks; k++)
			rows[n++] = &inputs[i].header->tasks[k];
	}
	qsort(rows, n, sizeof(*rows), compare_tasks);
	for (size_t i = 0; !ret && i < n; i++) {
		if (!i || compare_tasks(&rows[i - 1], &rows[i]))
			ret = kb_barman_writer_task(writer, rows[i]);
	}
	free(rows);
	return ret;
}

static int merge_maps(const struct merge_input *inputs, unsigned int count,
		      struct kb_barman_writer *writer)
{
	const struct kb_map **rows;
	size_t n = 0;
	int ret = 0;

	for (unsigned int i = 0; i < count; i++)
		n += inputs[i].header->nr_maps;
	rows = malloc((n ? n : 1) * sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	n = 0;
	for (unsigned int i = 0; i < count; i++) {
		for (uint32_t k = 0; k < inputs[i].header->nr_maps; k++)
			rows[n++] = &inputs[i].header->maps[k];
	}
	qsort(rows, n, sizeof(*rows), compare_maps);
	for (size_t i = 0; !ret && i < n; i++) {
		if (!i || compare_maps(&rows[i - 1], &rows[i]))
			ret = kb_barman_writer_map(writer, rows[i]);
	}
	free(rows);
	return ret;
}

/* Takes the first entry of each core that has counters, else its first entry. */
static int merge_pmus(const struct merge_input *inputs, unsigned int count, uint32_t max_cores,
		      struct kb_barman_writer *writer)
{
	int ret = 0;

	for (uint32_t core = 0; !ret && core < max_cores; core++) {
		const struct kb_pmu *pmu = NULL;

		for (unsigned int i = 0; i < count; i++) {
			const struct kb_header *h = inputs[i].header;

			if (core < h->max_cores && (!pmu || !pmu->num_counters))
				pmu = &h->pmus[core];
		}
		ret = kb_barman_writer_pmu(writer, core, pmu);
	}
	return ret;
}

/* Facts "kbarman.KEY=VALUE": readers use the first one of each KEY. */
static int merge_facts(const struct kb_header *h, struct kb_barman_writer *writer)
{
	const char *at = h->strings, *end = h->strings + h->string_table_length;
	int64_t ret = 0;

	for (; ret >= 0 && at < end; at += strlen(at) + 1) {
		/* facts about files are copied with their rows */
		if (strncmp(at, "kbarman.", 8) == 0 && strncmp(at, "kbarman.file=", 13) != 0)
			ret = kb_barman_writer_string(writer, at);
	}
	return ret < 0 ? (int)ret : 0;
}

int merge_tables(const struct merge_input *inputs, unsigned int count,
		 struct kb_barman_writer *writer)
{
	const struct kb_header *first = inputs[0].header;
	uint32_t max_cores = 0;
	int ret = kb_barman_writer_set_header(writer, first);

	for (unsigned int i = 0; i < count; i++)
		max_cores = max_u32(max_cores, inputs[i].header->max_cores);
	for (unsigned int i = 0; !ret && i < count; i++)
		ret = merge_facts(inputs[i].header, writer);
	if (!ret)
		ret = merge_pmus(inputs, count, max_cores, writer);
	if (!ret)
		ret = merge_tasks(inputs, count, writer);
	if (!ret)
		ret = merge_maps(inputs, count, writer);
	for (uint32_t i = 0; !ret && i < first->nr_charts; i++)
		ret = kb_barman_writer_chart(writer, &first->charts[i]);
	for (uint32_t i = 0; !ret && i < first->nr_series; i++)
		ret = kb_barman_writer_series(writer, &first->series[i]);
	return ret;
}
