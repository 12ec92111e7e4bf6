/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory of a capture, and what of its header is no table that grows (tables.h).
 *
 * The header stands in front of struct bm_datastore_header_data, which is made to
 * start a page, by the choice of the string table's length; so the pages of the
 * header can be the same in the map of every CPU, and a row added is seen in all.
 */
#ifndef KBARMAN_HEADER_H
#define KBARMAN_HEADER_H

#include <linux/kref.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "tables.h"
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

	struct kbarman_collector *collector;	/* NULL: rows never come back. Constant */

	raw_spinlock_t lock;	/* all below, and the tables */
	u32 generation;
	struct kbarman_strings strings;
	u32 no_string;		/* the offset of "" */
	struct kbarman_shares shares;
	u32 nr_charts, nr_series;	/* that have a name */
	struct kbarman_rows tasks;	/* by task id */
	struct kbarman_task_fact *facts;	/* [max_tasks] */
	struct kbarman_life *lives;		/* [max_tasks] */
	struct kbarman_rows maps;
	u32 *image_starts;	/* [max_maps]: where the string begins that image_ptr is in */
	struct kbarman_rows charts;	/* by the name's offset */
	struct kbarman_rows series;	/* by chart and the name's offset */
	u64 missed[KBARMAN_MISS_REASONS];
};

/*
 * Fill in the rest of @layout. -EINVAL if it can't be had (sizes overflow).
 */
int kbarman_layout_init(struct kbarman_layout *layout);

/* The bytes that kbarman_capture_create() takes for it; rings come on top. */
u64 kbarman_layout_memory(const struct kbarman_layout *layout);

/*
 * Allocate header and tables, no rings yet; with @overwrite rows come back. Returns an
 * ERR_PTR. Context: task.
 */
struct kbarman_capture *kbarman_capture_create(const struct kbarman_layout *layout, bool overwrite);
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

/* The entry of @cpu; num_counters last. */
void kbarman_header_set_pmu(struct kbarman_capture *capture, int cpu,
			    const struct bm_protocol_header_pmu_settings *settings);

/* Count @count facts that went into no table. Context: any but NMI. */
void kbarman_header_miss(struct kbarman_capture *capture, enum kbarman_miss what, u64 count);

/* Table fill and misses into @stats. */
void kbarman_header_stats(struct kbarman_capture *capture, struct kbarman_stats *stats);

/* Rows were used again, or the tables begun anew, if it changes. */
u32 kbarman_header_generation(struct kbarman_capture *capture);

#endif /* KBARMAN_HEADER_H */
