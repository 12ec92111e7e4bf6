// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/numa.h>
#include <linux/overflow.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/topology.h>

#include "capture/beacon.h"
#include "capture/capture.h"
#include "capture/collect.h"
#include "capture/header.h"
#include "capture/memory.h"
#include "capture/reserved.h"
#include "capture/rows.h"
#include "capture/storage.h"
#include "capture/tables.h"
#include "ring/ring.h"
#include "uapi/beacon.h"

/*
 * All sizes but that of the string table are given. The string table is extended to the end of a
 * page. Its end is what the format does not know: struct bm_kbarman_tasks, at a multiple of 8. The
 * length with that is a multiple of 4, so the structs behind it have the alignment they declare. Up
 * to 3 bytes then remain before the page's end. The format pads there to a multiple of 8.
 */
int kbarman_layout_init(struct kbarman_layout *layout)
{
	u64 facts = sizeof(struct bm_kbarman_tasks) +
		    (u64)layout->max_tasks * sizeof(struct bm_kbarman_task);
	u64 pmus = (u64)layout->max_cores * sizeof(struct bm_protocol_header_pmu_settings);
	u64 tasks = 4 + (u64)layout->max_tasks * sizeof(struct bm_protocol_header_task_info);
	u64 maps = 4 + (u64)layout->max_maps * sizeof(struct bm_protocol_header_mmap_layout);
	u64 charts = 4 + (u64)layout->max_series *
			     (sizeof(struct bm_protocol_header_custom_chart) +
			      sizeof(struct bm_protocol_header_custom_chart_series));
	u64 fixed = sizeof(struct bm_protocol_header_start) + pmus + tasks + maps + charts;
	u64 end = PAGE_ALIGN(fixed + facts + ALIGN((u64)layout->max_strings, 8));

	/* header_length has 32 bits, and the length of a map must fit into a size_t. */
	if (end + PAGE_SIZE > U32_MAX || end + layout->ring_bytes + PAGE_SIZE > SIZE_MAX)
		return -EINVAL;

	layout->pmus = sizeof(struct bm_protocol_header_start) + ALIGN_DOWN(end - fixed, 4);
	layout->facts = ALIGN_DOWN(layout->pmus - facts, 8);
	layout->max_strings = layout->facts - sizeof(struct bm_protocol_header_start);
	layout->tasks = layout->pmus + pmus;
	layout->maps = layout->tasks + tasks;
	layout->charts = layout->maps + maps;
	layout->header_bytes = end;
	layout->map_bytes = end + PAGE_ALIGN(sizeof(struct bm_datastore_header_data) +
					     layout->ring_bytes);
	return 0;
}

static u64 layout_ring_bytes(const struct kbarman_layout *layout)
{
	return layout->map_bytes - layout->header_bytes;
}

static u64 with_beacons(u64 bytes)
{
	return bytes + kbarman_beacon_bytes(bytes);
}

u64 kbarman_layout_reserved(const struct kbarman_layout *layout, unsigned int rings)
{
	return with_beacons(layout->header_bytes) + rings * with_beacons(layout_ring_bytes(layout));
}

u64 kbarman_layout_memory(const struct kbarman_layout *layout)
{
	const struct kbarman_capture *capture;
	const struct kbarman_strings *strings;

	return (layout->reserved ? 0 : kbarman_layout_reserved(layout, 0)) +
	       kbarman_rows_bytes(layout->max_tasks) +
	       kbarman_rows_bytes(layout->max_maps) + 2 * kbarman_rows_bytes(layout->max_series) +
	       (u64)layout->max_tasks * sizeof(*capture->lives) +
	       (u64)layout->max_maps * sizeof(*capture->image_starts) +
	       (u64)layout->max_strings / KBARMAN_STRING_UNIT * sizeof(*strings->blocks) +
	       (u64)kbarman_strings_buckets(layout->max_strings) * sizeof(*strings->buckets) +
	       kbarman_collect_memory(layout);
}

static bool strings_create(struct kbarman_strings *strings, const struct kbarman_layout *layout)
{
	u32 buckets = kbarman_strings_buckets(layout->max_strings);

	strings->mask = buckets - 1;
	strings->blocks = kbarman_memory_pages(array_size(layout->max_strings / KBARMAN_STRING_UNIT,
							  sizeof(*strings->blocks)), NUMA_NO_NODE);
	strings->buckets = kbarman_memory_pages(array_size(buckets, sizeof(*strings->buckets)),
						NUMA_NO_NODE);
	return strings->blocks && strings->buckets;
}

int kbarman_capture_charge(struct kbarman_capture *capture, u64 bytes)
{
	int error = bytes ? kbarman_memory_take(capture->user, bytes) : 0;

	if (!error)
		capture->bytes += bytes;
	return error;
}

void kbarman_capture_refund(struct kbarman_capture *capture, u64 bytes)
{
	kbarman_memory_give(capture->user, bytes);
	capture->bytes -= bytes;
}

struct kbarman_capture *kbarman_capture_create(const struct kbarman_layout *layout, bool reuse,
					       u32 user)
{
	struct kbarman_capture *capture = kzalloc(sizeof(*capture), GFP_KERNEL_ACCOUNT);
	int error;

	if (!capture)
		return ERR_PTR(-ENOMEM);
	capture->user = user;
	error = kbarman_capture_charge(capture, kbarman_layout_memory(layout));
	if (error) {
		kfree(capture);
		return ERR_PTR(error);
	}
	kref_init(&capture->ref);
	raw_spin_lock_init(&capture->lock);
	capture->layout = *layout;
	if (layout->reserved) {
		capture->half = kbarman_half_take();
		if (IS_ERR(capture->half)) {
			error = PTR_ERR(capture->half);
			capture->half = NULL;
			goto err_capture;
		}
	}
	error = -ENOMEM;
	get_random_bytes(&capture->beacon, sizeof(capture->beacon));
	capture->header = kbarman_beacon_pages(capture, KBARMAN_BEACON_HEADER, layout->header_bytes,
					       NUMA_NO_NODE);
	capture->rings = kcalloc(layout->max_cores, sizeof(*capture->rings),
				 GFP_KERNEL_ACCOUNT);
	capture->lives = kbarman_memory_pages(array_size(layout->max_tasks, sizeof(*capture->lives)),
					      NUMA_NO_NODE);
	capture->image_starts = kbarman_memory_pages(array_size(layout->max_maps,
								sizeof(*capture->image_starts)),
						     NUMA_NO_NODE);
	if (capture->header && capture->rings && capture->lives &&
	    capture->image_starts && strings_create(&capture->strings, layout) &&
	    kbarman_rows_create(&capture->tasks, layout->max_tasks, true) &&
	    kbarman_rows_create(&capture->maps, layout->max_maps, false) &&
	    kbarman_rows_create(&capture->charts, layout->max_series, true) &&
	    kbarman_rows_create(&capture->series, layout->max_series, true) &&
	    (!reuse || kbarman_collect_create(capture)))
		return capture;
err_capture:
	kbarman_capture_put(capture);
	return ERR_PTR(error);
}

void kbarman_capture_get(struct kbarman_capture *capture)
{
	kref_get(&capture->ref);
}

static void capture_free(struct kref *ref)
{
	struct kbarman_capture *capture = container_of(ref, struct kbarman_capture, ref);
	u32 cpu;

	for (cpu = 0; capture->rings && cpu < capture->layout.max_cores; cpu++)
		kbarman_beacon_free(capture, capture->rings[cpu], layout_ring_bytes(&capture->layout));
	kbarman_beacon_free(capture, capture->symbols, capture->symbols_bytes);
	kbarman_collect_free(capture);
	kbarman_rows_free(&capture->series);
	kbarman_rows_free(&capture->charts);
	kbarman_rows_free(&capture->maps);
	kbarman_rows_free(&capture->tasks);
	kbarman_memory_free(capture->strings.buckets);
	kbarman_memory_free(capture->strings.blocks);
	kbarman_memory_free(capture->image_starts);
	kbarman_memory_free(capture->lives);
	kfree(capture->rings);
	kbarman_beacon_free(capture, capture->header, capture->layout.header_bytes);
	kbarman_half_give(capture->half);
	kbarman_capture_refund(capture, capture->bytes);
	kfree(capture);
}

void kbarman_capture_put(struct kbarman_capture *capture)
{
	if (capture)
		kref_put(&capture->ref, capture_free);
}

/* As kbarman_beacon_pages(), charged to the user, or an ERR_PTR. */
static void *capture_add_part(struct kbarman_capture *capture, u64 part, u64 bytes, int node)
{
	const u64 charge = capture->half ? 0 : with_beacons(bytes);
	int error = kbarman_capture_charge(capture, charge);
	void *memory;

	if (error)
		return ERR_PTR(error);
	memory = kbarman_beacon_pages(capture, part, bytes, node);
	if (memory)
		return memory;
	kbarman_capture_refund(capture, charge);
	return ERR_PTR(-ENOMEM);
}

int kbarman_capture_add_symbols(struct kbarman_capture *capture, u64 bytes, unsigned int rings)
{
	const u64 part = PAGE_ALIGN(sizeof(*capture->symbols) + bytes);
	const u64 all = kbarman_layout_reserved(&capture->layout, rings) + with_beacons(part);
	void *memory;

	if (capture->half && all > kbarman_reserved_bytes())
		return -ENOSPC;
	memory = capture_add_part(capture, KBARMAN_BEACON_SYMBOLS, part, NUMA_NO_NODE);
	if (IS_ERR(memory))
		return PTR_ERR(memory);
	capture->symbols = memory;
	capture->symbols_bytes = part;
	return 0;
}

int kbarman_capture_add_ring(struct kbarman_capture *capture, int cpu)
{
	const u64 bytes = layout_ring_bytes(&capture->layout);
	void *ring;

	if (capture->rings[cpu])
		return 0;
	ring = capture_add_part(capture, KBARMAN_BEACON_RING(cpu), bytes, cpu_to_node(cpu));
	if (IS_ERR(ring))
		return PTR_ERR(ring);
	/*
	 * Pairs with the acquire in kbarman_capture_at(): a page fault may read the pointer at
	 * any time.
	 */
	smp_store_release(&capture->rings[cpu], ring);
	return 0;
}

u64 kbarman_capture_fill(const struct kbarman_capture *capture, const u64 *positions)
{
	struct bm_datastore_header_data *ring;
	unsigned long fill;
	u64 most = 0;
	u32 cpu;

	for (cpu = 0; cpu < capture->layout.max_cores; cpu++) {
		/* Pairs with kbarman_capture_add_ring(). */
		ring = smp_load_acquire(&capture->rings[cpu]);
		if (!ring)
			continue;
		fill = positions ? READ_ONCE(*kbarman_ring_low_word(&ring->write_offset)) -
				   (unsigned long)READ_ONCE(positions[cpu]) : kbarman_ring_fill(ring);
		most = max_t(u64, most, fill);
	}
	return most;
}

void *kbarman_capture_at(struct kbarman_capture *capture, int cpu, size_t offset)
{
	void *ring;

	if (offset < capture->layout.header_bytes)
		return capture->header + offset;
	ring = smp_load_acquire(&capture->rings[cpu]);	/* pairs with kbarman_capture_add_ring() */
	if (!ring || offset >= capture->layout.map_bytes)
		return NULL;
	return ring + (offset - capture->layout.header_bytes);
}

static u32 capture_intern_literal(struct kbarman_capture *capture, const char *text)
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
static void capture_empty_tables(struct kbarman_capture *capture)
{
	const struct kbarman_layout *layout = &capture->layout;
	struct bm_protocol_header_start *start = capture->header;
	struct kbarman_strings *strings = &capture->strings;
	unsigned long flags;

	raw_spin_lock_irqsave(&capture->lock, flags);
	WRITE_ONCE(*kbarman_task_count(capture), 0);
	WRITE_ONCE(*kbarman_map_count(capture), 0);
	memset(capture->missed, 0, sizeof(capture->missed));
	capture->base = 0;
	kbarman_header_next_generation(capture);
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

void kbarman_capture_reset(struct kbarman_capture *capture, const char *target_name,
			   u32 sample_rate)
{
	const struct kbarman_layout *layout = &capture->layout;
	struct bm_protocol_header_start *start = capture->header;
	struct bm_kbarman_tasks *facts = capture->header + layout->facts;
	const u32 sizes[KBARMAN_SHARES] = {
		[KBARMAN_SHARE_TASKS] = layout->max_tasks,
		[KBARMAN_SHARE_MAPS] = layout->max_maps,
		[KBARMAN_SHARE_STRINGS] = layout->max_strings / KBARMAN_STRING_UNIT,
		[KBARMAN_SHARE_SERIES] = layout->max_series,
	};
	unsigned long flags;

	capture_empty_tables(capture);
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
			.max_string_table_length = layout->pmus - sizeof(*start),
			.num_custom_counters = layout->max_series,
		},
		.clock_info = { .timestamp_multiplier = 1, .timestamp_divisor = 1 },
	};
	*facts = (struct bm_kbarman_tasks) {
		.size = sizeof(*facts),
		.element_size = sizeof(*capture->facts),
		.count = layout->max_tasks,
	};
	capture->facts = (void *)(facts + 1);
	kbarman_shares_init(&capture->shares, sizes);
	/*
	 * No string is interned before the target's name, so it is the first string of the table.
	 */
	start->target_name_ptr = capture_intern_literal(capture, target_name);
	capture->no_string = capture_intern_literal(capture, "");
	raw_spin_unlock_irqrestore(&capture->lock, flags);
	kbarman_series_reset(capture);
	kbarman_header_fact(capture, "tasks", "%zu", layout->facts);
}
