// SPDX-License-Identifier: MIT
/*
 * The rounds of a recorder: rings -> merge -> writer, then the header's tables, so that records
 * in the file never refer to missing rows.
 *
 * A thread (behind.c) does the writing and waits for the disk.
 *
 * In stream mode the kernel can't overwrite a part of a ring that was not given back. So
 * records go from the map to the writer's buffer without another copy. Space is given back once
 * a round for each CPU.
 *
 * A ring that is empty may be about to publish a record that its CPU has already stamped. The
 * time between stamping and publishing is microseconds on real hardware; on a virtual CPU it
 * depends on the host. So a round ends a little before now (HOLD_BACK_NS). If a ring fills up,
 * the round goes up to now: keeping all records is more important than their order.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/pid_namespace.h"
#include "format/barman/writer.h"
#include "record/recorder/inside.h"
#include "record/recorder/mounts.h"

#define HOLD_BACK_NS	50000000
#define SYNC_BYTES	(64 << 20)	/* the most that is lost when the disk fills up */

/* Room for strings that the recorder adds: tgid and exit of each row, a few for each CPU. */
#define TASK_STRING_BYTES	96
#define NOTE_BYTES		128	/* and notes of its process, on average; */
#define PART_NOTE_BYTES		64	/* in a part, which ends before its table is full */
#define CPU_STRING_BYTES	512
#define OTHER_STRING_BYTES	65536
#define IRQ_STRING_BYTES	(256U << 10)	/* and the names of interrupts, at two times */
#define DISK_STRING_BYTES	(192U << 10)	/* and those of disks: see KB_DISK_TABLE_MAX */
#define IDLE_STRING_BYTES	512U		/* and the idle states of each CPU */

/* ---- rings ---- */

static int add_ring(struct kb_recorder *recorder, unsigned int cpu, struct kb_error *err)
{
	struct ring *ring = &recorder->rings[recorder->nr_rings];
	int ret;

	ret = kb_device_map(recorder->device, cpu, &ring->mapped, err);
	if (ret)
		return ret;
	ring->cpu = cpu;
	ring->source = -1;
	ring->has_pmu = false;
	recorder->nr_rings++;
	recorder->ring_of_cpu[cpu] = recorder->nr_rings;
	return 0;
}

/* A CPU of the session has a ring as soon as the kernel has stats of it. */
static int find_rings(struct kb_recorder *recorder, struct kb_error *err)
{
	if (recorder->is_frozen)
		return 0;
	for (unsigned int cpu = 0; cpu < recorder->nr_cpus; cpu++) {
		struct kbarman_stats stats;
		int ret;

		if (recorder->ring_of_cpu[cpu] ||
		    kb_device_stats(recorder->device, cpu, &stats, NULL))
			continue;
		ret = add_ring(recorder, cpu, err);
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- from the rings to the writer ---- */

/* Reading starts at read_offset at the time of the first read; it may move before. */
static int add_source(struct kb_recorder *recorder, struct ring *ring, struct kb_error *err)
{
	uint64_t from = kb_mapped_read_offset(&ring->mapped, 0);

	ring->consumed = from;
	if (recorder->part)
		from = recorder_part_skip(recorder, ring, from);
	ring->from = from;
	ring->source = kb_merge_add(recorder->merge, ring->mapped.ring, ring->mapped.ring_bytes,
				    from, err);
	if (ring->source < 0)
		return ring->source;
	recorder->ring_of_source[ring->source] = (unsigned int)(ring - recorder->rings) + 1;
	return 0;
}

static int extend(struct kb_recorder *recorder, struct kb_error *err)
{
	for (unsigned int i = 0; i < recorder->nr_rings; i++) {
		struct ring *ring = &recorder->rings[i];
		int ret = ring->source < 0 ? add_source(recorder, ring, err) : 0;

		if (ret)
			return ret;
		kb_merge_extend(recorder->merge, (unsigned int)ring->source,
				kb_mapped_write_offset(&ring->mapped, ring->consumed));
	}
	return 0;
}

static int sync_writer(struct kb_recorder *recorder)
{
	recorder->unsynced = 0;
	return recorder_tail_write(recorder) ?: kb_barman_writer_sync(recorder->writer);
}

/* Counts @records, the oldest of which is of the time @first, and syncs the file now and then. */
static int note_emitted(struct kb_recorder *recorder, unsigned int source, uint64_t records,
			uint64_t first, size_t bytes)
{
	recorder->totals.records += records;
	if (!recorder->first_timestamp)
		recorder->first_timestamp = first;
	if (recorder->ring_of_source[source]) {
		struct ring *ring = &recorder->rings[recorder->ring_of_source[source] - 1];

		if (!ring->records)
			ring->first = first;
		ring->records += records;
	}
	recorder->unsynced += bytes;
	return recorder->unsynced >= SYNC_BYTES ? sync_writer(recorder) : 0;
}

/* A record that is older than what is wanted. */
static void skip(struct kb_recorder *recorder, const struct kb_raw_record *record)
{
	if (recorder->ring_of_source[record->source])
		recorder->rings[recorder->ring_of_source[record->source] - 1].skipped++;
}

int kb_recorder_since(struct kb_recorder *recorder, uint64_t ticks, struct kb_error *err)
{
	if (!recorder->is_frozen)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "the recording is not frozen");
	recorder->since = ticks;
	return 0;
}

int kb_recorder_note(struct kb_recorder *recorder, uint32_t what, struct kb_error *err)
{
	if (what & ~(uint32_t)(KB_NOTE_CGROUP | KB_NOTE_COMMAND | KB_NOTE_OBJECT))
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "unknown notes of processes: 0x%" PRIx32,
				    what);
	/* The capture has the numbers of the machine: those of /proc are of other processes. */
	recorder->notes.what = kb_is_in_pid_namespace() ? 0 : what;
	if (recorder->notes.what & KB_NOTE_OBJECT && recorder->has_objects && !recorder->part &&
	    !recorder->objects && recorder_objects_begin(recorder))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	return 0;
}

/* Each record may have to wait, or may be written as another one. */
static int emit_each(struct kb_recorder *recorder, struct kb_error *err)
{
	struct kb_raw_record record;
	int ret;

	while ((ret = kb_merge_next(recorder->merge, &record, err)) != 0) {
		if (ret == -EBADMSG) {
			recorder->totals.damaged++;
			continue;
		}
		if (record.timestamp < recorder->since) {
			skip(recorder, &record);
			continue;
		}
		if (recorder->objects)
			recorder_objects_see(recorder, record.data, record.length);
		ret = recorder_waits_write(recorder, &record) ?:
		      note_emitted(recorder, record.source, 1, record.timestamp, record.length);
		if (ret)
			return recorder_write_failed(err, ret);
	}
	return 0;
}

static int emit_runs(struct kb_recorder *recorder, struct kb_error *err)
{
	struct kb_raw_run run;
	int ret;

	while ((ret = kb_merge_next_run(recorder->merge, &run, err)) != 0) {
		if (ret == -EBADMSG) {
			recorder->totals.damaged++;
			continue;
		}
		if (recorder->objects)
			recorder_objects_see_run(recorder, &run);
		ret = kb_barman_writer_blocks(recorder->writer, run.blocks, run.bytes, run.last) ?:
		      note_emitted(recorder, run.source, run.records, run.first, run.bytes);
		if (ret)
			return recorder_write_failed(err, ret);
	}
	return 0;
}

static int emit(struct kb_recorder *recorder, uint64_t horizon, struct kb_error *err)
{
	kb_merge_horizon(recorder->merge, horizon);
	return recorder->short_waits || recorder->stacks || recorder->since
		       ? emit_each(recorder, err)
		       : emit_runs(recorder, err);
}

/* Move inserted records up to @horizon to the merge. Returns how far that went. */
static uint64_t extend_inserted(struct kb_recorder *recorder, uint64_t horizon)
{
	unsigned int source = (unsigned int)recorder->insert_source;

	if (recorder->insert_source < 0)
		return horizon;
	horizon = kb_insert_move(&recorder->insert, horizon,
				 kb_merge_position(recorder->merge, source));
	kb_merge_extend(recorder->merge, source, recorder->insert.end);
	return horizon;
}

/* Write everything up to @horizon, in steps if the ring of inserted records is too small. */
static int emit_all(struct kb_recorder *recorder, uint64_t horizon, struct kb_error *err)
{
	uint64_t upto;
	int ret;

	do {
		upto = extend_inserted(recorder, horizon);
		ret = emit(recorder, upto, err);
	} while (!ret && upto != horizon);
	return ret ?: recorder_waits_go_on(recorder, horizon, err);
}

static int consume(struct kb_recorder *recorder, struct kb_error *err)
{
	bool any = false;

	for (unsigned int cpu = 0; cpu < recorder->nr_cpus; cpu++)
		recorder->positions[cpu] = KBARMAN_NO_POSITION;
	for (unsigned int i = 0; i < recorder->nr_rings; i++) {
		struct ring *ring = &recorder->rings[i];
		uint64_t position = kb_merge_position(recorder->merge, (unsigned int)ring->source);

		if (position == ring->consumed)
			continue;
		recorder->positions[ring->cpu] = position;
		ring->consumed = position;
		any = true;
	}
	return any ? kb_device_consume_each(recorder->device, recorder->positions, recorder->nr_cpus, err) : 0;
}

static bool any_ring_full(const struct kb_recorder *recorder)
{
	for (unsigned int i = 0; i < recorder->nr_rings; i++) {
		const struct ring *ring = &recorder->rings[i];
		uint64_t end = kb_mapped_write_offset(&ring->mapped, ring->consumed);

		if (end - kb_merge_position(recorder->merge, (unsigned int)ring->source) >=
		    recorder->watermark)
			return true;
	}
	return false;
}

/*
 * A part is complete in the file, with all its rows, before its records leave the rings: a
 * program that is killed here leaves each record in the file or in a ring, or in both.
 */
static int commit(struct kb_recorder *recorder, struct kb_error *err)
{
	bool stable = true;
	int ret;

	if (!recorder->part)
		return consume(recorder, err);
	ret = find_rings(recorder, err);
	if (ret)
		return ret;
	ret = recorder_part_rows(recorder, &stable);
	if (!ret && stable)
		ret = sync_writer(recorder);
	if (ret)
		return recorder_write_failed(err, ret);
	if (!stable)
		return 0;
	recorder_part_synced(recorder);
	return consume(recorder, err);
}

int kb_recorder_pump(struct kb_recorder *recorder, struct kb_error *err)
{
	struct kbarman_clock clock;
	uint64_t now;
	int ret;

	if (!recorder->stream)
		return 0;
	/* Read the clock first: records stamped later are newer than `now`. */
	ret = kb_device_clock(recorder->device, &clock, err);
	if (ret)
		return ret;
	now = clock.now.timestamp;
	ret = recorder_stacks_begin(recorder, err) ?: recorder_stacks_go_on(recorder, now, err) ?:
	      extend(recorder, err);
	if (!ret)
		ret = emit_all(recorder, now > recorder->hold_back ? now - recorder->hold_back : 0,
			       err);
	if (!ret && any_ring_full(recorder))
		ret = emit_all(recorder, now, err);
	/* The rings have room again before other things take time. */
	return ret ?: commit(recorder, err) ?: recorder_objects_look(recorder, false, err);
}

int kb_recorder_sync(struct kb_recorder *recorder, struct kb_error *err)
{
	int ret = 0;

	if (!recorder->stream)
		return 0;	/* rows may be reused until the stop */
	ret = find_rings(recorder, err);
	if (!ret)
		ret = recorder_copy_tables(recorder, false, err);
	/* Write the threads now: a recorder that is killed writes nothing at the end. */
	if (!ret)
		ret = recorder_write_threads(recorder, err);
	if (ret)
		return ret;
	ret = sync_writer(recorder);
	/* Report a file that can't be written before the command to record is started. */
	if (!ret && !recorder->synced)
		ret = barman_wait(recorder->writer);
	recorder->synced = true;
	return ret ? recorder_write_failed(err, ret) : 0;
}

int kb_recorder_finish(struct kb_recorder *recorder, bool compact, struct kb_error *err)
{
	int ret;

	ret = find_rings(recorder, err);
	/* Tables first: from the first sync on the file is a capture. */
	ret = ret ?: recorder_copy_tables(recorder, true, err);
	ret = ret ?: extend(recorder, err);
	ret = ret ?: recorder_stacks_begin(recorder, err);
	ret = ret ?: emit_all(recorder, UINT64_MAX, err);
	ret = ret ?: recorder_stacks_end(recorder, err);
	if (!ret && recorder->stream)
		ret = consume(recorder, err);
	ret = ret ?: recorder_objects_look(recorder, true, err);
	recorder->totals.unordered = kb_merge_unordered(recorder->merge);
	recorder->totals.inserted = recorder->insert.count;
	recorder->totals.dropped = recorder->insert.dropped;
	ret = ret ?: recorder_waits_facts(recorder, err) ?: recorder_stacks_facts(recorder, err) ?:
	      recorder_wall_facts(recorder, err) ?: recorder_write_facts(recorder, err);
	return ret ?: kb_barman_writer_finish(recorder->writer, compact, err);
}

int kb_recorder_end_part(struct kb_recorder *recorder, struct kb_error *err)
{
	struct kbarman_query query;
	bool stable = false;
	int ret = kb_device_query(recorder->device, &query, err);

	if (!ret && query.state & KBARMAN_STATE_RUNNING)
		ret = kb_recorder_pump(recorder, err);
	else
		ret = ret ?: find_rings(recorder, err) ?: extend(recorder, err) ?:
		      emit_all(recorder, UINT64_MAX, err);
	recorder->totals.unordered = kb_merge_unordered(recorder->merge);
	/* Rows are used again only if there are many, so this ends. */
	while (!ret && !stable) {
		ret = recorder_part_rows(recorder, &stable);
		if (ret)
			return recorder_write_failed(err, ret);
	}
	recorder->strings_done = 0;	/* strings may have found room in front of others */
	ret = ret ?: recorder_copy_tables(recorder, true, err) ?:
	      recorder_part_facts(recorder, err);
	if (ret)
		return ret;
	ret = sync_writer(recorder);
	if (ret)
		return recorder_write_failed(err, ret);
	recorder_part_synced(recorder);
	recorder_part_told(recorder);
	return consume(recorder, err);
}

uint64_t kb_recorder_bytes(const struct kb_recorder *recorder)
{
	return recorder->writer->places.end + recorder->writer->flushed + recorder->writer->used;
}

int kb_recorder_compact(struct kb_recorder *recorder, int fd, struct kb_error *err)
{
	return kb_barman_writer_compact(recorder->writer, fd, err);
}

void kb_recorder_totals(const struct kb_recorder *recorder, struct kb_recorder_totals *totals)
{
	*totals = recorder->totals;
	totals->nr_cpus = recorder->nr_rings;
}

/* ---- create and destroy ---- */

static int create_writer(struct kb_recorder *recorder, int fd, struct kb_error *err)
{
	const struct kb_mapped *m = recorder_header(recorder);
	const struct bm_protocol_config_values *config = &m->header->config_constants;
	uint32_t tasks = config->max_task_infos, maps = config->max_mmap_layout;
	uint64_t strings = config->max_string_table_length;

	if (recorder->part)
		recorder_part_room(recorder, &tasks, &maps, &strings);
	recorder->notes.room = (uint64_t)tasks * (recorder->part ? PART_NOTE_BYTES : NOTE_BYTES);
	strings += recorder->notes.room + OTHER_STRING_BYTES + (uint64_t)tasks * TASK_STRING_BYTES +
		   (uint64_t)config->max_cores * CPU_STRING_BYTES +
		   (recorder->interrupts ? IRQ_STRING_BYTES : 0) +
		   (recorder->disks ? DISK_STRING_BYTES : 0) +
		   (recorder->has_objects && !recorder->part ? OBJECT_STRING_BYTES : 0) +
		   (recorder->idle_states ? (uint64_t)config->max_cores * IDLE_STRING_BYTES : 0);

	struct kb_barman_layout layout = {
		.size = sizeof(layout),
		.word_size = sizeof(bm_uintptr),
		.big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,
		.max_cores = config->max_cores,
		.max_task_infos = tasks,
		.max_mmap_layout = maps,
		.max_pmu_counters = config->max_pmu_counters,
		.max_string_table_length = strings < 1U << 30 ? (uint32_t)strings : 1U << 30,
		.max_custom_charts = m->nr_charts,
		.max_custom_series = config->num_custom_counters,
		.spare_series = true,
	};

	int ret;

	ret = kb_barman_writer_create(&recorder->writer, fd, &layout, err);
	if (ret)
		return ret;
	/* The target's name has to be the first string. */
	ret = recorder_set_header(recorder) ?: recorder_clock_fact(recorder, "monotonic_base") ?:
	      /* of a session that runs already, it is not known any more */
	      (recorder->is_frozen ? 0 : recorder_wall_error(recorder, "realtime_error_base")) ?:
	      recorder_hardware_facts(recorder) ?: recorder_idle_facts(recorder) ?:
	      recorder_slot_facts(recorder);
	if (!ret && recorder->part)
		ret = recorder_part_begin(recorder);
	/* A slow disk must not delay reading the rings. */
	if (!ret && recorder->stream && !recorder->part)
		ret = barman_write_behind(recorder->writer);
	return ret ? recorder_write_failed(err, ret) : 0;
}

/* Collect the views of all rings. They are live here and become copies. */
static int freeze(struct kb_recorder *recorder, struct kb_error *err)
{
	struct kb_mapped **maps = calloc(recorder->nr_rings, sizeof(*maps));	/* NOLINT: not 0 */
	int ret;

	if (!maps)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	for (unsigned int i = 0; i < recorder->nr_rings; i++)
		maps[i] = &recorder->rings[i].mapped;
	ret = kb_frozen_create(&recorder->frozen, recorder->device, maps, recorder->nr_rings, err);
	recorder->is_frozen = !ret;
	recorder->totals.recycled = recorder->frozen.recycled;
	free(maps);
	return ret;
}

static int create(struct kb_recorder **out, struct kb_device *device, int fd, bool frozen,
		  struct kb_parts *parts, struct kb_error *err)
{
	struct kb_recorder *recorder = calloc(1, sizeof(*recorder));
	struct kbarman_query query;
	int ret;

	*out = NULL;
	if (!recorder)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	recorder->device = device;
	recorder->insert_source = -1;
	ret = kb_device_query(device, &query, err);
	if (ret)
		goto err_destroy;
	recorder->nr_cpus = query.nr_cpus;
	recorder->stream = query.mode == KBARMAN_MODE_STREAM;
	recorder->interrupts = query.sources & KBARMAN_SOURCE_IRQ;
	recorder->disks = query.sources & KBARMAN_SOURCE_BLOCK;
	recorder->idle_states = query.sources & KBARMAN_SOURCE_FREQ;
	recorder->maps = query.sources & KBARMAN_SOURCE_MAPS;
	recorder->has_objects = query.features & KBARMAN_FEATURE_OBJECTS;
	recorder->watermark = query.ring_bytes / 4;
	recorder->clock_hz = query.clock_hz;
	recorder->hold_back = (uint64_t)((double)query.clock_hz * HOLD_BACK_NS / 1e9);
	recorder->rings = calloc(recorder->nr_cpus, sizeof(*recorder->rings));
	recorder->ring_of_cpu = calloc(recorder->nr_cpus, sizeof(*recorder->ring_of_cpu));
	recorder->positions = calloc(recorder->nr_cpus, sizeof(*recorder->positions));
	recorder->ring_of_source = calloc(recorder->nr_cpus + 1, sizeof(*recorder->ring_of_source));
	recorder->mounts = kb_mounts_create(NULL);
	if (!recorder->rings || !recorder->ring_of_cpu || !recorder->positions || !recorder->ring_of_source ||
	    !recorder->mounts) {
		ret = kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
		goto err_destroy;
	}
	ret = kb_merge_create(&recorder->merge, recorder->nr_cpus + 1, err);
	if (!ret)
		ret = find_rings(recorder, err);
	if (!ret && !recorder->nr_rings)
		ret = kb_error_set(err, -ENODEV, KB_NO_OFFSET,
				   "none of the CPUs to record is there");
	if (!ret && frozen)
		ret = freeze(recorder, err);
	if (!ret && parts)
		ret = recorder_part_create(recorder, parts, err);
	if (!ret)
		ret = create_writer(recorder, fd, err);
	if (ret)
		goto err_destroy;
	*out = recorder;
	return 0;

err_destroy:
	kb_recorder_destroy(recorder);
	return ret;
}

int kb_recorder_create(struct kb_recorder **out, struct kb_device *device, int fd,
		       struct kb_error *err)
{
	return create(out, device, fd, false, NULL, err);
}

int kb_recorder_freeze(struct kb_recorder **out, struct kb_device *device, int fd,
		       struct kb_error *err)
{
	return create(out, device, fd, true, NULL, err);
}

int kb_recorder_create_part(struct kb_recorder **out, struct kb_device *device, int fd,
			    struct kb_parts *parts, struct kb_error *err)
{
	return create(out, device, fd, false, parts, err);
}

void kb_recorder_destroy(struct kb_recorder *recorder)
{
	if (!recorder)
		return;
	if (recorder->writer)
		kb_barman_writer_destroy(recorder->writer);
	recorder_notes_release(recorder);
	recorder_objects_destroy(recorder);
	recorder_waits_destroy(recorder);
	recorder_stacks_destroy(recorder);
	recorder_part_destroy(recorder);
	kb_merge_destroy(recorder->merge);
	kb_insert_destroy(&recorder->insert);
	for (unsigned int i = 0; i < recorder->nr_rings; i++)
		kb_mapped_unmap(&recorder->rings[i].mapped);
	kb_frozen_release(&recorder->frozen);
	kb_mounts_destroy(recorder->mounts);
	free(recorder->ring_of_source);
	free(recorder->ring_of_cpu);
	free(recorder->positions);
	free(recorder->rings);
	free(recorder);
}
