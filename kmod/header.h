/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory of a capture, and the fixed parts of its header. The tables that grow are in tables.h.
 *
 * The header precedes struct bm_datastore_header_data. The string table has such a length that
 * struct bm_datastore_header_data begins a page. So the maps of all CPUs share the header's pages,
 * and a row that is added once appears in every map.
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
	u32 max_series;		/* custom series, and as many charts; at least
				 * KBARMAN_SERIES_COUNT */
	u32 max_strings;	/* in: the minimum; out: fills up the header's last page */
	unsigned long ring_bytes;	/* a power of two */
	/* Out: offsets from the start of the header, and sizes. */
	size_t pmus;
	size_t tasks;		/* offset of num_task_entries */
	size_t maps;		/* offset of num_mmap_layout_entries */
	size_t charts;		/* offset of num_custom_charts */
	size_t header_bytes;	/* offset of struct bm_datastore_header_data, page-aligned */
	size_t map_bytes;	/* length of one CPU's map, page-aligned */
};

/*
 * The memory that maps show. The session and the file of every mapping hold a reference; the memory
 * is freed with the last one.
 */
struct kbarman_capture {
	struct kref ref;
	struct kbarman_layout layout;
	void *header;		/* layout.header_bytes long, shared by all CPUs */
	bool kernel_addresses;	/* the capture may contain kernel addresses. Constant: set by the
				 * session before anybody else can reach the capture */
	void **rings;		/* [max_cores]: map_bytes - header_bytes long, or NULL. Each pointer
				 * is set once, under the session's lock */

	struct kbarman_collector *collector;	/* NULL: rows are never used again. Constant */

	raw_spinlock_t lock;	/* protects the tables and all fields below */
	u32 generation;
	struct kbarman_strings strings;
	u32 no_string;		/* the offset of "" */
	struct kbarman_shares shares;
	u32 nr_charts, nr_series;	/* number of those with a name */
	struct kbarman_rows tasks;	/* hashed by task id */
	struct kbarman_task_fact *facts;	/* [max_tasks] */
	struct kbarman_life *lives;		/* [max_tasks] */
	struct kbarman_rows maps;
	u32 *image_starts;	/* [max_maps]: offset of the beginning of the string in which
				 * image_ptr points */
	struct kbarman_rows charts;	/* hashed by the name's offset */
	struct kbarman_rows series;	/* hashed by chart and the name's offset */
	u64 missed[KBARMAN_MISS_REASONS];
};

/* Fill in the out fields of @layout. -EINVAL if a size is too large. */
int kbarman_layout_init(struct kbarman_layout *layout);

/* Bytes that kbarman_capture_create() allocates. The rings are not included. */
u64 kbarman_layout_memory(const struct kbarman_layout *layout);

/*
 * Allocate the header and the tables, without rings. With @overwrite, rows of the tables can be
 * used again. Returns the capture with one reference, or an ERR_PTR. Context: task.
 */
struct kbarman_capture *kbarman_capture_create(const struct kbarman_layout *layout, bool overwrite);
void kbarman_capture_get(struct kbarman_capture *capture);
void kbarman_capture_put(struct kbarman_capture *capture);	/* NULL is allowed */

/* Allocate the ring of @cpu, if it has none. 0 or -ENOMEM. Context: task, session's lock held. */
int kbarman_capture_add_ring(struct kbarman_capture *capture, int cpu);

/* The page at @offset in the map of @cpu, or NULL. */
struct page *kbarman_capture_page(struct kbarman_capture *capture, int cpu, size_t offset);

/*
 * Empty the tables and write the fixed fields and the charts. Context: task; no other task writes
 * to the tables.
 */
void kbarman_header_reset(struct kbarman_capture *capture, const char *target_name,
			  u32 sample_rate);

struct bm_protocol_header_start *kbarman_header_start(struct kbarman_capture *capture);

/*
 * Add the string "kbarman.KEY=VALUE"; @format makes the value. 0 or -ENOSPC (counted as missed).
 * Context: any but NMI.
 */
__printf(3, 4)
int kbarman_header_fact(struct kbarman_capture *capture, const char *key, const char *format, ...);

/* Write the PMU entry of @cpu. num_counters is written last, after the fields it covers. */
void kbarman_header_set_pmu(struct kbarman_capture *capture, int cpu,
			    const struct bm_protocol_header_pmu_settings *settings);

/* Count @count facts that did not get into a table. Context: any but NMI. */
void kbarman_header_miss(struct kbarman_capture *capture, enum kbarman_miss what, u64 count);

/* Add the number of used rows and of missed facts to @stats. */
void kbarman_header_stats(struct kbarman_capture *capture, struct kbarman_stats *stats);

/* Changes when rows are emptied: for use by other rows, or because a new recording starts. */
u32 kbarman_header_generation(struct kbarman_capture *capture);

#endif /* KBARMAN_HEADER_H */
