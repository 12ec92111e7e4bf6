// SPDX-License-Identifier: GPL-2.0-only
#include <linux/align.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/stdarg.h>
#include <linux/stringhash.h>
#include <linux/topology.h>
#include <linux/vmalloc.h>

#include "header.h"
#include "record.h"

#define MAX_FACT		256
#define ENDED_AT_ONCE		256	/* rows, with interrupts off */
#define ONE			0x3ff0000000000000ULL	/* the double 1.0 */

/*
 * Everything but the string table is given; the table takes what is left up to a
 * page's end. It is a multiple of 4 long, so that what follows is aligned as the
 * structs say; the up to 7 bytes that are missing then are the format's own padding.
 */
int kbarman_layout_init(struct kbarman_layout *layout)
{
	u64 pmus = (u64)layout->max_cores * sizeof(struct bm_protocol_header_pmu_settings);
	u64 tasks = 4 + (u64)layout->max_tasks * sizeof(struct bm_protocol_header_task_info);
	u64 maps = 4 + (u64)layout->max_maps * sizeof(struct bm_protocol_header_mmap_layout);
	u64 charts = 4 + (u64)layout->max_series *
			     (sizeof(struct bm_protocol_header_custom_chart) +
			      sizeof(struct bm_protocol_header_custom_chart_series));
	u64 fixed = sizeof(struct bm_protocol_header_start) + pmus + tasks + maps + charts;
	u64 end = PAGE_ALIGN(fixed + ALIGN((u64)layout->max_strings, 4));

	/* header_length is 32 bits wide, and a map is as long as a size_t can say. */
	if (end + PAGE_SIZE > U32_MAX || end + layout->ring_bytes + PAGE_SIZE > SIZE_MAX)
		return -EINVAL;

	layout->max_strings = ALIGN_DOWN(end - fixed, 4);
	layout->pmus = sizeof(struct bm_protocol_header_start) + layout->max_strings;
	layout->tasks = layout->pmus + pmus;
	layout->maps = layout->tasks + tasks;
	layout->charts = layout->maps + maps;
	layout->header_bytes = end;
	layout->map_bytes = end + PAGE_ALIGN(sizeof(struct bm_datastore_header_data) +
					     layout->ring_bytes);
	return 0;
}

static u32 string_hash_size(const struct kbarman_layout *layout)
{
	return roundup_pow_of_two(max(layout->max_strings / 16, 1024U));
}

/* Of `count` rows: see create_rows(). */
static u64 rows_bytes(u32 count)
{
	const struct kbarman_rows *rows;
	const struct kbarman_over *over;

	return (u64)count * (sizeof(*rows->buckets) + sizeof(*rows->next) +
			     sizeof(*over->next) + sizeof(*over->until));
}

u64 kbarman_layout_memory(const struct kbarman_layout *layout)
{
	const struct kbarman_capture *capture;

	return layout->header_bytes + rows_bytes(layout->max_tasks) + rows_bytes(layout->max_maps) +
	       (u64)layout->max_tasks * sizeof(*capture->facts) +
	       (u64)string_hash_size(layout) * sizeof(*capture->string_hash);
}

static bool create_rows(struct kbarman_rows *rows, struct kbarman_over *over, u32 count)
{
	rows->bits = max(ilog2(count), 1);
	rows->buckets = vzalloc(sizeof(*rows->buckets) << rows->bits);
	rows->next = vzalloc(array_size(count, sizeof(*rows->next)));
	over->next = vzalloc(array_size(count, sizeof(*over->next)));
	over->until = vzalloc(array_size(count, sizeof(*over->until)));
	return rows->buckets && rows->next && over->next && over->until;
}

static void free_rows(struct kbarman_rows *rows, struct kbarman_over *over)
{
	vfree(over->until);
	vfree(over->next);
	vfree(rows->next);
	vfree(rows->buckets);
}

/* What of a former run a row's own making does not set. */
static void reset_rows(struct kbarman_rows *rows, struct kbarman_over *over)
{
	memset(rows->buckets, 0, sizeof(*rows->buckets) << rows->bits);
	over->first = 0;
	over->last = 0;
	over->before = 0;
}

struct kbarman_capture *kbarman_capture_create(const struct kbarman_layout *layout,
					       u64 (*oldest_record)(void))
{
	struct kbarman_capture *capture = kzalloc(sizeof(*capture), GFP_KERNEL);
	u32 hash_size = string_hash_size(layout);

	if (!capture)
		return ERR_PTR(-ENOMEM);
	kref_init(&capture->ref);
	raw_spin_lock_init(&capture->lock);
	capture->layout = *layout;
	capture->oldest_record = oldest_record;
	capture->string_hash_mask = hash_size - 1;
	capture->header = vzalloc(layout->header_bytes);
	capture->rings = kcalloc(layout->max_cores, sizeof(*capture->rings), GFP_KERNEL);
	capture->facts = vzalloc(array_size(layout->max_tasks, sizeof(*capture->facts)));
	capture->string_hash = vzalloc(array_size(hash_size, sizeof(*capture->string_hash)));
	if (capture->header && capture->rings && capture->facts && capture->string_hash &&
	    create_rows(&capture->tasks, &capture->tasks_over, layout->max_tasks) &&
	    create_rows(&capture->maps, &capture->maps_over, layout->max_maps))
		return capture;
	kbarman_capture_put(capture);
	return ERR_PTR(-ENOMEM);
}

void kbarman_capture_get(struct kbarman_capture *capture)
{
	kref_get(&capture->ref);
}

static void free_capture(struct kref *ref)
{
	struct kbarman_capture *capture = container_of(ref, struct kbarman_capture, ref);
	u32 cpu;

	for (cpu = 0; capture->rings && cpu < capture->layout.max_cores; cpu++)
		vfree(capture->rings[cpu]);
	free_rows(&capture->maps, &capture->maps_over);
	free_rows(&capture->tasks, &capture->tasks_over);
	vfree(capture->string_hash);
	vfree(capture->facts);
	kfree(capture->rings);
	vfree(capture->header);
	kfree(capture);
}

void kbarman_capture_put(struct kbarman_capture *capture)
{
	if (capture)
		kref_put(&capture->ref, free_capture);
}

int kbarman_capture_add_ring(struct kbarman_capture *capture, int cpu)
{
	void *ring;

	if (capture->rings[cpu])
		return 0;
	ring = vzalloc_node(capture->layout.map_bytes - capture->layout.header_bytes,
			    cpu_to_node(cpu));
	if (!ring)
		return -ENOMEM;
	/* A fault on a map of this CPU may look at any time. */
	smp_store_release(&capture->rings[cpu], ring);
	return 0;
}

struct page *kbarman_capture_page(struct kbarman_capture *capture, int cpu, size_t offset)
{
	void *ring;

	if (offset < capture->layout.header_bytes)
		return vmalloc_to_page(capture->header + offset);
	ring = smp_load_acquire(&capture->rings[cpu]);	/* pairs with add_ring() */
	if (!ring || offset >= capture->layout.map_bytes)
		return NULL;
	return vmalloc_to_page(ring + (offset - capture->layout.header_bytes));
}

struct bm_protocol_header_start *kbarman_header_start(struct kbarman_capture *capture)
{
	return capture->header;
}

static u32 *task_count(struct kbarman_capture *capture)
{
	return capture->header + capture->layout.tasks;
}

static struct bm_protocol_header_task_info *task_row(struct kbarman_capture *capture, u32 row)
{
	return (struct bm_protocol_header_task_info *)(task_count(capture) + 1) + row;
}

static u32 *map_count(struct kbarman_capture *capture)
{
	return capture->header + capture->layout.maps;
}

static struct bm_protocol_header_mmap_layout *map_row(struct kbarman_capture *capture, u32 row)
{
	return (struct bm_protocol_header_mmap_layout *)(map_count(capture) + 1) + row;
}

/*
 * The offset of @string, of @length bytes without NUL, put into the table if it is
 * not there; -ENOSPC if it does not fit. The hash is open-addressed and at most
 * half full in practice; a long run of collisions counts as full.
 */
static s64 intern(struct kbarman_capture *capture, const char *string, size_t length)
{
	struct bm_protocol_header_start *start = capture->header;
	char *table = (char *)(start + 1);
	u32 used = start->string_table_length;
	u32 slot = full_name_hash(NULL, string, length);
	int probes;

	lockdep_assert_held(&capture->lock);
	for (probes = 0; probes < 64; probes++, slot++) {
		u32 *entry = &capture->string_hash[slot & capture->string_hash_mask];

		if (!*entry) {
			if (length >= capture->layout.max_strings - used)
				break;
			memcpy(table + used, string, length);
			table[used + length] = '\0';
			smp_wmb();	/* the bytes before the length */
			WRITE_ONCE(start->string_table_length, used + length + 1);
			*entry = used + 1;
			return used;
		}
		if (!strncmp(table + *entry - 1, string, length) &&
		    !table[*entry - 1 + length])
			return *entry - 1;
	}
	capture->missed[KBARMAN_MISSED_STRING]++;
	return -ENOSPC;
}

static u32 intern_literal(struct kbarman_capture *capture, const char *string)
{
	s64 offset = intern(capture, string, strlen(string));

	return offset < 0 ? 0 : offset;
}

/* ---- charts and their series ---- */

static u32 *chart_count(struct kbarman_capture *capture)
{
	return capture->header + capture->layout.charts;
}

static struct bm_protocol_header_custom_chart *chart_row(struct kbarman_capture *capture, u32 row)
{
	return (struct bm_protocol_header_custom_chart *)(chart_count(capture) + 1) + row;
}

static struct bm_protocol_header_custom_chart_series *series_row(struct kbarman_capture *capture,
								 u32 row)
{
	return (struct bm_protocol_header_custom_chart_series *)
		       chart_row(capture, capture->layout.max_series) + row;
}

/* The chart's row, a new one if there is none of that name; -ENOSPC. */
static s64 add_chart(struct kbarman_capture *capture, const struct kbarman_mark_series *wanted)
{
	struct bm_protocol_header_custom_chart *chart;
	s64 name = intern(capture, wanted->chart, strlen(wanted->chart));
	u32 row;

	if (name < 0)
		return name;
	for (row = 0; row < capture->charts; row++)
		if (chart_row(capture, row)->name_ptr == name)
			return row;
	chart = chart_row(capture, row);
	chart->series_composition = wanted->series_composition;
	chart->rendering_type = wanted->rendering_type;
	chart->boolean_flags = wanted->chart_flags;
	smp_wmb();	/* what has a name is complete */
	chart->name_ptr = name;
	capture->charts++;
	return row;
}

static s64 find_series(struct kbarman_capture *capture, u32 chart, u32 name)
{
	u32 row;

	for (row = 0; row < capture->series; row++)
		if (series_row(capture, row)->chart_index == chart &&
		    series_row(capture, row)->name_ptr == name)
			return row;
	return -ENOSPC;
}

/* As many charts as series can have a name, so there is always room for the chart. */
static s64 add_series(struct kbarman_capture *capture, const struct kbarman_mark_series *wanted)
{
	struct bm_protocol_header_custom_chart_series *series;
	s64 chart, name, units, description, row;

	chart = add_chart(capture, wanted);
	name = intern(capture, wanted->name, strlen(wanted->name));
	if (chart < 0 || name < 0)
		return -ENOSPC;
	row = find_series(capture, chart, name);
	if (row >= 0)
		return row;
	units = intern(capture, wanted->units, strlen(wanted->units));
	description = intern(capture, wanted->description, strlen(wanted->description));
	if (units < 0 || description < 0)
		return -ENOSPC;
	series = series_row(capture, capture->series);
	series->chart_index = chart;
	series->units_ptr = units;
	series->description_ptr = description;
	series->colour = wanted->colour;
	series->multiplier = wanted->multiplier;
	series->series_class = wanted->series_class;
	series->display = wanted->display;
	smp_wmb();	/* what has a name is complete */
	series->name_ptr = name;
	return capture->series++;
}

/* The table is full: all that can be had is what is there. */
static s64 old_series(struct kbarman_capture *capture, const struct kbarman_mark_series *wanted)
{
	const char *strings = (const char *)(kbarman_header_start(capture) + 1);
	u32 row;

	for (row = 0; row < capture->series; row++) {
		const struct bm_protocol_header_custom_chart_series *series =
			series_row(capture, row);

		if (!strcmp(strings + series->name_ptr, wanted->name) &&
		    !strcmp(strings + chart_row(capture, series->chart_index)->name_ptr,
			    wanted->chart))
			return row;
	}
	return -ENOSPC;
}

int kbarman_header_add_series(struct kbarman_capture *capture,
			      const struct kbarman_mark_series *wanted)
{
	unsigned long flags;
	int row;

	raw_spin_lock_irqsave(&capture->lock, flags);
	row = capture->series < capture->layout.max_series ? add_series(capture, wanted) :
							     old_series(capture, wanted);
	raw_spin_unlock_irqrestore(&capture->lock, flags);
	return row;
}

/* Rows without a name are legal, and mean nothing: their number is the format's constant. */
static void fill_charts(struct kbarman_capture *capture)
{
	static const struct kbarman_mark_series lost = {
		.colour = BM_SERIES_COLOUR_AUTOMATIC,
		.multiplier = ONE,
		.series_class = BM_SERIES_CLASS_INCIDENT,
		.display = BM_SERIES_DISPLAY_ACCUMULATE,
		.series_composition = BM_SERIES_STACKED,
		.rendering_type = BM_RENDERING_BAR,
		.chart_flags = BM_CHART_PER_CPU,
		.chart = "kbarman",
		.name = "Lost records",
		.units = "records",
		.description = "Records that found no room in the ring",
	};
	static const struct kbarman_mark_series stopped = {
		.colour = BM_SERIES_COLOUR_AUTOMATIC,
		.multiplier = ONE,
		.series_class = BM_SERIES_CLASS_ABSOLUTE,
		.display = BM_SERIES_DISPLAY_MAXIMUM,
		.series_composition = BM_SERIES_STACKED,
		.rendering_type = BM_RENDERING_BAR,
		.chart_flags = BM_CHART_PER_CPU,
		.chart = "kbarman counters",
		.name = "Counters stopped",
		.units = "reason",
		.description = "0: they count; 1: throttled; 2: off the PMU; 3: CPU offline",
	};
	u32 row, none = intern_literal(capture, "");

	capture->charts = 0;
	capture->series = 0;
	for (row = 0; row < capture->layout.max_series; row++) {
		*chart_row(capture, row) = (struct bm_protocol_header_custom_chart) {
			.name_ptr = none,
			.series_composition = BM_SERIES_STACKED,
			.rendering_type = BM_RENDERING_LINE,
		};
		*series_row(capture, row) = (struct bm_protocol_header_custom_chart_series) {
			.name_ptr = none,
			.units_ptr = none,
			.description_ptr = none,
			.colour = BM_SERIES_COLOUR_AUTOMATIC,
			.multiplier = ONE,
			.series_class = BM_SERIES_CLASS_ABSOLUTE,
			.display = BM_SERIES_DISPLAY_MAXIMUM,
		};
	}
	*chart_count(capture) = capture->layout.max_series;
	/* In the order of enum kbarman_series. */
	add_series(capture, &lost);
	add_series(capture, &stopped);
}

void kbarman_header_reset(struct kbarman_capture *capture, const char *target_name,
			  u32 sample_rate)
{
	const struct kbarman_layout *layout = &capture->layout;
	struct bm_protocol_header_start *start = capture->header;
	unsigned long flags;

	raw_spin_lock_irqsave(&capture->lock, flags);
	WRITE_ONCE(*task_count(capture), 0);
	WRITE_ONCE(*map_count(capture), 0);
	memset(capture->header + layout->pmus, 0,
	       layout->max_cores * sizeof(struct bm_protocol_header_pmu_settings));
	memset(capture->string_hash, 0,
	       (capture->string_hash_mask + 1) * sizeof(*capture->string_hash));
	reset_rows(&capture->tasks, &capture->tasks_over);
	reset_rows(&capture->maps, &capture->maps_over);
	memset(capture->missed, 0, sizeof(capture->missed));
	capture->generation++;

	*start = (struct bm_protocol_header_start) {
		.magic_bytes = BM_PROTOCOL_MAGIC_BYTES,
		.protocol_version = BM_PROTOCOL_VERSION,
		.header_length = layout->header_bytes + sizeof(struct bm_datastore_header_data),
		.data_store_type = BM_DATA_STORE_CIRCULAR,
		.timer_sample_rate = sample_rate,
		.config_constants = {
			.max_cores = layout->max_cores,
			.max_task_infos = layout->max_tasks,
			.max_mmap_layout = layout->max_maps,
			.max_pmu_counters = BM_MAX_PMU_COUNTERS,
			.max_string_table_length = layout->max_strings,
			.num_custom_counters = layout->max_series,
		},
		.clock_info = { .timestamp_multiplier = 1, .timestamp_divisor = 1 },
	};
	/* The target's name is the first string: nothing is interned before it. */
	start->target_name_ptr = intern_literal(capture, target_name);
	fill_charts(capture);
	raw_spin_unlock_irqrestore(&capture->lock, flags);
}

int kbarman_header_fact(struct kbarman_capture *capture, const char *key, const char *format, ...)
{
	char fact[MAX_FACT];
	unsigned long flags;
	va_list arguments;
	size_t length;
	s64 offset;

	length = scnprintf(fact, sizeof(fact), "kbarman.%s=", key);
	va_start(arguments, format);
	length += vscnprintf(fact + length, sizeof(fact) - length, format, arguments);
	va_end(arguments);

	raw_spin_lock_irqsave(&capture->lock, flags);
	offset = intern(capture, fact, length);
	raw_spin_unlock_irqrestore(&capture->lock, flags);
	return min_t(s64, offset, 0);
}

/* ---- rows by task id, and rows that can be used again ---- */

static u32 *bucket_of(struct kbarman_rows *rows, u32 task_id)
{
	return &rows->buckets[hash_32(task_id, rows->bits)];
}

static void link_row(struct kbarman_rows *rows, u32 task_id, u32 row)
{
	u32 *bucket = bucket_of(rows, task_id);

	rows->next[row] = *bucket;
	*bucket = row + 1;
}

static void unlink_row(struct kbarman_rows *rows, u32 task_id, u32 row)
{
	u32 *link = bucket_of(rows, task_id);

	while (*link != row + 1)
		link = &rows->next[*link - 1];
	*link = rows->next[row];
}

/* The time of @row is over at @until. */
static void end_row(struct kbarman_over *over, u32 row, u64 until)
{
	over->until[row] = until;
	over->next[row] = 0;
	if (over->last)
		over->next[over->last - 1] = row + 1;
	else
		over->first = row + 1;
	over->last = row + 1;
}

/* The row that was over first, if no record is as old as that; or -1. */
static s64 take_row(struct kbarman_capture *capture, struct kbarman_over *over)
{
	u32 row;

	if (!capture->oldest_record || !over->first)
		return -1;
	row = over->first - 1;
	if (over->until[row] >= over->before)
		over->before = capture->oldest_record();
	if (over->until[row] >= over->before)
		return -1;
	over->first = over->next[row];
	if (!over->first)
		over->last = 0;
	capture->generation++;
	return row;
}

/* ---- tasks ---- */

static struct kbarman_task_fact *newest_fact(struct kbarman_capture *capture, u32 task_id)
{
	u32 next = *bucket_of(&capture->tasks, task_id);

	while (next && capture->facts[next - 1].task_id != task_id)
		next = capture->tasks.next[next - 1];
	return next ? &capture->facts[next - 1] : NULL;
}

static void end_task_row(struct kbarman_capture *capture, u32 row, u64 until)
{
	if (!capture->tasks_over.until[row])
		end_row(&capture->tasks_over, row, until);
}

/* The row for a new task entry: behind the last one, or one that is over; or -1. */
static s64 new_task_row(struct kbarman_capture *capture)
{
	s64 row = *task_count(capture);

	if (row < capture->layout.max_tasks)
		return row;
	row = take_row(capture, &capture->tasks_over);
	if (row >= 0)
		unlink_row(&capture->tasks, capture->facts[row].task_id, row);
	return row;
}

int kbarman_header_add_task(struct kbarman_capture *capture, u64 timestamp, u32 task_id, u32 tgid,
			    const char *name)
{
	struct kbarman_task_fact *fact;
	unsigned long flags;
	int error = -ENOSPC;
	s64 string, row;

	raw_spin_lock_irqsave(&capture->lock, flags);
	string = intern(capture, name, strlen(name));
	if (string < 0)
		goto out;
	fact = newest_fact(capture, task_id);
	if (fact) {
		row = fact - capture->facts;
		if (fact->tgid == tgid && !fact->exit_timestamp &&
		    task_row(capture, row)->task_name_ptr == string) {
			error = 0;	/* as it is known already */
			goto out;
		}
		end_task_row(capture, row, timestamp);
	}
	row = new_task_row(capture);
	if (row < 0) {
		capture->missed[KBARMAN_MISSED_TASK]++;
		goto out;
	}
	*task_row(capture, row) = (struct bm_protocol_header_task_info) {
		.timestamp = timestamp,
		.task_id = task_id,
		.task_name_ptr = string,
	};
	capture->facts[row] = (struct kbarman_task_fact) { .task_id = task_id, .tgid = tgid };
	capture->tasks_over.until[row] = 0;
	link_row(&capture->tasks, task_id, row);
	if (row == *task_count(capture)) {
		smp_wmb();	/* the row and its name before the count */
		WRITE_ONCE(*task_count(capture), row + 1);
	}
	error = 0;
out:
	raw_spin_unlock_irqrestore(&capture->lock, flags);
	return error;
}

/* All mappings of @task_id, or @most of them: true if that many were found. */
static bool end_map_rows(struct kbarman_capture *capture, u32 task_id, u64 until, u32 most)
{
	u32 *link = bucket_of(&capture->maps, task_id);

	while (*link && most) {
		u32 row = *link - 1;

		if (map_row(capture, row)->task_id == task_id) {
			*link = capture->maps.next[row];
			end_row(&capture->maps_over, row, until);
			most--;
		} else {
			link = &capture->maps.next[row];
		}
	}
	return !most;
}

void kbarman_header_exit_task(struct kbarman_capture *capture, u64 timestamp, u32 task_id)
{
	struct kbarman_task_fact *fact;
	unsigned long flags;

	raw_spin_lock_irqsave(&capture->lock, flags);
	fact = newest_fact(capture, task_id);
	if (fact) {
		fact->exit_timestamp = timestamp;
		end_task_row(capture, fact - capture->facts, timestamp);
	}
	end_map_rows(capture, task_id, timestamp, U32_MAX);
	raw_spin_unlock_irqrestore(&capture->lock, flags);
}

/* ---- mappings ---- */

static s64 new_map_row(struct kbarman_capture *capture)
{
	s64 row = *map_count(capture);

	if (row < capture->layout.max_maps)
		return row;
	return take_row(capture, &capture->maps_over);
}

/* Who maps may be gone by now: a worker tells of it later. */
static void track_map_row(struct kbarman_capture *capture, u32 task_id, u32 row)
{
	const struct kbarman_task_fact *fact = newest_fact(capture, task_id);

	if (fact && fact->exit_timestamp)
		end_row(&capture->maps_over, row, fact->exit_timestamp);
	else
		link_row(&capture->maps, task_id, row);
}

int kbarman_header_add_map(struct kbarman_capture *capture, u64 timestamp, u32 task_id,
			   u64 base_address, u64 length, u64 image_offset,
			   const char *image, size_t image_length, size_t name_at)
{
	unsigned long flags;
	int error = -ENOSPC;
	s64 string, row;

	raw_spin_lock_irqsave(&capture->lock, flags);
	string = intern(capture, image, image_length);
	if (string < 0)
		goto out;
	row = new_map_row(capture);
	if (row < 0) {
		capture->missed[KBARMAN_MISSED_MAP]++;
		goto out;
	}
	*map_row(capture, row) = (struct bm_protocol_header_mmap_layout) {
		.timestamp = timestamp,
		.task_id = task_id,
		.base_address = base_address,
		.length = length,
		.image_offset = image_offset,
		.image_ptr = string + name_at,
	};
	track_map_row(capture, task_id, row);
	if (row == *map_count(capture)) {
		smp_wmb();	/* the row and its name before the count */
		WRITE_ONCE(*map_count(capture), row + 1);
	}
	error = 0;
out:
	raw_spin_unlock_irqrestore(&capture->lock, flags);
	return error;
}

void kbarman_header_end_maps(struct kbarman_capture *capture, u64 timestamp, u32 task_id)
{
	unsigned long flags;
	bool more;

	do {
		raw_spin_lock_irqsave(&capture->lock, flags);
		more = end_map_rows(capture, task_id, timestamp, ENDED_AT_ONCE);
		raw_spin_unlock_irqrestore(&capture->lock, flags);
	} while (more);
}

/* ---- the rest ---- */

void kbarman_header_set_pmu(struct kbarman_capture *capture, int cpu,
			    const struct bm_protocol_header_pmu_settings *settings)
{
	struct bm_protocol_header_pmu_settings *entry = capture->header + capture->layout.pmus;
	unsigned long flags;

	entry += cpu;
	raw_spin_lock_irqsave(&capture->lock, flags);
	WRITE_ONCE(entry->num_counters, 0);
	smp_wmb();	/* no count of the old entry with types of the new one */
	entry->configuration_timestamp = settings->configuration_timestamp;
	entry->midr = settings->midr;
	entry->mpidr = settings->mpidr;
	entry->cluster_id = settings->cluster_id;
	memcpy(entry->counter_types, settings->counter_types, sizeof(entry->counter_types));
	smp_wmb();	/* the entry before its count */
	WRITE_ONCE(entry->num_counters, settings->num_counters);
	raw_spin_unlock_irqrestore(&capture->lock, flags);
}

void kbarman_header_miss(struct kbarman_capture *capture, enum kbarman_miss what, u64 count)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&capture->lock, flags);
	capture->missed[what] += count;
	raw_spin_unlock_irqrestore(&capture->lock, flags);
}

void kbarman_header_stats(struct kbarman_capture *capture, struct kbarman_stats *stats)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&capture->lock, flags);
	stats->tasks = *task_count(capture);
	stats->maps = *map_count(capture);
	stats->strings = kbarman_header_start(capture)->string_table_length;
	memcpy(stats->missed, capture->missed, sizeof(capture->missed));
	raw_spin_unlock_irqrestore(&capture->lock, flags);
}

u32 kbarman_header_generation(struct kbarman_capture *capture)
{
	unsigned long flags;
	u32 generation;

	raw_spin_lock_irqsave(&capture->lock, flags);
	generation = capture->generation;
	raw_spin_unlock_irqrestore(&capture->lock, flags);
	return generation;
}

u32 kbarman_header_task_facts(struct kbarman_capture *capture, u32 first, u32 count,
			      struct kbarman_task_fact *facts)
{
	unsigned long flags;
	u32 rows;

	raw_spin_lock_irqsave(&capture->lock, flags);
	rows = *task_count(capture);
	count = first < rows ? min(count, rows - first) : 0;
	memcpy(facts, capture->facts + first, count * sizeof(*facts));
	raw_spin_unlock_irqrestore(&capture->lock, flags);
	return count;
}
