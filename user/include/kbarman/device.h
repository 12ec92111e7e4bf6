/* SPDX-License-Identifier: MIT */
/*
 * /dev/kbarman for programs: the calls of uapi/kbarman.h with sentences instead of
 * bare error numbers, and the view of a CPU's mapped capture.
 *
 * Functions return 0 or a negative errno unless they say otherwise. A device may
 * be used by one thread at a time; what is mapped, by any number.
 */
#ifndef KBARMAN_DEVICE_H
#define KBARMAN_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uapi/barman_v2.h>
#include <uapi/kbarman.h>

#include <kbarman/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kb_device;

/*
 * Open the device. -ENOENT: the module is not loaded; -EPERM, -EACCES: not
 * allowed; -EPROTO: module and library don't speak the same ABI or word size.
 */
int kb_device_open(struct kb_device **out, struct kb_error *err);

/* Ends the session if it is this device's. Maps stay. */
void kb_device_close(struct kb_device *device);

/* For poll(): POLLIN when a ring has reached the watermark. */
int kb_device_fd(const struct kb_device *device);

/*
 * The ioctls. `size` of the structs is set here. The meaning of every field, and
 * the errors, are in uapi/kbarman.h; kb_device_start() names the event and the CPU
 * that failed.
 */
int kb_device_query(struct kb_device *device, struct kbarman_query *query, struct kb_error *err);
int kb_device_configure(struct kb_device *device, struct kbarman_configure *configure,
			struct kb_error *err);
int kb_device_start(struct kb_device *device, struct kb_error *err);
int kb_device_stop(struct kb_device *device, struct kb_error *err);
int kb_device_consume(struct kb_device *device, unsigned int cpu, uint64_t position,
		      struct kb_error *err);
int kb_device_stats(struct kb_device *device, unsigned int cpu, struct kbarman_stats *stats,
		    struct kb_error *err);

/* Records that were lost, for whatever reason. */
static inline uint64_t kb_stats_lost(const struct kbarman_stats *stats)
{
	uint64_t lost = 0;

	for (unsigned int i = 0; i < KBARMAN_LOST_REASONS; i++)
		lost += stats->lost[i];
	return lost;
}

int kb_device_clock(struct kb_device *device, struct kbarman_clock *clock, struct kb_error *err);
/* Rows from @first on; @count: how many fit, then how many there were. */
int kb_device_task_facts(struct kb_device *device, uint32_t first, struct kbarman_task_fact *facts,
			 uint32_t *count, struct kb_error *err);
/* Any number of rows; @count: how many there are, then how many went in. */
int kb_device_add_maps(struct kb_device *device, const struct kbarman_map_row *rows,
		       uint32_t *count, struct kb_error *err);

/*
 * The custom series that @series describes, made in the session that runs; its number
 * is set there. -ENOSPC: the session has no room for it.
 */
int kb_device_series(struct kb_device *device, struct kbarman_mark_series *series,
		     struct kb_error *err);

/*
 * The capture of one CPU as it is mapped, with pointers to its parts. While a
 * session runs, tables grow: read a count with acquire order (kb_mapped_count())
 * before the rows it covers.
 */
struct kb_mapped {
	const void *bytes;
	size_t size;
	const struct bm_protocol_header_start *header;
	const char *strings;
	const struct bm_protocol_header_pmu_settings *pmus;	/* max_cores */
	const __u32 *nr_tasks;
	const struct bm_protocol_header_task_info *tasks;
	const __u32 *nr_maps;
	const struct bm_protocol_header_mmap_layout *maps;
	uint32_t nr_charts;
	const struct bm_protocol_header_custom_chart *charts;
	const struct bm_protocol_header_custom_chart_series *series; /* num_custom_counters */
	const struct bm_datastore_header_data *store;
	const uint8_t *ring;
	uint64_t ring_bytes;					/* a power of two */
};

/* Map @cpu of the configured session, until kb_mapped_unmap(). */
int kb_device_map(struct kb_device *device, unsigned int cpu, struct kb_mapped *mapped,
		  struct kb_error *err);
void kb_mapped_unmap(struct kb_mapped *mapped);

/*
 * The same view of a copy of such a map, aligned to 8, which must stay: -EBADMSG
 * if it isn't a capture of this machine's word size and byte order with a ring.
 */
int kb_mapped_view(struct kb_mapped *mapped, const void *bytes, size_t size,
		   struct kb_error *err);

static inline uint32_t kb_mapped_count(const __u32 *count)
{
	return __atomic_load_n(count, __ATOMIC_ACQUIRE);
}

/* The string at @offset of the table; NULL if there is none that ends in it. */
const char *kb_mapped_string(const struct kb_mapped *mapped, uint32_t offset);

/*
 * write_offset and read_offset of a ring that may be running, with acquire order.
 * @near: any position that is less than 2 GiB away; only a 32-bit kernel, whose
 * running rings have but the low words, needs it.
 */
uint64_t kb_mapped_write_offset(const struct kb_mapped *mapped, uint64_t near);
uint64_t kb_mapped_read_offset(const struct kb_mapped *mapped, uint64_t near);

/*
 * Copy what a ring holds at this moment, running or not, to @buffer of ring_bytes.
 * On success [*start, *start + *length) of the buffer are whole blocks, oldest
 * first. -EAGAIN: the ring went round faster than it could be copied, 16 times.
 */
int kb_mapped_snapshot(const struct kb_mapped *mapped, void *buffer, size_t *start,
		       size_t *length);

#ifdef __cplusplus
}
#endif

#endif
