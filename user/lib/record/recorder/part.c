// SPDX-License-Identifier: MIT
/*
 * What is different if a file is one part of a session: it begins where the part before it ended,
 * its tables have the rows that there are now, which may be used again for other tasks before it
 * ends, and its facts are about the part.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "format/barman/file.h"
#include "format/barman/writer.h"
#include "record/recorder/inside.h"
#include "record/recorder/mounts.h"
#include "record/recorder/parts.h"

/* Rows beyond those that there are at the begin of a part; it ends when they are nearly used. */
#define MORE_TASKS	2048U
#define MORE_MAPS	4096U
#define MORE_STRINGS	(192U << 10)
#define FEW		8		/* a table is nearly full if 1 / FEW of it is free */
#define TRIES		8
#define NO_ROW		UINT32_MAX

/* A row of the module's table as it was copied: if it differs now, it is another row. */
struct known_task {
	struct bm_protocol_header_task_info row;
	uint32_t in_file;		/* its number there; NO_ROW: none */
};

struct staged {				/* a row that is not in the file yet */
	uint32_t row;
	uint32_t tgid;			/* of a task, */
	bool ended;			/* and whether it has */
	char *name;			/* of the task, or the path of the image */
	char *file;			/* of an image: which file that is; NULL: not known */
};

struct recorder_part {
	struct kb_parts *parts;
	uint64_t number;
	struct kbarman_clock_pair begun;
	struct known_task *tasks;	/* by row of the module's table */
	struct bm_protocol_header_mmap_layout *maps;
	struct staged *staged;
	size_t nr_staged, max_staged;
	uint64_t (*lost)[KBARMAN_LOST_REASONS];		/* by ring: as the facts say */
	uint64_t missed[KBARMAN_MISS_REASONS];
	uint32_t task_room, map_room;	/* rows of the file */
	uint32_t nr_tasks, nr_maps;	/* rows in the file */
};

/* ---- begin ---- */

int recorder_part_create(struct kb_recorder *recorder, struct kb_parts *parts, struct kb_error *err)
{
	const struct bm_protocol_config_values *config =
		&recorder_header(recorder)->header->config_constants;
	struct recorder_part *part;
	struct kbarman_clock clock;
	int ret;

	if (!recorder->stream)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET,
				    "only a session in stream mode can be recorded in parts");
	ret = kb_device_clock(recorder->device, &clock, err);
	if (ret)
		return ret;
	part = calloc(1, sizeof(*part));
	recorder->part = part;
	if (part) {
		part->tasks = calloc(config->max_task_infos, sizeof(*part->tasks));
		part->maps = calloc(config->max_mmap_layout + 1, sizeof(*part->maps));
		part->lost = calloc(recorder->nr_cpus, sizeof(*part->lost));
	}
	if (!part || !part->tasks || !part->maps || !part->lost)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	part->parts = parts;
	part->number = parts->next;
	part->begun = clock.now;
	/* At the base of the timestamps, as it is now: the clock may have been set. */
	recorder->unix_base = clock.now.realtime_ns - (clock.now.raw_ns - clock.start.raw_ns);
	return 0;
}

static void forget_staged(struct recorder_part *part)
{
	for (size_t i = 0; i < part->nr_staged; i++) {
		free(part->staged[i].name);
		free(part->staged[i].file);
	}
	part->nr_staged = 0;
}

void recorder_part_destroy(struct kb_recorder *recorder)
{
	if (!recorder->part)
		return;
	forget_staged(recorder->part);
	free(recorder->part->staged);
	free(recorder->part->tasks);
	free(recorder->part->maps);
	free(recorder->part->lost);
	free(recorder->part);
}

void recorder_part_room(struct kb_recorder *recorder, uint32_t *tasks, uint32_t *maps,
			uint64_t *strings)
{
	const struct kb_mapped *m = recorder_header(recorder);
	uint32_t nr_tasks = kb_mapped_count(m->nr_tasks);
	uint32_t nr_maps = m->nr_maps ? kb_mapped_count(m->nr_maps) : 0;
	uint32_t bytes = kb_mapped_count(&m->header->string_table_length);

	recorder->part->task_room = *tasks = nr_tasks + nr_tasks / 2 + MORE_TASKS;
	if (*maps)
		recorder->part->map_room = *maps =
			nr_maps + nr_maps / 2 + (recorder->maps ? MORE_MAPS : 1);
	*strings = (uint64_t)bytes + bytes / 2 + MORE_STRINGS;
}

/* A fact for which the file has no room is counted, and ends nothing. */
static int put_fact(struct kb_recorder *recorder, const char *key, const char *value)
{
	int ret = kb_barman_writer_fact(recorder->writer, key, value);

	if (ret != -ENOSPC)
		return ret;
	recorder->totals.missed_rows++;
	return 0;
}

static int clock_fact(struct kb_recorder *recorder, const char *key,
		      const struct kbarman_clock_pair *clock)
{
	char text[48];

	snprintf(text, sizeof(text), "%" PRIu64 ",%" PRIu64, (uint64_t)clock->raw_ns,
		 (uint64_t)clock->realtime_ns);
	return put_fact(recorder, key, text);
}

/* What the parts before this one told of, for who goes on if this one does not end. */
static int before_facts(struct kb_recorder *recorder)
{
	const struct kb_parts *parts = recorder->part->parts;
	int ret = 0;

	for (unsigned int cpu = 0; cpu < parts->nr_cpus; cpu++) {
		for (unsigned int why = 0; kb_loss_name(why) && !ret; why++) {
			if (parts->cpus[cpu].lost[why])
				ret = recorder_number_fact(recorder, parts->cpus[cpu].lost[why],
							   KB_PART_BEFORE "%u.%s", cpu,
							   kb_loss_name(why));
		}
	}
	for (unsigned int why = 0; kb_miss_name(why) && !ret; why++) {
		if (parts->missed[why])
			ret = recorder_number_fact(recorder, parts->missed[why],
						   KB_PART_BEFORE "%s", kb_miss_name(why));
	}
	return ret;
}

int recorder_part_begin(struct kb_recorder *recorder)
{
	const struct kb_parts *parts = recorder->part->parts;
	struct kb_error err;
	char text[72];

	snprintf(text, sizeof(text), "%" PRIu64 ",%" PRIu64 ",%" PRIu64, recorder->part->number,
		 parts->session, parts->raw_base);
	return put_fact(recorder, "part", text) ?:
	       clock_fact(recorder, "part_begin", &recorder->part->begun) ?:
	       before_facts(recorder) ?: recorder_copy_tables(recorder, false, &err);
}

/* ---- where reading begins ---- */

uint64_t recorder_part_skip(const struct kb_recorder *recorder, const struct ring *ring,
			    uint64_t position)
{
	const struct kb_parts_cpu *cpu = &recorder->part->parts->cpus[ring->cpu];
	uint64_t end = kb_mapped_write_offset(&ring->mapped, position), at = position;
	uint64_t mask = ring->mapped.ring_bytes - 1;

	if (!cpu->record)
		return position;
	/*
	 * The file has a beginning of what the ring has, or nothing of it. Records of one time may be
	 * several: so it is the record itself that is looked for.
	 */
	while (at < end) {
		const uint8_t *block = ring->mapped.ring + (at & mask);
		bm_uintptr word = *(const bm_uintptr *)block, length = word & ~BM_BLOCK_PADDING;
		const struct bm_protocol_record_header *header =
			(const void *)(block + sizeof(word));

		if (length % sizeof(word) || length > end - at ||
		    (at & mask) + sizeof(word) + length > ring->mapped.ring_bytes)
			break;
		at += sizeof(word) + length;
		if (word & BM_BLOCK_PADDING)
			continue;
		if (length < sizeof(*header) || header->timestamp > cpu->timestamp)
			break;
		if (header->timestamp < cpu->timestamp ||
		    (length == cpu->length && !memcmp(header, cpu->record, length)))
			position = at;
	}
	return position;
}

/* ---- rows ---- */

static struct staged *stage(struct recorder_part *part, uint32_t row, const char *name)
{
	struct staged *staged;

	if (part->nr_staged == part->max_staged) {
		size_t max = part->max_staged ? part->max_staged * 2 : 64;
		void *more = realloc(part->staged, max * sizeof(*staged));

		if (!more)
			return NULL;
		part->staged = more;
		part->max_staged = max;
	}
	staged = &part->staged[part->nr_staged];
	*staged = (struct staged){ .row = row, .name = strdup(name ?: "") };
	if (!staged->name)
		return NULL;
	part->nr_staged++;
	return staged;
}

static uint32_t rows_now(const __u32 *count, uint32_t max)
{
	uint32_t rows = count ? kb_mapped_count(count) : 0;

	return rows < max ? rows : max;
}

static int stage_tasks(struct kb_recorder *recorder)
{
	const struct kb_mapped *m = recorder_header(recorder);
	uint32_t count = rows_now(m->nr_tasks, m->header->config_constants.max_task_infos);

	for (uint32_t i = 0; i < count; i++) {
		const struct bm_protocol_header_task_info *row = &m->tasks[i];
		struct bm_kbarman_task fact;
		struct staged *staged;

		if (row->task_id == KBARMAN_NO_TASK ||
		    !memcmp(row, &recorder->part->tasks[i].row, sizeof(*row)))
			continue;
		staged = stage(recorder->part, i, kb_mapped_string(m, row->task_name_ptr));
		if (!staged)
			return -ENOMEM;
		fact = recorder_task_fact(recorder, i);
		staged->tgid = fact.tgid;
		staged->ended = fact.exit_timestamp;
	}
	return 0;
}

static int stage_maps(struct kb_recorder *recorder)
{
	const struct kb_mapped *m = recorder_header(recorder);
	uint32_t count = rows_now(m->nr_maps, m->header->config_constants.max_mmap_layout);

	for (uint32_t i = 0; i < count; i++) {
		const struct bm_protocol_header_mmap_layout *row = &m->maps[i];
		struct staged *staged;
		struct kb_text file = kb_text(NULL);
		const char *image;

		if (row->task_id == KBARMAN_NO_TASK ||
		    !memcmp(row, &recorder->part->maps[i], sizeof(*row)))
			continue;
		image = kb_mapped_string(m, row->image_ptr) ?: "";
		if (*image)
			file = barman_file_of(m->strings, row->image_ptr);
		image = kb_mounts_path(recorder->mounts, row->task_id, image, file);
		staged = image ? stage(recorder->part, i, image) : NULL;
		if (!staged)
			return -ENOMEM;
		staged->file = file.length ? strndup(file.data, file.length) : NULL;
	}
	return 0;
}

/* Stages what @stage_rows finds, if no row is used again meanwhile. 1: it is so. */
static int stage_stable(struct kb_recorder *recorder,
			int (*stage_rows)(struct kb_recorder *recorder))
{
	for (int i = 0; i < TRIES; i++) {
		struct kbarman_query before, after;
		int ret = kb_device_query(recorder->device, &before, NULL);

		forget_staged(recorder->part);
		ret = ret ?: stage_rows(recorder) ?:
		      kb_device_query(recorder->device, &after, NULL);
		if (ret)
			return ret;
		if (before.generation == after.generation)
			return 1;
	}
	forget_staged(recorder->part);
	return 0;
}

/* A row for which the file has no room is counted, as in other recordings. */
static int added(struct kb_recorder *recorder, int ret, uint32_t *rows)
{
	if (ret == -ENOSPC)
		recorder->totals.missed_rows++;
	else if (!ret)
		(*rows)++;
	return ret == -ENOSPC ? 0 : ret;
}

static int add_task(struct kb_recorder *recorder, const struct staged *staged)
{
	const struct bm_protocol_header_task_info *row =
		&recorder_header(recorder)->tasks[staged->row];
	struct known_task *known = &recorder->part->tasks[staged->row];
	struct kb_task task = {
		.timestamp = row->timestamp, .task_id = row->task_id, .name = staged->name,
	};
	uint32_t rows = recorder->part->nr_tasks;
	int ret = added(recorder, kb_barman_writer_task(recorder->writer, &task),
			&recorder->part->nr_tasks);

	memcpy(&known->row, row, sizeof(known->row));
	known->in_file = recorder->part->nr_tasks > rows ? rows : NO_ROW;
	if (ret || known->in_file == NO_ROW)
		return ret;
	if (staged->tgid != task.task_id)
		return recorder_number_fact(recorder, staged->tgid, "tgid.%u", rows);
	return staged->ended ? 0 : recorder_note(recorder, rows, staged->tgid);
}

static int add_map(struct kb_recorder *recorder, const struct staged *staged)
{
	const struct bm_protocol_header_mmap_layout *row =
		&recorder_header(recorder)->maps[staged->row];
	struct kb_map map = {
		.timestamp = row->timestamp, .task_id = row->task_id,
		.base_address = row->base_address, .length = row->length,
		.image_offset = row->image_offset, .image = staged->name,
	};

	if (staged->file)
		map.file = (struct kb_text){ .data = staged->file, .length = strlen(staged->file) };
	memcpy(&recorder->part->maps[staged->row], row, sizeof(*row));
	return added(recorder, kb_barman_writer_map(recorder->writer, &map),
		     &recorder->part->nr_maps);
}

int recorder_part_rows(struct kb_recorder *recorder, bool *stable)
{
	struct recorder_part *part = recorder->part;
	int ret;

	ret = stage_stable(recorder, stage_tasks);
	*stable = ret > 0;
	for (size_t i = 0; ret > 0 && i < part->nr_staged; i++) {
		int failed = add_task(recorder, &part->staged[i]);

		if (failed)
			ret = failed;
	}
	if (ret <= 0)
		return ret;
	ret = stage_stable(recorder, stage_maps);
	*stable = ret > 0;
	for (size_t i = 0; ret > 0 && i < part->nr_staged; i++) {
		int failed = add_map(recorder, &part->staged[i]);

		if (failed)
			ret = failed;
	}
	forget_staged(part);
	return ret < 0 ? ret : 0;
}

bool kb_recorder_part_is_full(const struct kb_recorder *recorder)
{
	const struct recorder_part *part = recorder->part;

	return recorder->totals.missed_rows ||
	       part->nr_tasks > part->task_room - part->task_room / FEW ||
	       (recorder->maps && part->nr_maps > part->map_room - part->map_room / FEW);
}

/* ---- end ---- */

static int exit_facts(struct kb_recorder *recorder)
{
	const struct kb_mapped *m = recorder_header(recorder);
	uint32_t rows = rows_now(m->nr_tasks, m->header->config_constants.max_task_infos);
	int ret = 0;

	for (uint32_t row = 0; row < rows && !ret; row++) {
		const struct known_task *known = &recorder->part->tasks[row];
		struct bm_kbarman_task fact = recorder_task_fact(recorder, row);

		if (fact.exit_timestamp && known->row.timestamp && known->in_file != NO_ROW &&
		    fact.task_id == known->row.task_id)
			ret = recorder_number_fact(recorder, fact.exit_timestamp, "exit.%u",
						   known->in_file);
	}
	return ret;
}

static int ring_facts(struct kb_recorder *recorder, unsigned int i)
{
	const struct ring *ring = &recorder->rings[i];
	const uint64_t *told = recorder->part->parts->cpus[ring->cpu].lost;
	struct kbarman_stats stats;
	char key[32], text[48];
	int ret;

	if (ring->source < 0)
		return 0;
	ret = kb_device_stats(recorder->device, ring->cpu, &stats, NULL);
	if (ret)
		return ret;
	snprintf(key, sizeof(key), "part_ring.%u", ring->cpu);
	snprintf(text, sizeof(text), "%" PRIu64 ",%" PRIu64, ring->from,
		 kb_merge_position(recorder->merge, (unsigned int)ring->source));
	ret = put_fact(recorder, key, text) ?:
	      recorder_number_fact(recorder, ring->records, "written.%u", ring->cpu) ?:
	      recorder_number_fact(recorder, stats.written, "part_written.%u", ring->cpu);
	for (unsigned int why = 0; kb_loss_name(why) && !ret; why++) {
		recorder->part->lost[i][why] = stats.lost[why];
		if (!stats.lost[why])
			continue;
		ret = recorder_number_fact(recorder, stats.lost[why], KB_PART_LOST "%u.%s",
						   ring->cpu, kb_loss_name(why));
		if (!ret && stats.lost[why] > told[why])
			ret = recorder_number_fact(recorder, stats.lost[why] - told[why],
						   "lost.%u.%s", ring->cpu, kb_loss_name(why));
	}
	return ret;
}

/* The end of the session, or a reading now: with it the part's times are exact. */
static int end_clock(struct kb_recorder *recorder)
{
	struct kbarman_clock clock;
	struct kbarman_query query;
	char text[48];
	int ret = kb_device_clock(recorder->device, &clock, NULL)
			  ?: kb_device_query(recorder->device, &query, NULL);

	if (ret)
		return ret;
	snprintf(text, sizeof(text), "%" PRIu64 ",%" PRIu64, (uint64_t)clock.now.timestamp,
		 (uint64_t)clock.now.raw_ns);
	ret = clock_fact(recorder, "part_end", &clock.now)
		      ?: recorder_clock_fact(recorder, "monotonic_end");
	if (!ret && query.state & KBARMAN_STATE_RUNNING)
		ret = put_fact(recorder, "raw_end", text);
	return ret;
}

int recorder_part_facts(struct kb_recorder *recorder, struct kb_error *err)
{
	struct kbarman_stats stats;
	int ret = kb_device_stats(recorder->device, KBARMAN_CPU_ALL, &stats, err);

	if (ret)
		return ret;
	for (unsigned int i = 0; i < recorder->nr_rings && !ret; i++)
		ret = ring_facts(recorder, i);
	for (unsigned int why = 0; kb_miss_name(why) && !ret; why++) {
		uint64_t told = recorder->part->parts->missed[why];

		recorder->part->missed[why] = stats.missed[why];
		if (!stats.missed[why])
			continue;
		ret = recorder_number_fact(recorder, stats.missed[why], KB_PART_LOST "%s",
						   kb_miss_name(why));
		if (!ret && stats.missed[why] > told)
			ret = recorder_number_fact(recorder, stats.missed[why] - told, "missed.%s",
						   kb_miss_name(why));
	}
	ret = ret ?: exit_facts(recorder) ?: end_clock(recorder) ?:
	      recorder_hardware_facts(recorder);
	if (!ret && recorder->totals.unordered)
		ret = recorder_number_fact(recorder, recorder->totals.unordered, "unordered");
	return ret ? recorder_write_failed(err, ret) : 0;
}

void recorder_part_synced(struct kb_recorder *recorder)
{
	if (recorder->part->parts->next <= recorder->part->number)
		recorder->part->parts->next = recorder->part->number + 1;
}

void recorder_part_told(struct kb_recorder *recorder)
{
	struct kb_parts *parts = recorder->part->parts;

	for (unsigned int i = 0; i < recorder->nr_rings; i++)
		memcpy(parts->cpus[recorder->rings[i].cpu].lost, recorder->part->lost[i],
		       sizeof(parts->cpus[0].lost));
	memcpy(parts->missed, recorder->part->missed, sizeof(parts->missed));
}
