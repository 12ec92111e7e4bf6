// SPDX-License-Identifier: MIT
/*
 * What a recorder writes beside records: the rows of the session's tables, copied when they
 * appear, and the facts that the format has no field for.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/stops.h"
#include "base/clock.h"
#include "format/barman/file.h"
#include "record/perf/pmus.h"
#include "record/recorder/disk_table.h"
#include "record/recorder/idle_table.h"
#include "record/recorder/inside.h"
#include "record/recorder/irq_table.h"
#include "record/recorder/mounts.h"

int recorder_write_failed(struct kb_error *err, int ret)
{
	return kb_error_set(err, ret, KB_NO_OFFSET, "the capture can't be written: %s",
			    strerror(-ret));
}

/* ---- tables ---- */

static const char *string_at(const struct kb_recorder *recorder, uint32_t offset)
{
	return kb_mapped_string(recorder_header(recorder), offset) ?: "";
}

/* A row that finds no room in the file is counted. Other errors end the recording. */
static int added(struct kb_recorder *recorder, int ret)
{
	if (ret != -ENOSPC)
		return ret;
	recorder->totals.missed_rows++;
	return 0;
}

int recorder_set_header(struct kb_recorder *recorder)
{
	const struct bm_protocol_header_start *start = recorder_header(recorder)->header;
	struct kb_header header = {
		.target_name = string_at(recorder, start->target_name_ptr),
		.last_timestamp = start->last_timestamp,
		.timer_sample_rate = start->timer_sample_rate,
		.timestamp_base = start->clock_info.timestamp_base,
		.timestamp_multiplier = start->clock_info.timestamp_multiplier,
		.timestamp_divisor = start->clock_info.timestamp_divisor,
		.unix_base_ns = start->clock_info.unix_base_ns,
	};

	if (recorder->unix_base)
		header.unix_base_ns = recorder->unix_base;
	return kb_barman_writer_set_header(recorder->writer, &header);
}

/*
 * Whether the row with @name_ptr can be copied, which is followed by @behind others: it has a name, or
 * one of them has. Then it is a series of the kernel's that this session does not record. Other rows
 * without a name are reserved for programs, and get their names one after the other.
 */
static bool is_ready(const struct kb_recorder *recorder, const void *name_ptr, size_t row_bytes,
		     uint32_t behind)
{
	const char *row = name_ptr;
	uint32_t name;

	for (uint32_t i = 0; i <= behind; i++, row += row_bytes) {
		memcpy(&name, row, sizeof(name));
		if (!*string_at(recorder, name))
			continue;
		/* The rows in front of it, which may have got a name meanwhile, are read again. */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		return true;
	}
	return false;
}

static int copy_chart(struct kb_recorder *recorder,
		      const struct bm_protocol_header_custom_chart *from)
{
	struct kb_chart chart = {
		.name = string_at(recorder, from->name_ptr),
		.series_composition = from->series_composition,
		.rendering_type = from->rendering_type,
		.boolean_flags = from->boolean_flags,
	};

	return kb_barman_writer_chart(recorder->writer, &chart);
}

static int copy_one_series(struct kb_recorder *recorder,
			   const struct bm_protocol_header_custom_chart_series *from)
{
	struct kb_series series = {
		.chart_index = from->chart_index,
		.name = string_at(recorder, from->name_ptr),
		.units = string_at(recorder, from->units_ptr),
		.description = string_at(recorder, from->description_ptr),
		.colour = from->colour,
		.series_class = from->series_class,
		.display = from->display,
		.boolean_flags = from->boolean_flags,
	};

	memcpy(&series.multiplier, &from->multiplier, sizeof(series.multiplier));
	return kb_barman_writer_series(recorder->writer, &series);
}

static int copy_charts(struct kb_recorder *recorder)
{
	const struct kb_mapped *m = recorder_header(recorder);
	uint32_t nr_series = m->series ? m->header->config_constants.num_custom_counters : 0;
	int ret = 0;

	for (; nr_series && recorder->charts_done < m->nr_charts && !ret; recorder->charts_done++) {
		const struct bm_protocol_header_custom_chart *from =
			&m->charts[recorder->charts_done];

		if (!is_ready(recorder, (const char *)from + offsetof(typeof(*from), name_ptr),
			      sizeof(*from), m->nr_charts - recorder->charts_done - 1))
			break;
		ret = copy_chart(recorder, from);
	}
	for (; recorder->series_done < nr_series && !ret; recorder->series_done++) {
		const struct bm_protocol_header_custom_chart_series *from =
			&m->series[recorder->series_done];

		if (!is_ready(recorder, (const char *)from + offsetof(typeof(*from), name_ptr),
			      sizeof(*from), nr_series - recorder->series_done - 1))
			break;
		ret = copy_one_series(recorder, from);
	}
	return ret;
}

/* Copy the strings "kbarman.KEY=VALUE" added since the last call. */
static int copy_facts(struct kb_recorder *recorder)
{
	static const char prefix[] = "kbarman.";
	const char *string;
	char fact[512];
	int ret = 0;

	while (!ret &&
	       (string = kb_mapped_string(recorder_header(recorder), recorder->strings_done))) {
		size_t length = strlen(string);
		char *equals;

		recorder->strings_done += (uint32_t)length + 1;
		/* Facts of files are written with the rows of mappings, and those of tasks with theirs. */
		if (strncmp(string, prefix, strlen(prefix)) || length >= sizeof(fact) ||
		    strncmp(string, BARMAN_TASKS_FACT, strlen(BARMAN_TASKS_FACT)) == 0 ||
		    strncmp(string, BARMAN_FILE_FACT, strlen(BARMAN_FILE_FACT)) == 0)
			continue;
		memcpy(fact, string, length + 1);
		equals = strchr(fact, '=');
		if (!equals)
			continue;
		*equals = '\0';
		ret = added(recorder, kb_barman_writer_fact(recorder->writer, fact + strlen(prefix),
							    equals + 1));
	}
	return ret;
}

static int copy_tasks(struct kb_recorder *recorder)
{
	const struct kb_mapped *m = recorder_header(recorder);
	uint32_t count = kb_mapped_count(m->nr_tasks);
	int ret = 0;

	if (count > m->header->config_constants.max_task_infos)
		count = m->header->config_constants.max_task_infos;
	for (; recorder->tasks_done < count && !ret; recorder->tasks_done++) {
		const struct bm_protocol_header_task_info *from = &m->tasks[recorder->tasks_done];
		struct kb_task task = {
			.timestamp = from->timestamp,
			.task_id = from->task_id,
			.name = string_at(recorder, from->task_name_ptr),
		};

		if (task.task_id != KBARMAN_NO_TASK)
			ret = added(recorder, kb_barman_writer_task(recorder->writer, &task));
	}
	return ret;
}

static int copy_maps(struct kb_recorder *recorder)
{
	const struct kb_mapped *m = recorder_header(recorder);
	uint32_t count = m->nr_maps ? kb_mapped_count(m->nr_maps) : 0;
	int ret = 0;

	if (count > m->header->config_constants.max_mmap_layout)
		count = m->header->config_constants.max_mmap_layout;
	for (; recorder->maps_done < count && !ret; recorder->maps_done++) {
		const struct bm_protocol_header_mmap_layout *from = &m->maps[recorder->maps_done];
		struct kb_map map = {
			.timestamp = from->timestamp,
			.task_id = from->task_id,
			.base_address = from->base_address,
			.length = from->length,
			.image_offset = from->image_offset,
			.image = string_at(recorder, from->image_ptr),
		};

		if (map.task_id == KBARMAN_NO_TASK)
			continue;
		if (map.image[0])
			map.file = barman_file_of(m->strings, from->image_ptr);
		map.image = kb_mounts_path(recorder->mounts, map.task_id, map.image, map.file);
		ret = map.image ? added(recorder, kb_barman_writer_map(recorder->writer, &map))
				: -ENOMEM;
	}
	return ret;
}

/* Write the PMU row of each CPU that has one; @again: also rows that were written before. */
static int copy_pmus(struct kb_recorder *recorder, bool again)
{
	for (unsigned int i = 0; i < recorder->nr_rings; i++) {
		struct ring *ring = &recorder->rings[i];
		const struct bm_protocol_header_pmu_settings *from =
			&recorder_header(recorder)->pmus[ring->cpu];
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
		ret = kb_barman_writer_pmu(recorder->writer, ring->cpu, &pmu);
		if (ret)
			return ret;
		ring->has_pmu = true;
	}
	return 0;
}

int recorder_copy_tables(struct kb_recorder *recorder, bool last, struct kb_error *err)
{
	int ret = recorder_set_header(recorder);

	ret = ret ?: copy_charts(recorder);
	ret = ret ?: copy_pmus(recorder, last);
	/* Rows of a part: recorder_part_rows(). */
	if (!recorder->part)
		ret = ret ?: copy_tasks(recorder) ?: copy_maps(recorder);
	ret = ret ?: copy_facts(recorder);
	return ret ? recorder_write_failed(err, ret) : 0;
}

/* ---- facts ---- */

int kb_recorder_fact(struct kb_recorder *recorder, const char *key, const char *value,
		     struct kb_error *err)
{
	int ret = added(recorder, kb_barman_writer_fact(recorder->writer, key, value));

	return ret ? recorder_write_failed(err, ret) : 0;
}

int recorder_number_fact(struct kb_recorder *recorder, uint64_t value, const char *format, ...)
{
	char key[64], text[24];
	va_list args;

	va_start(args, format);
	vsnprintf(key, sizeof(key), format, args);
	va_end(args);
	snprintf(text, sizeof(text), "%" PRIu64, value);
	return added(recorder, kb_barman_writer_fact(recorder->writer, key, text));
}

int recorder_text_fact(struct kb_recorder *recorder, const char *key, const char *text)
{
	return added(recorder, kb_barman_writer_fact(recorder->writer, key, text));
}

/* The tightest of a few pairs counts: who is interrupted between two clocks reads one late. */
int recorder_clock_fact(struct kb_recorder *recorder, const char *key)
{
	int64_t raw = 0, monotonic = 0, apart = INT64_MAX;
	char text[48];

	for (int i = 0; i < 5; i++) {
		int64_t before = kb_clock_ns(CLOCK_MONOTONIC_RAW);
		int64_t now = kb_clock_ns(CLOCK_MONOTONIC);
		int64_t took = kb_clock_ns(CLOCK_MONOTONIC_RAW) - before;

		if (took >= apart)
			continue;
		apart = took;
		raw = before + took / 2;
		monotonic = now;
	}
	snprintf(text, sizeof(text), "%" PRId64 ",%" PRId64, raw, monotonic);
	return recorder_text_fact(recorder, key, text);
}

struct bm_kbarman_task recorder_task_fact(const struct kb_recorder *recorder, uint32_t row)
{
	const struct kb_mapped *m = recorder_header(recorder);
	const struct bm_kbarman_task *more = kb_mapped_task(m, row);
	uint32_t task_id = m->tasks[row].task_id;

	if (more && more->task_id == task_id)
		return *more;
	return (struct bm_kbarman_task){ .task_id = task_id, .tgid = task_id };
}

/* Whether @row is the row of a task. An empty row is free for another task. */
static bool is_used(const struct kb_recorder *recorder, uint32_t row)
{
	return recorder_header(recorder)->tasks[row].task_id != KBARMAN_NO_TASK;
}

/* The number of @row in the file, which has no empty rows. */
static uint32_t row_in_file(const struct kb_recorder *recorder, uint32_t row)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < row; i++)
		used += is_used(recorder, i);
	return used;
}

/*
 * Write thread groups of the tasks from @row on, and notes of new ones, and with @end also when they
 * ended. Writing a fact twice is harmless: the capture stores a string once.
 */
static int write_task_facts(struct kb_recorder *recorder, uint32_t row, bool end,
			    struct kb_error *err)
{
	uint32_t to = row_in_file(recorder, row);
	int ret = 0;

	for (; row < recorder->tasks_done && !ret; row++) {
		struct bm_kbarman_task fact = recorder_task_fact(recorder, row);

		if (!is_used(recorder, row))
			continue;
		if (fact.tgid != fact.task_id)
			ret = recorder_number_fact(recorder, fact.tgid, "tgid.%u", to);
		else if (row >= recorder->task_facts_done && !fact.exit_timestamp)
			ret = recorder_note(recorder, to, fact.tgid);
		if (!ret && end && fact.exit_timestamp)
			ret = recorder_number_fact(recorder, fact.exit_timestamp, "exit.%u", to);
		to++;
	}
	if (ret)
		return recorder_write_failed(err, ret);
	recorder->task_facts_done = row;
	return 0;
}

int recorder_write_threads(struct kb_recorder *recorder, struct kb_error *err)
{
	if (recorder->task_facts_done >= recorder->tasks_done)
		return 0;
	return write_task_facts(recorder, recorder->task_facts_done, false, err);
}

static int write_ring_facts(struct kb_recorder *recorder, const struct ring *ring,
			    struct kb_error *err)
{
	struct kbarman_stats stats;
	int ret;

	ret = kb_device_stats(recorder->device, ring->cpu, &stats, err);
	if (ret)
		return ret;
	/* A running ring has received more records since the copy. They do not count. */
	if (stats.overwritten && !ring->skipped && ring->first > recorder->totals.whole_since)
		recorder->totals.whole_since = ring->first;
	stats.overwritten += ring->skipped;
	if (recorder->is_frozen)
		stats.written = stats.overwritten + ring->records;
	ret = recorder_number_fact(recorder, stats.written, "written.%u", ring->cpu);
	if (!ret && stats.overwritten)
		ret = recorder_number_fact(recorder, stats.overwritten, "overwritten.%u",
					   ring->cpu);
	for (unsigned int i = 0; kb_loss_name(i) && !ret; i++) {
		if (stats.lost[i])
			ret = recorder_number_fact(recorder, stats.lost[i], "lost.%u.%s", ring->cpu,
					  kb_loss_name(i));
	}
	for (unsigned int i = 0; kb_stop_name(i) && !ret; i++) {
		if (stats.stopped[i])
			ret = recorder_number_fact(recorder, stats.stopped[i], "stopped.%u.%s",
						   ring->cpu, kb_stop_name(i));
	}
	return ret ? recorder_write_failed(err, ret) : 0;
}

/* The duration that readers will show for this file: see analysis/facts/recorded.h. */
static uint64_t recorded_ns(const struct kb_recorder *recorder, uint64_t from, uint64_t until,
			    bool overwritten)
{
	const struct bm_protocol_clock_info *clock = &recorder_header(recorder)->header->clock_info;

	if (overwritten && recorder->first_timestamp > from)
		from = recorder->first_timestamp;
	if (until <= from || !clock->timestamp_divisor)
		return 0;
	return (uint64_t)((double)(until - from) * (double)clock->timestamp_multiplier /
			  (double)clock->timestamp_divisor);
}

static int write_interrupt(void *context, uint32_t irq, const char *names)
{
	struct kb_recorder *recorder = context;
	char key[24];

	snprintf(key, sizeof(key), "irq.%u", irq);
	return added(recorder, kb_barman_writer_fact(recorder->writer, key, names));
}

static int write_disk(void *context, uint32_t device, const char *name)
{
	struct kb_recorder *recorder = context;
	char key[24];

	snprintf(key, sizeof(key), "disk.%u", device);
	return added(recorder, kb_barman_writer_fact(recorder->writer, key, name));
}

int recorder_hardware_facts(struct kb_recorder *recorder)
{
	int ret = recorder->interrupts ? kb_irq_table_read(NULL, write_interrupt, recorder) : 0;

	return ret || !recorder->disks ? ret : kb_disk_table_read(NULL, write_disk, recorder);
}

static int write_idle_state(void *context, uint32_t cpu, uint32_t state,
			    const struct kb_idle_row *row)
{
	struct kb_recorder *recorder = context;
	char key[32], value[32 + KB_IDLE_TABLE_NAME];
	int length = snprintf(key, sizeof(key), "idle.%u", state);

	if (cpu)
		snprintf(key + length, sizeof(key) - (size_t)length, ".%u", cpu);
	snprintf(value, sizeof(value), "%u,%u,%u,%s", row->residency, row->latency, row->disabled,
		 row->name);
	return added(recorder, kb_barman_writer_fact(recorder->writer, key, value));
}

int recorder_idle_facts(struct kb_recorder *recorder)
{
	return recorder->idle_states
		       ? kb_idle_table_read(NULL, recorder->nr_cpus, write_idle_state, recorder)
		       : 0;
}

int recorder_slot_facts(struct kb_recorder *recorder)
{
	struct kb_cpu_pmus pmus;
	int ret = 0;

	kb_cpu_pmus_read("/sys", &pmus);
	for (unsigned int i = 0; i < pmus.nr && !ret; i++) {
		unsigned int slots = kb_pmu_slots("/sys", pmus.pmus[i].name);

		if (slots && pmus.nr == 1)
			ret = recorder_number_fact(recorder, slots, "slots");
		if (slots && !ret)
			ret = recorder_number_fact(recorder, slots, "slots.%s", pmus.pmus[i].name);
	}
	return ret;
}

int recorder_write_facts(struct kb_recorder *recorder, struct kb_error *err)
{
	struct kbarman_stats stats;
	struct kbarman_clock clock;
	int ret;

	ret = kb_device_clock(recorder->device, &clock, err) ?:
	      kb_device_stats(recorder->device, KBARMAN_CPU_ALL, &stats, err) ?:
	      write_task_facts(recorder, 0, true, err);
	recorder->totals.whole_since = recorder->since;
	for (unsigned int i = 0; i < recorder->nr_rings && !ret; i++)
		ret = write_ring_facts(recorder, &recorder->rings[i], err);
	if (ret)
		return ret;
	recorder->totals.duration_ns =
		recorded_ns(recorder, clock.start.timestamp,
			    recorder->is_frozen ? clock.now.timestamp : clock.stop.timestamp,
			    stats.overwritten);
	for (unsigned int i = 0; kb_miss_name(i) && !ret; i++) {
		if (stats.missed[i])
			ret = recorder_number_fact(recorder, stats.missed[i], "missed.%s",
						   kb_miss_name(i));
	}
	if (!ret)
		ret = recorder_clock_fact(recorder, "monotonic_end");
	if (!ret && recorder->totals.unordered)
		ret = recorder_number_fact(recorder, recorder->totals.unordered, "unordered");
	if (!ret && recorder->totals.inserted)
		ret = recorder_number_fact(recorder, recorder->totals.inserted, "inserted");
	if (!ret && recorder->totals.dropped)
		ret = recorder_number_fact(recorder, recorder->totals.dropped, "inserted.lost");
	ret = ret ?: recorder_hardware_facts(recorder);
	return ret ? recorder_write_failed(err, ret) : 0;
}
