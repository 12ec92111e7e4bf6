/* SPDX-License-Identifier: MIT */
/*
 * /dev/kbarman for programs: the calls of uapi/kbarman.h with error texts, and a view of the
 * mapped capture of a CPU.
 *
 * Functions return 0 or a negative errno unless they say otherwise. Only one thread at a time
 * may use a struct kb_device. Any number of threads may use a mapped capture.
 */
#ifndef KBARMAN_DEVICE_H
#define KBARMAN_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is mapped has this program's word size: kb_mapped_view() refuses the other one. */
#define BM_WORD_BITS	__BITS_PER_LONG
#include <uapi/barman_v2.h>
#include <uapi/kbarman.h>
#include <uapi/stamp.h>

#include <kbarman/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kb_device;

/*
 * Open the device. -ENOENT: the module is not loaded; -EPERM, -EACCES: no permission; -EPROTO:
 * module and library differ in ABI or word size. kb_device_close() frees the device.
 */
int kb_device_open(struct kb_device **out, struct kb_error *err);

/*
 * The same with @fd, a descriptor of the device that was opened before, maybe by another process,
 * and may own a session. The device owns @fd if this succeeds.
 */
int kb_device_take(struct kb_device **out, int fd, struct kb_error *err);

/*
 * Close and free the device, which may be NULL. This ends the session if the device owns it. Maps
 * stay valid.
 */
void kb_device_close(struct kb_device *device);

/* The descriptor, for poll(): POLLIN when a ring has reached the watermark. */
int kb_device_fd(const struct kb_device *device);

/*
 * The ioctls. These functions set `size` of the structs. uapi/kbarman.h describes every field
 * and all errors. event_bytes of a configuration with events is sizeof(struct kbarman_event). The error
 * text of kb_device_start() names the event and the CPU that failed.
 */
int kb_device_query(struct kb_device *device, struct kbarman_query *query, struct kb_error *err);
int kb_device_configure(struct kb_device *device, struct kbarman_configure *configure,
			struct kb_error *err);
int kb_device_start(struct kb_device *device, struct kb_error *err);
int kb_device_turn(struct kb_device *device, uint32_t turn, struct kb_error *err);
int kb_device_stop(struct kb_device *device, struct kb_error *err);
int kb_device_consume(struct kb_device *device, unsigned int cpu, uint64_t position,
		      struct kb_error *err);
/*
 * Those of several CPUs, by one call where the module knows that: positions[c] is the position of CPU c,
 * below @nr_cpus, or KBARMAN_NO_POSITION.
 */
int kb_device_consume_each(struct kb_device *device, const uint64_t *positions, unsigned int nr_cpus,
			   struct kb_error *err);
int kb_device_stats(struct kb_device *device, unsigned int cpu, struct kbarman_stats *stats,
		    struct kb_error *err);

/* Number of lost records, the sum of all reasons. */
static inline uint64_t kb_stats_lost(const struct kbarman_stats *stats)
{
	uint64_t lost = 0;

	for (unsigned int i = 0; i < KBARMAN_LOST_REASONS; i++)
		lost += stats->lost[i];
	return lost;
}

/* Read the clocks as they were at the session's start and stop, and as they are now. */
int kb_device_clock(struct kb_device *device, struct kbarman_clock *clock, struct kb_error *err);
/*
 * Add any number of rows. @count is the number of @rows; it becomes the number of rows that
 * were added, also on error.
 */
int kb_device_add_maps(struct kb_device *device, const struct kbarman_map_row *rows,
		       uint32_t *count, struct kb_error *err);

/* Keep @bytes of the kernel's symbols beside the rings. -ENOTTY: the module is older than this call. */
int kb_device_add_symbols(struct kb_device *device, const void *symbols, uint64_t bytes,
			  struct kb_error *err);

/*
 * Create the custom series that @series describes in the running session, and set its number in
 * @series. -ENOSPC: the session has no room for another series.
 */
int kb_device_series(struct kb_device *device, struct kbarman_mark_series *series,
		     struct kb_error *err);

/*
 * List the sessions of all programs, the newest first, to sessions_ptr of @sessions: an array with
 * room for count elements, or 0 for both. count becomes the number of sessions, which may be more.
 * -ENOTTY: the module is older than this call.
 */
int kb_device_sessions(struct kb_device *device, struct kbarman_sessions *sessions,
		       struct kb_error *err);
/*
 * Let the calls above be about the session with number @session from now on, as long as @device
 * owns none; 0: about the newest one. -ENOENT: no such session, -EBUSY: @device owns one.
 */
int kb_device_choose(struct kb_device *device, uint64_t session, struct kb_error *err);

/*
 * Own the session that began when the module was loaded (its parameter `boot`), with number @session, or
 * 0: whichever it is. -ENOENT: there is none, or somebody has it; -EBUSY: @device owns one; -EPERM:
 * @device may not see kernel addresses; -ENOTTY: the module is older than this call.
 */
int kb_device_adopt(struct kb_device *device, uint64_t session, struct kb_error *err);

#define KB_FORMERS	2	/* recordings of before this boot, at most */

/*
 * Ask for, open or release the recording with number @former->number, as @former->flags say, that was in memory that
 * survives a reset before this boot. -ENOENT: there is none, or no more; -EOPNOTSUPP: the module has no such memory.
 */
int kb_device_former(struct kb_device *device, struct kbarman_former *former, struct kb_error *err);

/*
 * The mapped capture of one CPU, with pointers to its parts. Tables grow while a session runs:
 * read the count of a table with acquire order (kb_mapped_count()) before its rows.
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
	const uint8_t *more_tasks;				/* see kb_mapped_task() */
	uint32_t more_bytes, nr_more;
	const struct kbarman_map_tail *tail;	/* whose map it is; NULL: it does not say so, as
						 * before ABI 3 */
};

/*
 * What the task table has no field for, of the row with that index; NULL: the capture does not have
 * it. A row that is used again meanwhile may have another task: the task_id says whose it is.
 */
static inline const struct bm_kbarman_task *kb_mapped_task(const struct kb_mapped *mapped, uint32_t row)
{
	return row < mapped->nr_more ? (const struct bm_kbarman_task *)(const void *)
		(mapped->more_tasks + (size_t)row * mapped->more_bytes) : NULL;
}

/*
 * Map the capture of @cpu of the configured session. kb_mapped_unmap() removes the map. -ESTALE: the
 * session is configured again at this moment.
 */
int kb_device_map(struct kb_device *device, unsigned int cpu, struct kb_mapped *mapped,
		  struct kb_error *err);
void kb_mapped_unmap(struct kb_mapped *mapped);

/*
 * The same view of a copy of such a map. The copy is aligned to 8, stays the caller's and must
 * live as long as the view. -EBADMSG: not a capture with a ring in this machine's word size and
 * byte order.
 */
int kb_mapped_view(struct kb_mapped *mapped, const void *bytes, size_t size,
		   struct kb_error *err);

/* The number of rows of a table at this moment, such as *mapped->nr_tasks, with acquire order. */
static inline uint32_t kb_mapped_count(const __u32 *count)
{
	return __atomic_load_n(count, __ATOMIC_ACQUIRE);
}

/* The string at @offset of the table; NULL if it is not terminated inside the table. */
const char *kb_mapped_string(const struct kb_mapped *mapped, uint32_t offset);

/*
 * Read write_offset and read_offset of a ring, which may be running, with acquire order. @near:
 * a position less than 2 GiB away from the result. Only a 32-bit kernel needs @near: running
 * rings there keep only the low words up to date.
 */
uint64_t kb_mapped_write_offset(const struct kb_mapped *mapped, uint64_t near);
uint64_t kb_mapped_read_offset(const struct kb_mapped *mapped, uint64_t near);

/*
 * Copy the present content of a ring, running or not, to @buffer of ring_bytes. On success
 * [*start, *start + *length) of the buffer are whole blocks, oldest first. -EAGAIN: 16 times
 * the ring was overwritten faster than it could be copied.
 */
int kb_mapped_snapshot(const struct kb_mapped *mapped, void *buffer, size_t *start,
		       size_t *length);

#ifdef __cplusplus
}
#endif

#endif
