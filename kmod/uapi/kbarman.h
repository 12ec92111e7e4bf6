/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * /dev/kbarman records task switches, PMU samples and CPU idling of a machine. Programs map what
 * was recorded as Arm Barman v2 captures.
 *
 * A session
 * ---------
 * A program opens the device and calls KBARMAN_CONFIGURE, KBARMAN_START and KBARMAN_STOP. The
 * descriptor that configures gets a session of its own, and owns this session until the descriptor
 * is closed, by all processes that have it. Closing it stops the session. Several sessions exist at
 * a time, as many as the module parameter `sessions` says (8 unless set, at most 32). Each has its
 * own mode, sizes, sources and rights, and records what it would record alone.
 *
 * A descriptor sees its own session. Before it has one, it sees the session that KBARMAN_CHOOSE has
 * chosen, and if none is chosen, the one that was configured last. All calls, poll() and mmap() are
 * about the session that the descriptor sees: without one they fail with ENODATA, but for
 * KBARMAN_QUERY, and poll(), which reports what it does of a stopped one; and those that change a
 * session fail with EPERM if the descriptor does not own it.
 *
 * The records stay available after the stop. They stay available after the owner has closed its
 * descriptor, too: in an existing map as long as that map exists; for new maps and calls while a
 * descriptor is open that has no session of its own, and until another session needs the place or
 * the memory. A session that a descriptor has chosen stays, and keeps its place, as long as it is
 * chosen: KBARMAN_CONFIGURE fails with EBUSY where all places are kept.
 *
 * If the module is loaded with the parameter `boot`, a session runs from then on, so from an
 * initramfs before there is any other program. The parameter lists what it records: the sources
 * sched, idle, maps, marks, wake, migrate, irq, softirq, freq, of which "usual" is the first four,
 * "latency" the others; syscalls, faults, block; and "objects", as KBARMAN_CONFIGURE_OBJECTS.
 * `boot_hz` adds samples of the CPU's cycles, or of cpu-clock where there is no PMU, and the word
 * "chains" the call chains that this machine can give. It is a stream, which keeps the oldest
 * records, unless `boot_overwrite` is set; `ring_bytes` is the size of its rings. The session has no
 * owner until a descriptor calls KBARMAN_ADOPT; if none does, it ends with the module.
 *
 * If the module is loaded with the parameter `memory`, it has memory that Linux does not use and that
 * survives a reset: ADDRESS,SIZE, or the NAME of a reserve_mem= or of a node of the device tree's
 * reserved-memory. The session of `boot` records there, and one with KBARMAN_CONFIGURE_RESERVED. After
 * a crash and a new boot KBARMAN_FORMER shows what was recorded there; stamp.h says how it ended.
 *
 * The map
 * -------
 * CPU c is mapped with
 *
 *	mmap(NULL, query.map_bytes, PROT_READ, MAP_SHARED, fd, c * query.map_stride)
 *
 * Any other length or offset fails with EINVAL, and so does a CPU that has no ring: the CPUs that
 * have one are those of query.cpus_ptr. A program of 32 bits is compiled with _FILE_OFFSET_BITS=64,
 * as the offsets of later CPUs need more than 32 bits. The map is read-only, and it stays
 * read-only: PROT_WRITE and PROT_EXEC fail with EPERM, or with EACCES where Linux itself refuses
 * them, as in a later mprotect(). The map can't be split, moved or grown (EINVAL). It survives
 * fork() and close(). It shows the configuration for which it was made until it is unmapped. If the
 * session's owner had CAP_SYSLOG when it opened the device, the map contains kernel addresses. A
 * descriptor that was opened without CAP_SYSLOG can't map such a session (EPERM).
 *
 * The mapped bytes of one CPU are a Barman v2 capture (barman_v2.h) with a circular record buffer.
 * The first query.header_bytes bytes are the same physical pages in the map of every CPU. struct
 * bm_datastore_header_data is at offset query.header_bytes. The ring follows it immediately; the
 * ring has query.ring_bytes bytes, a power of two. The map of a stopped ring can be copied to a
 * file as it is.
 *
 * Behind the ring is a struct kbarman_map_tail, which says whose map it is, and how far the
 * recording is: in a copy of the map, too. Maps of different CPUs belong together if their tails
 * have the same session and recording. While a start empties the rings and the tables, `recording`
 * is odd: a reader reads it before and behind what it copies, and copies again if it has changed or
 * is odd. Nothing in the map of a session that was configured again says so: query.session is
 * another number then. A start empties the counts, too, and the tail keeps those that the recording
 * before it had at its stop.
 *
 * Beacons (beacon.h) say where a map is in the memory of a machine that does not run any more.
 *
 * Reading a running ring (the writer never waits for a reader):
 *
 *	w0 = load_acquire(write_offset)			pairs with [B] in kmod/ring/ring.c
 *	r0 = load_acquire(read_offset)
 *	if w0 == r0: empty;  if r0 > w0: again
 *	copy the bytes [r0, w0), reduced modulo ring_bytes
 *	read barrier					pairs with [A] in kmod/ring/ring.c
 *	r1 = read_offset
 *	if r1 > w0: again, else [max(r0, r1), w0) is good and starts with a block
 *
 * Every block below write_offset is finished. No block wraps: where one would, a block of padding
 * fills the end of the ring, and the block stands at its beginning. The offsets never decrease
 * while the session runs; a start begins again at 0.
 *
 * While the session runs, total_written is stored whenever write_offset comes to another 4096 bytes
 * of the ring. After a stop it is what write_offset is.
 *
 * On a 32-bit kernel only the low word of each offset is updated while the session runs. The high
 * words are correct after a stop. A program of 32 bits on a 64-bit kernel may find the halves of
 * different moments. Both take the low words alone of a running ring, and their difference modulo
 * 2^32: a ring has less than 4 GiB.
 *
 * Tasks and processes have the numbers of the machine, those of the first pid namespace, in records,
 * rows and facts, whoever reads them. In a pid namespace, as of a container, /proc, getpid() and
 * kbarman_configure.pids_ptr have other numbers.
 *
 * The tables in the header (strings, tasks, maps, PMU) only grow while a session runs. A row is
 * complete before the count that covers it is increased. Overwrite mode, and stream mode with
 * KBARMAN_CONFIGURE_REUSE, are the exceptions: they empty rows that no record in any ring needs,
 * and later use these rows and the space of their strings again. An empty row has the task id
 * KBARMAN_NO_TASK. query.generation changes before the first of some rows is emptied. Copy the
 * rings, then the tables, of each table the count before its rows, and the strings behind the rows;
 * and copy all of it again if query.generation has changed in between. A stream's reader copies
 * rows before it gives back the records that need them. In overwrite mode, if the rings need so
 * many rows that new tasks would soon find none, the rings that need most of them drop their oldest
 * records. read_offset then moves as it does when records are overwritten, and the dropped records
 * are counted as overwritten.
 *
 * One user can't fill a table: a user gets at most three quarters of what the other users leave, in
 * each table. User id 0 with CAP_SYS_RESOURCE in the first user namespace has no limit. If the
 * session records some processes only (kbarman_configure.pids_ptr), all tasks that are not recorded
 * get a quarter together. A fact that gets no row is counted.
 *
 * The name of a mapped file is its path when it was mapped, from the root of its file system:
 * without the mount point, because nothing that keeps a mount busy is held. A reader finds the
 * mount point in /proc/PID/mountinfo, by the device and by the root of the mount, with which the
 * path begins. For a deleted file " (deleted)" follows. The path is the end of a string that begins
 * with "kbarman.file=MAJOR:MINOR:INODE:SIZE:MTIME:". All five numbers are decimal: device and inode
 * as in /proc/PID/maps, the size in bytes, and the time of the last change in ns since 1970.
 * Different files of one path, as in containers, therefore have rows with different image_ptr.
 *
 * Of several rows of a task the one with the latest timestamp that is not after a record has the
 * task's name at that record; a record before all of them takes the first one. Of rows of a task
 * with the same timestamp the later one counts.
 *
 * A row of a mapping has the number of its process (thread group), and holds for all threads of the
 * process: the string kbarman.maps=process says so. It is in force from its timestamp on. Where it
 * overlaps older rows of its process it replaces them, and no row says that a mapping ended. Rows of
 * task 0 are everybody's.
 *
 * To which process a task belongs, and when it exited, stands in struct bm_kbarman_tasks
 * (barman_v2.h), which each map has in its header's pages: the string kbarman.tasks=OFFSET says
 * where. The element of a row is complete before the row is, but for the exit, which comes later.
 *
 * Facts
 * -----
 * What Barman has no field for is in the string table, as strings "kbarman.KEY=VALUE", which a
 * reader finds by going from string to string. Besides those that other parts of this text name:
 *
 *	ext=1			records have the extensions that barman_v2.h describes
 *	host, release, machine	as uname(2) has them
 *	raw_base, raw_end	CLOCK_MONOTONIC_RAW at the start, in ns; and at the stop, behind
 *				the timestamp and a comma
 *	states			letters of ps(1), each with a mask of prev_state in hexadecimal,
 *				separated by commas: the first mask whose bits are all set
 *				applies; without one the task was running (R). A task that has
 *				exited is X, also where ftrace calls it Z
 *	callchain, max_stack	"user", "kernel" or "both", then ",stack" and ",switch"; the most
 *				addresses of a chain
 *	fallback		the event with KBARMAN_EVENT_FALLBACK that a CPU counts
 *	objects=1		as KBARMAN_CONFIGURE_OBJECTS
 *	maps=process		a row of a mapping has the number of its process, not those of
 *				its threads
 *	maps_seen		"made": mappings that mremap(2) moves are not seen; "start": no
 *				mapping after the start is
 *	clock_unsteady=1	as KBARMAN_STATE_UNSTEADY
 *	asleep			how often the machine was suspended, and for how many ns
 *
 * Two modes
 * ---------
 * KBARMAN_MODE_OVERWRITE keeps the newest records. Overwritten records are counted, and are not a
 * loss. KBARMAN_MODE_STREAM keeps the oldest records: a reader gives space back with
 * KBARMAN_CONSUME, and a record that finds no space is counted as lost.
 *
 * Losses
 * ------
 * The next record that a CPU writes after a loss has others in front of it: for each reason a value
 * of series 0 ("Lost records"), which is the number of records that were lost, with a struct
 * bm_kbarman_loss (barman_v2.h), which says why and since when; and a bookmark. Both have task_id 0
 * and are about the CPU. From the begin of the gap on it is not known what the CPU did, until a
 * record behind it says so: a task switch, or a sample of a task. KBARMAN_LOST_RATE loses marks of
 * programs and nothing else, its begin may be in front of records that are there, and it is told in
 * the ring in which the user's next mark is written: so only the sums of all CPUs are those of the
 * stats. If a CPU writes nothing after a loss, only kbarman_stats.lost has it.
 *
 * Call chains
 * -----------
 * With KBARMAN_CONFIGURE_CHAIN_USER or KBARMAN_CONFIGURE_CHAIN_KERNEL samples have a call chain
 * behind them. With KBARMAN_CONFIGURE_CHAIN_SWITCH task switches have the call chain of the
 * previous task, which shows where that task began to sleep or was preempted. A record for which no
 * address is found has no chain. struct bm_kbarman_callchain in barman_v2.h describes the layout.
 * User frames are found by frame pointers, so user code must be compiled to keep them. A chain has
 * at most `max_stack` addresses, kernel and user frames together, innermost first. If the session's
 * owner lacked CAP_SYSLOG when it opened the device, chains have no kernel frames. The chain of a
 * sample in kernel code then begins with the user address at which the thread entered the kernel.
 *
 * With KBARMAN_CONFIGURE_CHAIN_STACK, alone or with the others, a chain has the first user frame
 * only, and behind the chain is a sparse stack (struct bm_kbarman_stack): the registers, and the
 * words of the stack from which a reader can find the other frames by the unwind tables of the
 * program. So code need not keep frame pointers. It has the values of these words, which no other
 * chain has. Those that point into code are all there. Of those that point to a word of the stack,
 * programs of 64 bits on x86 and arm64 have the ones that may be saved stack pointers or frame
 * pointers, those on s390x have all, and other programs have all that point above themselves.
 *
 * A sparse stack ends with the stack: that of the program where Linux put the program's arguments,
 * that of a thread where the thread began, and that of signal handlers where sigaltstack(2) says.
 * Where a thread began is known if the session saw it begin. The stack of an older thread ends at
 * its thread pointer, and any other one, such as that of a coroutine, with its mapping: until the
 * worker of KBARMAN_SOURCE_MAPS has looked it up, which takes a sample or two, with the page.
 *
 * Samples without PC
 * ------------------
 * With KBARMAN_CONFIGURE_COUNT_SWITCH the module reads a CPU's counters at every task switch. With
 * `count_ns` it reads them periodically. Each reading is a BM_RECORD_SAMPLE. Its values are what
 * the counters counted since any record last read them, and belong to its task. At a switch the
 * sample stands in front of the switch's record. STOP reads the counters once more. So the values
 * of all samples of a CPU, with PC or without, add up to what the CPU's counters counted. A session
 * with chosen tasks has only their samples. The capture says "kbarman.counts=switch,NS" or
 * "kbarman.counts=NS", where NS is `count_ns`.
 *
 * After the stop the capture of any session with counters has a string
 * "kbarman.counted.CPU.COUNTER=COUNTED,UNRECORDED" for each counter. COUNTED is what Linux says of
 * the counter: its end minus its begin, or the sum of these if the CPU was offline in between.
 * UNRECORDED is how much of it is in no record: in lost records, in tasks that are not recorded, at
 * the end of a session that takes samples by overflows only, or while the CPU went offline. COUNTED
 * minus UNRECORDED is the sum of the values of all samples that the CPU wrote. Values of ~0
 * (KBARMAN_MISSED_COUNTER) are not part of it.
 *
 * Counters
 * --------
 * A session lists events (struct kbarman_event). Each of them is a counter, or, with
 * KBARMAN_EVENT_ELSE, an alternative for the event before it: a CPU counts the first one of these
 * that it accepts, also if it comes online later. It refuses an event by ENOENT, EOPNOTSUPP or
 * ENODEV. All counters of a CPU count at the same time. The events of the first counter may take
 * samples, each in its own way.
 *
 * If a CPU refuses all events of a counter, the start fails. Only if the first of them has
 * KBARMAN_EVENT_OPTIONAL, the CPU goes without this counter. It goes without such a counter as well
 * if it has another one with the name of its first event. This is for CPUs of several kinds, as with
 * big.LITTLE: each counts the events of its PMU, and a name can stand for events of several PMUs.
 *
 * The CPU's entry in the PMU table, and the strings "kbarman.counter.CPU.COUNTER=NAME", have what it
 * counts. For each optional counter whose first event's name it does not count there is a string
 * "kbarman.uncounted.CPU.EVENT=NAME", where EVENT is the place of this event in the list. If the
 * first event of the list takes samples, a CPU that counts and takes none has a string
 * "kbarman.unsampled.CPU.0=NAME" with the name of that event.
 *
 * Turns
 * -----
 * More events than the PMU can count at the same time can take turns, if the session reads the
 * counters at switches (KBARMAN_CONFIGURE_COUNT_SWITCH). Events with the same number in
 * kbarman_event.turn count together, on all CPUs, from one KBARMAN_TURN with this number to the next
 * KBARMAN_TURN. Before the first one none of them counts. Events with turn 0, as what takes samples,
 * count all the time. A start tries whether each turn finds its place on the PMU.
 *
 * When and whose the turns are is the owner's business: an order and lengths that nobody can foresee
 * keep what happens periodically from staying with one turn. If the owner gives no more turns, the
 * last one goes on. After the stop the capture has a string "kbarman.turned=TURNS,TIMESTAMP": how
 * many turns there were, and when the last one began.
 *
 * The strings "kbarman.turn.CPU.COUNTER=TURN" have the counters that take turns, and their turns.
 * While a counter rests its values are ~0, which is no failure here. A turn begins and
 * ends with a sample without PC: in the samples behind the first one up to the last one the values
 * are what was counted since the sample before. What was counted beside these samples is in none.
 *
 * Wakeups, migrations, interrupts, softirqs, frequencies, system calls, faults and block requests
 * -----------------------------------------------------------------------------------------------
 * The sources of KBARMAN_SOURCE_DETAILS are off unless they are asked for. Each of their records is
 * a value of one of the module's own series. Behind the value is a struct bm_kbarman_detail
 * (barman_v2.h), which says what happened, and to whom. The record is in the ring of the CPU on
 * which it happened: the CPU that woke a task, that moved a task, that set the frequency of a CPU.
 * Its task_id is the task that ran there. The capture names the sources that it has, as in
 * "kbarman.sources=wake,migrate,irq,softirq,freq,syscalls,faults,block". The series of the others
 * have rows without names.
 *
 * If processes are chosen (kbarman_configure.pids_ptr), a wakeup is recorded if one of their
 * threads is woken, or runs on the CPU that wakes. A migration is recorded if one of their threads
 * is moved. Interrupts, softirqs, frequencies and idle states are recorded whoever runs: what they
 * do to a chosen thread may begin while another one runs.
 *
 * On each CPU, entries and exits of interrupts pair, and so do those of softirqs. Pairs nest: an
 * interrupt comes in the middle of a softirq, and on arm64 the entry and exit of an IPI stand
 * between those of its handler. What is under way when a CPU begins to be recorded, at the start or
 * when it has come online, has an exit and no entry, and so it may be at the begin of a ring that
 * was overwritten. What is under way when the recording of a CPU ends has an entry and no exit.
 * Lost records are missing on top of that. On PREEMPT_RT a softirq runs in a task, which may be
 * preempted, even by a task that runs softirqs itself: then task switches stand between its entry
 * and its exit. The two are in the same ring, and softirqs pair in each task.
 *
 * The frequency of a CPU is recorded when it is set, and once when the CPU begins to be recorded,
 * if Linux knows it then. Linux tells of idle states that did not pay from 6.1 on. Of interrupts
 * that are not in Linux's table, such as IPIs, x86 and arm tell.
 *
 * A system call is recorded when it ends, in the ring of the CPU on which it ends, of the chosen threads
 * if processes are chosen: struct bm_kbarman_syscall. exit(2), exit_group(2) and a rt_sigreturn(2) do not
 * end as such. While a session records system calls, all calls of all tasks of the machine take Linux's
 * slower way in and out. When each task went into its call is in one table for 65,536 tasks: where two
 * tasks have one place, calls may have no begin.
 *
 * A page fault is recorded when it ends, in the ring of the CPU on which it ends, of the chosen threads if
 * processes are chosen: struct bm_kbarman_fault. These are the faults that perf counts: those in which a task
 * wants a page for itself. Faults that are under way are in one table for 16,384 tasks: where two tasks have one
 * place, faults may have no begin, and those that bring no page no record. While a session records faults, those
 * of all tasks of the machine are told to events of perf.
 *
 * A request to a block device is recorded when it ends, in the ring of the CPU that ends it, if a chosen thread
 * gave it to Linux's queue, or if all are recorded: struct bm_kbarman_block. Requests that are under way are in
 * a table with room for 4,096; beyond that requests have neither begin nor task, and are recorded only if no
 * processes are chosen.
 *
 * poll()
 * ------
 * poll() reports EPOLLIN when a ring holds `watermark` bytes, or seven eighths of its size, or
 * more, and EPOLLIN | EPOLLHUP when the session is not running. A writer that
 * reaches another 4 KiB of its ring tells pollers that may have waited for it.
 *
 * A descriptor that does not own the session, and has told by KBARMAN_CONSUME how far it has read,
 * waits for `watermark` bytes behind that position of a CPU. The positions of CPUs of which it has
 * told nothing are 0. They are those of one recording: in another one all are 0, and poll() reports
 * EPOLLIN until it tells one there. Once it has told that it has done with a recording, it waits for
 * the next start or configure.
 *
 * Marks
 * -----
 * A descriptor opened O_WRONLY can write marks and do nothing else. Marks are annotations,
 * bookmarks, names of channels and groups, and values of custom counters. Only the mode of the
 * device file decides who may open the device O_WRONLY. write() takes one mark or several; each
 * mark is a struct kbarman_mark with its text behind it. A mark becomes a record in the ring of the
 * CPU on which the writer runs, with the writer's thread id and the time of the call. The writer
 * need not be a task that the session records. write() succeeds and records nothing on a CPU that
 * the session does not record, while no session runs, and in a session without
 * KBARMAN_SOURCE_MARKS.
 *
 * A mark goes to every running session with KBARMAN_SOURCE_MARKS. A custom series has a number for
 * all of them, which is not a row of any session's table. Only on a descriptor that has a session
 * of its own is it otherwise: its marks and its series are those of this session alone, and the
 * number of a series is the row.
 *
 * KBARMAN_MARK_STATE lets a program map a word that says whether somebody records marks. The word
 * changes when another session begins to record them, too: a session does not know the names that
 * were written before it began. The program can keep its descriptor from session to session.
 *
 * All descriptors without read permission that one user has opened share one rate. The user can
 * write KBARMAN_MARK_BURST marks at once, and gets KBARMAN_MARK_RATE marks a second back. A mark
 * counts once, and once more for every 64 bytes of its text. Marks beyond the rate are lost and
 * counted as KBARMAN_LOST_RATE in every session that would have recorded them. A later mark of the
 * same user brings records of this loss into the rings, which are charged to the user's rate too.
 *
 * Structs
 * -------
 * A struct that a call takes begins with its size. The caller sets it before each call to
 * sizeof(struct), which is also the size that the call's number has. The kernel sets it to the size
 * that it knows, if the call answers (_IOWR). Elements of an array of structs have one size, which
 * stands beside the array's pointer and goes the same two ways. What is in a struct inside of
 * another one, or between two sizes, never moves.
 *
 * Structs grow at their ends. The caller's struct may be the longer one: then the bytes that the
 * kernel does not know must be zero; otherwise the call fails with E2BIG. Or the caller's is the
 * shorter one: then what is missing counts as zero, and the kernel answers as many bytes as there
 * are. No size is below the first one, KBARMAN_..._SIZE_VER0. Zero always means what was so before
 * a field was there. Flags that the kernel does not know must be zero, and so must fields named
 * reserved. A 64-bit field named *_ptr holds a user address. A program of 32 bits passes the same
 * structs as one of 64.
 *
 * If a call fails, what it answers is written all the same as far as it is known, as
 * kbarman_start.cpu is.
 *
 * Versions
 * --------
 * KBARMAN_ABI changes only if a program has to change. KBARMAN_GET_ABI asks any module for its
 * number; the calls of one version are ENOTTY in another one, but for KBARMAN_GET_ABI, KBARMAN_STOP
 * and KBARMAN_MARK_STATE, which take no struct. What is new without that has a bit in
 * kbarman_query.features, or is a field that is not zero.
 *
 * Errors of any call
 * ------------------
 *	E2BIG	bytes or elements that this kernel does not know are not zero, or there are too
 *		many elements
 *	EBADF	the descriptor was opened without read permission, and the call is not
 *		one of KBARMAN_MARK_*
 *	EFAULT	a pointer is bad
 *	EINVAL	an argument is wrong (see the call), or a size
 *	ENODATA	no session is configured
 *	ESTALE	the session that was chosen with KBARMAN_CHOOSE_ONLY is configured again, and
 *		KBARMAN_QUERY answers all the same, `session` of what has come in its place; or
 *		KBARMAN_CONSUME is about a former recording
 *	ENOTTY	no such ioctl, or its number has another direction
 *	EPERM	the session is another descriptor's, or nobody's any more
 * open() without O_WRONLY also fails with:
 *	EPERM	the caller has neither CAP_PERFMON nor CAP_SYS_ADMIN, or kernel
 *		lockdown forbids perf
 */
#ifndef _UAPI_KBARMAN_H
#define _UAPI_KBARMAN_H

#include <linux/ioctl.h>
#include <linux/perf_event.h>
#include <linux/types.h>

#define KBARMAN_DEVICE		"/dev/kbarman"
#define KBARMAN_ABI		3

/*
 * KBARMAN_GET_ABI: the number of the module's ABI goes to `abi`, whatever the number is; nothing
 * else is written. `size` is KBARMAN_GET_ABI_SIZE, and all behind `abi` is zero: to a module of ABI
 * 2 this is a query, which it answers in all these bytes.
 */
#define KBARMAN_GET_ABI		_IO('k', 0xb0)	/* struct kbarman_get_abi */
#define KBARMAN_GET_ABI_SIZE	168

struct kbarman_get_abi {
	__u32 size;
	__u32 abi;
	__u64 zero[20];
};

#define KBARMAN_CPU_ALL		0xffffffffU
#define KBARMAN_NO_TASK		0xffffffffU	/* task_id of an empty row */

enum kbarman_mode {
	KBARMAN_MODE_OVERWRITE	= 0,
	KBARMAN_MODE_STREAM	= 1,
};

/* Why a record was lost. The index into kbarman_stats.lost. */
enum kbarman_loss {
	KBARMAN_LOST_FULL	= 0,	/* stream mode: the ring was full */
	KBARMAN_LOST_NESTED	= 1,	/* overwrite mode: the writers that this one interrupted had
					 * reserved all space */
	KBARMAN_LOST_TOO_BIG	= 2,	/* longer than an eighth of the ring */
	KBARMAN_LOST_RATE	= 3,	/* marks beyond the rate of their user */
	KBARMAN_LOST_REASONS	= 4,
};

/* Facts that did not get into a table. The index into kbarman_stats.missed. */
enum kbarman_miss {
	/*
	 * The next three: the table is full, or the user has used up what the others leave one
	 * user.
	 */
	KBARMAN_MISSED_TASK	= 0,	/* task table */
	KBARMAN_MISSED_MAP	= 1,	/* mmap table; also: a process has as many rows as are still
					 * free */
	KBARMAN_MISSED_STRING	= 2,	/* string table */
	KBARMAN_MISSED_QUEUE	= 3,	/* the queue of facts to complete is full, or the process
					 * has as many places in it as are still free, a stop
					 * ended the work on them, or the process ended before
					 * the module could look at its mappings */
	KBARMAN_MISSED_MEMORY	= 4,	/* no memory to remember a mapping, or the limit of memory
					 * for mappings is reached */
	KBARMAN_MISSED_COUNTER	= 5,	/* a counter could not be read at an overflow; the value in
					 * that sample is ~0 */
	KBARMAN_MISSED_SERIES	= 6,	/* no custom series left for a caller that asked for one, or
					 * a value of a series that got none in this session */
	KBARMAN_MISS_REASONS	= 7,
};

/*
 * Why the first counter of a CPU, the one that samples, stopped counting. The index into
 * kbarman_stats.stopped. The series "Counters stopped" shows when: its value is the reason + 1 from
 * the stop on, and 0 from the next overflow on. The counters of an overflow during the stop do not
 * cover the same time as the first counter.
 *
 * A CPU that goes offline has the value KBARMAN_STOPPED_OFFLINE + 1 in any session, also without
 * counters, and records nothing from then on. When it comes back it begins as at the start, and
 * has, without counters, the value 0.
 */
enum kbarman_stop {
	KBARMAN_STOPPED_THROTTLED = 0,	/* it overflowed more often than
					 * kernel.perf_event_max_sample_rate allows; Linux lets it
					 * count again at a later tick of its CPU */
	KBARMAN_STOPPED_ERROR	= 1,	/* it lost its place on the PMU; the module checks this
					 * every second */
	KBARMAN_STOPPED_OFFLINE	= 2,	/* its CPU went offline */
	KBARMAN_STOP_REASONS	= 3,
};

/*
 * KBARMAN_QUERY: the device and the session. While no session is configured, `mode` and all fields
 * behind it are 0, except `absent`. The clock is chosen at configure and again at start, if no
 * session is running then: all running sessions have one clock. clock_hz and
 * KBARMAN_FEATURE_RAW_CLOCK describe the last choice.
 */
#define KBARMAN_FEATURE_PMU		(1U << 0)	/* the CPUs have a hardware PMU */
#define KBARMAN_FEATURE_RAW_CLOCK	(1U << 1)	/* timestamps are counter ticks */
#define KBARMAN_FEATURE_MAPS		(1U << 2)	/* all new mappings are seen; without it:
							 * only those that existed at start, and
							 * those that KBARMAN_FEATURE_MAPS_MADE
							 * describes */
#define KBARMAN_FEATURE_MAPS_MADE	(1U << 5)	/* new mappings are seen; without
							 * KBARMAN_FEATURE_MAPS: not those that
							 * mremap(2) moves. That the module
							 * knows this kernel's mremap(2) shows
							 * at the first one of a session. Both
							 * are looked at anew at each start and
							 * stop: kernel.ftrace_enabled and
							 * kprobes/enabled switch kprobes off */
#define KBARMAN_FEATURE_CHAIN_USER	(1U << 3)	/* call chains can have user frames */
#define KBARMAN_FEATURE_CHAIN_KERNEL	(1U << 4)	/* call chains can have kernel frames */
#define KBARMAN_FEATURE_COUNTS		(1U << 6)	/* the module writes samples without PC */
#define KBARMAN_FEATURE_CHAIN_STACK	(1U << 7)	/* call chains can have sparse stacks */
#define KBARMAN_FEATURE_DETAILS		(1U << 8)	/* the module knows the sources of
							 * KBARMAN_SOURCE_DETAILS; those that this
							 * kernel can't give are in query.absent */
#define KBARMAN_FEATURE_TURNS		(1U << 9)	/* events can take turns */
#define KBARMAN_FEATURE_BOOT		(1U << 10)	/* the module knows KBARMAN_ADOPT */
#define KBARMAN_FEATURE_REUSE		(1U << 11)	/* ... and KBARMAN_CONFIGURE_REUSE */
#define KBARMAN_FEATURE_EACH		(1U << 12)	/* ... and KBARMAN_CONSUME and KBARMAN_STATS of
							 * several CPUs, and of observers */

#define KBARMAN_FEATURE_OBJECTS		(1U << 13)	/* task switches can say what the task waits
							 * for */
#define KBARMAN_FEATURE_RESERVED	(1U << 14)	/* the module has memory that survives a reset */

#define KBARMAN_STATE_CONFIGURED	(1U << 0)
#define KBARMAN_STATE_RUNNING		(1U << 1)
#define KBARMAN_STATE_OWNED		(1U << 2)	/* a descriptor owns the session */
#define KBARMAN_STATE_MINE		(1U << 3)	/* this descriptor owns the session */
#define KBARMAN_STATE_FALLBACK		(1U << 4)	/* a CPU counts an event with
							 * KBARMAN_EVENT_FALLBACK */
#define KBARMAN_STATE_UNSTEADY		(1U << 5)	/* Linux found during the session that the
							 * counter behind the timestamps can't be
							 * trusted (x86: TSC) */

/* The module did not find in this kernel what tells of tasks: nothing can be recorded. */
#define KBARMAN_ABSENT_TASKS		(1U << 31)

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
	__u32 generation;		/* of the tables, see "The map" */
	__u64 session;			/* number of this configuration, among those of all sessions
					 * since the module was loaded; the first one is 1 */
	__u64 ring_bytes;		/* of one CPU */
	__u64 header_bytes;		/* offset of struct bm_datastore_header_data */
	__u64 map_bytes;		/* length of one CPU's map */
	__u64 map_stride;		/* from one CPU's map offset to the next */
	__u32 absent;			/* KBARMAN_SOURCE_* that this kernel can't give, or
					 * KBARMAN_ABSENT_TASKS */
	__u32 word_bytes;		/* of a word in the capture: 4 or 8 */
	__u64 recording;		/* changes with each start: twice; odd while a start empties
					 * the rings and the tables; 0: never started since this
					 * configure */
	__u64 cpus_ptr;			/* in: room for __u64[], or 0. Bit c % 64 of [c / 64]: CPU c
					 * can be mapped */
	__u32 nr_cpu_words;		/* in: how many there is room for; out: how many there are */
	__u32 reserved;
};

#define KBARMAN_QUERY_SIZE_VER0		168

/* Of one CPU, as kbarman_stats has them. */
struct kbarman_map_counts {
	__u64 written;
	__u64 overwritten;
	__u64 lost[8];
};

/* What a map has behind its ring. Fields of the same names are those of kbarman_query. */
struct kbarman_map_tail {
	__u32 size;			/* bytes that the kernel knows of this struct */
	__u32 abi;
	__u32 cpu;
	__u32 word_bytes;
	__u64 session;
	__u64 recording;
	__u32 generation;
	__u32 state;			/* KBARMAN_STATE_CONFIGURED, _RUNNING and _UNSTEADY */
	struct kbarman_map_counts counts;	/* at the stop, and before it at the last
						 * KBARMAN_STATS of the CPU or of all */
	struct kbarman_map_counts former;	/* of the recording before this one, at its stop */
};

#define KBARMAN_MAP_TAIL_SIZE_VER0	120

/*
 * KBARMAN_CONFIGURE: allocate the rings and own a session. The owner can configure its session
 * again while it is not running. Maps of the former configuration keep what they show. A call that
 * fails leaves the session as it was, whatever the error is; both are in memory for a moment. Calls
 * on the session do not wait for a configure of it. If a field is refused, bad_offset says which
 * one.
 *
 * The memory is charged to the memory cgroup of the caller, from Linux 5.11 on. That of a CPU that
 * comes online while the session runs is charged to nobody.
 *
 *	EBUSY	there are as many sessions as there may be (module parameter `sessions`), or
 *		the descriptor's own session is running
 *	EADDRINUSE	KBARMAN_CONFIGURE_RESERVED: others have the memory: sessions that run or are chosen,
 *		maps, or descriptors of KBARMAN_FORMER
 *	ENOMEM	the rings and tables do not fit into memory, of which others have been promised
 *		a part, or into the caller's memory cgroup
 *	EDQUOT	all sessions of the user who opened the descriptor, and their maps, would
 *		take more memory than those of one user may (module parameter `user_mib`;
 *		three quarters of the machine's memory unless set)
 *	ESRCH	no such process in pids_ptr: bad_index is the place of the first one
 *	EINVAL	a field has a wrong value, or one that does not go with others, or asks for what
 *		is not there without the other: no source at all; KBARMAN_CONFIGURE_INHERIT
 *		without processes; KBARMAN_CONFIGURE_CHAIN_* without samples and without
 *		CHAIN_SWITCH; max_series without KBARMAN_SOURCE_MARKS; a watermark above the ring
 *	E2BIG	more than KBARMAN_EVENTS_MAX events or 32 counters, an event or a
 *		perf_event_attr with what this kernel does not know, nr_pids > 4096,
 *		max_series > 4096, max_stack > KBARMAN_MAX_STACK, or a sample with max_stack
 *		addresses is longer than a record may be, which is an eighth of the ring
 *	ENOSPC	KBARMAN_CONFIGURE_RESERVED: the tables and rings do not fit into a half of the memory
 *	EOPNOTSUPP	this machine can't give objects or such call chains, and query.features says
 *		which ones it can; or query.absent says that it can't give a source, or tasks; or
 *		there is no memory for KBARMAN_CONFIGURE_RESERVED
 */
#define KBARMAN_SOURCE_SCHED		(1U << 0)	/* task switches */
#define KBARMAN_SOURCE_IDLE		(1U << 1)	/* halting events */
#define KBARMAN_SOURCE_PMU		(1U << 2)	/* samples: needs nr_events > 0 */
#define KBARMAN_SOURCE_MAPS		(1U << 3)	/* executable mappings of processes that
							 * have samples or chains */
#define KBARMAN_SOURCE_MARKS		(1U << 4)	/* marks that programs write */
/* Off unless asked for; their records are values of series of kbarman's own, barman_v2.h. */
#define KBARMAN_SOURCE_WAKE		(1U << 5)	/* who woke whom */
#define KBARMAN_SOURCE_MIGRATE		(1U << 6)	/* tasks that go to another CPU */
#define KBARMAN_SOURCE_IRQ		(1U << 7)	/* handlers of interrupts, and IPIs */
#define KBARMAN_SOURCE_SOFTIRQ		(1U << 8)	/* softirqs */
#define KBARMAN_SOURCE_FREQ		(1U << 9)	/* frequencies, and idle states that did
							 * not pay */
#define KBARMAN_SOURCE_LATENCY		0x3e0U		/* these five: why a task ran when it did */
#define KBARMAN_SOURCE_SYSCALLS		(1U << 10)	/* system calls */
#define KBARMAN_SOURCE_FAULTS		(1U << 11)	/* page faults */
#define KBARMAN_SOURCE_BLOCK		(1U << 12)	/* requests to block devices */
#define KBARMAN_SOURCE_DETAILS		0x1fe0U		/* these eight */
#define KBARMAN_SOURCE_ALL		0x1fffU

#define KBARMAN_CONFIGURE_INHERIT	(1U << 2)	/* record children of the processes too */
#define KBARMAN_CONFIGURE_CHAIN_USER	(1U << 3)	/* call chains with user frames */
#define KBARMAN_CONFIGURE_CHAIN_KERNEL	(1U << 4)	/* call chains with kernel frames */
#define KBARMAN_CONFIGURE_CHAIN_SWITCH	(1U << 5)	/* call chains of task switches too; needs
							 * CHAIN_USER, CHAIN_KERNEL or
							 * CHAIN_STACK, and
							 * KBARMAN_SOURCE_SCHED */
#define KBARMAN_CONFIGURE_COUNT_SWITCH	(1U << 6)	/* read the counters at task switches */
#define KBARMAN_CONFIGURE_CHAIN_STACK	(1U << 7)	/* call chains with sparse stacks in place
							 * of user frames, be these asked for
							 * or not */
#define KBARMAN_CONFIGURE_REUSE		(1U << 9)	/* only in stream mode: rows that no record
							 * in any ring needs are used again; who
							 * reads copies rows before it gives back
							 * the records that need them */
#define KBARMAN_CONFIGURE_OBJECTS	(1U << 10)	/* a task that blocks says what it waits for:
							 * struct bm_kbarman_object in barman_v2.h;
							 * needs KBARMAN_SOURCE_SCHED */
#define KBARMAN_CONFIGURE_RESERVED	(1U << 11)	/* record into memory that survives a reset; the
							 * user is not charged for that. ring_bytes 0:
							 * as much as fits beside KBARMAN_ADD_SYMBOLS, for
							 * which an eighth of a half is left, or as many
							 * bytes as there may be */
#define KBARMAN_CONFIGURE_ALL		0xefcU

#define KBARMAN_TASKS_MIN		4		/* of max_tasks */
#define KBARMAN_COUNT_NS_MIN		100000ULL	/* of count_ns */
#define KBARMAN_COUNT_NS_MAX		10000000000ULL

#define KBARMAN_DEFAULT_STACK		127
#define KBARMAN_MAX_STACK		1024
#define KBARMAN_DEFAULT_STACK_BYTES	65536
#define KBARMAN_MAX_STACK_BYTES		(1U << 20)

#define KBARMAN_EVENTS_MAX		256
#define KBARMAN_TURNS_MAX		32
#define KBARMAN_ATTR_BYTES		256

#define KBARMAN_EVENT_ELSE		(1U << 0)	/* an alternative for the event before it */
#define KBARMAN_EVENT_OPTIONAL		(1U << 1)	/* of a counter's first event: a CPU that
							 * accepts none of its events goes without */
#define KBARMAN_EVENT_FALLBACK		(1U << 2)	/* if a CPU counts it, the query and the
							 * capture say so */

/*
 * An event. `attr` has room to grow. It is as long as its own size says (0: PERF_ATTR_SIZE_VER0),
 * and what is behind it is 0.
 *
 * Of `attr` these are taken, with the meaning of perf_event_open(2): type; config to config4, as far
 * as this kernel has them; exclude_user, exclude_kernel, exclude_hv, exclude_idle, exclude_host and
 * exclude_guest; and of the first counter's events sample_period, or freq and sample_freq, and
 * precise_ip. A session with events takes samples, or reads its counters (COUNT_SWITCH, count_ns).
 * exclude_guest is given up where the PMU can't leave guests out.
 *
 *	EINVAL	anything else is not 0; or a name is empty or has no NUL; or an event that takes
 *		samples has a turn; or a flag, a size or a turn is wrong
 *	E2BIG	`attr` has what this kernel does not know, or a size that it can't have
 */
struct kbarman_event {
	char name[64];			/* NUL-terminated; the counter's name in the capture */
	__u32 flags;			/* KBARMAN_EVENT_* */
	__u32 turn;			/* in which it counts, from 1 to KBARMAN_TURNS_MAX; 0 = it
					 * counts all the time */
	union {
		struct perf_event_attr attr;
		__u8 attr_bytes[KBARMAN_ATTR_BYTES];
	};
};

#define KBARMAN_EVENT_SIZE_VER0		328

struct kbarman_configure {
	__u32 size;
	__u32 flags;			/* KBARMAN_CONFIGURE_* */
	__u32 mode;			/* enum kbarman_mode */
	__u32 sources;			/* KBARMAN_SOURCE_* */
	__u64 ring_bytes;		/* of each CPU, at least query.min_ring_bytes; rounded up to
					 * a power of two; 0 = 1 MiB */
	__u64 watermark;		/* bytes, for poll(), at most ring_bytes; 0 = a quarter
					 * of the ring */
	__u32 max_tasks;		/* rows, at least 4; 0 = 16384, or 16 a CPU if that is more */
	__u32 max_maps;			/* rows; 0 = 65536 */
	__u32 max_strings;		/* bytes; 0 = 4 MiB; rounded up */
	__u32 nr_cpu_words;		/* number of __u64 at cpus_ptr; 0 = all CPUs */
	__u64 cpus_ptr;			/* bit c % 64 of __u64 [c / 64]: record CPU c */
	__u64 pids_ptr;			/* __u32[]; thread group ids of the processes to record, as
					 * the caller's pid namespace numbers them */
	__u32 nr_pids;			/* 0 = every task; otherwise a switch is recorded if it is
					 * from or to a task of these: behind one to another task
					 * it is not known who runs */
	__u32 nr_events;
	__u64 events_ptr;		/* struct kbarman_event[]: see "Counters"; event_bytes is
					 * the size of one */
	char target_name[64];		/* NUL-terminated; "" = the host's name */
	__u32 max_stack;		/* most addresses of a call chain; 0 = 127; only with
					 * KBARMAN_CONFIGURE_CHAIN_* */
	__u32 max_series;		/* that programs may create with KBARMAN_MARK_SERIES */
	__u64 count_ns;			/* ns between two readings of the counters; 0 = no periodic
					 * readings */
	__u32 stack_bytes;		/* most bytes of a stack that are looked at; 0 = 64 KiB;
					 * only with KBARMAN_CONFIGURE_CHAIN_STACK */
	__u32 event_bytes;		/* of one of the events */
	__u32 stack_ns;			/* how long the scan of a sample's stack takes, which is
					 * cut if it were longer; 0 = as long as it does; only with
					 * KBARMAN_CONFIGURE_CHAIN_STACK */
	__u32 bad_offset;		/* out: of the field of this struct that is refused, else 0 */
	__u32 bad_index;		/* out: of the element that is refused, if it is an array's;
					 * of cpus_ptr the CPU; else 0 */
	__u32 bad_member;		/* out: offset of what is refused in that element, else 0;
					 * the kernel's size of one: it has more than that */
};

#define KBARMAN_CONFIGURE_SIZE_VER0	184

/*
 * KBARMAN_START: begin to record. The rings and the tables are emptied, so rows of KBARMAN_ADD_MAPS
 * must be added after the start. A map that was made before the start shows the new recording. A
 * start that fails leaves the former recording as it was, whatever the error is. A CPU that comes
 * online during the call is recorded, too.
 *
 *	EBUSY	already running
 *	ENODEV	no CPU of the session is online
 *	ENOMEM	no memory; `cpu` is the CPU that has come since the configure and got no ring
 *	EDQUOT	the same, because of the limit of KBARMAN_CONFIGURE
 *	ERANGE	a frequency above kernel.perf_event_max_sample_rate, of whichever event
 * Errors for the event with index `event` on CPU `cpu`:
 *	ENOENT, EOPNOTSUPP	this PMU has no such event, or there is no PMU; or it does not
 *		sample so precisely; or its precise samples are those of a PMU that can't be
 *		read, such as AMD's IBS. `event` is the last one of a counter that is not optional
 *	ENOSPC	the PMU can't count this event at the same time as those before it
 *	EFAULT	the PMU is "kprobe" or "uprobe", and config1 is a user address, at which
 *		that PMU would look for a name
 *	others	as perf_event_open(2)
 */
struct kbarman_start {
	__u32 size;
	__u32 flags;			/* 0 */
	__u32 event;			/* out: the event that failed, else ~0 */
	__u32 cpu;			/* out: the CPU it failed on, else ~0 */
};

#define KBARMAN_START_SIZE_VER0		16

/*
 * KBARMAN_STOP: stop recording. The argument is 0. When the call returns, the rings and the tables
 * are complete and do not change any more. Stopping a stopped session does nothing.
 */

/*
 * KBARMAN_TURN: from now on the events with this turn count, and those with another one rest.
 *
 *	EINVAL	no event has this turn, or the session does not run
 */
struct kbarman_turn {
	__u32 size;
	__u32 turn;			/* kbarman_event.turn */
};

#define KBARMAN_TURN_SIZE_VER0		8

/*
 * KBARMAN_CONSUME: give back the ring of a CPU up to `position`. `position` is a block boundary at
 * or before write_offset. With KBARMAN_CPU_ALL those of several CPUs, in the order of their numbers
 * up to the first one that fails.
 *
 * On a descriptor that does not own the session the call gives nothing back, in whichever mode: it
 * tells how far this descriptor has read, for poll(). With KBARMAN_CPU_ALL, no positions, and a
 * recording that has stopped it tells that the descriptor has done with this recording.
 *
 *	EBUSY	the recording that the descriptor has done with goes on
 *	EINVAL	no such CPU, behind write_offset; the owner: not a block boundary, or not in stream mode
 *	ESTALE	the positions are not of this session, or not of this recording
 */
#define KBARMAN_NO_POSITION	0xffffffffffffffffULL

struct kbarman_consume {
	__u32 size;
	__u32 cpu;
	__u64 position;			/* the new read_offset */
	__u64 positions_ptr;		/* __u64[]: the position of CPU c is [c], or
					 * KBARMAN_NO_POSITION; only with KBARMAN_CPU_ALL */
	__u32 nr_positions;		/* at most query.nr_cpus */
	__u32 reserved;
	__u64 session;			/* that the positions are of, as query.session; 0: whichever */
	__u64 recording;		/* the same, as query.recording */
};

#define KBARMAN_CONSUME_SIZE_VER0	16

/*
 * KBARMAN_STATS: what happened to the records of one CPU, or of all CPUs with KBARMAN_CPU_ALL. On a
 * stopped session every record is accounted for: written = overwritten + those that were given back
 * + those in the ring, and attempts = written + the sum of lost[].
 *
 * A reader that is not the owner, of a session in overwrite mode, learns how many records it has
 * missed: `overwritten` is the number of records whose blocks began in front of `oldest`. If it has
 * read n of those, it has missed overwritten - n, and if `oldest` is behind its position, it goes
 * on at `oldest`. In stream mode read_offset says that the owner has given back what this reader
 * had not read: `written` at the stop minus the records that it has read is how many it has missed.
 *
 *	EINVAL	no such CPU
 */
struct kbarman_stats {
	__u32 size;
	__u32 cpu;
	__u64 written;			/* records */
	__u64 overwritten;		/* records; overwrite mode: or dropped, see above */
	__u64 lost[8];			/* records, by enum kbarman_loss */
	__u64 bytes;			/* bytes written, with length words and padding */
	__u64 missed[8];		/* facts, by enum kbarman_miss; only with KBARMAN_CPU_ALL */
	__u32 tasks;			/* rows in use; these three: KBARMAN_CPU_ALL */
	__u32 maps;
	__u32 strings;			/* bytes in use */
	__u32 online;			/* CPUs that record */
	__u64 stopped[4];		/* number of stops, by enum kbarman_stop */
	__u64 consumed;			/* bytes that KBARMAN_CONSUME has given back, with length words
					 * and padding */
	__u64 oldest;			/* overwrite mode: offset of the block that `overwritten` records
					 * were in front of; not with KBARMAN_CPU_ALL */
	__u64 each_ptr;			/* in: room for struct kbarman_stats[], or 0; only with
					 * KBARMAN_CPU_ALL. [c] is what CPU c alone has; its size is
					 * 0 if there is no ring of that CPU */
	__u32 nr_each;			/* in: elements that there is room for; not more than
					 * query.nr_cpus are written */
	__u32 each_bytes;		/* of one of them */
};

#define KBARMAN_STATS_SIZE_VER0		216

/*
 * KBARMAN_CLOCK: readings of the timestamps' clock and of the system's clocks, at start, at stop
 * and now. clock_info in the capture's header converts ticks to ns: with the nominal rate before
 * the stop, with the measured rate after it.
 *
 * The measured rate is a fraction whose products fit into 64 bits. Its error is below a microsecond
 * for recordings of up to three minutes, and at nearly all rates for recordings of up to an hour.
 * Close to a rate that is a round number the error may be t^2 / 36 ns after t seconds, which is 360
 * us after an hour. The strings kbarman.raw_base and kbarman.raw_end of the capture hold the start
 * and stop readings themselves. Their error is below a microsecond however long the recording was.
 *
 * CLOCK_MONOTONIC_RAW stands still while the machine is suspended, and the timestamps may go on.
 * The measured rate covers only the time awake. kbarman.raw_end is given as if CLOCK_MONOTONIC_RAW
 * had gone on, too.
 *
 * The time begins at timestamp_base, which is the timestamp of the start reading. It is the moment
 * at which all sources are there and the rings open: everything is recorded from then on, up to the
 * stop. With KBARMAN_SOURCE_SCHED each CPU begins with a task switch that says which task runs, if
 * that task is recorded: BM_TASK_SWITCH_FIRST, as that task did not begin to run then. No record is
 * earlier or later, and no row of a table is earlier: what was so before the start has the
 * timestamp_base.
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
};

#define KBARMAN_CLOCK_SIZE_VER0		104

/*
 * KBARMAN_ADD_MAPS: add rows to the mmap table that the module can't find by itself: kernel text,
 * and kernel modules that were loaded before the session started. Rows of the kernel have task_id 0
 * and apply to every task.
 *
 *	EACCES	a row of the kernel, and the session's owner lacked CAP_SYSLOG when it
 *		opened the device
 *	EINVAL	more than 4096 rows, length 0, or a name that is empty,
 *		too long or contains a NUL
 *	ENOSPC	the mmap table or the string table is full; `count` is the number of rows
 *		added
 */
struct kbarman_map_row {
	__u32 task_id;			/* of the process; 0: the kernel */
	__u32 image_length;		/* bytes at image_ptr, at most 4095 */
	__u64 base_address;
	__u64 length;
	__u64 image_offset;
	__u64 image_ptr;		/* the image's name, without a NUL */
};

#define KBARMAN_MAP_ROW_SIZE_VER0	40

struct kbarman_add_maps {
	__u32 size;
	__u32 count;
	__u32 row_bytes;		/* of one of them */
	__u32 reserved;
	__u64 rows_ptr;			/* struct kbarman_map_row[] */
};

#define KBARMAN_ADD_MAPS_SIZE_VER0	24

/*
 * KBARMAN_ADD_SYMBOLS: keep the kernel's symbols beside the rings, for who reads these in the memory of a machine
 * that does not run any more (beacon.h). The module does not look into them: those of `kbarman` are the lines of
 * /proc/kallsyms that are code, by gzip. They stay as long as the capture, no map shows them, and the user is charged
 * for them as for rings.
 *
 *	EEXIST	the configuration has symbols, or EFAULT was the answer: then it has none, and gets none
 *	EINVAL	no bytes, or more than KBARMAN_SYMBOLS_MAX
 *	ENOMEM	no memory
 *	EDQUOT	as KBARMAN_CONFIGURE
 *	ENOSPC	KBARMAN_CONFIGURE_RESERVED: the half has no room, beside the rings of all CPUs of the session
 *	EPERM	also: the session's owner lacked CAP_SYSLOG when it opened the device
 */
#define KBARMAN_SYMBOLS_MAX		(16U << 20)

struct kbarman_add_symbols {
	__u32 size;
	__u32 flags;			/* 0 */
	__u64 bytes_ptr;
	__u64 bytes;
};

#define KBARMAN_ADD_SYMBOLS_SIZE_VER0	24

/*
 * KBARMAN_SESSIONS: the sessions that there are. The call fills at most `count` elements, the
 * newest session first, and sets `count` to the number of sessions, which may be more.
 *
 * Who records is shown to a descriptor whose opener is the user who opened the session's
 * descriptor, or had CAP_SYS_PTRACE. Everything else is shown to every descriptor that was opened
 * for reading. `state` has KBARMAN_STATE_HIDDEN if pid, uid and comm are not shown.
 */
#define KBARMAN_STATE_HIDDEN		(1U << 6)	/* in kbarman_session_info only */

struct kbarman_session_info {
	__u64 session;			/* number of the configuration, as in kbarman_query */
	__u32 state;			/* KBARMAN_STATE_* */
	__u32 mode;			/* enum kbarman_mode */
	__u32 sources;			/* KBARMAN_SOURCE_* */
	__u32 nr_pids;			/* processes that were chosen; 0 = every task */
	__u32 pid;			/* process that configured, as the caller's pid namespace
					 * numbers it; 0 = not shown, none there, or the owner is
					 * gone */
	__u32 uid;			/* user who opened, as the caller's user namespace numbers
					 * it; ~0 = not shown */
	char comm[16];			/* name of the process; "" = not shown */
	__u64 started_ns;		/* CLOCK_REALTIME; 0 = never */
	__u64 stopped_ns;		/* CLOCK_REALTIME; 0 = never, or it has started again */
	__u64 bytes;			/* memory of its rings and tables */
	__u64 ring_bytes;		/* of one CPU */
	__u64 written;			/* records of all CPUs, as in kbarman_stats; next two too */
	__u64 overwritten;
	__u64 lost;			/* for whatever reason */
};

#define KBARMAN_SESSION_INFO_SIZE_VER0	104

struct kbarman_sessions {
	__u32 size;
	__u32 count;
	__u64 sessions_ptr;		/* struct kbarman_session_info[] */
	__u32 info_bytes;		/* of one of them */
	__u32 most;			/* out: sessions that there may be */
	__u64 memory;			/* out: bytes that sessions and maps of the user take who
					 * opened this descriptor */
	__u64 memory_limit;		/* out: bytes that they may take */
};

#define KBARMAN_SESSIONS_SIZE_VER0	40

/*
 * KBARMAN_CHOOSE: calls on this descriptor are about session `session` from now on, until the
 * descriptor gets a session of its own. 0: about the one that was configured last, as at first. The
 * choice stays if the session is configured again. With KBARMAN_CHOOSE_ONLY it is about this one
 * configuration: once the session is configured again, all calls but another choice, and mmap(),
 * fail with ESTALE, and poll() reports EPOLLERR. So no map is of another session than the query
 * was.
 *
 *	EBUSY	the descriptor has a session of its own
 *	EINVAL	KBARMAN_CHOOSE_ONLY with 0
 *	ENOENT	no such session
 */
#define KBARMAN_CHOOSE_ONLY	(1U << 0)

struct kbarman_choose {
	__u32 size;
	__u32 flags;			/* KBARMAN_CHOOSE_* */
	__u64 session;			/* number of a configuration */
};

#define KBARMAN_CHOOSE_SIZE_VER0	16

/*
 * KBARMAN_ADOPT: own the session that began when the module was loaded (module parameter `boot`), as
 * if this descriptor had configured and started it. The session goes on. Who loaded the module still
 * pays for its memory.
 *
 *	EBUSY	the descriptor has a session of its own
 *	ENOENT	there is no such session, or somebody has it
 *	EPERM	the session has kernel addresses, and the descriptor's opener lacked CAP_SYSLOG
 */
struct kbarman_adopt {
	__u32 size;
	__u32 flags;			/* 0 */
	__u64 session;			/* number of its configuration; 0: whichever it is */
};

#define KBARMAN_ADOPT_SIZE_VER0		16

/*
 * KBARMAN_FORMER: what was recorded into memory that survives a reset before this boot. There are two
 * at most; the older one is number 0. One stays until it is released, or until both halves of the
 * memory have one and a session wants a half: then the newer one goes, but that of a reboot before
 * that of a crash.
 *
 * KBARMAN_FORMER_OPEN: `fd` is a new descriptor for read(), pread() and lseek() with close-on-exec set.
 * It has `bytes` bytes: the memory from the physical address `address` on. The stamp (stamp.h) comes first.
 * The recording stays while the descriptor is open.
 *
 * KBARMAN_FORMER_RELEASE: the memory is free for others. `capture` says which recording is meant.
 *
 *	ENOENT	there is none of that number, or none any more
 *	EBUSY	RELEASE: a descriptor of it is open
 *	EPERM	OPEN, RELEASE: the opener of this descriptor is not the user who recorded, and lacked
 *		CAP_SYS_PTRACE, unless it is that of `boot`; or the recording has kernel addresses, and
 *		the opener lacked CAP_SYSLOG
 *	ESTALE	RELEASE: it is another recording
 *	EOPNOTSUPP	the module has no such memory
 */
#define KBARMAN_FORMER_OPEN	(1U << 0)
#define KBARMAN_FORMER_RELEASE	(1U << 1)

struct kbarman_former {
	__u32 size;
	__u32 flags;			/* KBARMAN_FORMER_OPEN or _RELEASE, or 0 */
	__u32 number;			/* 0 or 1 */
	__s32 fd;			/* out: with KBARMAN_FORMER_OPEN, else -1 */
	__u64 address;			/* out: physical */
	__u64 bytes;			/* out */
	__u64 capture;			/* out; in: with KBARMAN_FORMER_RELEASE */
	__u64 began_ns;			/* out: CLOCK_REALTIME of the configure */
	__u32 uid;			/* out: who recorded, as the caller's user namespace numbers it;
					 * ~0 = not shown, as in kbarman_session_info, or nobody */
	__u32 end;			/* out: enum kbarman_end */
};

#define KBARMAN_FORMER_SIZE_VER0	56

/*
 * Marks: the input of write(). One mark is this struct and its text, without a NUL. The next mark
 * begins at the next multiple of 8. KBARMAN_MARK_SIZE_VER0 is the size of the struct's first
 * version.
 *
 *	EINVAL	`size` is smaller than KBARMAN_MARK_SIZE_VER0, or the mark is longer than the
 *		buffer; a type, series or flag is unknown; a field that the type does not
 *		use is not 0; or the text contains a NUL
 *	EMSGSIZE	the text is longer than KBARMAN_MARK_TEXT_MAX
 *	E2BIG	`size` is larger than this kernel knows, and the remaining bytes are not 0
 * If write() refuses one of several marks, it returns the bytes of the marks before that one.
 */
#define KBARMAN_MARK_SIZE_VER0	40
#define KBARMAN_MARK_TEXT_MAX	4095		/* bytes */
#define KBARMAN_MARK_RATE	20000		/* marks per second and user */
#define KBARMAN_MARK_BURST	20000		/* marks at once */

enum kbarman_mark_type {
	KBARMAN_MARK_STRING	= 0,	/* uses channel, colour; an empty text ends the channel's
					 * last annotation */
	KBARMAN_MARK_BOOKMARK	= 1,	/* uses colour */
	KBARMAN_MARK_CHANNEL	= 2,	/* uses channel, group; the text is the name of `channel`,
					 * which belongs to `group` */
	KBARMAN_MARK_GROUP	= 3,	/* uses group; the text is the name of `group` */
	KBARMAN_MARK_COUNTER	= 4,	/* uses series, value; no text */
};

struct kbarman_mark {
	__u32 size;			/* of this struct, without the text */
	__u32 type;			/* enum kbarman_mark_type */
	__u32 text_bytes;
	__u32 channel;
	__u32 group;
	__u32 colour;			/* 0xTTRRGGBB; TT 1 to 4: a colour that the viewer chooses;
					 * TT 0: the viewer's next colour; any other TT: RRGGBB */
	__u32 series;			/* from KBARMAN_MARK_SERIES */
	__u32 reserved;
	__u64 value;
};

/*
 * KBARMAN_MARK_STATE: returns a new descriptor, with close-on-exec set. One page of this descriptor
 * can be mapped with PROT_READ and MAP_SHARED; the page holds struct kbarman_mark_state. The
 * argument is 0.
 */
struct kbarman_mark_state {
	__u32 size;			/* bytes of this struct that are in use */
	__u32 recording;		/* 0: nobody records marks. Otherwise a number, not that of
					 * kbarman_query, which differs between recordings: another
					 * one begins with each start of a session. Names and series
					 * are valid for one recording. As long as any session records
					 * marks, values of an older series arrive all the same */
};

/*
 * KBARMAN_MARK_SERIES: find the custom series `name` of chart `chart`, or create it. The first
 * caller determines how the series is shown; later callers get that series unchanged. The series is
 * valid for the recording with the number `recording`. All strings are NUL-terminated. `chart` and
 * `name` must not be empty.
 *
 *	EAGAIN	nobody records marks
 *	EBUSY	more calls than the user's rate allows
 *	EINVAL	a string without NUL, or an unknown class, display or flag
 *	ENOSPC	no session has more series (max_series) or room for the names. It is enough
 *		that one session has: the others count the values as missed
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
	__u8 reserved[3];
	char chart[64];
	char name[64];
	char units[32];
	char description[128];
};

#define KBARMAN_MARK_SERIES_SIZE_VER0	320

#define KBARMAN_QUERY		_IOWR('k', 0xb0, struct kbarman_query)
#define KBARMAN_CONFIGURE	_IOWR('k', 0xb1, struct kbarman_configure)
#define KBARMAN_START		_IOWR('k', 0xb2, struct kbarman_start)
#define KBARMAN_STOP		_IO('k', 0xb3)	/* 0 */
#define KBARMAN_CONSUME		_IOW('k', 0xb4, struct kbarman_consume)
#define KBARMAN_STATS		_IOWR('k', 0xb5, struct kbarman_stats)
#define KBARMAN_CLOCK		_IOWR('k', 0xb6, struct kbarman_clock)
#define KBARMAN_ADD_MAPS	_IOWR('k', 0xb8, struct kbarman_add_maps)
#define KBARMAN_MARK_STATE	_IO('k', 0xb9)	/* 0 */
#define KBARMAN_MARK_SERIES	_IOWR('k', 0xba, struct kbarman_mark_series)
#define KBARMAN_SESSIONS	_IOWR('k', 0xbb, struct kbarman_sessions)
#define KBARMAN_CHOOSE		_IOW('k', 0xbc, struct kbarman_choose)
#define KBARMAN_ADOPT		_IOW('k', 0xbd, struct kbarman_adopt)
#define KBARMAN_TURN		_IOW('k', 0xbe, struct kbarman_turn)
#define KBARMAN_FORMER		_IOWR('k', 0xbf, struct kbarman_former)
#define KBARMAN_ADD_SYMBOLS	_IOW('k', 0xc0, struct kbarman_add_symbols)

#endif /* _UAPI_KBARMAN_H */
