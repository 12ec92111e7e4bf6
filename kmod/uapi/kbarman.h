/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * /dev/kbarman: record scheduler switches, PMU overflows and CPU idling of a
 * machine, and map what was recorded as Arm Barman v2 captures.
 *
 * A session
 * ---------
 * open() the device, KBARMAN_CONFIGURE, KBARMAN_START, KBARMAN_STOP. The
 * descriptor that configures owns the session until it is closed; closing it
 * stops the session. One session exists at a time: configure, start, stop and
 * consume on another descriptor fail with EBUSY while the session has an owner.
 * Query, stats, clock, task facts, poll() and mmap() work on every descriptor.
 * What was recorded stays there after the stop, and after the owner has gone: for
 * new maps while any descriptor is open, in a map while there is that map.
 *
 * The map
 * -------
 * CPU c is mapped with
 *
 *	mmap(NULL, query.map_bytes, PROT_READ, MAP_SHARED, fd, c * query.map_stride)
 *
 * with exactly that length and offset (else EINVAL). The map is read-only for
 * good: PROT_WRITE and PROT_EXEC are refused (EPERM, or EACCES where Linux itself
 * does it, as a later mprotect()); it can't be split, moved or grown (EINVAL); it
 * survives fork() and close(), and shows the session it was made of to its end.
 * One whose owner had CAP_SYSLOG when it opened the device has addresses of the
 * kernel in it: a descriptor that was opened without does not map it (EPERM).
 *
 * The mapped bytes of one CPU are a Barman v2 capture (barman_v2.h) with a
 * circular record buffer. The first query.header_bytes bytes are the same
 * physical pages in every CPU's map; struct bm_datastore_header_data stands at
 * query.header_bytes, and the ring of query.ring_bytes, a power of two, right
 * behind it. A stopped ring can be copied as it is.
 *
 * Reading a running ring (the writer never waits, and never looks at a reader):
 *
 *	w0 = load_acquire(write_offset)			pairs with [B] in kmod/ring.c
 *	r0 = load_acquire(read_offset)
 *	if w0 == r0: empty;  if r0 > w0: again
 *	copy the bytes [r0, w0), reduced modulo ring_bytes
 *	read barrier					pairs with [A] in kmod/ring.c
 *	r1 = read_offset
 *	if r1 > w0: again, else [max(r0, r1), w0) is good and starts with a block
 *
 * On a 32-bit kernel the offsets are live in their low word only; the high words
 * are right after a stop.
 *
 * Tables in the header (strings, tasks, maps, PMU) only ever grow while a session
 * runs: a row is complete before the count that covers it. The one exception is
 * overwrite mode, where a row that no record in any ring needs is emptied, and it and
 * its string's place are used again later: query.generation changes when rows are emptied. An empty row has the
 * task id KBARMAN_NO_TASK. Copy the rings, then the tables, and copy both again if
 * query.generation has changed in between.
 *
 * One user can't fill a table: a user other than root gets at most three quarters of
 * what the others leave, of each table. With KBARMAN_CONFIGURE pids, the tasks that are
 * not recorded get a quarter, all together. What finds no row is counted.
 *
 * The name of a mapped file is its path. It is the end of a string that begins with
 * "kbarman.file=MAJOR:MINOR:INODE:SIZE:MTIME:", in decimal: device and inode as in
 * /proc/PID/maps, bytes, and ns since 1970 of the last change. Files of one path, as in
 * containers, so have rows with different image_ptr.
 *
 * Two modes
 * ---------
 * KBARMAN_MODE_OVERWRITE keeps the newest records; what they overwrote is counted,
 * and is not a loss. KBARMAN_MODE_STREAM keeps the oldest: a reader gives space
 * back with KBARMAN_CONSUME, and a record that finds no space is counted as lost.
 *
 * Call chains
 * -----------
 * With KBARMAN_CONFIGURE_CHAIN_USER and _KERNEL samples carry the call chain behind
 * them, and with KBARMAN_CONFIGURE_CHAIN_SWITCH task switches carry that of the task
 * that is switched from: where it went to sleep, or was preempted. struct
 * bm_kbarman_callchain in barman_v2.h says what that looks like. User frames are found by
 * frame pointers, so code must be compiled to keep them. A chain ends at `max_stack`
 * addresses, of the kernel and the user together, innermost first. A session whose
 * owner lacked CAP_SYSLOG when it opened the device gets no kernel frames; in code of
 * the kernel its chains begin with where the user's code went in.
 *
 * Samples without PC
 * ------------------
 * With KBARMAN_CONFIGURE_COUNT_SWITCH the counters of a CPU are read at every task switch, and
 * with `count_ns` periodically. A BM_RECORD_SAMPLE says what they counted since they were last
 * read, by whatever record; that is its task's. At a switch it stands in front of the switch's
 * record. STOP reads them once more. So the values of all samples of a CPU, with PC or without,
 * add up to what its counters have counted. A session with chosen tasks has the records of these
 * only. The capture says "kbarman.counts=switch,NS", or NS alone, which is `count_ns`.
 *
 * poll() reports EPOLLIN when a ring holds `watermark` bytes or more, and
 * EPOLLIN | EPOLLHUP when the session is not running. Who sleeps in it is woken whenever
 * a writer comes to another 4 KiB of its ring, and looks then.
 *
 * Marks
 * -----
 * A descriptor opened O_WRONLY can write marks and do nothing else: annotations,
 * bookmarks, names of channels and groups, values of custom counters. The mode of the
 * device file alone says who may open it so. write() takes one mark or several, each a
 * struct kbarman_mark with its text behind it; they become records in the ring of the
 * CPU that the writer is on, with its thread id and the time of the call. Whoever
 * writes may write, be it one of the tasks that the session records or not; on a CPU
 * that it does not record nothing is written. Nor is it while no session runs, or
 * one without KBARMAN_SOURCE_MARKS: write() succeeds then as always, at once.
 *
 * A program finds out whether anybody records by the word that KBARMAN_MARK_STATE lets
 * it map, and stays with its descriptor from session to session.
 *
 * A user has KBARMAN_MARK_BURST marks for all descriptors without read permission that the
 * user has opened, and gets KBARMAN_MARK_RATE a second again; a mark counts once, and once more
 * for every 64 bytes of its text. What is beyond is lost, and counted as KBARMAN_LOST_RATE. The
 * ring tells of it with a later mark of that user, which pays for that too.
 *
 * Structs
 * -------
 * Every struct starts with its own size, set by the caller. Smaller than the
 * first version: EINVAL. Larger than the kernel knows: accepted if the rest is
 * zero and it is no more than a page, else E2BIG. Reserved fields and unknown
 * flags must be zero, else EINVAL.
 * A 64-bit field named *_ptr holds a user address.
 *
 * Errors of any call
 * ------------------
 *	EBADF	the descriptor was opened without read permission, and the call is none
 *		of KBARMAN_MARK_*
 *	EFAULT	a pointer is bad
 *	EINVAL	an argument is wrong (see the call)
 *	ENOTTY	no such ioctl
 * and of open(), unless it is O_WRONLY:
 *	EPERM	the caller has neither CAP_PERFMON nor CAP_SYS_ADMIN, or kernel
 *		lockdown forbids perf
 */
#ifndef _UAPI_KBARMAN_H
#define _UAPI_KBARMAN_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define KBARMAN_DEVICE		"/dev/kbarman"
#define KBARMAN_ABI		1

#define KBARMAN_CPU_ALL		0xffffffffU
#define KBARMAN_NO_TASK		0xffffffffU	/* whose row is empty */

enum kbarman_mode {
	KBARMAN_MODE_OVERWRITE	= 0,
	KBARMAN_MODE_STREAM	= 1,
};

/* Why a record did not make it; the index into kbarman_stats.lost. */
enum kbarman_loss {
	KBARMAN_LOST_FULL	= 0,	/* stream mode: the ring was full */
	KBARMAN_LOST_NESTED	= 1,	/* overwrite mode: all the space there is was
					 * reserved by the writers it interrupted */
	KBARMAN_LOST_TOO_BIG	= 2,	/* longer than an eighth of the ring */
	KBARMAN_LOST_RATE	= 3,	/* marks beyond their user's rate */
	KBARMAN_LOST_REASONS	= 4,
};

/* Facts that did not get into a table; the index into kbarman_stats.missed. */
enum kbarman_miss {
	/* These three: the table is full, or the user has all that others leave one user. */
	KBARMAN_MISSED_TASK	= 0,	/* task table */
	KBARMAN_MISSED_MAP	= 1,	/* mmap table; or a process has as many rows as it
					 * leaves free */
	KBARMAN_MISSED_STRING	= 2,	/* string table */
	KBARMAN_MISSED_QUEUE	= 3,	/* queue of facts to be completed full, or a process
					 * has as many of its places as it leaves free; or
					 * the stop did not wait */
	KBARMAN_MISSED_MEMORY	= 4,	/* no memory to remember a mapping, or all of what
					 * there is for them taken */
	KBARMAN_MISSED_COUNTER	= 5,	/* a counter could not be read at an overflow;
					 * its value is ~0 in that sample */
	KBARMAN_MISSED_SERIES	= 6,	/* no custom series left for who asked for one */
	KBARMAN_MISS_REASONS	= 7,
};

/*
 * Why a CPU's first counter, the one that samples, stood still; the index into
 * kbarman_stats.stopped. The series "Counters stopped" tells where: its value is the reason + 1
 * from the stop on, and 0 from the next overflow on. The counters of an overflow in between do
 * not cover the same time.
 */
enum kbarman_stop {
	KBARMAN_STOPPED_THROTTLED = 0,	/* it overflowed more often than Linux takes
					 * (kernel.perf_event_max_sample_rate): Linux lets it
					 * count again at a later tick of that CPU */
	KBARMAN_STOPPED_ERROR	= 1,	/* it lost its place on the PMU; looked at every second */
	KBARMAN_STOPPED_OFFLINE	= 2,	/* its CPU went offline */
	KBARMAN_STOP_REASONS	= 3,
};

/*
 * KBARMAN_QUERY: the device and the session.
 * Before the first configure everything from `mode` on is 0. The clock is chosen at configure
 * and again at start: clock_hz and KBARMAN_FEATURE_RAW_CLOCK are of that choice.
 */
#define KBARMAN_FEATURE_PMU		(1U << 0)	/* a hardware PMU is there */
#define KBARMAN_FEATURE_RAW_CLOCK	(1U << 1)	/* timestamps are counter ticks */
#define KBARMAN_FEATURE_MAPS		(1U << 2)	/* new mappings are seen, however
							 * they are made; else only those
							 * there at start, and what the
							 * next one says */
#define KBARMAN_FEATURE_MAPS_MADE	(1U << 5)	/* they are seen, but for those that
							 * mremap(2) moves if the other
							 * one is not set */
#define KBARMAN_FEATURE_CHAIN_USER	(1U << 3)	/* user frames can be followed */
#define KBARMAN_FEATURE_CHAIN_KERNEL	(1U << 4)	/* the kernel's can */
#define KBARMAN_FEATURE_COUNTS		(1U << 6)	/* samples without PC can be had */

#define KBARMAN_STATE_CONFIGURED	(1U << 0)
#define KBARMAN_STATE_RUNNING		(1U << 1)
#define KBARMAN_STATE_OWNED		(1U << 2)	/* by some descriptor */
#define KBARMAN_STATE_MINE		(1U << 3)	/* by this one */
#define KBARMAN_STATE_FALLBACK		(1U << 4)	/* sampled by cpu-clock, as there
							 * is no PMU */
#define KBARMAN_STATE_UNSTEADY		(1U << 5)	/* Linux found out while it ran that
							 * the counter that timestamps are
							 * can't be trusted (x86: TSC) */

struct kbarman_query {
	__u32 size;
	__u32 abi;			/* KBARMAN_ABI */
	__u32 features;			/* KBARMAN_FEATURE_* */
	__u32 state;			/* KBARMAN_STATE_* */
	__u32 page_size;
	__u32 nr_cpus;			/* CPU numbers are below this */
	__u64 clock_hz;			/* nominal rate of the timestamps */
	__u64 min_ring_bytes;
	__u64 max_ring_bytes;
	char pmu_name[32];		/* of the CPU PMU, "" if there is none */
	__u32 mode;			/* enum kbarman_mode */
	__u32 sources;			/* KBARMAN_SOURCE_* */
	__u32 nr_events;
	__u32 generation;		/* of the tables, see above */
	__u64 session;			/* counts the configurations */
	__u64 ring_bytes;		/* of one CPU */
	__u64 header_bytes;		/* offset of struct bm_datastore_header_data */
	__u64 map_bytes;		/* length of one CPU's map */
	__u64 map_stride;		/* from one CPU's map offset to the next */
	__u64 reserved[4];
};

/*
 * KBARMAN_CONFIGURE: allocate the rings and own the session. A configured session
 * that is not running can be configured again by its owner; maps of the former
 * one keep what they show.
 *
 *	EBUSY	another descriptor owns the session, or it is running
 *	ENOMEM	the rings do not fit into memory
 *	ESRCH	no such process in pids
 *	EINVAL	a mode, source, flag, CPU, size or reserved field is wrong
 *	E2BIG	nr_events > 32, nr_pids > 4096, max_series > 4096, or max_stack >
 *		KBARMAN_MAX_STACK or more than fit into a record, which can have an
 *		eighth of the ring
 *	EOPNOTSUPP	call chains that this machine's architecture can't give: those
 *		it can are in query.features
 */
#define KBARMAN_SOURCE_SCHED		(1U << 0)	/* task switches */
#define KBARMAN_SOURCE_IDLE		(1U << 1)	/* halting events */
#define KBARMAN_SOURCE_PMU		(1U << 2)	/* samples: needs nr_events > 0 */
#define KBARMAN_SOURCE_MAPS		(1U << 3)	/* executable mappings */
#define KBARMAN_SOURCE_MARKS		(1U << 4)	/* what programs write */
#define KBARMAN_SOURCE_ALL		0x1fU

#define KBARMAN_CONFIGURE_FREQ		(1U << 0)	/* `sample` is Hz, not a period */
#define KBARMAN_CONFIGURE_FALLBACK	(1U << 1)	/* no PMU: sample by cpu-clock */
#define KBARMAN_CONFIGURE_INHERIT	(1U << 2)	/* children of pids too */
#define KBARMAN_CONFIGURE_CHAIN_USER	(1U << 3)	/* call chains: the user's part, */
#define KBARMAN_CONFIGURE_CHAIN_KERNEL	(1U << 4)	/* the kernel's part, */
#define KBARMAN_CONFIGURE_CHAIN_SWITCH	(1U << 5)	/* of task switches too; goes with
							 * one of the two above */

#define KBARMAN_CONFIGURE_COUNT_SWITCH	(1U << 6)	/* read the counters at task switches */

#define KBARMAN_COUNT_NS_MIN		100000ULL	/* of count_ns */
#define KBARMAN_COUNT_NS_MAX		10000000000ULL

#define KBARMAN_DEFAULT_STACK		127
#define KBARMAN_MAX_STACK		1024

struct kbarman_event {
	__u32 type;			/* enum perf_type_id, or a PMU's type in sysfs */
	__u32 reserved;
	__u64 config;
	__u64 config1;
	__u64 config2;
	char name[64];			/* NUL-terminated; what the capture calls it */
};

struct kbarman_configure {
	__u32 size;
	__u32 flags;			/* KBARMAN_CONFIGURE_* */
	__u32 mode;			/* enum kbarman_mode */
	__u32 sources;			/* KBARMAN_SOURCE_* */
	__u64 ring_bytes;		/* a CPU; rounded up to a power of two; 0 = 1 MiB */
	__u64 watermark;		/* bytes; 0 = a quarter of the ring */
	__u32 max_tasks;		/* rows; 0 = 16384 */
	__u32 max_maps;			/* rows; 0 = 65536 */
	__u32 max_strings;		/* bytes; 0 = 4 MiB; rounded up */
	__u32 nr_cpu_words;		/* of cpus_ptr; 0 = all CPUs */
	__u64 cpus_ptr;			/* bit c % 64 of __u64 [c / 64]: record CPU c */
	__u64 pids_ptr;			/* __u32[]; thread group ids to record */
	__u32 nr_pids;			/* 0 = every task */
	__u32 nr_events;
	__u64 events_ptr;		/* struct kbarman_event[]; the first one samples */
	__u64 sample;			/* period of the first event, or Hz; 0 = it only counts:
					 * only with COUNT_SWITCH or count_ns */
	char target_name[64];		/* NUL-terminated; "" = the host's name */
	__u32 max_stack;		/* addresses of a call chain; 0 = 127; only with
					 * KBARMAN_CONFIGURE_CHAIN_* */
	__u32 max_series;		/* that programs may have made: KBARMAN_MARK_SERIES */
	__u64 count_ns;			/* read the counters each time that so much has passed;
					 * 0 = don't */
	__u64 reserved[2];
};

/*
 * KBARMAN_START: begin to record, with empty rings and tables begun anew: rows of
 * KBARMAN_ADD_MAPS are added behind it. A map made before goes on to show the session.
 *
 *	EBUSY	not the owner, or already running
 *	EINVAL	not configured
 *	ENODEV	no CPU of the session is online
 *	ERANGE	a frequency above kernel.perf_event_max_sample_rate
 * and for the event with index `event` on CPU `cpu`:
 *	ENOENT, EOPNOTSUPP	this PMU has no such event, or there is no PMU
 *	ENOSPC	the PMU can't count it at the same time as those before it
 *	EFAULT	config1 is an address of the caller's, where the PMU, "kprobe" or "uprobe",
 *		would look for a name
 *	others	as perf_event_open(2)
 */
struct kbarman_start {
	__u32 size;
	__u32 flags;			/* 0 */
	__u32 event;			/* out: the event that failed, else ~0 */
	__u32 cpu;			/* out: the CPU it failed on, else ~0 */
	__u64 reserved[2];
};

/*
 * KBARMAN_STOP: stop recording; the argument is 0. When it returns, the rings and
 * tables are complete and still. Stopping a stopped session does nothing.
 *
 *	EBUSY	not the owner
 */

/*
 * KBARMAN_CONSUME: give back a CPU's ring up to `position`, which is a block
 * boundary at or before write_offset.
 *
 *	EBUSY	not the owner
 *	EINVAL	no such CPU, not a block boundary, or not in stream mode
 */
struct kbarman_consume {
	__u32 size;
	__u32 cpu;
	__u64 position;			/* the new read_offset */
	__u64 reserved[2];
};

/*
 * KBARMAN_STATS: what became of the records of one CPU, or of all with
 * KBARMAN_CPU_ALL. On a stopped session every record is accounted for:
 * written = overwritten + consumed + still in the ring, and
 * attempts = written + the sum of lost[].
 *
 *	EINVAL	no such CPU, or not configured
 */
struct kbarman_stats {
	__u32 size;
	__u32 cpu;
	__u64 written;			/* records */
	__u64 overwritten;		/* records; overwrite mode */
	__u64 lost[8];			/* records, by enum kbarman_loss */
	__u64 bytes;			/* written, with length words and padding */
	__u64 missed[8];		/* facts, by enum kbarman_miss; KBARMAN_CPU_ALL */
	__u32 tasks;			/* rows in use */
	__u32 maps;
	__u32 strings;			/* bytes in use */
	__u32 online;			/* CPUs that record */
	__u64 stopped[3];		/* times, by enum kbarman_stop */
	__u64 reserved[1];
};

/*
 * KBARMAN_CLOCK: the timestamps' clock against the system's, at start, at stop,
 * and now. Ticks convert as the header's clock_info says: by the nominal rate before
 * the stop, then by what was measured, as well as a reader with products of 64 bits
 * can use it: to a microsecond within three minutes, at nearly all rates within an
 * hour; next to a rate that is a round number it may be off by
 * t^2 / 36 ns after t seconds, which is 360 us after an hour.
 * The two pairs themselves, which are the facts kbarman.raw_base and kbarman.raw_end
 * of the capture, are exact to a microsecond however long it was.
 * CLOCK_MONOTONIC_RAW stands still while the machine is suspended, the timestamps may go on:
 * the fraction is of the time awake, and kbarman.raw_end as if that clock had gone on, too.
 *
 *	EINVAL	not configured
 */
struct kbarman_clock_pair {
	__u64 timestamp;		/* ticks */
	__u64 raw_ns;			/* CLOCK_MONOTONIC_RAW */
	__u64 monotonic_ns;		/* CLOCK_MONOTONIC */
	__u64 realtime_ns;		/* CLOCK_REALTIME */
};

struct kbarman_clock {
	__u32 size;
	__u32 flags;			/* 0 */
	struct kbarman_clock_pair start;	/* all 0 before the first start */
	struct kbarman_clock_pair stop;		/* all 0 before the first stop */
	struct kbarman_clock_pair now;
	__u64 reserved[4];
};

/*
 * KBARMAN_TASK_FACTS: what Barman has no place for, by row of the task table.
 * Fills at most `count` elements from row `first` on, sets `count` to how many.
 *
 *	EINVAL	not configured
 */
struct kbarman_task_fact {
	__u32 task_id;
	__u32 tgid;			/* thread group (process) id */
	__u64 exit_timestamp;		/* ticks, 0 while the task lives */
};

struct kbarman_task_facts {
	__u32 size;
	__u32 first;
	__u32 count;
	__u32 reserved0;
	__u64 facts_ptr;		/* struct kbarman_task_fact[] */
	__u64 reserved[2];
};

/*
 * KBARMAN_ADD_MAPS: rows for the mmap table that the module can't find by itself:
 * kernel text and modules that were loaded before it. Rows of the kernel have
 * task_id 0 and hold for every task.
 *
 *	EBUSY	not the owner
 *	EINVAL	not configured, more than 4096 rows, or length 0
 *	ENOSPC	the mmap or string table is full; `count` says how many went in
 *	EPERM	a row of the kernel, and the session's owner lacked CAP_SYSLOG when it
 *		opened the device
 */
struct kbarman_map_row {
	__u32 task_id;
	__u32 image_length;		/* bytes at image_ptr, at most 4095 */
	__u64 base_address;
	__u64 length;
	__u64 image_offset;
	__u64 image_ptr;		/* the image's name, without a NUL */
};

struct kbarman_add_maps {
	__u32 size;
	__u32 count;
	__u64 rows_ptr;			/* struct kbarman_map_row[] */
	__u64 reserved[2];
};

/*
 * Marks: what write() takes. One mark is this struct and its text, without a NUL; the
 * next one begins at the next multiple of 8. KBARMAN_MARK_SIZE is the first version's
 * size.
 *
 *	EINVAL	a size is smaller than that or cuts the mark off, a type, series or flag is
 *		unknown, a field that the type does not have is not 0, or there is a NUL in
 *		the text
 *	EMSGSIZE	more text than KBARMAN_MARK_TEXT_MAX
 *	E2BIG	the struct is longer than this kernel knows, and the rest not 0
 * A mark that is refused ends a write() of several at those before it.
 */
#define KBARMAN_MARK_SIZE	40
#define KBARMAN_MARK_TEXT_MAX	4095		/* bytes */
#define KBARMAN_MARK_RATE	20000		/* marks a second and user */
#define KBARMAN_MARK_BURST	20000		/* marks at once */

enum kbarman_mark_type {
	KBARMAN_MARK_STRING	= 0,	/* channel, colour; empty text: the end of the last one */
	KBARMAN_MARK_BOOKMARK	= 1,	/* colour */
	KBARMAN_MARK_CHANNEL	= 2,	/* text is the name of `channel`, of group `group` */
	KBARMAN_MARK_GROUP	= 3,	/* text is the name of `group` */
	KBARMAN_MARK_COUNTER	= 4,	/* series, value; no text */
};

struct kbarman_mark {
	__u32 size;			/* of this struct, without the text */
	__u32 type;			/* enum kbarman_mark_type */
	__u32 text_bytes;
	__u32 channel;
	__u32 group;
	__u32 colour;			/* 0xTTRRGGBB; TT 1 to 4: a colour of the viewer's, 0:
					 * whichever comes next, else RRGGBB */
	__u32 series;			/* as KBARMAN_MARK_SERIES gave it */
	__u32 reserved;
	__u64 value;
};

/*
 * KBARMAN_MARK_STATE: the result is a new descriptor, with close-on-exec set, of which
 * one page can be mapped, PROT_READ and MAP_SHARED: struct kbarman_mark_state. The
 * argument is 0.
 */
struct kbarman_mark_state {
	__u32 size;			/* bytes of this struct that mean something */
	__u32 recording;		/* 0: nobody records marks. Else the number of the
					 * recording, another one for each: names and series
					 * hold for one */
};

/*
 * KBARMAN_MARK_SERIES: the custom series `name` of chart `chart`, made if there is none
 * yet; then how it is shown is as the first one who asked for it wanted. It holds for
 * the recording of which `recording` is the number. Strings are NUL-terminated, and
 * chart and name not empty.
 *
 *	EAGAIN	nobody records marks
 *	EBUSY	more calls than the user's rate allows
 *	EINVAL	a string without end, an unknown class, display or flag
 *	ENOSPC	the session has no more series (max_series), or no room for the names
 */
struct kbarman_mark_series {
	__u32 size;
	__u32 series;			/* out */
	__u32 recording;		/* out */
	__u32 colour;			/* 0x00RRGGBB, or ~0: automatic */
	__u64 multiplier;		/* the bits of an IEEE 754 double */
	__u8 series_class;		/* enum bm_series_class */
	__u8 display;			/* enum bm_series_display */
	__u8 series_composition;	/* of the chart: enum bm_series_composition */
	__u8 rendering_type;		/* of the chart: enum bm_rendering_type */
	__u8 chart_flags;		/* BM_CHART_* */
	__u8 reserved0[7];
	char chart[64];
	char name[64];
	char units[32];
	char description[128];
	__u32 reserved1;
	__u64 reserved[2];
};

#define KBARMAN_QUERY		_IO('k', 0xb0)	/* struct kbarman_query */
#define KBARMAN_CONFIGURE	_IO('k', 0xb1)	/* struct kbarman_configure */
#define KBARMAN_START		_IO('k', 0xb2)	/* struct kbarman_start */
#define KBARMAN_STOP		_IO('k', 0xb3)	/* 0 */
#define KBARMAN_CONSUME		_IO('k', 0xb4)	/* struct kbarman_consume */
#define KBARMAN_STATS		_IO('k', 0xb5)	/* struct kbarman_stats */
#define KBARMAN_CLOCK		_IO('k', 0xb6)	/* struct kbarman_clock */
#define KBARMAN_TASK_FACTS	_IO('k', 0xb7)	/* struct kbarman_task_facts */
#define KBARMAN_ADD_MAPS	_IO('k', 0xb8)	/* struct kbarman_add_maps */

#define KBARMAN_MARK_STATE	_IO('k', 0xb9)	/* 0 */
#define KBARMAN_MARK_SERIES	_IO('k', 0xba)	/* struct kbarman_mark_series */

#endif /* _UAPI_KBARMAN_H */
