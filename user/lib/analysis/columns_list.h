/* SPDX-License-Identifier: MIT */
/*
 * The tables of kbarman/columns.h and their columns, for whoever includes this file with macros of
 * their own:
 *
 *	TABLE(table, about)			begins a table
 *	COLUMN(table, column, type, about)	a column of it; type: one of the list in columns_tables.h
 *	WORDS(table, column, words, about)	a column with numbers of words, an array of columns_tables.c
 *	END(table)				ends it
 *
 * Times in ns are signed, as kb_barman_ns(); lengths are in ns as well. This file is included more than once.
 */

TABLE(records, "every record of the capture")
COLUMN(records, ticks, U64, "when, in ticks of the recorded clock")
COLUMN(records, ns, I64, "when")
COLUMN(records, cpu, U32, "CPU; 4294967295: none")
WORDS(records, type, type_words, "what it is; value: of series; detail: of wakeups, interrupts ...")
COLUMN(records, tid, U32,
       "the task of the record; of a switch: the next one; 0: the record has none")
END(records)

TABLE(switches, "task switches: tid left the CPU, next_tid runs")
COLUMN(switches, ns, I64, "when")
COLUMN(switches, cpu, U32, "CPU")
COLUMN(switches, known, BOOL, "whether it is known which task left: not where the CPU's records begin")
COLUMN(switches, tid, U32, "the task that left; 0 if it is not known")
COLUMN(switches, next_tid, U32, "the task that runs from now on")
COLUMN(switches, blocked, BOOL, "whether it waits; else it was preempted and could have run on")
WORDS(switches, state, state_words, "its state, a letter of ps(1)")
COLUMN(switches, prev_state, I32, "the same as its kernel stores it; -1: unknown")
COLUMN(switches, chain, LIST64, "its call chain as recorded: addresses, innermost first")
COLUMN(switches, frames, LIST32, "the same by name: rows of functions")
END(switches)

TABLE(samples, "readings of the counters, and where the code was")
COLUMN(samples, ns, I64, "when")
COLUMN(samples, cpu, U32, "CPU")
COLUMN(samples, tid, U32, "the task that ran")
COLUMN(samples, has_pc, BOOL, "whether it has an address")
COLUMN(samples, pc, U64, "that address; 0 if it has none")
COLUMN(samples, counters, LIST64,
       "increase of each counter of the CPU, in the order of events; 2^64-1: it has no value")
COLUMN(samples, chain, LIST64,
       "the call chain as recorded: addresses, innermost first: pc and its callers")
COLUMN(samples, frames, LIST32,
       "the same by name, with inlined functions if asked for: rows of functions")
END(samples)

TABLE(counters, "the same counters, a row each")
COLUMN(counters, ns, I64, "when")
COLUMN(counters, cpu, U32, "CPU")
COLUMN(counters, tid, U32, "the task that ran")
COLUMN(counters, event, U32, "number of the event: id of events")
COLUMN(counters, value, U64, "its increase; 2^64-1: it has no value")
COLUMN(counters, sampled, BOOL, "whether the reading has an address")
END(counters)

TABLE(halts, "a CPU begins to halt, or leaves its halt")
COLUMN(halts, ns, I64, "when")
COLUMN(halts, cpu, U32, "CPU")
COLUMN(halts, entered, BOOL, "whether it begins")
COLUMN(halts, idle_state, I32, "number of the idle state; -1: unknown")
END(halts)

TABLE(runs, "times in which a task ran on a CPU without a break")
COLUMN(runs, ns, I64, "when it began")
COLUMN(runs, end_ns, I64, "when it ended")
COLUMN(runs, cpu, U32, "CPU")
COLUMN(runs, tid, U32, "the task")
WORDS(runs, ended, end_words, "how it ended")
COLUMN(runs, next_tid, U32, "ended by a switch: the next task; else 0")
END(runs)

TABLE(idle, "times in which a CPU halted")
COLUMN(idle, ns, I64, "when it began")
COLUMN(idle, end_ns, I64, "when it ended")
COLUMN(idle, cpu, U32, "CPU")
COLUMN(idle, idle_state, I32, "number of the idle state; -1: unknown")
WORDS(idle, ended, end_words, "how it ended")
END(idle)

TABLE(gaps, "times in which records of a CPU are missing")
COLUMN(gaps, ns, I64, "when it began")
COLUMN(gaps, end_ns, I64, "when it ended")
COLUMN(gaps, cpu, U32, "CPU")
COLUMN(gaps, records, U64, "number of lost records")
WORDS(gaps, reason, reason_words, "why; unknown: it is not told, or there are several reasons")
END(gaps)

TABLE(wakeups,
       "wakeups (record --latency): tid ran on the CPU and woke woken_tid, or was interrupted")
COLUMN(wakeups, ns, I64, "when")
COLUMN(wakeups, cpu, U32, "CPU")
COLUMN(wakeups, tid, U32, "the task that ran; it woke if the context is task")
COLUMN(wakeups, woken_tid, U32, "the task that was woken")
COLUMN(wakeups, woken_cpu, U32, "where that ran last; a new one: where it may run")
COLUMN(wakeups, new, BOOL, "whether it may run for the first time")
WORDS(wakeups, context, context_words, "in what it was woken")
END(wakeups)

TABLE(interrupts, "handlers of interrupts, IPIs and softirqs, from begin to end; they nest")
COLUMN(interrupts, ns, I64, "when it began")
COLUMN(interrupts, end_ns, I64, "when it ended")
COLUMN(interrupts, own_ns, U64, "how long it ran, without what interrupted it")
COLUMN(interrupts, cpu, U32, "CPU")
COLUMN(interrupts, tid, U32, "the task in whose time it ran")
WORDS(interrupts, kind, handler_words, "what it is")
COLUMN(interrupts, id, U32, "number of the interrupt, IPI or softirq")
COLUMN(interrupts, depth, U32, "number of handlers that it interrupted")
COLUMN(interrupts, handler, U32, "row of handlers")
END(interrupts)

TABLE(series, "values of series over time: of programs, files and the kernel")
COLUMN(series, ns, I64, "when")
COLUMN(series, cpu, U32, "CPU; 4294967295: none")
COLUMN(series, tid, U32, "the task that ran")
COLUMN(series, series, U32, "row of series_names")
COLUMN(series, value, F64, "in the units of the series")
COLUMN(series, raw, U64, "the same as recorded, without its multiplier")
COLUMN(series, sampled, BOOL, "whether it came with a sample; else it has a record of its own")
END(series)

TABLE(details,
       "records that say what they are about: wakeups, migrations, interrupts, frequencies ...")
COLUMN(details, ns, I64, "when")
COLUMN(details, cpu, U32, "CPU; 4294967295: none")
COLUMN(details, tid, U32, "the task that ran")
WORDS(details, what, what_words, "what it is")
COLUMN(details, about_id, U32, "by what it is: the task, interrupt, softirq or idle state")
COLUMN(details, about_cpu, U32, "by what it is: see enum kb_what of kbarman/event.h")
WORDS(details, context, context_words, "in what it happened")
COLUMN(details, value, U64, "by what it is; of a frequency: kHz")
END(details)

TABLE(marks, "annotations and bookmarks of programs and people")
COLUMN(marks, ns, I64, "when")
COLUMN(marks, cpu, U32, "CPU; 4294967295: none")
COLUMN(marks, tid, U32, "who wrote it")
WORDS(marks, type, mark_words,
       "string: on its channel until the next one; bookmark: a moment; channel, group: its name")
COLUMN(marks, channel, U32, "number of the channel")
COLUMN(marks, group_id, U32, "number of the group")
COLUMN(marks, colour, U32, "0x1bRRGGBB; 0: none")
COLUMN(marks, text, TEXT, "what it says")
END(marks)

TABLE(functions, "what frames are: with each part those that are new")
COLUMN(functions, symbol, TEXT, "name; empty: unknown")
COLUMN(functions, image, TEXT, "path of the file, [kernel.kallsyms] or [MODULE]")
COLUMN(functions, kernel, BOOL, "whether it is of the kernel")
COLUMN(functions, inlined, BOOL, "whether it is inlined into the next frame")
COLUMN(functions, address, U64, "where a function of the kernel begins; 0 for others")
COLUMN(functions, file, TEXT, "source file; empty: unknown or not asked for")
COLUMN(functions, line, U32, "its line; 0: the same")
END(functions)

TABLE(handlers, "what handlers of interrupts are: with each part those that are new")
WORDS(handlers, kind, handler_words, "what it is")
COLUMN(handlers, id, U32, "number of the interrupt, IPI or softirq")
COLUMN(handlers, behind, U32, "handlers of the same interrupt behind it")
COLUMN(handlers, name, TEXT, "its name")
END(handlers)

TABLE(tasks, "names of tasks, each from a time on; in the first part")
COLUMN(tasks, tid, U32, "number of the task")
COLUMN(tasks, pid, U32, "number of its process; that of the task if it is not known")
COLUMN(tasks, task, TEXT, "its name")
COLUMN(tasks, since_ns, I64, "since when")
COLUMN(tasks, ticks, U64, "the same in ticks")
END(tasks)

TABLE(images, "mappings of code; in the first part")
COLUMN(images, tid, U32,
       "whose: a process (fact maps=process) or a thread; 0: the kernel's, for every task")
COLUMN(images, since_ns, I64, "since when")
COLUMN(images, ticks, U64, "the same in ticks")
COLUMN(images, address, U64, "first address")
COLUMN(images, length, U64, "bytes")
COLUMN(images, offset, U64, "of the first address in the file")
COLUMN(images, image, TEXT, "path of the file")
COLUMN(images, identity, TEXT,
       "which file of this path: MAJOR:MINOR:INODE:SIZE:MTIME; empty: not known")
END(images)

TABLE(series_names, "what values of series are; in the first part")
COLUMN(series_names, name, TEXT, "its name")
COLUMN(series_names, units, TEXT, "units of its values")
COLUMN(series_names, description, TEXT, "about it")
WORDS(series_names, kind, series_words,
       "what a value says: a change, an amount at that moment, or the level from then on")
COLUMN(series_names, multiplier, F64, "what raw values are multiplied by")
END(series_names)

TABLE(events, "what the counters of samples count; in the first part")
COLUMN(events, cpu, U32, "CPU")
COLUMN(events, place, U32, "in the counters of its samples; the first one takes the samples")
COLUMN(events, id, U32, "number of the event: the same for events of one name")
COLUMN(events, name, TEXT, "its name")
END(events)

TABLE(losses, "what is missing, as the capture tells; in the first part")
WORDS(losses, kind, loss_words,
       "lost, overwritten, written: records; missed: rows of tables; stopped: how often "
       "the first counter stopped")
COLUMN(losses, cpu, U32, "CPU; 4294967295: of all CPUs")
COLUMN(losses, what, TEXT, "the reason, or what was missed")
COLUMN(losses, count, U64, "how many")
END(losses)

TABLE(facts, "the strings kbarman.KEY=VALUE of the capture; in the first part")
COLUMN(facts, key, TEXT, "KEY")
COLUMN(facts, value, TEXT, "VALUE")
END(facts)

TABLE(header, "the header: one row, in the first part")
COLUMN(header, target, TEXT, "name of the target")
COLUMN(header, version, U32, "of the protocol")
COLUMN(header, word_size, U32, "4 or 8")
COLUMN(header, big_endian, BOOL, "byte order")
COLUMN(header, cpus, U32, "number of CPUs there is room for")
COLUMN(header, sample_rate, U32, "Hz")
COLUMN(header, timestamp_base, U64, "ticks at which ns is 0")
COLUMN(header, unix_base_ns, U64, "the wall clock then: ns since 1970")
COLUMN(header, last_timestamp, U64, "ticks")
END(header)
