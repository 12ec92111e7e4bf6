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

#include "analysis/stops.h"
#include "base/clock.h"
#include "format/barman_file.h"
#include "record/idle_table.h"
#include "record/irq_table.h"
#include "record/mounts.h"
#include "record/perf_pmus.h"
#include "record/recorder_inside.h"

int recorder_write_failed(struct kb_error *err, int ret)
{
	return kb_error_set(err, ret, KB_NO_OFFSET, "the capture can't be written: %s",
			    strerror(-ret));
}

/* ---- tables ---- */

static const char *string_at(const struct kb_recorder *r, uint32_t offset)
{
	return kb_mapped_string(recorder_header(r), offset) ?: "";
}

/* A row that finds no room in the file is counted. Other errors end the recording. */
static int added(struct kb_recorder *r, int ret)
{
	if (ret != -ENOSPC)
		return ret;
	r->totals.missed_rows++;
	return 0;
}

int recorder_set_header(struct kb_recorder *r)
{
	const struct bm_protocol_header_start *start = recorder_header(r)->header;
	struct kb_header header = {
		.target_name = string_at(r, start->target_name_ptr),
		.last_timestamp = start->last_timestamp,
		.timer_sample_rate = start->timer_sample_rate,
		.timestamp_base = start->clock_info.timestamp_base,
		.timestamp_multiplier = start->clock_info.timestamp_multiplier,
		.timestamp_divisor = start->clock_info.timestamp_divisor,
		.unix_base_ns = start->clock_info.unix_base_ns,
	};

	if (r->unix_base)
		header.unix_base_ns = r->unix_base;
	return kb_barman_writer_set_header(r->writer, &header);
}

/*
 * Whether the row with @name_ptr can be copied, which is followed by @behind others: it has a name, or
 * one of them has. Then it is a series of the kernel's that this session does not record. Other rows
 * without a name are reserved for programs, and get their names one after the other.
 */
static bool is_ready(const struct kb_recorder *r, const void *name_ptr, size_t row_bytes,
		     uint32_t behind)
{
	const char *row = name_ptr;
	uint32_t name;

	for (uint32_t i = 0; i <= behind; i++, row += row_bytes) {
		memcpy(&name, row, sizeof(name));
		if (!*string_at(r, name))
			continue;
		/* The rows in front of it, which may have got a name meanwhile, are read again. */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		return true;
	}
	return false;
}

static int copy_chart(struct kb_recorder *r, const struct bm_protocol_header_custom_chart *from)
{
	struct kb_chart chart = {
		.name = string_at(r, from->name_ptr),
		.series_composition = from->series_composition,
		.rendering_type = from->rendering_type,
		.boolean_flags = from->boolean_flags,
	};

	return kb_barman_writer_chart(r->writer, &chart);
}

static int copy_one_series(struct kb_recorder *r,
			   const struct bm_protocol_header_custom_chart_series *from)
{
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

	memcpy(&series.multiplier, &from->multiplier, sizeof(series.multiplier));
	return kb_barman_writer_series(r->writer, &series);
}

static int copy_charts(struct kb_recorder *r)
{
	const struct kb_mapped *m = recorder_header(r);
	uint32_t nr_series = m->series ? m->header->config_constants.num_custom_counters : 0;
	int ret = 0;

	for (; nr_series && r->charts_done < m->nr_charts && !ret; r->charts_done++) {
		const struct bm_protocol_header_custom_chart *from = &m->charts[r->charts_done];

		if (!is_ready(r, (const char *)from + offsetof(typeof(*from), name_ptr),
			      sizeof(*from), m->nr_charts - r->charts_done - 1))
			break;
		ret = copy_chart(r, from);
	}
	for (; r->series_done < nr_series && !ret; r->series_done++) {
		const struct bm_protocol_header_custom_chart_series *from =
			&m->series[r->series_done];

		if (!is_ready(r, (const char *)from + offsetof(typeof(*from), name_ptr),
			      sizeof(*from), nr_series - r->series_done - 1))
			break;
		ret = copy_one_series(r, from);
	}
	return ret;
}

/* Copy the strings "kbarman.KEY=VALUE" added since the last call. */
static int copy_facts(struct kb_recorder *r)
{
	static const char prefix[] = "kbarman.";
	const char *string;
	char fact[512];
	int ret = 0;

	while (!ret && (string = kb_mapped_string(recorder_header(r), r->strings_done))) {
		size_t length = strlen(string);
		char *equals;

		r->strings_done += (uint32_t)length + 1;
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
		ret = added(r, kb_barman_writer_fact(r->writer, fact + strlen(prefix), equals + 1));
	}
	return ret;
}

static int copy_tasks(struct kb_recorder *r)
{
	const struct kb_mapped *m = recorder_header(r);
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

		if (task.task_id != KBARMAN_NO_TASK)
			ret = added(r, kb_barman_writer_task(r->writer, &task));
	}
	return ret;
}

static int copy_maps(struct kb_recorder *r)
{
	const struct kb_mapped *m = recorder_header(r);
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

		if (map.task_id == KBARMAN_NO_TASK)
			continue;
		if (map.image[0])
			map.file = barman_file_of(m->strings, from->image_ptr);
		map.image = kb_mounts_path(r->mounts, map.task_id, map.image, map.file);
		ret = map.image ? added(r, kb_barman_writer_map(r->writer, &map)) : -ENOMEM;
	}
	return ret;
}

/* Write the PMU row of each CPU that has one; @again: also rows that were written before. */
static int copy_pmus(struct kb_recorder *r, bool again)
{
	for (unsigned int i = 0; i < r->nr_rings; i++) {
		struct ring *ring = &r->rings[i];
		const struct bm_protocol_header_pmu_settings *from =
			&recorder_header(r)->pmus[ring->cpu];
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

int recorder_copy_tables(struct kb_recorder *r, bool last, struct kb_error *err)
{
	int ret = recorder_set_header(r);

	ret = ret ?: copy_charts(r);
	ret = ret ?: copy_pmus(r, last);
	/* Rows of a part: recorder_part_rows(). */
	if (!r->part)
		ret = ret ?: copy_tasks(r) ?: copy_maps(r);
	ret = ret ?: copy_facts(r);
	return ret ? recorder_write_failed(err, ret) : 0;
}

/* ---- facts ---- */

int kb_recorder_fact(struct kb_recorder *r, const char *key, const char *value,
		     struct kb_error *err)
{
	int ret = added(r, kb_barman_writer_fact(r->writer, key, value));

	return ret ? recorder_write_failed(err, ret) : 0;
}

int recorder_number_fact(struct kb_recorder *r, uint64_t value, const char *format, ...)
{
	char key[64], text[24];
	va_list args;

	va_start(args, format);
	vsnprintf(key, sizeof(key), format, args);
	va_end(args);
	snprintf(text, sizeof(text), "%" PRIu64, value);
	return added(r, kb_barman_writer_fact(r->writer, key, text));
}

int recorder_text_fact(struct kb_recorder *r, const char *key, const char *text)
{
	return added(r, kb_barman_writer_fact(r->writer, key, text));
}

/* The tightest of a few pairs counts: who is interrupted between two clocks reads one late. */
int recorder_clock_fact(struct kb_recorder *r, const char *key)
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
	return recorder_text_fact(r, key, text);
}

struct bm_kbarman_task recorder_task_fact(const struct kb_recorder *r, uint32_t row)
{
	const struct kb_mapped *m = recorder_header(r);
	const struct bm_kbarman_task *more = kb_mapped_task(m, row);
	uint32_t task_id = m->tasks[row].task_id;

	if (more && more->task_id == task_id)
		return *more;
	return (struct bm_kbarman_task){ .task_id = task_id, .tgid = task_id };
}

/* Whether @row is the row of a task. An empty row is free for another task. */
static bool is_used(const struct kb_recorder *r, uint32_t row)
{
	return recorder_header(r)->tasks[row].task_id != KBARMAN_NO_TASK;
}

/* The number of @row in the file, which has no empty rows. */
static uint32_t row_in_file(const struct kb_recorder *r, uint32_t row)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < row; i++)
		used += is_used(r, i);
	return used;
}

/*
 * Write thread groups of the tasks from @row on, and with @end also when they ended. Writing a
 * fact twice is harmless: the capture stores a string once.
 */
static int write_task_facts(struct kb_recorder *r, uint32_t row, bool end, struct kb_error *err)
{
	uint32_t to = row_in_file(r, row);
	int ret = 0;

	for (; row < r->tasks_done && !ret; row++) {
		struct bm_kbarman_task fact = recorder_task_fact(r, row);

		if (!is_used(r, row))
			continue;
		if (fact.tgid != fact.task_id)
			ret = recorder_number_fact(r, fact.tgid, "tgid.%u", to);
		if (!ret && end && fact.exit_timestamp)
			ret = recorder_number_fact(r, fact.exit_timestamp, "exit.%u", to);
		to++;
	}
	if (ret)
		return recorder_write_failed(err, ret);
	r->task_facts_done = row;
	return 0;
}

int recorder_write_threads(struct kb_recorder *r, struct kb_error *err)
{
	if (r->task_facts_done >= r->tasks_done)
		return 0;
	return write_task_facts(r, r->task_facts_done, false, err);
}

static int write_ring_facts(struct kb_recorder *r, const struct ring *ring, struct kb_error *err)
{
	struct kbarman_stats stats;
	int ret;

	ret = kb_device_stats(r->device, ring->cpu, &stats, err);
	if (ret)
		return ret;
	/* A running ring has received more records since the copy. They do not count. */
	if (stats.overwritten && !ring->skipped && ring->first > r->totals.whole_since)
		r->totals.whole_since = ring->first;
	stats.overwritten += ring->skipped;
	if (r->is_frozen)
		stats.written = stats.overwritten + ring->records;
	ret = recorder_number_fact(r, stats.written, "written.%u", ring->cpu);
	if (!ret && stats.overwritten)
		ret = recorder_number_fact(r, stats.overwritten, "overwritten.%u", ring->cpu);
	for (unsigned int i = 0; kb_loss_name(i) && !ret; i++) {
		if (stats.lost[i])
			ret = recorder_number_fact(r, stats.lost[i], "lost.%u.%s", ring->cpu,
					  kb_loss_name(i));
	}
	for (unsigned int i = 0; kb_stop_name(i) && !ret; i++) {
		if (stats.stopped[i])
			ret = recorder_number_fact(r, stats.stopped[i], "stopped.%u.%s", ring->cpu,
					  kb_stop_name(i));
	}
	return ret ? recorder_write_failed(err, ret) : 0;
}

/* The duration that readers will show for this file: see analysis/recorded.h. */
static uint64_t recorded_ns(const struct kb_recorder *r, uint64_t from, uint64_t until,
			    bool overwritten)
{
	const struct bm_protocol_clock_info *clock = &recorder_header(r)->header->clock_info;

	if (overwritten && r->first_timestamp > from)
		from = r->first_timestamp;
	if (until <= from || !clock->timestamp_divisor)
		return 0;
	return (uint64_t)((double)(until - from) * (double)clock->timestamp_multiplier /
			  (double)clock->timestamp_divisor);
}

static int write_interrupt(void *context, uint32_t irq, const char *names)
{
	struct kb_recorder *r = context;
	char key[24];

	snprintf(key, sizeof(key), "irq.%u", irq);
	return added(r, kb_barman_writer_fact(r->writer, key, names));
}

int recorder_interrupt_facts(struct kb_recorder *r)
{
	return r->interrupts ? kb_irq_table_read(NULL, write_interrupt, r) : 0;
}

static int write_idle_state(void *context, uint32_t cpu, uint32_t state,
			    const struct kb_idle_row *row)
{
	struct kb_recorder *r = context;
	char key[32], value[32 + KB_IDLE_TABLE_NAME];
	int length = snprintf(key, sizeof(key), "idle.%u", state);

	if (cpu)
		snprintf(key + length, sizeof(key) - (size_t)length, ".%u", cpu);
	snprintf(value, sizeof(value), "%u,%u,%u,%s", row->residency, row->latency, row->disabled,
		 row->name);
	return added(r, kb_barman_writer_fact(r->writer, key, value));
}

int recorder_idle_facts(struct kb_recorder *r)
{
	return r->idle_states ? kb_idle_table_read(NULL, r->nr_cpus, write_idle_state, r) : 0;
}

int recorder_slot_facts(struct kb_recorder *r)
{
	struct kb_cpu_pmus pmus;
	int ret = 0;

	kb_cpu_pmus_read("/sys", &pmus);
	for (unsigned int i = 0; i < pmus.nr && !ret; i++) {
		unsigned int slots = kb_pmu_slots("/sys", pmus.pmus[i].name);

		if (slots && pmus.nr == 1)
			ret = recorder_number_fact(r, slots, "slots");
		if (slots && !ret)
			ret = recorder_number_fact(r, slots, "slots.%s", pmus.pmus[i].name);
	}
	return ret;
}

int recorder_write_facts(struct kb_recorder *r, struct kb_error *err)
{
	struct kbarman_stats stats;
	struct kbarman_clock clock;
	int ret;

	ret = kb_device_clock(r->device, &clock, err) ?:
	      kb_device_stats(r->device, KBARMAN_CPU_ALL, &stats, err) ?:
	      write_task_facts(r, 0, true, err);
	r->totals.whole_since = r->since;
	for (unsigned int i = 0; i < r->nr_rings && !ret; i++)
		ret = write_ring_facts(r, &r->rings[i], err);
	if (ret)
		return ret;
	r->totals.duration_ns = recorded_ns(r, clock.start.timestamp, r->is_frozen ?
					    clock.now.timestamp : clock.stop.timestamp,
					    stats.overwritten);
	for (unsigned int i = 0; kb_miss_name(i) && !ret; i++) {
		if (stats.missed[i])
			ret = recorder_number_fact(r, stats.missed[i], "missed.%s", kb_miss_name(i));
	}
	if (!ret)
		ret = recorder_clock_fact(r, "monotonic_end");
	if (!ret && r->totals.unordered)
		ret = recorder_number_fact(r, r->totals.unordered, "unordered");
	if (!ret && r->totals.inserted)
		ret = recorder_number_fact(r, r->totals.inserted, "inserted");
	if (!ret && r->totals.dropped)
		ret = recorder_number_fact(r, r->totals.dropped, "inserted.lost");
	ret = ret ?: recorder_interrupt_facts(r);
	return ret ? recorder_write_failed(err, ret) : 0;
}
