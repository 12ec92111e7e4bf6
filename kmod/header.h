/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory of a capture and the tables in its header.
 *
 * The header stands in front of struct bm_datastore_header_data, which is made to
 * start a page, by the choice of the string table's length; so the pages of the
 * header can be the same in the map of every CPU, and a row added is seen in all.
 *
 * Tables grow. A row is complete before the count that covers it (smp_wmb), a string
 * before its length; a reader loads the count first. A full table of a session that
 * overwrites takes rows back that no record can mean any more: a flight recorder runs
 * for days. Then `generation` changes, and a reader copies anew. Adding takes a raw
 * spinlock for as long as it takes to find a string in a hash and to copy it: not
 * from the sched, idle and PMU probes, from every other context.
 */
#ifndef KBARMAN_HEADER_H
#define KBARMAN_HEADER_H

#include <linux/kref.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "uapi/barman_v2.h"
#include "uapi/kbarman.h"

struct kbarman_layout {
	u32 max_cores;
	u32 max_tasks;
	u32 max_maps;
	u32 max_series;		/* custom ones, and as many charts; KBARMAN_SERIES_COUNT at
				 * least */
	u32 max_strings;	/* in: at least; out: such that header_bytes is a page's */
	unsigned long ring_bytes;	/* a power of two */
	/* Out: offsets from the start of the header, and sizes. */
	size_t pmus;
	size_t tasks;		/* of num_task_entries */
	size_t maps;		/* of num_mmap_layout_entries */
	size_t charts;		/* of num_custom_charts */
	size_t header_bytes;	/* of struct bm_datastore_header_data: page-aligned */
	size_t map_bytes;	/* one CPU's map, page-aligned */
};

/*
 * What maps show. The session and every mapping hold a reference; the memory goes
 * with the last one.
 */
struct kbarman_capture {
	struct kref ref;
	struct kbarman_layout layout;
	void *header;		/* layout.header_bytes, shared by all CPUs */
	bool kernel_addresses;	/* the kernel's are in it, or come: constant, set by the session
				 * before anybody can see it */
	void **rings;		/* [max_cores]: map_bytes - header_bytes, or NULL; set
				 * once, under the session's lock */

	/*
	 * The timestamp of the oldest record there is, so that rows whose time was over
	 * before that can be used again; NULL: no row ever is. Constant.
	 */
	u64 (*oldest_record)(void);

	raw_spinlock_t lock;	/* all below, and the tables */
	u32 generation;
	u32 *string_hash;	/* [string_hash_mask + 1]: offset + 1, 0 = free */
	u32 string_hash_mask;
	u32 charts, series;	/* that have a name */
	struct kbarman_task_fact *facts;	/* [max_tasks] */
	struct kbarman_rows {	/* by task id: a chain a bucket, elements are row + 1 */
		u32 *buckets;	/* [1 << bits] */
		u32 *next;	/* [rows]: the newest row of a chain is first */
		u32 bits;
	} tasks, maps;
	struct kbarman_over {	/* rows whose time is over, in the order in which it came
				 * to be; elements are row + 1 */
		u32 first, last;
		u32 *next;	/* [rows] */
		u64 *until;	/* [rows]: 0 = not over */
		u64 before;	/* the oldest record when last asked */
	} tasks_over, maps_over;
	u64 missed[KBARMAN_MISS_REASONS];
};

/*
 * Fill in the rest of @layout. -EINVAL if it can't be had (sizes overflow).
 */
int kbarman_layout_init(struct kbarman_layout *layout);

/* The bytes that kbarman_capture_create() takes for it; rings come on top. */
u64 kbarman_layout_memory(const struct kbarman_layout *layout);

/* Allocate header and tables, no rings yet. Returns an ERR_PTR. Context: task. */
struct kbarman_capture *kbarman_capture_create(const struct kbarman_layout *layout,
					       u64 (*oldest_record)(void));
void kbarman_capture_get(struct kbarman_capture *capture);
void kbarman_capture_put(struct kbarman_capture *capture);	/* NULL is fine */

/* Allocate the memory of @cpu's ring, if it has none. Context: task. */
int kbarman_capture_add_ring(struct kbarman_capture *capture, int cpu);

/* The page at @offset in the map of @cpu, NULL if there is none. */
struct page *kbarman_capture_page(struct kbarman_capture *capture, int cpu, size_t offset);

/* Begin anew: fixed fields, charts, empty tables. Nobody writes meanwhile. */
void kbarman_header_reset(struct kbarman_capture *capture, const char *target_name,
			  u32 sample_rate);

struct bm_protocol_header_start *kbarman_header_start(struct kbarman_capture *capture);

/* The string "kbarman.KEY=VALUE", the value by format. 0 or -ENOSPC (counted). */
__printf(3, 4)
int kbarman_header_fact(struct kbarman_capture *capture, const char *key, const char *format, ...);

/*
 * A row, unless the newest one of @task_id says the same: @task_id of thread group @tgid
 * is called @name from @timestamp on.
 */
int kbarman_header_add_task(struct kbarman_capture *capture, u64 timestamp, u32 task_id, u32 tgid,
			    const char *name);

/* The newest row of @task_id: it exited at @timestamp. */
void kbarman_header_exit_task(struct kbarman_capture *capture, u64 timestamp, u32 task_id);

/*
 * A row: @task_id has @image, of @image_length bytes without NUL, mapped, whose name
 * begins at @name_at; in front of it may be which file it is. 0 or -ENOSPC.
 */
int kbarman_header_add_map(struct kbarman_capture *capture, u64 timestamp, u32 task_id,
			   u64 base_address, u64 length, u64 image_offset,
			   const char *image, size_t image_length, size_t name_at);

/* The rows that @task_id has by now say nothing of what comes after @timestamp. */
void kbarman_header_end_maps(struct kbarman_capture *capture, u64 timestamp, u32 task_id);

/*
 * The series of that name and chart, made if there is none: its number, or -ENOSPC.
 * Context: any but NMI.
 */
int kbarman_header_add_series(struct kbarman_capture *capture,
			      const struct kbarman_mark_series *wanted);

/* The entry of @cpu; num_counters last. */
void kbarman_header_set_pmu(struct kbarman_capture *capture, int cpu,
			    const struct bm_protocol_header_pmu_settings *settings);

/* Count @count facts that went into no table. Context: any but NMI. */
void kbarman_header_miss(struct kbarman_capture *capture, enum kbarman_miss what, u64 count);

/* Table fill and misses into @stats. */
void kbarman_header_stats(struct kbarman_capture *capture, struct kbarman_stats *stats);

/* Rows were used again, or the tables begun anew, if it changes. */
u32 kbarman_header_generation(struct kbarman_capture *capture);

/* Facts of at most @count rows from @first on; returns how many. */
u32 kbarman_header_task_facts(struct kbarman_capture *capture, u32 first, u32 count,
			      struct kbarman_task_fact *facts);

#endif /* KBARMAN_HEADER_H */
