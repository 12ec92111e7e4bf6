/* SPDX-License-Identifier: MIT */
/*
 * schema/: every table that a capture is read as, declared once. It includes nothing.
 *
 * Every table that a capture is read as, and its columns: in SQL, in Python and Arrow, in files of
 * Parquet. Names, types, order and sentences stand here once, for whoever includes this file with
 * macros of their own:
 *
 *	TABLE(table, file, about)		begins a table; file: its name in Parquet
 *	COLUMN(table, column, sql, arrow, about)	a column; in Parquet it is what it is in Arrow
 *	WORDS(table, column, sql, words, about)	the same with numbers of words in Arrow, an array of
 *						analysis/columns/tables.c
 *	MADE(table, column, sql, arrow, how, from, about)	a column that Parquet makes of column
 *						`from`: see export/parquet/tables.c
 *	OLD(table, old, column)			the name of a column in Arrow until 1.0
 *	END(table)				ends the table
 *
 * LOCAL_TABLE, LOCAL, LOCAL_WORDS and LOCAL_END are the same of what Parquet lacks, and
 * QUERY_TABLE, QUERY, OLD_QUERY and QUERY_END of what SQL alone has. The type `sql` is one of
 * SQLite's, COMMON if all tables over records have it, or NONE; `arrow` is a type of
 * analysis/columns/tables.h, or NONE. Macros that the includer lacks are empty, and none is left
 * behind, so this file is included many times.
 *
 * A column's name has its unit: a moment since the capture began is at_ns, its end end_ns, a length
 * duration_ns, a moment since 1970 unix_ns, and others end in _ns as well. Moments are signed.
 */
#ifndef TABLE
#define TABLE(table, file, about)
#endif
#ifndef COLUMN
#define COLUMN(table, column, sql, arrow, about)
#endif
#ifndef WORDS
#define WORDS(table, column, sql, words, about)
#endif
#ifndef MADE
#define MADE(table, column, sql, arrow, how, from, about)
#endif
#ifndef OLD
#define OLD(table, old, column)
#endif
#ifndef END
#define END(table)
#endif
#ifndef LOCAL_TABLE
#define LOCAL_TABLE(table, about)
#endif
#ifndef LOCAL
#define LOCAL(table, column, sql, arrow, about)
#endif
#ifndef LOCAL_WORDS
#define LOCAL_WORDS(table, column, sql, words, about)
#endif
#ifndef LOCAL_END
#define LOCAL_END(table)
#endif
#ifndef QUERY_TABLE
#define QUERY_TABLE(table, about)
#endif
#ifndef QUERY
#define QUERY(table, column, sql, about)
#endif
#ifndef OLD_QUERY
#define OLD_QUERY(table, old, sql)
#endif
#ifndef QUERY_END
#define QUERY_END(table)
#endif

/* What many tables have. */
#define MOMENT(table, about)									\
	MADE(table, unix_ns, NONE, NONE, TIME, at_ns, about ", since 1970")			\
	LOCAL(table, at_ns, COMMON, I64, about) OLD(table, ns, at_ns)
#define TIMES(table)										\
	MOMENT(table, "when it began")								\
	LOCAL(table, end_ns, INTEGER, I64, "when it ended")					\
	COLUMN(table, duration_ns, INTEGER, U64, "how long it took")
#define START(table)	\
	MADE(table, unix_ns, NONE, NONE, START, _, "when the capture began, since 1970")
#define TASK(table, about)									\
	COLUMN(table, tid, COMMON, U32, about)							\
	MADE(table, pid, COMMON, NONE, PID, tid, "its process")					\
	MADE(table, task, COMMON, NONE, TASK, tid, "its name")
/* A name of the end, as it is when the record of the end is read. */
#define ENDED_TASK(table, about)								\
	COLUMN(table, tid, COMMON, U32, about)							\
	MADE(table, pid, COMMON, NONE, PID_AT_END, tid, "its process")				\
	MADE(table, task, COMMON, NONE, TASK_AT_END, tid, "its name at the end")
#define OBJECT(table, about, about_call)							\
	WORDS(table, object, TEXT, object_words, about)						\
	COLUMN(table, call, TEXT, TEXT, about_call)						\
	COLUMN(table, object_id, INTEGER, U32,							\
	       "of a file its device, of a lock the thread that holds it, of others the descriptor") \
	COLUMN(table, object_value, INTEGER, U64,						\
	       "the number of the inode, or the address of the lock")				\
	COLUMN(table, object_name, TEXT, TEXT,							\
	       "the path of a file, the ends of a pipe or a socket, where the recorder found them")
#define CPU(table)	COLUMN(table, cpu, COMMON, U32, "CPU")
#define CPU_OR_NONE(table)	\
	MADE(table, cpu, COMMON, U32, CPU_OR_NONE, cpu, "CPU; 4294967295: none")
#define QUERY_TASK(table)									\
	QUERY(table, tid, INTEGER, "the task")							\
	QUERY(table, pid, INTEGER, "its process")						\
	QUERY(table, task, TEXT, "its name")
#define QUERY_TIMES(table)									\
	QUERY(table, end_ns, INTEGER, "when it ended")						\
	QUERY(table, duration_ns, INTEGER, "how long it took")
#define QUERY_PLACE(table)									\
	QUERY(table, symbol, TEXT, "the function")						\
	QUERY(table, image, TEXT, "the file that it is in")					\
	QUERY(table, kernel, INTEGER, "whether it is of the kernel")				\
	QUERY(table, source, TEXT, "its source file")						\
	QUERY(table, line, INTEGER, "the line there")

/* ---- records ---- */

LOCAL_TABLE(records, "the records of the capture")
LOCAL(records, ticks, NONE, U64, "when, in ticks of the recorded clock")
LOCAL(records, at_ns, COMMON, I64, "when")
OLD(records, ns, at_ns)
LOCAL(records, cpu, COMMON, U32, "CPU; 4294967295: none")
LOCAL_WORDS(records, type, TEXT, type_words,
	    "what it is; value: of series; detail: of wakeups, interrupts and others")
LOCAL(records, tid, COMMON, U32,
      "the task of the record; of a switch: the next one; 0: the record has none")
LOCAL_END(records)

TABLE(switches, switches, "task switches: tid left the CPU, next_tid runs")
MOMENT(switches, "when")
CPU(switches)
LOCAL(switches, known, NONE, BOOL,
      "whether it is known which task left: not where the CPU's records begin")
MADE(switches, tid, COMMON, U32, IF_KNOWN, known, "the task that left; 0 if it is not known")
MADE(switches, pid, COMMON, NONE, PID_IF_KNOWN, tid, "its process")
MADE(switches, task, COMMON, NONE, TASK_IF_KNOWN, tid, "its name")
COLUMN(switches, next_tid, INTEGER, U32, "the task that runs from now on")
MADE(switches, next_pid, INTEGER, NONE, PID, next_tid, "its process")
MADE(switches, next_task, TEXT, NONE, TASK, next_tid, "its name")
COLUMN(switches, blocked, INTEGER, BOOL,
       "whether it waits; else it was preempted and could have run on")
WORDS(switches, state, TEXT, state_words, "its state, a letter of ps(1)")
LOCAL(switches, prev_state, NONE, I32, "the same as its kernel stores it; -1: unknown")
OBJECT(switches, "what it waits for; none: not known, or it does not wait",
       "the system call in which it waits")
MADE(switches, next_delay_ns, NONE, NONE, DELAY, _,
     "how long next_tid could have run before it did")
LOCAL(switches, depth, INTEGER, NONE, "number of frames")
MADE(switches, stack, NONE, LIST64, STACK, frames,
     "its call chain as recorded: addresses, innermost first")
OLD(switches, chain, stack)
LOCAL(switches, frames, NONE, LIST32, "the same by name: rows of functions")
END(switches)

TABLE(samples, samples,
      "readings of the counters, and where the code was; without an address it is no sample")
MOMENT(samples, "when")
CPU(samples)
TASK(samples, "the task that ran")
LOCAL(samples, has_pc, NONE, BOOL, "whether it has an address")
MADE(samples, pc, TEXT, U64, IF_HAS_PC, has_pc, "that address; 0 if it has none")
MADE(samples, event, NONE, NONE, FIRST_EVENT, cpu, "what the first counter counts")
MADE(samples, weight, INTEGER, NONE, FIRST, counters,
     "increase of the first counter, which takes the samples")
LOCAL(samples, counters, NONE, LIST64,
      "increase of each counter of the CPU, in the order of events; 2^64-1: it has no value")
LOCAL(samples, depth, INTEGER, NONE, "number of frames")
LOCAL(samples, idle, INTEGER, NONE, "whether it is of the idle loop")
MADE(samples, symbol, TEXT, NONE, SYMBOL, frames, "the innermost function")
MADE(samples, image, TEXT, NONE, IMAGE, frames, "the file that it is in")
LOCAL(samples, kernel, INTEGER, NONE, "whether it is of the kernel")
LOCAL(samples, source, TEXT, NONE, "its source file")
LOCAL(samples, line, INTEGER, NONE, "the line there")
MADE(samples, stack, NONE, LIST64, STACK, frames,
     "the call chain as recorded: addresses, innermost first: pc and its callers")
OLD(samples, chain, stack)
LOCAL(samples, frames, NONE, LIST32,
      "the same by name, with inlined functions if asked for: rows of functions")
END(samples)

QUERY_TABLE(frames, "the call chain of each sample and switch (of) that has one")
QUERY(frames, of, TEXT, "sample or switch")
QUERY(frames, frame, INTEGER, "0: the innermost function")
QUERY(frames, weight, INTEGER, "that of the sample")
QUERY(frames, pc, TEXT, "the address")
QUERY_PLACE(frames)
QUERY_END(frames)

TABLE(counters, counters, "the increase of each counter at each reading, a row each")
MOMENT(counters, "when")
CPU(counters)
TASK(counters, "the task that ran")
MADE(counters, event, TEXT, U32, EVENT, event, "what it counts: id of events")
OLD_QUERY(counters, counter, TEXT)
MADE(counters, value, INTEGER, U64, NOT_NEGATIVE, value, "its increase; 2^64-1: it has no value")
COLUMN(counters, sampled, INTEGER, BOOL, "whether the reading has an address")
END(counters)

/* ---- times ---- */

QUERY_TABLE(slices,
	    "what each CPU did, without gaps: kind is run (of a task; tid 0 is the idle task while it is "
	    "awake), idle (with its state; -1 is unknown) or lost (records are missing; reason is that of "
	    "losses)")
QUERY_TIMES(slices)
QUERY(slices, kind, TEXT, "run, idle or lost")
QUERY(slices, ended, TEXT, "how it ended")
QUERY(slices, idle_state, INTEGER, "number of the idle state; -1: unknown")
QUERY(slices, idle_state_name, TEXT, "its name")
QUERY(slices, next_tid, INTEGER, "ended by a switch: the next task")
QUERY(slices, records, INTEGER, "number of lost records")
QUERY(slices, reason, TEXT, "why they are lost")
OLD_QUERY(slices, state, INTEGER)
OLD_QUERY(slices, state_name, TEXT)
QUERY_END(slices)

TABLE(runs, runs, "times in which a task ran on a CPU without a break")
TIMES(runs)
CPU(runs)
ENDED_TASK(runs, "the task")
WORDS(runs, ended, NONE, end_words, "how it ended")
LOCAL(runs, next_tid, NONE, U32, "ended by a switch: the next task; else 0")
END(runs)

LOCAL_TABLE(halts, "a CPU begins to halt, or leaves its halt")
LOCAL(halts, at_ns, NONE, I64, "when")
OLD(halts, ns, at_ns)
LOCAL(halts, cpu, NONE, U32, "CPU")
LOCAL(halts, entered, NONE, BOOL, "whether it begins")
LOCAL(halts, idle_state, NONE, I32, "number of the idle state; -1: unknown")
LOCAL_END(halts)

TABLE(idle, idle, "times in which a CPU halted")
TIMES(idle)
CPU(idle)
MADE(idle, idle_state, NONE, I32, NOT_NEGATIVE, idle_state,
     "number of the idle state; -1: unknown")
WORDS(idle, ended, NONE, end_words, "how it ended")
END(idle)

TABLE(gaps, gaps, "times in which records of a CPU are missing")
TIMES(gaps)
CPU(gaps)
COLUMN(gaps, records, NONE, U64, "number of lost records")
WORDS(gaps, reason, NONE, reason_words, "why; unknown: it is not known, or there are several reasons")
END(gaps)

QUERY_TABLE(waits, "waits of a task between two of its runs; cpu is where it began")
QUERY_TIMES(waits)
QUERY(waits, blocked, INTEGER, "0 if it was preempted")
QUERY(waits, asleep, INTEGER, "1 if it most likely had nothing to do")
QUERY(waits, began, INTEGER, "the record of the switch that began it, with its frames")
QUERY_END(waits)

TABLE(wakeups, wakeups,
      "wakeups (record --latency): tid ran on the CPU and woke woken_tid, or was interrupted")
MOMENT(wakeups, "when")
CPU(wakeups)
TASK(wakeups, "the task that ran; it woke if the context is task")
COLUMN(wakeups, woken_tid, INTEGER, U32, "the task that was woken")
MADE(wakeups, woken_pid, INTEGER, NONE, PID, woken_tid, "its process")
MADE(wakeups, woken_task, TEXT, NONE, TASK, woken_tid, "its name")
COLUMN(wakeups, woken_cpu, INTEGER, U32, "where that ran last; a new one: where it may run")
COLUMN(wakeups, new, INTEGER, BOOL, "whether it may run for the first time")
WORDS(wakeups, context, TEXT, context_words, "in what it was woken")
OBJECT(wakeups, "what the call is about; none: not known, or tid is in no call",
       "the system call in which tid is; it woke by it if the context is task")
END(wakeups)

QUERY_TABLE(delays,
	    "waits of a task that could run, until it ran on cpu: from a wakeup (by whom) or from a "
	    "preemption; the last seven columns are its parts: see kbarman-report(1), --latency")
QUERY_TIMES(delays)
QUERY(delays, preempted, INTEGER, "1: it began by a preemption")
QUERY(delays, new, INTEGER, "1: it runs for the first time")
QUERY(delays, by, TEXT, "who woke it: task, irq, softirq and others")
QUERY(delays, by_id, INTEGER, "its number")
QUERY(delays, by_name, TEXT, "its name")
QUERY(delays, by_call, TEXT, "the system call by which it did, where objects were recorded")
QUERY(delays, by_cpu, INTEGER, "where that was")
QUERY(delays, moves, INTEGER, "to other CPUs meanwhile")
QUERY(delays, idle_state, INTEGER, "which the CPU left for it")
QUERY(delays, waking_ns, INTEGER, "until the wakeup was seen")
QUERY(delays, halt_ns, INTEGER, "while the CPU left its halt")
QUERY(delays, idle_ns, INTEGER, "in the idle task")
QUERY(delays, queue_ns, INTEGER, "while other tasks ran")
QUERY(delays, softirq_ns, INTEGER, "in softirqs")
QUERY(delays, irq_ns, INTEGER, "in interrupts")
QUERY(delays, unknown_ns, INTEGER, "while records are missing")
OLD_QUERY(delays, state, INTEGER)
QUERY_END(delays)

QUERY_TABLE(migrations, "migrations: tid ran on cpu while moved_tid went from from_cpu to to_cpu")
QUERY(migrations, moved_tid, INTEGER, "the task that moved")
QUERY(migrations, moved_pid, INTEGER, "its process")
QUERY(migrations, moved_task, TEXT, "its name")
QUERY(migrations, from_cpu, INTEGER, "from where")
QUERY(migrations, to_cpu, INTEGER, "to where")
QUERY_END(migrations)

TABLE(interrupts, interrupts, "handlers of interrupts, IPIs and softirqs, from begin to end; they nest")
TIMES(interrupts)
COLUMN(interrupts, own_ns, INTEGER, U64, "how long it ran, without what interrupted it")
CPU(interrupts)
ENDED_TASK(interrupts, "the task in whose time it ran")
WORDS(interrupts, kind, TEXT, handler_words, "what it is")
COLUMN(interrupts, id, INTEGER, U32, "number of the interrupt, IPI or softirq")
COLUMN(interrupts, depth, NONE, U32, "number of handlers that it interrupted")
MADE(interrupts, handler, TEXT, U32, HANDLER, handler, "its name: row of handlers")
OLD_QUERY(interrupts, name, TEXT)
END(interrupts)

TABLE(syscalls, syscalls,
      "system calls (record --sources syscalls) that ended on the CPU; the first return of a new task "
      "from the call that made it is none")
MOMENT(syscalls, "when it began; when it ended, if that is not known")
LOCAL(syscalls, end_ns, INTEGER, I64, "when it ended")
LOCAL(syscalls, known, NONE, BOOL, "whether it is known when it began")
MADE(syscalls, duration_ns, INTEGER, U64, IF_KNOWN, known,
     "how long it took; 0 if it is not known when it began")
CPU(syscalls)
ENDED_TASK(syscalls, "the task")
COLUMN(syscalls, call, TEXT, TEXT, "its name, if it has one here")
COLUMN(syscalls, number, INTEGER, U32, "its number on that machine")
COLUMN(syscalls, compat, INTEGER, BOOL,
       "whether the number is one of 32-bit programs on a 64-bit kernel")
COLUMN(syscalls, result, INTEGER, I64, "what it returned; from -4095 to -1 an errno")
COLUMN(syscalls, arg0, INTEGER, I64, "its first argument, as a signed number")
COLUMN(syscalls, arg1, INTEGER, I64, "its second one")
COLUMN(syscalls, arg2, INTEGER, I64, "its third one")
END(syscalls)

TABLE(faults, faults, "page faults (record --sources faults) that ended on the CPU")
MOMENT(faults, "when it began; when it was told, if that is not known")
LOCAL(faults, end_ns, INTEGER, I64, "when it ended; of one that brought no page, when it was told")
LOCAL(faults, known, NONE, BOOL, "whether it is known when it began and ended")
MADE(faults, duration_ns, INTEGER, U64, IF_KNOWN, known,
     "how long it took; 0 if it is not known when it began and ended")
CPU(faults)
ENDED_TASK(faults, "the task")
COLUMN(faults, kind, TEXT, TEXT, "how it ended: minor, major or failed: no page came")
COLUMN(faults, kernel, INTEGER, BOOL, "whether Linux wanted the page, in the task's place")
MADE(faults, address, TEXT, U64, ADDRESS, address, "what was wanted")
MADE(faults, pc, TEXT, U64, ADDRESS, pc, "the instruction that wanted it")
LOCAL(faults, symbol, TEXT, NONE, "the function that has this instruction")
LOCAL(faults, image, TEXT, NONE, "the file of this function")
END(faults)

TABLE(block, block, "requests to block devices (record --sources block) that ended on the CPU")
MOMENT(block, "when the driver got it; when it ended, if that is not known")
LOCAL(block, end_ns, INTEGER, I64, "when it ended")
LOCAL(block, known, NONE, BOOL, "whether it is known when the driver got it")
MADE(block, duration_ns, INTEGER, U64, IF_KNOWN, known,
     "how long the driver had it; 0 if it is not known when the driver got it")
CPU(block)
ENDED_TASK(block, "the task that gave it to Linux's queue; 0 if it is not known")
COLUMN(block, disk, TEXT, TEXT, "the disk's name, or its numbers; empty: it has none")
COLUMN(block, device, INTEGER, U32, "the disk's numbers, MAJOR << 20 | MINOR")
COLUMN(block, sector, INTEGER, U64, "the first sector, of 512 bytes")
COLUMN(block, bytes, INTEGER, U32, "how many bytes")
COLUMN(block, operation, TEXT, TEXT, "read, write, flush, discard and others")
COLUMN(block, flags, TEXT, TEXT, "some of sync, meta, ahead, fua, preflush, with commas between")
COLUMN(block, result, INTEGER, I64, "0, or a negative errno")
END(block)

/* ---- values and marks ---- */

TABLE(series, series, "values of series over time: of programs, files and the kernel")
MOMENT(series, "when")
CPU_OR_NONE(series)
TASK(series, "the task that ran")
LOCAL(series, chart, TEXT, NONE, "the chart that it belongs to")
MADE(series, series, TEXT, U32, SERIES, series, "its name: row of series_names")
COLUMN(series, value, NUMERIC, F64, "in the units of the series")
LOCAL(series, units, TEXT, NONE, "these units")
LOCAL(series, raw, NONE, U64, "the value as recorded, without its multiplier")
LOCAL(series, sampled, NONE, BOOL, "whether it came with a sample; else it has a record of its own")
END(series)

LOCAL_TABLE(details,
	    "records that say what they are about: wakeups, migrations, interrupts, frequencies and others")
LOCAL(details, at_ns, COMMON, I64, "when")
OLD(details, ns, at_ns)
LOCAL(details, cpu, COMMON, U32, "CPU; 4294967295: none")
LOCAL(details, tid, COMMON, U32, "the task that ran")
LOCAL_WORDS(details, what, TEXT, what_words, "what it is")
LOCAL(details, about_id, INTEGER, U32, "by what it is: the task, interrupt, softirq or idle state")
LOCAL(details, about_cpu, INTEGER, U32, "by what it is: see enum kb_what of kbarman/event.h")
LOCAL_WORDS(details, context, TEXT, context_words, "in what it happened")
LOCAL(details, value, INTEGER, U64, "by what it is; of a frequency: kHz")
LOCAL_END(details)

TABLE(marks, marks, "annotations and bookmarks of programs and people")
MOMENT(marks, "when")
CPU_OR_NONE(marks)
TASK(marks, "who wrote it")
WORDS(marks, type, TEXT, mark_words,
      "string: on its channel until the next one; bookmark: a moment; channel, group: its name")
COLUMN(marks, channel, INTEGER, U32, "number of the channel")
COLUMN(marks, group_id, INTEGER, U32, "number of the group")
COLUMN(marks, colour, INTEGER, U32, "0x1bRRGGBB; 0: none")
MADE(marks, text, TEXT, TEXT, LONG_TEXT, text, "what it says")
END(marks)

/* ---- names ---- */

LOCAL_TABLE(functions, "what frames are: with each part those that are new")
LOCAL(functions, symbol, NONE, TEXT, "name; empty: unknown")
LOCAL(functions, image, NONE, TEXT, "path of the file, [kernel.kallsyms] or [MODULE]")
LOCAL(functions, kernel, NONE, BOOL, "whether it is of the kernel")
LOCAL(functions, inlined, NONE, BOOL, "whether it is inlined into the next frame")
LOCAL(functions, address, NONE, U64, "where a function of the kernel begins; 0 for others")
LOCAL(functions, source, NONE, TEXT, "source file; empty: unknown or not asked for")
OLD(functions, file, source)
LOCAL(functions, line, NONE, U32, "its line; 0: the same")
LOCAL_END(functions)

LOCAL_TABLE(handlers, "what handlers of interrupts are: with each part those that are new")
LOCAL_WORDS(handlers, kind, NONE, handler_words, "what it is")
LOCAL(handlers, id, NONE, U32, "number of the interrupt, IPI or softirq")
LOCAL(handlers, behind, NONE, U32, "handlers of the same interrupt behind it")
LOCAL(handlers, handler, NONE, TEXT, "its name")
OLD(handlers, name, handler)
LOCAL_END(handlers)

TABLE(tasks, tasks, "names of tasks, each from a time on")
START(tasks)
MADE(tasks, since_unix_ns, NONE, NONE, TIME, since_ns, "since when")
LOCAL(tasks, file, INTEGER, NONE, "number of the capture")
COLUMN(tasks, tid, INTEGER, U32, "number of the task")
COLUMN(tasks, pid, INTEGER, U32, "number of its process; that of the task if it is not known")
COLUMN(tasks, task, TEXT, TEXT, "its name")
LOCAL(tasks, since_ns, INTEGER, I64, "since when")
LOCAL(tasks, until_ns, INTEGER, NONE, "until when")
LOCAL(tasks, ticks, NONE, U64, "since when, in ticks")
COLUMN(tasks, cgroup, TEXT, TEXT, "path of its cgroup; empty: not known")
COLUMN(tasks, command, TEXT, TEXT, "command line of its process; empty: not known")
END(tasks)

TABLE(images, images, "mappings of code")
START(images)
MADE(images, since_unix_ns, NONE, NONE, TIME, since_ns, "since when")
LOCAL(images, file, INTEGER, NONE, "number of the capture")
COLUMN(images, tid, INTEGER, U32,
       "whose: a process (fact maps=process) or a thread; 0: the kernel's, for every task")
LOCAL(images, pid, INTEGER, NONE, "its process")
LOCAL(images, since_ns, INTEGER, I64, "since when")
LOCAL(images, ticks, NONE, U64, "the same in ticks")
MADE(images, address, TEXT, U64, ADDRESS, address, "first address")
COLUMN(images, length, INTEGER, U64, "bytes")
COLUMN(images, offset, INTEGER, U64, "of the first address in the file")
COLUMN(images, image, TEXT, TEXT, "path of the file")
COLUMN(images, identity, TEXT, TEXT,
       "which file of this path: MAJOR:MINOR:INODE:SIZE:MTIME; empty: not known")
END(images)

LOCAL_TABLE(series_names, "what values of series are")
LOCAL(series_names, series, NONE, TEXT, "its name")
OLD(series_names, name, series)
LOCAL(series_names, units, NONE, TEXT, "units of its values")
LOCAL(series_names, description, NONE, TEXT, "about it")
LOCAL_WORDS(series_names, kind, NONE, series_words,
	    "what a value says: a change, an amount at that moment, or the level from then on")
LOCAL(series_names, multiplier, NONE, F64, "what raw values are multiplied by")
LOCAL_END(series_names)

LOCAL_TABLE(events, "what the counters of samples count")
LOCAL(events, cpu, NONE, U32, "CPU")
LOCAL(events, place, NONE, U32, "in the counters of its samples; the first one takes the samples")
LOCAL(events, id, NONE, U32, "number of the event: the same for events of one name")
LOCAL(events, event, NONE, TEXT, "its name")
OLD(events, name, event)
LOCAL_END(events)

/* ---- the capture ---- */

TABLE(losses, losses, "what is missing, as the capture says")
START(losses)
LOCAL(losses, file, INTEGER, NONE, "number of the capture")
WORDS(losses, kind, TEXT, loss_words,
      "lost, overwritten, written: records; missed: rows of tables; stopped: how often "
      "the first counter stopped")
MADE(losses, cpu, INTEGER, U32, CPU_OR_NONE, cpu, "CPU; 4294967295: of all CPUs")
COLUMN(losses, what, TEXT, TEXT, "the reason, or what was missed")
COLUMN(losses, count, INTEGER, U64, "how many")
LOCAL(losses, advice, TEXT, NONE, "what helps")
END(losses)

TABLE(facts, facts, "the strings kbarman.KEY=VALUE of the capture: see kbarman-formats(5)")
START(facts)
LOCAL(facts, file, INTEGER, NONE, "number of the capture")
COLUMN(facts, key, TEXT, TEXT, "KEY")
COLUMN(facts, value, TEXT, TEXT, "VALUE")
END(facts)

TABLE(header, captures, "the header: one row")
START(header)
MADE(header, duration_ns, NONE, NONE, LENGTH, _, "how long the capture took")
COLUMN(header, target, NONE, TEXT, "name of the target")
LOCAL(header, version, NONE, U32, "of the protocol")
LOCAL(header, word_size, NONE, U32, "4 or 8")
LOCAL(header, big_endian, NONE, BOOL, "byte order")
COLUMN(header, cpus, NONE, U32, "number of CPUs there is room for")
COLUMN(header, sample_rate, NONE, U32, "Hz")
LOCAL(header, timestamp_base, NONE, U64, "ticks at which at_ns is 0")
LOCAL(header, unix_base_ns, NONE, U64, "the wall clock then: ns since 1970")
LOCAL(header, last_timestamp, NONE, U64, "ticks")
MADE(header, records, NONE, NONE, RECORDS, _, "number of records")
END(header)

QUERY_TABLE(files,
	    "the captures by number, as they were given; records and the three columns after it take a "
	    "reading")
QUERY(files, file, INTEGER, "number of the capture")
QUERY(files, path, TEXT, "its path")
QUERY(files, target, TEXT, "name of the target")
QUERY(files, host, TEXT, "name of the machine")
QUERY(files, release, TEXT, "its kernel")
QUERY(files, command, TEXT, "what was recorded")
QUERY(files, filter, TEXT, "which tasks were recorded")
QUERY(files, sources, TEXT, "which kinds of records")
QUERY(files, unix_base_ns, INTEGER, "the wall clock at 0: ns since 1970")
QUERY(files, cpus, INTEGER, "number of CPUs there is room for")
QUERY(files, records, INTEGER, "number of records")
QUERY(files, first_ns, INTEGER, "when the first one is")
QUERY(files, last_ns, INTEGER, "when the last one is")
QUERY(files, duration_ns, INTEGER, "between them")
QUERY(files, written, INTEGER, "records that were written")
QUERY(files, overwritten, INTEGER, "and overwritten")
QUERY(files, lost, INTEGER, "and lost")
QUERY_END(files)

QUERY_TABLE(critical_path,
	    "who waited for whom, back from the end of a task or between two marks: critical_path('TASK') "
	    "or critical_path('FROM..UNTIL')")
QUERY(critical_path, file, INTEGER, "number of the capture")
QUERY_TASK(critical_path)
QUERY(critical_path, what, TEXT, "what it did")
QUERY(critical_path, by, TEXT, "who woke it")
QUERY(critical_path, by_id, INTEGER, "its number")
QUERY(critical_path, by_name, TEXT, "its name")
QUERY(critical_path, waiter_tid, INTEGER, "who waited meanwhile: it, or who waited for it")
QUERY(critical_path, waiter, TEXT, "its name")
QUERY(critical_path, call, TEXT, "the system call in which that waited")
QUERY(critical_path, object, TEXT, "what kind of thing it waited for")
QUERY(critical_path, object_value, INTEGER, "the number or the address of that")
QUERY(critical_path, object_name, TEXT, "its name")
QUERY(critical_path, iowait, INTEGER, "whether Linux says that it waited for a disk")
QUERY(critical_path, at_ns, INTEGER, "when it began")
QUERY_TIMES(critical_path)
QUERY(critical_path, gap, INTEGER, "whether records are missing there")
OLD_QUERY(critical_path, of, TEXT)
QUERY_END(critical_path)

#undef MOMENT
#undef TIMES
#undef START
#undef TASK
#undef ENDED_TASK
#undef OBJECT
#undef CPU
#undef CPU_OR_NONE
#undef QUERY_TASK
#undef QUERY_TIMES
#undef QUERY_PLACE
#undef TABLE
#undef COLUMN
#undef WORDS
#undef MADE
#undef OLD
#undef END
#undef LOCAL_TABLE
#undef LOCAL
#undef LOCAL_WORDS
#undef LOCAL_END
#undef QUERY_TABLE
#undef QUERY
#undef OLD_QUERY
#undef QUERY_END
