// SPDX-License-Identifier: GPL-2.0-only
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "capture/capture.h"
#include "capture/header.h"
#include "capture/rows.h"
#include "capture/tables.h"

#define MAX_FACT		256
#define ROWS_AT_ONCE	128	/* under the lock */

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

void kbarman_header_set_clock(struct kbarman_capture *capture,
			      const struct bm_protocol_clock_info *info)
{
	struct bm_protocol_header_start *start = capture->header;
	unsigned long flags;

	raw_spin_lock_irqsave(&capture->lock, flags);
	start->clock_info = *info;
	start->last_timestamp = info->timestamp_base;
	capture->base = info->timestamp_base;
	raw_spin_unlock_irqrestore(&capture->lock, flags);
}

static void row_begin(struct kbarman_capture *capture, u32 row)
{
	struct bm_protocol_header_pmu_settings *pmu = capture->header + capture->layout.pmus;
	struct bm_protocol_header_mmap_layout *map = kbarman_map_row(capture, row);
	struct bm_protocol_header_task_info *task = kbarman_task_row(capture, row);
	u64 base = capture->base;

	if (row < *kbarman_task_count(capture)) {
		task->timestamp = max(task->timestamp, base);
		if (capture->facts[row].exit_timestamp)
			capture->facts[row].exit_timestamp =
				max(capture->facts[row].exit_timestamp, base);
	}
	if (row < *kbarman_map_count(capture))
		map->timestamp = max(map->timestamp, base);
	if (row < capture->layout.max_cores && pmu[row].num_counters)
		pmu[row].configuration_timestamp = max(pmu[row].configuration_timestamp, base);
}

void kbarman_header_begin(struct kbarman_capture *capture)
{
	u32 row = 0, end, rows;
	unsigned long flags;

	do {
		raw_spin_lock_irqsave(&capture->lock, flags);
		rows = max3(*kbarman_task_count(capture), *kbarman_map_count(capture),
			    capture->layout.max_cores);
		for (end = min(row + ROWS_AT_ONCE, rows); row < end; row++)
			row_begin(capture, row);
		raw_spin_unlock_irqrestore(&capture->lock, flags);
		cond_resched();
	} while (row < rows);
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

void kbarman_header_sign(struct kbarman_capture *capture, struct kbarman_map_tail *tail)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&capture->lock, flags);
	WRITE_ONCE(tail->generation, capture->generation);
	raw_spin_unlock_irqrestore(&capture->lock, flags);
}

void kbarman_header_next_generation(struct kbarman_capture *capture)
{
	struct kbarman_map_tail *tail;
	u32 cpu;

	lockdep_assert_held(&capture->lock);
	capture->generation++;
	for (cpu = 0; cpu < capture->layout.max_cores; cpu++) {
		tail = kbarman_capture_tail(capture, cpu);
		if (tail)
			WRITE_ONCE(tail->generation, capture->generation);
	}
	/* Who finds an emptied row finds the new generation. Pairs with a reader's barrier. */
	smp_wmb();
}
