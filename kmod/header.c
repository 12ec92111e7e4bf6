// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/topology.h>
#include <linux/vmalloc.h>

#include "collect.h"
#include "header.h"
#include "tables.h"

#define MAX_FACT		256

/*
 * All sizes but that of the string table are given. The string table is extended to the end of a
 * page. Its length is a multiple of 4, so the structs behind it have the alignment they declare. Up
 * to 3 bytes then remain before the page's end. The format pads there to a multiple of 8.
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

	/* header_length has 32 bits, and the length of a map must fit into a size_t. */
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

/* Bytes that kbarman_rows_create() allocates for @count rows. */
static u64 rows_bytes(u32 count)
{
	const struct kbarman_rows *rows;

	return (u64)count * (sizeof(*rows->buckets) + sizeof(*rows->next) +
			     sizeof(*rows->until) + sizeof(*rows->payer));
}

u64 kbarman_layout_memory(const struct kbarman_layout *layout)
{
	const struct kbarman_capture *capture;
	const struct kbarman_strings *strings;

	return layout->header_bytes + rows_bytes(layout->max_tasks) + rows_bytes(layout->max_maps) +
	       2 * rows_bytes(layout->max_series) +
	       (u64)layout->max_tasks * (sizeof(*capture->facts) + sizeof(*capture->lives)) +
	       (u64)layout->max_maps * sizeof(*capture->image_starts) +
	       (u64)layout->max_strings / KBARMAN_STRING_UNIT * sizeof(*strings->blocks) +
	       (u64)kbarman_strings_buckets(layout->max_strings) * sizeof(*strings->buckets) +
	       kbarman_collect_memory(layout);
}

static bool create_strings(struct kbarman_strings *strings, const struct kbarman_layout *layout)
{
	u32 buckets = kbarman_strings_buckets(layout->max_strings);

	strings->mask = buckets - 1;
	strings->blocks = vzalloc(array_size(layout->max_strings / KBARMAN_STRING_UNIT,
					     sizeof(*strings->blocks)));
	strings->buckets = vzalloc(array_size(buckets, sizeof(*strings->buckets)));
	return strings->blocks && strings->buckets;
}

struct kbarman_capture *kbarman_capture_create(const struct kbarman_layout *layout, bool overwrite)
{
	struct kbarman_capture *capture = kzalloc(sizeof(*capture), GFP_KERNEL);

	if (!capture)
		return ERR_PTR(-ENOMEM);
	kref_init(&capture->ref);
	raw_spin_lock_init(&capture->lock);
	capture->layout = *layout;
	capture->header = vzalloc(layout->header_bytes);
	capture->rings = kcalloc(layout->max_cores, sizeof(*capture->rings), GFP_KERNEL);
	capture->facts = vzalloc(array_size(layout->max_tasks, sizeof(*capture->facts)));
	capture->lives = vzalloc(array_size(layout->max_tasks, sizeof(*capture->lives)));
	capture->image_starts = vzalloc(array_size(layout->max_maps,
						   sizeof(*capture->image_starts)));
	if (capture->header && capture->rings && capture->facts && capture->lives &&
	    capture->image_starts && create_strings(&capture->strings, layout) &&
	    kbarman_rows_create(&capture->tasks, layout->max_tasks, true) &&
	    kbarman_rows_create(&capture->maps, layout->max_maps, false) &&
	    kbarman_rows_create(&capture->charts, layout->max_series, true) &&
	    kbarman_rows_create(&capture->series, layout->max_series, true) &&
	    (!overwrite || kbarman_collect_create(capture)))
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
	kbarman_collect_free(capture);
	kbarman_rows_free(&capture->series);
	kbarman_rows_free(&capture->charts);
	kbarman_rows_free(&capture->maps);
	kbarman_rows_free(&capture->tasks);
	vfree(capture->strings.buckets);
	vfree(capture->strings.blocks);
	vfree(capture->image_starts);
	vfree(capture->lives);
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
	/*
	 * Pairs with the acquire in kbarman_capture_page(): a page fault may read the pointer at
	 * any time.
	 */
	smp_store_release(&capture->rings[cpu], ring);
	return 0;
}

struct page *kbarman_capture_page(struct kbarman_capture *capture, int cpu, size_t offset)
{
	void *ring;

	if (offset < capture->layout.header_bytes)
		return vmalloc_to_page(capture->header + offset);
	ring = smp_load_acquire(&capture->rings[cpu]);	/* pairs with kbarman_capture_add_ring() */
	if (!ring || offset >= capture->layout.map_bytes)
		return NULL;
	return vmalloc_to_page(ring + (offset - capture->layout.header_bytes));
}

struct bm_protocol_header_start *kbarman_header_start(struct kbarman_capture *capture)
{
	return capture->header;
}

static u32 intern_literal(struct kbarman_capture *capture, const char *text)
{
	const struct kbarman_text literal = kbarman_strings_text(&capture->strings, text,
								 strlen(text));
	s64 offset = kbarman_intern(capture, &literal, KBARMAN_USER_ROOT);

	return offset < 0 ? 0 : offset;
}

/*
 * Empty the tables. Readers see the counts of 0 first. What no task writes at this time is then
 * cleared without the lock, because it is megabytes.
 */
static void empty_tables(struct kbarman_capture *capture)
{
	const struct kbarman_layout *layout = &capture->layout;
	struct bm_protocol_header_start *start = capture->header;
	struct kbarman_strings *strings = &capture->strings;
	unsigned long flags;

	raw_spin_lock_irqsave(&capture->lock, flags);
	WRITE_ONCE(*kbarman_task_count(capture), 0);
	WRITE_ONCE(*kbarman_map_count(capture), 0);
	memset(capture->missed, 0, sizeof(capture->missed));
	capture->generation++;
	raw_spin_unlock_irqrestore(&capture->lock, flags);

	memset(capture->header + layout->pmus, 0,
	       layout->max_cores * sizeof(struct bm_protocol_header_pmu_settings));
	memset(start + 1, 0, start->string_table_length);
	memset(strings->blocks, 0,
	       (size_t)layout->max_strings / KBARMAN_STRING_UNIT * sizeof(*strings->blocks));
	memset(strings->buckets, 0, (strings->mask + 1) * sizeof(*strings->buckets));
	/* Not under the raw lock: these get random numbers, which may sleep on PREEMPT_RT. */
	kbarman_strings_init(strings, (char *)(start + 1), layout->max_strings,
			     &start->string_table_length, !capture->collector);
	kbarman_rows_reset(&capture->tasks);
	kbarman_rows_reset(&capture->maps);
}

void kbarman_header_reset(struct kbarman_capture *capture, const char *target_name,
			  u32 sample_rate)
{
	const struct kbarman_layout *layout = &capture->layout;
	struct bm_protocol_header_start *start = capture->header;
	const u32 sizes[KBARMAN_SHARES] = {
		[KBARMAN_SHARE_TASKS] = layout->max_tasks,
		[KBARMAN_SHARE_MAPS] = layout->max_maps,
		[KBARMAN_SHARE_STRINGS] = layout->max_strings / KBARMAN_STRING_UNIT,
		[KBARMAN_SHARE_SERIES] = layout->max_series,
	};
	unsigned long flags;

	empty_tables(capture);
	raw_spin_lock_irqsave(&capture->lock, flags);
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
	kbarman_shares_init(&capture->shares, sizes);
	/*
	 * No string is interned before the target's name, so it is the first string of the table.
	 */
	start->target_name_ptr = intern_literal(capture, target_name);
	capture->no_string = intern_literal(capture, "");
	raw_spin_unlock_irqrestore(&capture->lock, flags);
	kbarman_series_reset(capture);
}

int kbarman_header_fact(struct kbarman_capture *capture, const char *key, const char *format, ...)
{
	char fact[MAX_FACT];
	struct kbarman_text text;
	unsigned long flags;
	va_list arguments;
	size_t length;
	s64 offset;

	length = scnprintf(fact, sizeof(fact), "kbarman.%s=", key);
	va_start(arguments, format);
	length += vscnprintf(fact + length, sizeof(fact) - length, format, arguments);
	va_end(arguments);

	text = kbarman_strings_text(&capture->strings, fact, length);
	raw_spin_lock_irqsave(&capture->lock, flags);
	offset = kbarman_intern(capture, &text, KBARMAN_USER_ROOT);
	raw_spin_unlock_irqrestore(&capture->lock, flags);
	return min_t(s64, offset, 0);
}

void kbarman_header_set_pmu(struct kbarman_capture *capture, int cpu,
			    const struct bm_protocol_header_pmu_settings *settings)
{
	struct bm_protocol_header_pmu_settings *entry = capture->header + capture->layout.pmus;
	unsigned long flags;

	entry += cpu;
	raw_spin_lock_irqsave(&capture->lock, flags);
	WRITE_ONCE(entry->num_counters, 0);
	smp_wmb();	/* the old entry's count must not cover the new entry's types */
	entry->configuration_timestamp = settings->configuration_timestamp;
	entry->midr = settings->midr;
	entry->mpidr = settings->mpidr;
	entry->cluster_id = settings->cluster_id;
	memcpy(entry->counter_types, settings->counter_types, sizeof(entry->counter_types));
	smp_wmb();	/* the entry is complete before its count covers it */
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
	stats->tasks = capture->shares.used[KBARMAN_SHARE_TASKS];
	stats->maps = capture->shares.used[KBARMAN_SHARE_MAPS];
	stats->strings = capture->strings.used * KBARMAN_STRING_UNIT;
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
