// SPDX-License-Identifier: MIT
/*
 * The loop body of a recorder: rings -> merge -> writer, and the header's tables
 * after them, so that what is in the file never refers to a row that is not.
 *
 * In stream mode the space of a ring that was not given back can't be written by
 * the kernel, so records go from the map to the writer's buffer directly; space is
 * given back once a round and CPU.
 *
 * A ring that is empty may be about to publish a record that its CPU has stamped
 * already: the time between the two is microseconds on iron, and as long as the
 * host likes on a virtual CPU. So rounds end a little before now (HOLD_BACK_NS),
 * except when a ring fills up: then order has to yield to completeness.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <kbarman/barman.h>
#include <kbarman/merge.h>
#include <kbarman/recorder.h>

#include "frozen.h"
#include "insert.h"

#define HOLD_BACK_NS	50000000
#define INSERT_BYTES	(16 << 20)	/* of records that wait for their time */
#define CLOCK_OLD_NS	100000000	/* a pair of readings that is asked for anew */
#define SYNC_BYTES	(64 << 20)	/* not more is lost if the disk fills up */
#define FACTS_AT_ONCE	1024

/* Strings of ours beside the kernel's: tgid and exit of each row, a few a CPU. */
#define TASK_STRING_BYTES	96
#define CPU_STRING_BYTES	512
#define OTHER_STRING_BYTES	65536

struct ring {
	struct kb_mapped mapped;
	unsigned int cpu;
	int source;			/* of the merge; -1 = not read yet */
	uint64_t consumed;
	uint64_t records;		/* of it in the file */
	bool has_pmu;			/* its PMU entry was written */
};

struct kb_recorder {
	struct kb_device *device;
	struct kb_barman_writer *writer;
	struct kb_merge *merge;
	struct ring *rings;		/* nr_rings of room for nr_cpus */
	unsigned int *ring_of_cpu;	/* index + 1; 0 = none yet */
	unsigned int *ring_of_source;	/* the same; 0 = of what is inserted */
	unsigned int nr_rings, nr_cpus;
	bool stream;
	uint64_t watermark;
	uint64_t hold_back;		/* ticks */
	struct kb_insert insert;
	int insert_source;		/* of the merge; -1 = none yet */
	struct kbarman_clock clock;	/* for them: read now and then */
	uint64_t clock_hz;
	uint64_t unsynced;		/* bytes of records */
	uint32_t strings_done, tasks_done, maps_done, charts_done, series_done;
	bool is_frozen;
	struct kb_frozen frozen;	/* what the rings' views are of, if so */
	struct kb_recorder_totals totals;
};

static const char *const loss_names[] = {
	[KBARMAN_LOST_FULL]	= "full",
	[KBARMAN_LOST_NESTED]	= "nested",
	[KBARMAN_LOST_TOO_BIG]	= "too_big",
	[KBARMAN_LOST_RATE]	= "rate",
};

static const char *const miss_names[] = {
	[KBARMAN_MISSED_TASK]	= "task",
	[KBARMAN_MISSED_MAP]	= "map",
	[KBARMAN_MISSED_STRING]	= "string",
	[KBARMAN_MISSED_QUEUE]	= "queue",
	[KBARMAN_MISSED_MEMORY]	= "memory",
	[KBARMAN_MISSED_COUNTER] = "counter",
};

const char *kb_loss_name(unsigned int loss)
{
	return loss < KBARMAN_LOST_REASONS ? loss_names[loss] : NULL;
}

const char *kb_miss_name(unsigned int miss)
{
	return miss < KBARMAN_MISS_REASONS ? miss_names[miss] : NULL;
}

static int write_failed(struct kb_error *err, int ret)
{
	return kb_error_set(err, ret, KB_NO_OFFSET, "the capture can't be written: %s",
			    strerror(-ret));
}

/* ---- rings ---- */

static int add_ring(struct kb_recorder *r, unsigned int cpu, struct kb_error *err)
{
	struct ring *ring = &r->rings[r->nr_rings];
	int ret;

	ret = kb_device_map(r->device, cpu, &ring->mapped, err);
	if (ret)
		return ret;
	ring->cpu = cpu;
	ring->source = -1;
	ring->has_pmu = false;
	r->nr_rings++;
	r->ring_of_cpu[cpu] = r->nr_rings;
	return 0;
}

/* CPUs of the session have a ring from the moment on that there are stats of them. */
static int find_rings(struct kb_recorder *r, struct kb_error *err)
{
	if (r->is_frozen)
		return 0;
	for (unsigned int cpu = 0; cpu < r->nr_cpus; cpu++) {
		struct kbarman_stats stats;
		int ret;

		if (r->ring_of_cpu[cpu] || kb_device_stats(r->device, cpu, &stats, NULL))
			continue;
		ret = add_ring(r, cpu, err);
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- from the rings to the writer ---- */

/* A ring is read from where it begins when it is first read: that may move before. */
static int add_source(struct kb_recorder *r, struct ring *ring, struct kb_error *err)
{
	ring->consumed = kb_mapped_read_offset(&ring->mapped, 0);
	ring->source = kb_merge_add(r->merge, ring->mapped.ring, ring->mapped.ring_bytes,
				    ring->consumed, err);
	if (ring->source < 0)
		return ring->source;
	r->ring_of_source[ring->source] = (unsigned int)(ring - r->rings) + 1;
	return 0;
}

static int extend(struct kb_recorder *r, struct kb_error *err)
{
	for (unsigned int i = 0; i < r->nr_rings; i++) {
		struct ring *ring = &r->rings[i];
		int ret = ring->source < 0 ? add_source(r, ring, err) : 0;

		if (ret)
			return ret;
		kb_merge_extend(r->merge, (unsigned int)ring->source,
				kb_mapped_write_offset(&ring->mapped, ring->consumed));
	}
	return 0;
}

static int sync_writer(struct kb_recorder *r)
{
	r->unsynced = 0;
	return kb_barman_writer_sync(r->writer);
}

static int emit(struct kb_recorder *r, uint64_t horizon, struct kb_error *err)
{
	struct kb_raw_record record;
	int ret;

	kb_merge_horizon(r->merge, horizon);
	while ((ret = kb_merge_next(r->merge, &record, err)) != 0) {
		if (ret == -EBADMSG) {
			r->totals.damaged++;
			continue;
		}
		ret = kb_barman_writer_record(r->writer, record.data, record.length);
		r->totals.records++;
		if (r->ring_of_source[record.source])
			r->rings[r->ring_of_source[record.source] - 1].records++;
		r->unsynced += record.length;
		if (!ret && r->unsynced >= SYNC_BYTES)
			ret = sync_writer(r);
		if (ret)
			return write_failed(err, ret);
	}
	return 0;
}

/* What was inserted up to @horizon goes to the merge; returns how far that went. */
static uint64_t extend_inserted(struct kb_recorder *r, uint64_t horizon)
{
	unsigned int source = (unsigned int)r->insert_source;

	if (r->insert_source < 0)
		return horizon;
	horizon = kb_insert_move(&r->insert, horizon, kb_merge_position(r->merge, source));
	kb_merge_extend(r->merge, source, r->insert.end);
	return horizon;
}

/* Everything up to @horizon: in turns, if there is more inserted than its ring holds. */
static int emit_all(struct kb_recorder *r, uint64_t horizon, struct kb_error *err)
{
	uint64_t upto;
	int ret;

	do {
		upto = extend_inserted(r, horizon);
		ret = emit(r, upto, err);
	} while (!ret && upto != horizon);
	return ret;
}

static int consume(struct kb_recorder *r, struct kb_error *err)
{
	for (unsigned int i = 0; i < r->nr_rings; i++) {
		struct ring *ring = &r->rings[i];
		uint64_t position = kb_merge_position(r->merge, (unsigned int)ring->source);
		int ret;

		if (position == ring->consumed)
			continue;
		ret = kb_device_consume(r->device, ring->cpu, position, err);
		if (ret)
			return ret;
		ring->consumed = position;
	}
	return 0;
}

static bool any_ring_full(const struct kb_recorder *r)
{
	for (unsigned int i = 0; i < r->nr_rings; i++) {
		const struct ring *ring = &r->rings[i];
		uint64_t end = kb_mapped_write_offset(&ring->mapped, ring->consumed);

		if (end - kb_merge_position(r->merge, (unsigned int)ring->source) >= r->watermark)
			return true;
	}
	return false;
}

int kb_recorder_pump(struct kb_recorder *r, struct kb_error *err)
{
	struct kbarman_clock clock;
	uint64_t now;
	int ret;

	if (!r->stream)
		return 0;
	/* The clock first: what is stamped later than that is no news of the past. */
	ret = kb_device_clock(r->device, &clock, err);
	if (ret)
		return ret;
	now = clock.now.timestamp;
	ret = extend(r, err);
	if (!ret)
		ret = emit_all(r, now > r->hold_back ? now - r->hold_back : 0, err);
	if (!ret && any_ring_full(r))
		ret = emit_all(r, now, err);
	return ret ?: consume(r, err);
}

/* ---- records of others ---- */

static int64_t raw_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/*
 * CLOCK_MONOTONIC_RAW to ticks, by a pair of readings that is near. Nothing was recorded
 * before the start, nor is anything later than now: who says so is taken for mistaken.
 */
static int ticks_of(struct kb_recorder *r, int64_t raw_ns, uint64_t *ticks, struct kb_error *err)
{
	const struct kbarman_clock_pair *start = &r->clock.start, *near = &r->clock.now;
	int64_t now = raw_now();
	__int128 span, rate;

	if (raw_ns > now)
		raw_ns = now;
	if (!near->raw_ns || now - (int64_t)near->raw_ns > CLOCK_OLD_NS) {
		int ret = kb_device_clock(r->device, &r->clock, err);

		if (ret)
			return ret;
	}
	*ticks = start->timestamp;
	if (raw_ns <= (int64_t)start->raw_ns)
		return 0;
	span = (int64_t)(near->raw_ns - start->raw_ns);
	rate = (int64_t)(near->timestamp - start->timestamp);
	/* Two readings that are near each other say less than the nominal rate. */
	if (span < CLOCK_OLD_NS) {
		span = 1000000000;
		rate = (int64_t)r->clock_hz;
	}
	*ticks = near->timestamp +
		 (uint64_t)(int64_t)((raw_ns - (__int128)near->raw_ns) * rate / span);
	if (*ticks < start->timestamp)
		*ticks = start->timestamp;
	return 0;
}

static int insert(struct kb_recorder *r, void *record, size_t length, uint32_t type,
		  uint32_t core, int64_t raw_ns, struct kb_error *err)
{
	struct bm_protocol_record_header *header = record;
	uint64_t ticks;
	int ret;

	ret = ticks_of(r, raw_ns, &ticks, err);
	if (ret)
		return ret;
	if (r->insert_source < 0)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "no records are expected");
	header->record_type = type;
	header->core = core;
	header->timestamp = ticks;
	if (kb_insert_add(&r->insert, record, length))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	return 0;
}

int kb_recorder_expect(struct kb_recorder *r, unsigned int late_ms, struct kb_error *err)
{
	uint64_t late = (uint64_t)((double)r->clock_hz * late_ms / 1e3);

	if (late > r->hold_back)
		r->hold_back = late;
	if (r->insert_source >= 0)
		return 0;
	if (kb_insert_create(&r->insert, INSERT_BYTES, !r->stream))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	/* From now on it is one of those that may have something older yet. */
	r->insert_source = kb_merge_add(r->merge, r->insert.ring, r->insert.size, 0, err);
	return r->insert_source < 0 ? r->insert_source : 0;
}

int kb_recorder_annotation(struct kb_recorder *r, int64_t raw_ns, uint32_t task_id,
			   const struct kbarman_mark *mark, const char *text, struct kb_error *err)
{
	struct bm_protocol_annotation *annotation;
	size_t data = mark->text_bytes ? (size_t)mark->text_bytes + 1 : 0;
	int ret;

	annotation = calloc(1, sizeof(*annotation) + data);
	if (!annotation)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	annotation->task_id = task_id;
	annotation->data_length = (bm_uintptr)data;
	annotation->channel = mark->channel;
	annotation->group = mark->group;
	annotation->colour = mark->colour;
	annotation->type = (uint8_t)mark->type;
	memcpy(annotation->data, text, mark->text_bytes);
	ret = insert(r, annotation, sizeof(*annotation) + data, BM_RECORD_ANNOTATION,
		     r->rings[0].cpu, raw_ns, err);
	free(annotation);
	return ret;
}

int kb_recorder_value(struct kb_recorder *r, int64_t raw_ns, uint32_t core, uint32_t task_id,
		      uint32_t series, uint64_t value, struct kb_error *err)
{
	struct bm_protocol_custom_counter counter = {
		.task_id = task_id, .counter = series, .value = value };

	return insert(r, &counter, sizeof(counter), BM_RECORD_CUSTOM_COUNTER,
		      core < r->nr_cpus ? core : r->rings[0].cpu, raw_ns, err);
}

/* ---- tables ---- */

/* Any of the maps: they share the header. */
static const struct kb_mapped *header_of(const struct kb_recorder *r)
{
	return &r->rings[0].mapped;
}

static const char *string_at(const struct kb_recorder *r, uint32_t offset)
{
	return kb_mapped_string(header_of(r), offset) ?: "";
}

/* A row that finds no room in the file is counted; other errors end the recording. */
static int added(struct kb_recorder *r, int ret)
{
	if (ret != -ENOSPC)
		return ret;
	r->totals.missed_rows++;
	return 0;
}

static int set_header(struct kb_recorder *r)
{
	const struct bm_protocol_header_start *start = header_of(r)->header;
	struct kb_header header = {
		.target_name = string_at(r, start->target_name_ptr),
		.last_timestamp = start->last_timestamp,
		.timer_sample_rate = start->timer_sample_rate,
		.timestamp_base = start->clock_info.timestamp_base,
		.timestamp_multiplier = start->clock_info.timestamp_multiplier,
		.timestamp_divisor = start->clock_info.timestamp_divisor,
		.unix_base_ns = start->clock_info.unix_base_ns,
	};

	return kb_barman_writer_set_header(r->writer, &header);
}

/* Rows with a name: those without are there for series that programs may define yet. */
static int copy_charts(struct kb_recorder *r)
{
	const struct kb_mapped *m = header_of(r);
	uint32_t nr_series = m->series ? m->header->config_constants.num_custom_counters : 0;
	int ret = 0;

	for (; nr_series && r->charts_done < m->nr_charts && !ret; r->charts_done++) {
		const struct bm_protocol_header_custom_chart *from = &m->charts[r->charts_done];
		struct kb_chart chart = {
			.name = string_at(r, from->name_ptr),
			.series_composition = from->series_composition,
			.rendering_type = from->rendering_type,
			.boolean_flags = from->boolean_flags,
		};

		if (!*chart.name)
			break;
		ret = kb_barman_writer_chart(r->writer, &chart);
	}
	for (; r->series_done < nr_series && !ret; r->series_done++) {
		const struct bm_protocol_header_custom_chart_series *from =
			&m->series[r->series_done];
		struct kb_series series = {
			.chart_index = from->chart_index,
			.name = string_at(r, from->name_ptr),
			.units = string_at(r, from->units_ptr),
			.description = string_at(r, from->description_ptr),
			.colour = from->colour,
			.series_class = from->series_class,
			.display = from->display,
			.boolean_flags = from->boolean_flags,
		};

		if (!*series.name)
			break;
		memcpy(&series.multiplier, &from->multiplier, sizeof(series.multiplier));
		ret = kb_barman_writer_series(r->writer, &series);
	}
	return ret;
}

/* The strings "kbarman.KEY=VALUE" that have come since the last time. */
static int copy_facts(struct kb_recorder *r)
{
	static const char prefix[] = "kbarman.";
	const char *string;
	char fact[512];
	int ret = 0;

	while (!ret && (string = kb_mapped_string(header_of(r), r->strings_done))) {
		size_t length = strlen(string);
		char *equals;

		r->strings_done += (uint32_t)length + 1;
		if (strncmp(string, prefix, strlen(prefix)) || length >= sizeof(fact))
			continue;
		strcpy(fact, string);
		equals = strchr(fact, '=');
		if (!equals)
			continue;
		*equals = '\0';
		ret = added(r, kb_barman_writer_fact(r->writer, fact + strlen(prefix), equals + 1));
	}
	return ret;
}

static int copy_tasks(struct kb_recorder *r)
{
	const struct kb_mapped *m = header_of(r);
	uint32_t count = kb_mapped_count(m->nr_tasks);
	int ret = 0;

	if (count > m->header->config_constants.max_task_infos)
		count = m->header->config_constants.max_task_infos;
	for (; r->tasks_done < count && !ret; r->tasks_done++) {
		const struct bm_protocol_header_task_info *from = &m->tasks[r->tasks_done];
		struct kb_task task = {
			.timestamp = from->timestamp,
			.task_id = from->task_id,
			.name = string_at(r, from->task_name_ptr),
		};

		ret = added(r, kb_barman_writer_task(r->writer, &task));
	}
	return ret;
}

static int copy_maps(struct kb_recorder *r)
{
	const struct kb_mapped *m = header_of(r);
	uint32_t count = m->nr_maps ? kb_mapped_count(m->nr_maps) : 0;
	int ret = 0;

	if (count > m->header->config_constants.max_mmap_layout)
		count = m->header->config_constants.max_mmap_layout;
	for (; r->maps_done < count && !ret; r->maps_done++) {
		const struct bm_protocol_header_mmap_layout *from = &m->maps[r->maps_done];
		struct kb_map map = {
			.timestamp = from->timestamp,
			.task_id = from->task_id,
			.base_address = from->base_address,
			.length = from->length,
			.image_offset = from->image_offset,
			.image = string_at(r, from->image_ptr),
		};

		ret = added(r, kb_barman_writer_map(r->writer, &map));
	}
	return ret;
}

/* The PMU entry of each CPU, when it is there; @again: those written already, too. */
static int copy_pmus(struct kb_recorder *r, bool again)
{
	for (unsigned int i = 0; i < r->nr_rings; i++) {
		struct ring *ring = &r->rings[i];
		const struct bm_protocol_header_pmu_settings *from =
			&header_of(r)->pmus[ring->cpu];
		uint32_t types[BM_MAX_PMU_COUNTERS];
		struct kb_pmu pmu = {
			.num_counters = kb_mapped_count(&from->num_counters),
			.counter_types = types,
		};
		int ret;

		if (!pmu.num_counters || pmu.num_counters > BM_MAX_PMU_COUNTERS ||
		    (ring->has_pmu && !again))
			continue;
		pmu.configuration_timestamp = from->configuration_timestamp;
		pmu.midr = from->midr;
		pmu.mpidr = from->mpidr;
		pmu.cluster_id = from->cluster_id;
		memcpy(types, from->counter_types, sizeof(types));
		ret = kb_barman_writer_pmu(r->writer, ring->cpu, &pmu);
		if (ret)
			return ret;
		ring->has_pmu = true;
	}
	return 0;
}

static int copy_tables(struct kb_recorder *r, bool last, struct kb_error *err)
{
	int ret = set_header(r);

	ret = ret ?: copy_charts(r);
	ret = ret ?: copy_pmus(r, last);
	ret = ret ?: copy_tasks(r);
	ret = ret ?: copy_maps(r);
	ret = ret ?: copy_facts(r);
	return ret ? write_failed(err, ret) : 0;
}

int kb_recorder_sync(struct kb_recorder *r, struct kb_error *err)
{
	int ret = 0;

	if (!r->stream)
		return 0;	/* rows may be used again until the stop */
	ret = find_rings(r, err);
	if (!ret)
		ret = copy_tables(r, false, err);
	if (ret)
		return ret;
	ret = sync_writer(r);
	return ret ? write_failed(err, ret) : 0;
}

/* ---- facts ---- */

int kb_recorder_fact(struct kb_recorder *r, const char *key, const char *value,
		     struct kb_error *err)
{
	int ret = added(r, kb_barman_writer_fact(r->writer, key, value));

	return ret ? write_failed(err, ret) : 0;
}

__attribute__((format(printf, 3, 4)))
static int number_fact(struct kb_recorder *r, uint64_t value, const char *format, ...)
{
	char key[64], text[24];
	va_list args;

	va_start(args, format);
	vsnprintf(key, sizeof(key), format, args);
	va_end(args);
	snprintf(text, sizeof(text), "%" PRIu64, value);
	return added(r, kb_barman_writer_fact(r->writer, key, text));
}

static int write_task_facts(struct kb_recorder *r, struct kb_error *err)
{
	struct kbarman_task_fact *facts = calloc(FACTS_AT_ONCE, sizeof(*facts));
	uint32_t row = 0, count;
	int ret;

	if (!facts)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	do {
		count = FACTS_AT_ONCE;
		ret = kb_device_task_facts(r->device, row, facts, &count, err);
		for (uint32_t i = 0; i < count && !ret; i++, row++) {
			if (facts[i].tgid != facts[i].task_id)
				ret = number_fact(r, facts[i].tgid, "tgid.%u", row);
			if (!ret && facts[i].exit_timestamp)
				ret = number_fact(r, facts[i].exit_timestamp, "exit.%u", row);
			if (ret)
				write_failed(err, ret);
		}
	} while (!ret && count);
	free(facts);
	return ret;
}

static int write_ring_facts(struct kb_recorder *r, const struct ring *ring, struct kb_error *err)
{
	struct kbarman_stats stats;
	int ret;

	ret = kb_device_stats(r->device, ring->cpu, &stats, err);
	if (ret)
		return ret;
	/* A running ring has written more by now, which is not meant. */
	if (r->is_frozen)
		stats.written = stats.overwritten + ring->records;
	ret = number_fact(r, stats.written, "written.%u", ring->cpu);
	if (!ret && stats.overwritten)
		ret = number_fact(r, stats.overwritten, "overwritten.%u", ring->cpu);
	for (unsigned int i = 0; kb_loss_name(i) && !ret; i++) {
		if (stats.lost[i])
			ret = number_fact(r, stats.lost[i], "lost.%u.%s", ring->cpu,
					  kb_loss_name(i));
	}
	return ret ? write_failed(err, ret) : 0;
}

static int write_facts(struct kb_recorder *r, struct kb_error *err)
{
	struct kbarman_stats stats;
	struct kbarman_clock clock;
	int ret;

	ret = kb_device_clock(r->device, &clock, err) ?:
	      kb_device_stats(r->device, KBARMAN_CPU_ALL, &stats, err) ?:
	      write_task_facts(r, err);
	for (unsigned int i = 0; i < r->nr_rings && !ret; i++)
		ret = write_ring_facts(r, &r->rings[i], err);
	if (ret)
		return ret;
	r->totals.duration_ns = (r->is_frozen ? clock.now : clock.stop).raw_ns -
				clock.start.raw_ns;
	for (unsigned int i = 0; kb_miss_name(i) && !ret; i++) {
		if (stats.missed[i])
			ret = number_fact(r, stats.missed[i], "missed.%s", kb_miss_name(i));
	}
	if (!ret && r->totals.unordered)
		ret = number_fact(r, r->totals.unordered, "unordered");
	if (!ret && r->totals.inserted)
		ret = number_fact(r, r->totals.inserted, "inserted");
	if (!ret && r->totals.dropped)
		ret = number_fact(r, r->totals.dropped, "inserted.lost");
	return ret ? write_failed(err, ret) : 0;
}

int kb_recorder_finish(struct kb_recorder *r, bool compact, struct kb_error *err)
{
	int ret;

	ret = find_rings(r, err);
	/* Tables first: from the first sync on, the file is a capture. */
	ret = ret ?: copy_tables(r, true, err);
	ret = ret ?: extend(r, err);
	ret = ret ?: emit_all(r, UINT64_MAX, err);
	if (!ret && r->stream)
		ret = consume(r, err);
	r->totals.unordered = kb_merge_unordered(r->merge);
	r->totals.inserted = r->insert.count;
	r->totals.dropped = r->insert.dropped;
	ret = ret ?: write_facts(r, err);
	return ret ?: kb_barman_writer_finish(r->writer, compact, err);
}

int kb_recorder_compact(struct kb_recorder *r, int fd, struct kb_error *err)
{
	return kb_barman_writer_compact(r->writer, fd, err);
}

void kb_recorder_totals(const struct kb_recorder *r, struct kb_recorder_totals *totals)
{
	*totals = r->totals;
	totals->nr_cpus = r->nr_rings;
}

/* ---- create and destroy ---- */

static int create_writer(struct kb_recorder *r, int fd, struct kb_error *err)
{
	const struct kb_mapped *m = header_of(r);
	const struct bm_protocol_config_values *config = &m->header->config_constants;
	uint64_t strings = (uint64_t)config->max_string_table_length + OTHER_STRING_BYTES +
			   (uint64_t)config->max_task_infos * TASK_STRING_BYTES +
			   (uint64_t)config->max_cores * CPU_STRING_BYTES;
	struct kb_barman_layout layout = {
		.word_size = sizeof(bm_uintptr),
		.big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,
		.max_cores = config->max_cores,
		.max_task_infos = config->max_task_infos,
		.max_mmap_layout = config->max_mmap_layout,
		.max_pmu_counters = config->max_pmu_counters,
		.max_string_table_length = strings < 1U << 30 ? (uint32_t)strings : 1U << 30,
		.max_custom_charts = m->nr_charts,
		.max_custom_series = config->num_custom_counters,
		.spare_series = true,
	};

	int ret = kb_barman_writer_create(&r->writer, fd, &layout, err);

	/* The target's name has to be the first string. */
	if (!ret && (ret = set_header(r)))
		write_failed(err, ret);
	return ret;
}

/* The views of all rings, live until they are frozen here. */
static int freeze(struct kb_recorder *r, struct kb_error *err)
{
	struct kb_mapped **maps = calloc(r->nr_rings, sizeof(*maps));
	int ret;

	if (!maps)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	for (unsigned int i = 0; i < r->nr_rings; i++)
		maps[i] = &r->rings[i].mapped;
	ret = kb_frozen_create(&r->frozen, r->device, maps, r->nr_rings, err);
	r->is_frozen = !ret;
	r->totals.recycled = r->frozen.recycled;
	free(maps);
	return ret;
}

static int create(struct kb_recorder **out, struct kb_device *device, int fd, bool frozen,
		  struct kb_error *err)
{
	struct kb_recorder *r = calloc(1, sizeof(*r));
	struct kbarman_query query;
	int ret;

	*out = NULL;
	if (!r)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	r->device = device;
	r->insert_source = -1;
	ret = kb_device_query(device, &query, err);
	if (ret)
		goto err_destroy;
	r->nr_cpus = query.nr_cpus;
	r->stream = query.mode == KBARMAN_MODE_STREAM;
	r->watermark = query.ring_bytes / 4;
	r->clock_hz = query.clock_hz;
	r->hold_back = (uint64_t)((double)query.clock_hz * HOLD_BACK_NS / 1e9);
	r->rings = calloc(r->nr_cpus, sizeof(*r->rings));
	r->ring_of_cpu = calloc(r->nr_cpus, sizeof(*r->ring_of_cpu));
	r->ring_of_source = calloc(r->nr_cpus + 1, sizeof(*r->ring_of_source));
	if (!r->rings || !r->ring_of_cpu || !r->ring_of_source) {
		ret = kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
		goto err_destroy;
	}
	ret = kb_merge_create(&r->merge, r->nr_cpus + 1, err);
	if (!ret)
		ret = find_rings(r, err);
	if (!ret && !r->nr_rings)
		ret = kb_error_set(err, -ENODEV, KB_NO_OFFSET,
				   "none of the CPUs to record is there");
	if (!ret && frozen)
		ret = freeze(r, err);
	if (!ret)
		ret = create_writer(r, fd, err);
	if (ret)
		goto err_destroy;
	*out = r;
	return 0;

err_destroy:
	kb_recorder_destroy(r);
	return ret;
}

int kb_recorder_create(struct kb_recorder **out, struct kb_device *device, int fd,
		       struct kb_error *err)
{
	return create(out, device, fd, false, err);
}

int kb_recorder_freeze(struct kb_recorder **out, struct kb_device *device, int fd,
		       struct kb_error *err)
{
	return create(out, device, fd, true, err);
}

void kb_recorder_destroy(struct kb_recorder *r)
{
	if (!r)
		return;
	if (r->writer)
		kb_barman_writer_destroy(r->writer);
	kb_merge_destroy(r->merge);
	kb_insert_destroy(&r->insert);
	for (unsigned int i = 0; i < r->nr_rings; i++)
		kb_mapped_unmap(&r->rings[i].mapped);
	kb_frozen_release(&r->frozen);
	free(r->ring_of_source);
	free(r->ring_of_cpu);
	free(r->rings);
	free(r);
}
