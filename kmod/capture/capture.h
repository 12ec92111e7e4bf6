/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * capture/: the memory that maps show. Its pages (storage.h), who pays for them (memory.h), the
 * parts of its header that do not grow (header.h), the tables that do (tables.h), what users may
 * take of these (shares.h), and the collector that makes rows free again (collect.h). Here: what
 * the module knows of a capture.
 *
 * The header precedes struct bm_datastore_header_data. The string table has such a length that
 * struct bm_datastore_header_data begins a page. So the maps of all CPUs share the header's pages,
 * and a row that is added once appears in every map.
 */
#ifndef KBARMAN_CAPTURE_H
#define KBARMAN_CAPTURE_H

#include <linux/kref.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "capture/shares.h"
#include "capture/string_table.h"
#include "uapi/barman_v2.h"
#include "uapi/kbarman.h"

struct kbarman_half;

struct kbarman_layout {
	u32 max_cores;
	u32 max_tasks;
	u32 max_maps;
	u32 max_series;		/* custom series, and as many charts; at least
				 * KBARMAN_SERIES_COUNT */
	u32 max_strings;	/* bytes of strings. In: the minimum; out: fills up the header's last page */
	unsigned long ring_bytes;	/* a power of two */
	bool reserved;		/* header and rings are in memory that survives a reset: reserved.h */
	/* Out: offsets from the start of the header, and sizes. */
	size_t facts;		/* offset of struct bm_kbarman_tasks, behind the strings */
	size_t pmus;
	size_t tasks;		/* offset of num_task_entries */
	size_t maps;		/* offset of num_mmap_layout_entries */
	size_t charts;		/* offset of num_custom_charts */
	size_t header_bytes;	/* offset of struct bm_datastore_header_data, page-aligned */
	size_t map_bytes;	/* length of one CPU's map, page-aligned */
};

/* The rows of a table, by number; in some tables also by key, those rows that still hold. */
struct kbarman_rows {
	u32 size;
	u32 bits;	/* of a bucket's number; 0: rows have no key */
	u32 seed;	/* of the hash */
	u32 *buckets;	/* [1 << bits]: row + 1. Of each key the newest row is linked alone */
	u32 *next;	/* [size]: row + 1: the next row of the bucket, or the next empty row */
	u32 empty;	/* row + 1: the first empty row */
	u64 *until;	/* [size]: when the row was over; 0: it is not */
	u8 *payer;	/* [size]: who pays for the row (shares.h) */
};

/* What the map does not say of a row of the task table. */
struct kbarman_life {
	u64 begun;		/* when the task began, under whatever name */
	u64 maps_ended;		/* older rows of the task's mappings are over since then */
	bool freed;		/* the task is gone for good, and ->until says when */
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
	u64 session;		/* number of the configuration, 0 before it has one. Under the
				 * session's lock; read without it, too */
	u32 sources;		/* KBARMAN_SOURCE_*: their series have names. Constant: as above */
	u64 bytes;		/* memory of all of it, which is charged to `user`: memory.h.
				 * Under the session's lock */
	u32 user;		/* number of the user who configured. Constant */
	struct kbarman_half *half;	/* in which header and rings are; NULL: in Linux's memory. Constant */
	u64 beacon;		/* what its beacons have in common: uapi/beacon.h. Constant */
	u64 *symbols;		/* how many bytes they have, 0 until all are there, and these; NULL:
				 * none. Set once, under the session's lock */
	u64 symbols_bytes;	/* of that memory, whole pages. As above */
	u64 watermark;		/* for poll(). Constant: as above */
	void **rings;		/* [max_cores]: map_bytes - header_bytes long, or NULL. Each pointer
				 * is set once, under the session's lock */

	struct kbarman_collector *collector;	/* NULL: rows are never used again. Constant */

	raw_spinlock_t lock;	/* protects the tables and all fields below */
	u64 base;		/* timestamp_base: no fact of the header is older. 0: not begun */
	u32 generation;
	struct kbarman_strings strings;
	u32 no_string;		/* the offset of "" */
	struct kbarman_shares shares;
	u32 nr_charts, nr_series;	/* number of those with a name */
	struct kbarman_rows tasks;	/* hashed by task id */
	struct bm_kbarman_task *facts;		/* [max_tasks]: in the header's pages */
	struct kbarman_life *lives;		/* [max_tasks] */
	struct kbarman_rows maps;
	u32 *image_starts;	/* [max_maps]: offset of the beginning of the string in which
				 * image_ptr points */
	struct kbarman_rows charts;	/* hashed by the name's offset */
	struct kbarman_rows series;	/* hashed by chart and the name's offset */
	u64 missed[KBARMAN_MISS_REASONS];
};

/* The counts of the tables, and their rows. */
static inline u32 *kbarman_task_count(struct kbarman_capture *capture)
{
	return capture->header + capture->layout.tasks;
}

static inline struct bm_protocol_header_task_info *
kbarman_task_row(struct kbarman_capture *capture, u32 row)
{
	return (struct bm_protocol_header_task_info *)(kbarman_task_count(capture) + 1) + row;
}

static inline u32 *kbarman_map_count(struct kbarman_capture *capture)
{
	return capture->header + capture->layout.maps;
}

static inline struct bm_protocol_header_mmap_layout *
kbarman_map_row(struct kbarman_capture *capture, u32 row)
{
	return (struct bm_protocol_header_mmap_layout *)(kbarman_map_count(capture) + 1) + row;
}

/* What stands behind the ring of @cpu, or NULL: it has no ring. Context: any. */
static inline struct kbarman_map_tail *kbarman_capture_tail(const struct kbarman_capture *capture, int cpu)
{
	/* Pairs with kbarman_capture_add_ring(). */
	void *ring = smp_load_acquire(&capture->rings[cpu]);

	return ring ? ring + sizeof(struct bm_datastore_header_data) + capture->layout.ring_bytes : NULL;
}

#endif /* KBARMAN_CAPTURE_H */
