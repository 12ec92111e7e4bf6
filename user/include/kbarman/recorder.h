/* SPDX-License-Identifier: MIT */
/*
 * Record a session of /dev/kbarman into one linear Barman v2 capture: the rings of all CPUs
 * merged by time, the tables, and, as strings "kbarman.KEY=VALUE", the facts that the format
 * has no field for (listed in kbarman-record(1)). Call in this order:
 *
 *	kb_device_configure()
 *	kb_recorder_create()
 *	kb_device_start(), kb_kernel_maps_add()
 *	repeatedly, in stream mode whenever poll() reports POLLIN:
 *		kb_recorder_pump()
 *		kb_recorder_sync()
 *	kb_device_stop()
 *	kb_recorder_finish()
 *
 * Functions return 0 or a negative errno and @err.
 */
#ifndef KBARMAN_RECORDER_H
#define KBARMAN_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/device.h>
#include <kbarman/error.h>
#include <kbarman/losses.h>
#include <kbarman/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kb_recorder;

/*
 * Create a recorder for the session that @device has configured and not started yet. The
 * capture is written to @fd, a regular file, from its current position on. @fd and @device stay
 * the caller's. kb_recorder_sync() finds the rings of CPUs that come online later.
 * kb_recorder_destroy() frees the recorder, which may be NULL, and does not finish the file.
 */
int kb_recorder_create(struct kb_recorder **out, struct kb_device *device, int fd,
		       struct kb_error *err);
void kb_recorder_destroy(struct kb_recorder *recorder);

/*
 * Create a recorder with a copy of what the rings hold at this moment. The session is in
 * overwrite mode, may belong to another process and may be running; it goes on. Only
 * kb_recorder_fact() and kb_recorder_finish() are left to do. -EAGAIN: a ring is overwritten
 * faster than it can be copied.
 */
int kb_recorder_freeze(struct kb_recorder **out, struct kb_device *device, int fd,
		       struct kb_error *err);

/*
 * After kb_recorder_freeze(): leave out records from before @ticks. They count as overwritten.
 */
int kb_recorder_since(struct kb_recorder *recorder, uint64_t ticks, struct kb_error *err);

/*
 * After kb_recorder_freeze(): insert a bookmark with @text at @ticks, on @core, as if task @task_id
 * had written it. It counts as inserted.
 */
int kb_recorder_bookmark(struct kb_recorder *recorder, uint64_t ticks, uint32_t core,
			 uint32_t task_id, const char *text, struct kb_error *err);

/*
 * Open what the rings of @device hold at this moment as a trace (kbarman/trace.h), which is a
 * capture of its own: the session goes on, and records that come later are in the next trace. The
 * session is as for kb_recorder_freeze(); so are the errors, beside those of kb_trace_open(). The
 * trace has no side files. It does not need @device any more.
 */
int kb_trace_open_device(struct kb_trace **out, struct kb_device *device,
			 const struct kb_trace_options *options, struct kb_error *err);

/* Add the string "kbarman.KEY=VALUE". */
int kb_recorder_fact(struct kb_recorder *recorder, const char *key, const char *value,
		     struct kb_error *err);

/*
 * In stream mode: write the records of all rings, except those of the last moment, and give
 * their space back to the rings. In overwrite mode this does nothing; kb_recorder_finish()
 * writes all records.
 */
int kb_recorder_pump(struct kb_recorder *recorder, struct kb_error *err);

/*
 * Write everything that was pumped so far, and the tables, to the file. The file is a valid
 * capture afterwards.
 */
int kb_recorder_sync(struct kb_recorder *recorder, struct kb_error *err);

/*
 * Announce inserted records (kb_recorder_annotation(), kb_recorder_value()) that may come up to
 * @late_ms after their time. Call it before the first pump. The recorder holds all other
 * records back for that long, at least 50 ms, unless a ring fills up.
 */
int kb_recorder_expect(struct kb_recorder *recorder, unsigned int late_ms, struct kb_error *err);

/*
 * Leave out the call chains of switches after which the task waits for less than @min_ns, until it
 * runs again on one of the recorded CPUs; the switches stay. The chains cost no unwinding. Records
 * are held back for as long, in 64 MiB at most; beyond that a switch keeps its chain. Call it once,
 * before the first pump, or after kb_recorder_freeze().
 */
int kb_recorder_off_cpu_min(struct kb_recorder *recorder, uint64_t min_ns, struct kb_error *err);

/* What /proc says of a process when the file gets its row. */
#define KB_NOTE_CGROUP	(1U << 0)	/* kbarman.cgroup, kbarman.cgroup_of: its cgroup */
#define KB_NOTE_COMMAND	(1U << 1)	/* kbarman.command: its arguments, 256 bytes at most */
/* ... and of what it waits for, a moment later: the path of a file, the ends of a pipe or a socket */
#define KB_NOTE_OBJECT	(1U << 2)	/* kbarman.object; not in parts of a session */

/*
 * Note @what of each process, KB_NOTE_*; 0: nothing, as without this call. Call it right after the
 * recorder is created. A process that has ended has no notes; in a PID namespace, where /proc has
 * other numbers than the capture, there are none. -EINVAL: unknown bits.
 */
int kb_recorder_note(struct kb_recorder *recorder, uint32_t what, struct kb_error *err);

/*
 * Insert a record that the kernel did not write. @raw_ns (CLOCK_MONOTONIC_RAW) gives its place
 * in the capture. A record that comes later than kb_recorder_expect() announced counts as
 * unordered. A time before the start becomes the start, a time in the future becomes now.
 * @mark: type (not KBARMAN_MARK_COUNTER), channel, group, colour and text_bytes are used;
 * unlike the device, this takes long texts. @core: only the number of an existing CPU is
 * recorded. At most 16 MiB wait to be pumped; beyond that a record is dropped, in overwrite
 * mode the oldest.
 */
int kb_recorder_annotation(struct kb_recorder *recorder, int64_t raw_ns, uint32_t task_id,
			   const struct kbarman_mark *mark, const char *text,
			   struct kb_error *err);
int kb_recorder_value(struct kb_recorder *recorder, int64_t raw_ns, uint32_t core,
		      uint32_t task_id, uint32_t series, uint64_t value, struct kb_error *err);

/*
 * Call it after kb_device_stop(): write the rest and the final header. With @compact the unused
 * rows are removed from the file; a process that is killed meanwhile leaves no valid capture.
 * Without @compact they stay as holes.
 */
int kb_recorder_finish(struct kb_recorder *recorder, bool compact, struct kb_error *err);

/*
 * Call it after a finish without @compact: write the same capture without its unused rows to
 * @fd, an empty regular file. -EFBIG: the data are so large that this is not worth the copy.
 */
int kb_recorder_compact(struct kb_recorder *recorder, int fd, struct kb_error *err);

struct kb_recorder_totals {
	uint64_t records;		/* in the file, inserted ones included */
	uint64_t inserted;		/* records that were inserted */
	uint64_t dropped;		/* inserted records that found no room */
	uint64_t unordered;		/* records older than the previous one in the file */
	uint64_t damaged;		/* how often a part of a ring could not be read */
	uint64_t duration_ns;		/* from start to stop, or from the first record if older
					 * ones were overwritten; set by finish */
	uint64_t missed_rows;		/* tasks, maps and facts that found no room in the file */
	unsigned int nr_cpus;		/* number of CPUs that have a ring */
	bool recycled;			/* after kb_recorder_freeze(): the oldest records may
					 * lack names of ended tasks */
	uint64_t stacks;		/* stacks that were unwound (KBARMAN_CONFIGURE_CHAIN_STACK), */
	uint64_t stacks_whole;		/* those of them that reached the start of their program
					 * or thread */
	uint64_t short_waits;		/* call chains that were left out, see
					 * kb_recorder_off_cpu_min(); set by finish */
	uint64_t whole_since;		/* ticks: from then on no record of any ring is missing because
					 * it was overwritten; set by finish after a freeze */
};

/* Fill @totals with the numbers so far; those of the whole recording after the finish. */
void kb_recorder_totals(const struct kb_recorder *recorder, struct kb_recorder_totals *totals);

/*
 * A session in stream mode as parts: captures in files of their own, one behind the other. Each
 * record is in one part, while the session goes on. A part has all rows that its records need. Its
 * facts "written" and "lost" are about the part, and these say where it belongs:
 *
 *	kbarman.part=NUMBER,SESSION,RAW		NUMBER counts from 1, SESSION and RAW, ns of
 *						CLOCK_MONOTONIC_RAW, are those of the session's start
 *	kbarman.part_begin=RAW,REALTIME		the clocks when the part was begun and ended, in
 *	kbarman.part_end=RAW,REALTIME		ns
 *	kbarman.part_ring.CPU=FROM,TO		the bytes of the ring that the part has: the next
 *						part begins at TO
 *	kbarman.part_lost.CPU.WHY=N		lost records that the parts so far have told of
 *	kbarman.part_written.CPU=N		records that the session has written until then: if it
 *						has stopped, all parts together have so many
 *
 * The program that writes the parts may end, or be killed, at any moment, as long as another
 * process, or the next program, keeps the session's descriptor: records leave a ring only when
 * the file's header tells of them. kb_parts_note() learns from the files of the former program.
 *
 *	kb_parts_create()
 *	for each file of this session that a former program left: kb_parts_note()
 *	for each part:
 *		kb_recorder_create_part()
 *		repeatedly: kb_recorder_pump()
 *		kb_recorder_end_part()
 *
 * A part is written with the calling thread, without waiting for the disk: sync the file before it
 * gets its name.
 */
struct kb_parts;

/* What the parts of the running session of @device have. kb_parts_destroy() takes NULL, too. */
int kb_parts_create(struct kb_parts **out, struct kb_device *device, struct kb_error *err);
void kb_parts_destroy(struct kb_parts *parts);

/*
 * Learn what the capture at @path has, a part that may not have ended. @records: it may have records
 * that are still in the rings. Returns 1; 0: it is no part of this session; or a negative errno
 * and @err. Call it for the newest file that ended, and for each that did not.
 */
int kb_parts_note(struct kb_parts *parts, const char *path, bool records, struct kb_error *err);

/* The number of the next part. */
uint64_t kb_parts_next(const struct kb_parts *parts);

/*
 * Begin a part in the empty file @fd, which stays the caller's. The session runs, or has stopped.
 * The recorder takes kb_recorder_fact(), kb_recorder_pump(), kb_recorder_totals() and what
 * follows. -EINVAL: the session is not in stream mode.
 */
int kb_recorder_create_part(struct kb_recorder **out, struct kb_device *device, int fd,
			    struct kb_parts *parts, struct kb_error *err);

/* Whether the file will soon have no room for more rows: it is time to end the part. */
bool kb_recorder_part_is_full(const struct kb_recorder *recorder);

/* The bytes of the file so far. */
uint64_t kb_recorder_bytes(const struct kb_recorder *recorder);

/*
 * End a part: write what the rings have, all of it if the session has stopped, and the facts. The
 * file is a valid capture then. After an error the part is not told of, and its records that did
 * not get into the file are in the next one.
 */
int kb_recorder_end_part(struct kb_recorder *recorder, struct kb_error *err);

#ifdef __cplusplus
}
#endif

#endif
