/* SPDX-License-Identifier: MIT */
/*
 * From a session of /dev/kbarman to one linear Barman v2 capture: the rings of all
 * CPUs merged by time, the tables, and as strings "kbarman.KEY=VALUE" what the
 * format has no place for (kbarman-record(1) lists them).
 *
 *	kb_device_configure()
 *	kb_recorder_create()
 *	kb_device_start(), kb_kernel_maps_add()
 *	now and then, in stream mode whenever poll() says so:
 *		kb_recorder_pump()
 *		kb_recorder_sync()
 *	kb_device_stop()
 *	kb_recorder_finish()
 */
#ifndef KBARMAN_RECORDER_H
#define KBARMAN_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/device.h>
#include <kbarman/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kb_recorder;

/*
 * For the session that @device has configured and not yet started. The capture goes
 * to @fd, a regular file, from its current position on; @fd stays the caller's.
 * Rings of CPUs that come later are found by kb_recorder_sync().
 */
int kb_recorder_create(struct kb_recorder **out, struct kb_device *device, int fd,
		       struct kb_error *err);
void kb_recorder_destroy(struct kb_recorder *recorder);

/*
 * What the rings of the session in overwrite mode, anybody's and running or not, hold at
 * this moment, for which kb_recorder_fact() and kb_recorder_finish() are left to do. The
 * session goes on. -EAGAIN: a ring goes round faster than it can be copied.
 */
int kb_recorder_freeze(struct kb_recorder **out, struct kb_device *device, int fd,
		       struct kb_error *err);

/* The string "kbarman.KEY=VALUE". */
int kb_recorder_fact(struct kb_recorder *recorder, const char *key, const char *value,
		     struct kb_error *err);

/*
 * Stream mode: write what all rings hold up to a moment ago, and give the space
 * back. In overwrite mode there is nothing to do before the end.
 */
int kb_recorder_pump(struct kb_recorder *recorder, struct kb_error *err);

/* What was pumped so far, and the tables, to the file, which is a capture then. */
int kb_recorder_sync(struct kb_recorder *recorder, struct kb_error *err);

/*
 * Before the first pump: records will be inserted, by those who may be so late. For as
 * long (50 ms at least) all others are held back, unless a ring fills up.
 */
int kb_recorder_expect(struct kb_recorder *recorder, unsigned int late_ms, struct kb_error *err);

/*
 * A record of one who is not the kernel, at @raw_ns of CLOCK_MONOTONIC_RAW, into the
 * capture where its time is: as long as it does not come later than the recorder waits,
 * else it counts as unordered. Times before the start and in the future are taken for the start and now.
 * Of @mark type (not KBARMAN_MARK_COUNTER), channel, group, colour and text_bytes count;
 * unlike the device this takes long texts. Of @core only a CPU's number does. More than
 * 16 MiB that wait to be pumped are dropped, in overwrite mode the oldest.
 */
int kb_recorder_annotation(struct kb_recorder *recorder, int64_t raw_ns, uint32_t task_id,
			   const struct kbarman_mark *mark, const char *text,
			   struct kb_error *err);
int kb_recorder_value(struct kb_recorder *recorder, int64_t raw_ns, uint32_t core,
		      uint32_t task_id, uint32_t series, uint64_t value, struct kb_error *err);

/*
 * After kb_device_stop(): the rest, and the final header. With @compact the header
 * is left without its unused rows, which are holes otherwise; who is killed at that
 * leaves no capture.
 */
int kb_recorder_finish(struct kb_recorder *recorder, bool compact, struct kb_error *err);

/*
 * After a finish without @compact: the same capture without its unused rows to @fd,
 * an empty regular file. Fails, with -EFBIG, if that is not worth the copy.
 */
int kb_recorder_compact(struct kb_recorder *recorder, int fd, struct kb_error *err);

struct kb_recorder_totals {
	uint64_t records;		/* in the file */
	uint64_t inserted;		/* of them, those that the kernel did not write */
	uint64_t dropped;		/* inserted, but there was no room */
	uint64_t unordered;		/* of them, those older than the one before */
	uint64_t damaged;		/* times that a part of a ring could not be read */
	uint64_t duration_ns;		/* start to stop; if older records were overwritten,
					 * from the first record on; known after finish */
	uint64_t missed_rows;		/* tasks, maps and facts that did not fit the file */
	unsigned int nr_cpus;		/* that have a ring */
	bool recycled;			/* frozen: names of tasks that have ended may be
					 * missing for the oldest records */
};

void kb_recorder_totals(const struct kb_recorder *recorder, struct kb_recorder_totals *totals);

/* The names of losses and misses, as in the facts; NULL beyond the last one. */
const char *kb_loss_name(unsigned int loss);	/* enum kbarman_loss */
const char *kb_miss_name(unsigned int miss);	/* enum kbarman_miss */

#ifdef __cplusplus
}
#endif

#endif
