/* SPDX-License-Identifier: MIT */
/*
 * Triggers: which moments of a running recording are worth a capture. An expression says what to
 * look for, a detector finds it in records, and a watch does both with a session in overwrite mode:
 * it reads the rings while the kernel writes them, and writes a capture of the time around the
 * moment, with the reason inside.
 *
 *	latency>5ms		a task waited longer for a CPU, after a wakeup or a preemption
 *	latency:NAME>5ms	... a task of this name
 *	wakeup>5ms, wakeup:NAME>5ms	the same after wakeups only
 *	irq>1ms, irq:NAME>1ms	an interrupt handler, an IPI or a softirq took longer
 *	offcpu:NAME>1s		a task was off its CPU for longer, whatever it waited for
 *	wait:NAME>5ms		a task waited longer in this system call, or for such an object: futex,
 *				file, pipe, socket, mutex, ...
 *	syscall:NAME>20ms	this system call took longer
 *	block:NAME>10ms		a request to this disk took longer
 *	counter:NAME>1M/s	a counter of the PMU or a series of values grew faster, on all CPUs
 *				together, in a tenth of a second
 *	counter:NAME>80		a series of values has such a value
 *	mark:NAME		an annotation or a bookmark with this text
 *	psi:cpu>10%		tasks stalled for that part of a second: cpu, memory or io (PSI of
 *				Linux); psi:memory.full>10%: all of them; >10%/2s: of two seconds
 *	signal:USR1		a signal that the program got: it tells the watch
 *	boot:crash		the boot before this one ended with a crash: for kbarmand(8), a watch does not look
 *
 * A NAME may have '*' (any text) and '?' (any character). Times have a suffix: ns, us, ms, s.
 * Numbers may have k, M or G. kbarman-flight(1) is the reference.
 *
 * A watch in a program with a loop of its own:
 *
 *	kb_triggers_create(&triggers, &err);
 *	kb_triggers_add(triggers, "latency>5ms", &err);
 *	... configure and start a session with kb_triggers_sources(triggers) ...
 *	kb_watch_create(&watch, device, triggers, &options, &err);
 *	whenever kb_watch_fd(watch) is readable:
 *		kb_watch_serve(watch, &err);
 *		while (kb_watch_due(watch, &nr)) {
 *			... open a file: kb_watch_name(watch, name, sizeof(name)) ...
 *			kb_watch_write(watch, fd, &written, &err);
 *		}
 *	kb_watch_destroy(watch);
 *
 * Functions return 0 or a negative errno and fill @err, unless they say otherwise. One thread at a
 * time may use a watch or a detector, and what they were made with. Later versions of the library
 * may add members at the ends of the structs that it fills in or that have a size.
 */
#ifndef KBARMAN_TRIGGER_H
#define KBARMAN_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/device.h>
#include <kbarman/error.h>
#include <kbarman/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- expressions ---- */

enum kb_trigger_kind {
	KB_TRIGGER_LATENCY,
	KB_TRIGGER_WAKEUP,
	KB_TRIGGER_IRQ,
	KB_TRIGGER_OFF_CPU,
	KB_TRIGGER_COUNTER,
	KB_TRIGGER_MARK,
	KB_TRIGGER_PSI,
	KB_TRIGGER_SIGNAL,
	KB_TRIGGER_WAIT,
	KB_TRIGGER_SYSCALL,
	KB_TRIGGER_BLOCK,
	KB_TRIGGER_BOOT,
};

/* An expression. It belongs to its kb_triggers. */
struct kb_trigger {
	enum kb_trigger_kind kind;
	const char *text;	/* as it was given */
	const char *name;	/* of a task, an interrupt, a system call or object, a disk, a counter,
				 * a mark, a file of /proc/pressure; NULL: any */
	uint64_t limit;		/* psi: us in window_us; counter: see `scale`; others: ns */
	double scale;		/* counter: the limit as a number; per second if is_rate */
	bool is_rate;
	bool is_full;		/* psi: all tasks stall, not some */
	uint64_t window_us;	/* psi */
	int signal;
};

/* A list of expressions. */
struct kb_triggers;

/* Create an empty list. -ENOMEM. */
int kb_triggers_create(struct kb_triggers **out, struct kb_error *err);

/* Free @triggers, which may be NULL, with its expressions. */
void kb_triggers_destroy(struct kb_triggers *triggers);

/*
 * Add @expression. -EINVAL: it is none; the sentence in @err says what is wrong and what to write
 * instead.
 */
int kb_triggers_add(struct kb_triggers *triggers, const char *expression, struct kb_error *err);

/* The number of expressions, and number @i of them, in the order in which they were added. */
uint32_t kb_triggers_nr(const struct kb_triggers *triggers);
const struct kb_trigger *kb_triggers_get(const struct kb_triggers *triggers, uint32_t i);

/* What a session has to record for them beside its usual sources: KBARMAN_SOURCE_* of uapi/kbarman.h. */
uint32_t kb_triggers_sources(const struct kb_triggers *triggers);

/* Whether it has to record what tasks wait for: KBARMAN_CONFIGURE_OBJECTS. */
bool kb_triggers_need_objects(const struct kb_triggers *triggers);

/* ---- what fired ---- */

#define KB_FIRED_REASON	240

/* A moment that an expression describes. */
struct kb_fired {
	const struct kb_trigger *trigger;
	int64_t ns;		/* the moment, as kb_barman_ns() */
	uint64_t ticks;		/* the same in ticks: the time of the record that told it */
	bool has_record;	/* else no record told it: psi, a signal, or a wait that goes on */
	uint32_t core;		/* of the record, or on which it happened; KB_CORE_NONE: on none */
	uint32_t task_id;	/* who waited, was interrupted, wrote the mark; 0: nobody */
	uint64_t measured;	/* ns; counter: the value, rounded, or the rate; else 0 */
	char reason[KB_FIRED_REASON];	/* a clause in plain words, valid UTF-8 without control
					 * characters: "'sh' (1234) waited 7.2 ms for CPU 1 after
					 * a wakeup" */
};

/* ---- records ---- */

/* Finds the moments in the records of a trace. */
struct kb_detector;

struct kb_detector_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	/*
	 * Threads whose own waits do not count, and whose time on a CPU is no part of the waits of
	 * others there. NULL: none. It must live as long as the detector.
	 */
	bool (*is_own)(void *context, uint32_t task_id);
	void *context;
	bool only_some;		/* only chosen tasks are recorded, whatever the capture says */
};

/*
 * Begin with the first record of @trace, and read what is needed before: a capture that lacks records
 * is read for its gaps. The caller makes the walk. @triggers and @trace must live as long. @options
 * may be NULL. A counter that the capture does not know never fires.
 */
int kb_detector_create(struct kb_detector **out, const struct kb_triggers *triggers,
		       struct kb_trace *trace, const struct kb_detector_options *options,
		       struct kb_error *err);
void kb_detector_destroy(struct kb_detector *detector);	/* may be NULL */

/* Take the record that kb_trace_next() gave last. Returns 0 or -ENOMEM. */
int kb_detector_feed(struct kb_detector *detector, const struct kb_walk *walk);

/*
 * It is @ns, as kb_barman_ns(): all records up to then were fed. Waits that are longer than their
 * limit by then fire although they go on. Returns 0 or -ENOMEM.
 */
int kb_detector_time(struct kb_detector *detector, int64_t ns);

/*
 * The next moment, in the order in which they were found, that is not behind @until ns. A wait in
 * which records are missing is none: call it with an @until up to which losses are known. Returns
 * false if there is none; else fills @fired.
 */
bool kb_detector_fired(struct kb_detector *detector, int64_t until, struct kb_fired *fired);

/* ---- a running session ---- */

/* Watches a running session in overwrite mode. */
struct kb_watch;

/* Usual values of the options. */
#define KB_WATCH_BEFORE_NS	UINT64_C(2000000000)
#define KB_WATCH_AFTER_NS	UINT64_C(500000000)
#define KB_WATCH_EVERY_NS	UINT64_C(60000000000)

struct kb_watch_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	uint64_t before_ns;	/* a capture begins so long before the moment, if the rings reach
				 * back so far; 0: with the oldest record of the rings */
	uint64_t after_ns;	/* and ends so long after it; sooner if the rings would overwrite the
				 * moment */
	uint64_t off_cpu_min_ns;	/* as of kb_recorder_off_cpu_min(); 0: chains of all waits */
	uint64_t every_ns;	/* no capture begins sooner after the last one; what fires meanwhile
				 * is counted; 0: all have their captures */
	uint32_t notes;		/* KB_NOTE_* of kbarman/recorder.h; 0: none */
};

/*
 * Watch the session that calls on @device are about: it is in overwrite mode, and runs. @device and
 * @triggers must live as long. The program's own threads trigger nothing. -ENOTSUP: this kernel has
 * no PSI; -EACCES, -EPERM: no right to use it; -EINVAL: the session is in another mode, or lacks a
 * source that an expression needs.
 */
int kb_watch_create(struct kb_watch **out, struct kb_device *device,
		    const struct kb_triggers *triggers, const struct kb_watch_options *options,
		    struct kb_error *err);
void kb_watch_destroy(struct kb_watch *watch);	/* may be NULL; drops what is not written */

/* Whether expression @i can fire: a counter is known as soon as the session has one of its name. */
bool kb_watch_knows(const struct kb_watch *watch, uint32_t i);

/* For poll(): POLLIN when kb_watch_serve() has something to do. It belongs to @watch. */
int kb_watch_fd(const struct kb_watch *watch);

/* Read what is new. -EPIPE: the session has ended. */
int kb_watch_serve(struct kb_watch *watch, struct kb_error *err);

/*
 * The program got @signal (signalfd, or a flag that its handler has set). Returns whether an
 * expression names it.
 */
bool kb_watch_signal(struct kb_watch *watch, int signal);

/* Read the last records of a session that was stopped, and let all that fired be due now. */
int kb_watch_finish(struct kb_watch *watch, struct kb_error *err);

/*
 * What the capture is about that is due now: the moment that began it, and those that came up to
 * its end. Sets *@nr to their number; NULL: none is due. It holds until the next call but
 * kb_watch_name().
 */
const struct kb_fired *kb_watch_due(const struct kb_watch *watch, uint32_t *nr);

/*
 * A name for the file of that capture: the time of the moment and what fired, as in
 * "20261126T004512.345-latency.cap". Returns @name.
 */
char *kb_watch_name(const struct kb_watch *watch, char *name, size_t size);

struct kb_watch_written {
	uint64_t records;
	uint64_t before_ns, after_ns;	/* what the capture has before and after the moment */
	bool has_moment;	/* false: the rings had overwritten it */
	bool cut;		/* it begins later than asked for: the rings do not reach back so far */
	uint64_t damaged;	/* how often a part of a ring could not be read */
};

/*
 * Write that capture to @fd, an empty regular file: a Barman capture like that of kb_recorder_freeze(),
 * with bookmarks at the moments and the facts kbarman.trigger.* (kbarman-formats(5)). Also after
 * an error nothing is due any more, and the moments are counted as failed.
 */
int kb_watch_write(struct kb_watch *watch, int fd, struct kb_watch_written *written,
		   struct kb_error *err);

/* Give up the capture that is due: its moments are counted as failed. */
void kb_watch_drop(struct kb_watch *watch);

struct kb_watch_totals {
	uint64_t fired;		/* moments; = kept + suppressed + failed + those that wait */
	uint64_t kept;		/* moments in captures */
	uint64_t captures;
	uint64_t suppressed;	/* moments that came too soon after the last capture */
	uint64_t failed;	/* moments whose capture could not be written */
	uint64_t lost_bytes;	/* of the rings that were overwritten before they were read */
	uint64_t lost_times;	/* how often that happened: triggers there were not seen */
	uint64_t lost_records;	/* that the session could not record */
	uint64_t records;	/* that were read */
};

/* Fill @totals with the numbers so far. */
void kb_watch_totals(const struct kb_watch *watch, struct kb_watch_totals *totals);

#ifdef __cplusplus
}
#endif

#endif
