// SPDX-License-Identifier: MIT
/*
 * Captures of one session share their tables. If these were copied at different times, some
 * captures have more rows. Each row is taken once, in the order of timestamps.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/capture_tables.h"
#include "analysis/facts/process_notes.h"
#include "base/array.h"
#include "base/table.h"

/* Longest facts of a task, which a capture may have in pages of its own instead. */
#define TGID_BYTES	sizeof("kbarman.tgid.1048576=4294967295")
#define EXIT_BYTES	sizeof("kbarman.exit.1048576=18446744073709551615")
#define MORE_DIGITS	24U		/* of the four numbers in notes of a process */

/* What the strings of @h take when its rows have other numbers. */
static uint64_t string_room(const struct kb_header *h)
{
	uint64_t bytes = h->string_table_length + UINT64_C(64);

	for (uint32_t i = 0; i < h->nr_tasks; i++)
		bytes += (h->tasks[i].tgid != h->tasks[i].task_id ? TGID_BYTES : 0) +
			 (h->tasks[i].exited ? EXIT_BYTES : 0) + MORE_DIGITS;
	return bytes;
}

/* The most that a writer takes. */
static uint32_t limited(uint64_t bytes)
{
	return bytes < UINT32_MAX / 2 ? (uint32_t)bytes : UINT32_MAX / 2;
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

void kb_tables_merged_layout(struct kb_barman *const *captures, unsigned int count,
			     struct kb_barman_layout *layout)
{
	const struct kb_header *first = kb_barman_header(captures[0]);
	uint64_t strings = 0;

	*layout = (struct kb_barman_layout){
		.size = sizeof(*layout),
		.word_size = first->word_size,
		.big_endian = first->big_endian,
		.max_custom_charts = first->nr_charts,
		.max_custom_series = first->nr_series,
	};
	/* Counts rows that are in several captures several times; compacting removes the copies. */
	for (unsigned int i = 0; i < count; i++) {
		const struct kb_header *h = kb_barman_header(captures[i]);

		layout->max_cores = max_u32(layout->max_cores, h->max_cores);
		layout->max_pmu_counters = max_u32(layout->max_pmu_counters, h->max_pmu_counters);
		layout->max_task_infos += h->nr_tasks;
		layout->max_mmap_layout += h->nr_maps;
		strings += string_room(h);
	}
	layout->max_string_table_length = limited(strings);
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

/* 0: the same row, whether or not it says when the task ended. */
static int compare_task_rows(const void *left, const void *right)
{
	const struct kb_task *a = *(const struct kb_task *const *)left;
	const struct kb_task *b = *(const struct kb_task *const *)right;
	int order = compare_u64(a->timestamp, b->timestamp);

	if (!order)
		order = compare_u64(a->task_id, b->task_id);
	return order ? order : compare_names(a->name, b->name);
}

/* Of copies of a row the one that says when the task ended comes first. */
static int compare_tasks(const void *left, const void *right)
{
	const struct kb_task *a = *(const struct kb_task *const *)left;
	const struct kb_task *b = *(const struct kb_task *const *)right;
	int order = compare_task_rows(left, right);

	return order ? order : compare_u64(!a->exited, !b->exited);
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

struct merge {
	struct kb_barman *const *captures;
	unsigned int count;
	struct kb_barman_writer *writer;
	struct kb_process_notes **notes;	/* of each capture */
	struct kb_table cgroups;		/* by their path in one of the notes */
};

/* A table whose rows several captures may have. */
struct merged {
	const void *(*row)(const struct kb_header *header, uint32_t i);	/* NULL behind the last */
	int (*compare)(const void *left, const void *right);	/* their order */
	int (*differ)(const void *left, const void *right);	/* 0: the same row */
	int (*write)(struct merge *merge, const void *row, uint32_t number);
};

static const void *task_row(const struct kb_header *header, uint32_t i)
{
	return i < header->nr_tasks ? &header->tasks[i] : NULL;
}

/* The note of a row of one of the captures. */
static struct kb_process_note note_of(const struct merge *merge, const struct kb_task *task)
{
	for (unsigned int i = 0; i < merge->count; i++) {
		const struct kb_header *h = kb_barman_header(merge->captures[i]);

		if (task >= h->tasks && task < h->tasks + h->nr_tasks)
			return kb_process_notes_row(merge->notes[i], (uint32_t)(task - h->tasks));
	}
	return (struct kb_process_note){ 0 };
}

static int write_cgroup(struct merge *merge, const char *path, uint32_t row)
{
	uint64_t key = (uintptr_t)path;
	uint32_t before = merge->cgroups.nr;
	uint32_t number = kb_table_number(&merge->cgroups, &key, kb_table_hash(&merge->cgroups, &key));
	char text[32], value[16];
	int ret = 0;

	if (number == KB_TABLE_NONE)
		return -ENOMEM;
	snprintf(text, sizeof(text), "cgroup.%" PRIu32, number);
	if (number == before)
		ret = kb_barman_writer_fact(merge->writer, text, path);
	snprintf(text, sizeof(text), "cgroup_of.%" PRIu32, row);
	snprintf(value, sizeof(value), "%" PRIu32, number);
	return ret ?: kb_barman_writer_fact(merge->writer, text, value);
}

static int write_task(struct merge *merge, const void *row, uint32_t number)
{
	struct kb_process_note note = note_of(merge, row);
	int ret = kb_barman_writer_task(merge->writer, row);
	char key[32];

	if (!ret && note.cgroup)
		ret = write_cgroup(merge, note.cgroup, number);
	snprintf(key, sizeof(key), "command.%" PRIu32, number);
	return ret || !note.command ? ret : kb_barman_writer_fact(merge->writer, key, note.command);
}

static const void *map_row(const struct kb_header *header, uint32_t i)
{
	return i < header->nr_maps ? &header->maps[i] : NULL;
}

static int write_map(struct merge *merge, const void *row, uint32_t number)
{
	(void)number;
	return kb_barman_writer_map(merge->writer, row);
}

static const struct merged merged_tasks = { task_row, compare_tasks, compare_task_rows, write_task };
static const struct merged merged_maps = { map_row, compare_maps, compare_maps, write_map };

static int merge_rows(const struct merged *table, struct merge *merge)
{
	const void **rows = NULL, *row;
	size_t nr = 0, max = 0;
	uint32_t number = 0;
	int ret = 0;

	for (unsigned int i = 0; i < merge->count; i++) {
		for (uint32_t k = 0; (row = table->row(kb_barman_header(merge->captures[i]), k)); k++) {
			if (!KB_ARRAY_ROOM(rows, max, nr + 1)) {
				free(rows);
				return -ENOMEM;
			}
			rows[nr++] = row;
		}
	}
	if (nr)
		qsort(rows, nr, sizeof(*rows), table->compare);
	for (size_t i = 0; !ret && i < nr; i++)
		if (!i || table->differ(&rows[i - 1], &rows[i]))
			ret = table->write(merge, rows[i], number++);
	free(rows);
	return ret;
}

static int merge_all_rows(struct kb_barman *const *captures, unsigned int count,
			  struct kb_barman_writer *writer)
{
	struct merge merge = {
		.captures = captures, .count = count, .writer = writer,
		.notes = calloc(count, sizeof(*merge.notes)),
	};
	int ret = merge.notes ? 0 : -ENOMEM;

	kb_table_init(&merge.cgroups, sizeof(uint64_t), 1);
	for (unsigned int i = 0; i < count && !ret; i++)
		ret = kb_process_notes_create(&merge.notes[i], captures[i]);
	ret = ret ?: merge_rows(&merged_tasks, &merge) ?: merge_rows(&merged_maps, &merge);
	for (unsigned int i = 0; merge.notes && i < count; i++)
		kb_process_notes_destroy(merge.notes[i]);
	free(merge.notes);
	kb_table_release(&merge.cgroups);
	return ret;
}

/* Takes the first entry of each core that has counters, else its first entry. */
static int merge_pmus(struct kb_barman *const *captures, unsigned int count, uint32_t max_cores,
		      struct kb_barman_writer *writer)
{
	int ret = 0;

	for (uint32_t core = 0; !ret && core < max_cores; core++) {
		const struct kb_pmu *pmu = NULL;

		for (unsigned int i = 0; i < count; i++) {
			const struct kb_header *h = kb_barman_header(captures[i]);

			if (core < h->max_cores && (!pmu || !pmu->num_counters))
				pmu = &h->pmus[core];
		}
		ret = kb_barman_writer_pmu(writer, core, pmu);
	}
	return ret;
}

/* Facts of a row of the task table, which has another number in another capture. */
static bool is_about_tasks(const char *fact)
{
	return strncmp(fact, "tgid.", 5) == 0 || strncmp(fact, "exit.", 5) == 0 ||
	       strncmp(fact, "tasks=", 6) == 0;
}

/*
 * Facts "kbarman.KEY=VALUE": readers use the first one of each KEY. Facts about tasks, and without
 * @rows those about files and processes, are left out: they are copied with their rows.
 */
static int copy_facts(const struct kb_header *h, bool rows, const char *without,
		      struct kb_barman_writer *writer)
{
	const char *at = h->strings, *end = h->strings + h->string_table_length;
	int64_t ret = 0;

	for (; ret >= 0 && at < end; at += strlen(at) + 1) {
		if (strncmp(at, "kbarman.", 8) == 0 && !is_about_tasks(at + 8) &&
		    (!without || strcmp(at + 8, without) != 0) &&
		    (rows || (strncmp(at, "kbarman.file=", 13) != 0 && !kb_process_notes_are(at + 8))))
			ret = kb_barman_writer_string(writer, at);
	}
	return ret < 0 ? (int)ret : 0;
}

int kb_tables_merge(struct kb_barman *const *captures, unsigned int count,
		    struct kb_barman_writer *writer)
{
	const struct kb_header *first = kb_barman_header(captures[0]);
	uint32_t max_cores = 0;
	int ret = kb_barman_writer_set_header(writer, first);

	for (unsigned int i = 0; i < count; i++)
		max_cores = max_u32(max_cores, kb_barman_header(captures[i])->max_cores);
	for (unsigned int i = 0; !ret && i < count; i++)
		ret = copy_facts(kb_barman_header(captures[i]), false, NULL, writer);
	if (!ret)
		ret = merge_pmus(captures, count, max_cores, writer);
	if (!ret)
		ret = merge_all_rows(captures, count, writer);
	for (uint32_t i = 0; !ret && i < first->nr_charts; i++)
		ret = kb_barman_writer_chart(writer, &first->charts[i]);
	for (uint32_t i = 0; !ret && i < first->nr_series; i++)
		ret = kb_barman_writer_series(writer, &first->series[i]);
	return ret;
}

/* ---- of one capture ---- */

/* Room for the rows of a table. Without a table records would lose a field. */
static uint32_t room(uint32_t max, uint32_t used)
{
	return max ? used ?: 1 : 0;
}

void kb_tables_layout(const struct kb_header *h, struct kb_barman_layout *layout)
{
	*layout = (struct kb_barman_layout){
		.size = sizeof(*layout),
		.word_size = h->word_size,
		.big_endian = h->big_endian,
		.max_cores = h->max_cores,
		.max_task_infos = room(h->max_task_infos, h->nr_tasks),
		.max_mmap_layout = room(h->max_mmap_layout, h->nr_maps),
		.max_pmu_counters = h->max_pmu_counters,
		/* Leaves out strings that no row uses. Strings of several rows are stored once. */
		.max_string_table_length = limited(string_room(h)),
		.max_custom_charts = h->nr_series ? h->nr_charts ?: 1 : 0,
		.max_custom_series = h->nr_series,
	};
}

int kb_tables_copy(const struct kb_header *h, const char *without, struct kb_barman_writer *writer)
{
	int ret = kb_barman_writer_set_header(writer, h);

	if (!ret)
		ret = copy_facts(h, true, without, writer);
	for (uint32_t i = 0; !ret && i < h->max_cores; i++)
		ret = kb_barman_writer_pmu(writer, i, &h->pmus[i]);
	for (uint32_t i = 0; !ret && i < h->nr_tasks; i++)
		ret = kb_barman_writer_task(writer, &h->tasks[i]);
	for (uint32_t i = 0; !ret && i < h->nr_maps; i++)
		ret = kb_barman_writer_map(writer, &h->maps[i]);
	for (uint32_t i = 0; !ret && h->nr_series && i < h->nr_charts; i++)
		ret = kb_barman_writer_chart(writer, &h->charts[i]);
	for (uint32_t i = 0; !ret && i < h->nr_series; i++)
		ret = kb_barman_writer_series(writer, &h->series[i]);
	return ret;
}
