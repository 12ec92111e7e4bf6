/* SPDX-License-Identifier: MIT */
/*
 * A capture with all that belongs to it: the reader, the tasks, the names of counters, what is
 * lost, the symbols, and one walk over its records that knows what each record means. Each part is
 * made when it is first asked for, and only once.
 *
 *	const struct kb_walk *walk;
 *	struct kb_trace *trace;
 *	struct kb_error err;
 *
 *	if (kb_trace_open(&trace, "kbarman.cap", NULL, &err))
 *		errx(1, "%s", kb_error_text(&err));
 *	while (kb_trace_next(trace, &walk, &err) > 0)
 *		if (walk->event.type == KB_EVENT_TASK_SWITCH)
 *			printf("%.6f s, CPU %u: task %u\n", walk->ns / 1e9, walk->event.core,
 *			       walk->event.task_id);
 *	kb_trace_close(trace);
 *
 * A trace of a live device is opened by kb_trace_open_device() of kbarman/recorder.h.
 *
 * The trace owns everything that its functions return; it holds until kb_trace_close(), unless they
 * say otherwise. One thread at a time may use a trace, and different threads may use different
 * traces. Functions that return a pointer return NULL and fill @err if there is no memory.
 */
#ifndef KBARMAN_TRACE_H
#define KBARMAN_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/barman.h>
#include <kbarman/error.h>
#include <kbarman/event.h>
#include <kbarman/symbol.h>
#include <kbarman/tasks.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kb_trace;

/* How to open a capture. All zero behind `size` is the default. */
struct kb_trace_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	/*
	 * Where names come from; NULL: the default. It is copied; its strings must live as long as
	 * the trace. A cache in it serves one trace at a time: see kbarman/symbol.h.
	 */
	const struct kb_symbol_options *symbols;
	enum kb_counters counters;	/* what counter values of the file are */
};

/*
 * Open the capture at @path, "-" for standard input. @options may be NULL. Errors are those of
 * kb_barman_open(), and -EINVAL if options->size is not that of a version of the struct.
 */
int kb_trace_open(struct kb_trace **out, const char *path, const struct kb_trace_options *options,
		  struct kb_error *err);

/*
 * The same for @size bytes at @data, for example a copy of the map of a CPU. They stay the caller's
 * and must live until kb_trace_close().
 */
int kb_trace_open_memory(struct kb_trace **out, const void *data, size_t size,
			 const struct kb_trace_options *options, struct kb_error *err);

/* Free the trace and all that belongs to it. @trace may be NULL. */
void kb_trace_close(struct kb_trace *trace);

/*
 * The reader. A program that reads records with it, or goes to another record, does not use
 * kb_trace_next() before the next kb_trace_rewind().
 */
struct kb_barman *kb_trace_barman(const struct kb_trace *trace);

/* The header of the capture. */
const struct kb_header *kb_trace_header(const struct kb_trace *trace);

/* The tasks, with their names over time. */
const struct kb_tasks *kb_trace_tasks(struct kb_trace *trace, struct kb_error *err);

/*
 * What gives addresses their names. An error in the options of symbols, such as a list of kernel
 * symbols that can't be read, comes from here, too.
 */
struct kb_symbolizer *kb_trace_symbolizer(struct kb_trace *trace, struct kb_error *err);

/* ---- what happened ---- */

enum kb_slice_kind {
	KB_SLICE_RUN,		/* a task runs */
	KB_SLICE_IDLE,		/* the CPU halts */
	KB_SLICE_LOST,		/* records are missing, so the state is unknown */
};

enum kb_slice_end {
	KB_END_PREEMPTED,	/* a switch, with its reason */
	KB_END_BLOCKED,
	KB_END_HALT,		/* the CPU halts or changes its idle state */
	KB_END_RESUME,		/* the CPU leaves the halt */
	KB_END_LOST,		/* records are missing from here on */
	KB_END_FOUND,		/* the record with the number of missing records */
	KB_END_CAPTURE,		/* the capture ends */
};

/*
 * A time in which a CPU did one thing. The slices of a CPU cover its time from the first record
 * that says which task runs to the end, without overlaps, and without gaps but those in which it was
 * offline.
 */
struct kb_slice {
	enum kb_slice_kind kind;
	enum kb_slice_end how;		/* how it ended */
	uint32_t core;
	uint32_t task_id;		/* run, and idle if has_task */
	bool has_task;
	int idle_state;			/* idle: cpuidle index, or KB_STATE_UNKNOWN */
	int prev_state;			/* ended by a switch: see struct kb_event */
	uint32_t next_task;		/* ended by a switch: the next task */
	int64_t start, end;		/* ns, as kb_barman_ns(); end >= start */
	uint64_t lost;			/* of kind lost: number of records */
	uint8_t reason;			/* of kind lost: why, as kb_loss_name() counts, + 1; 0: not
					 * known, or for several reasons */
};

#define KB_WALK_SLICES	2		/* one record ends at most so many slices */

/* A record, and what the records before it say of it. */
struct kb_walk {
	struct kb_event event;		/* its pointers hold until the next record */
	int64_t ns;			/* its time, as kb_barman_ns() */
	bool known;			/* whether it is known which task ran on its CPU before */
	uint32_t running;		/* that task; 0 if it is not known */
	unsigned int nr_slices;
	struct kb_slice slices[KB_WALK_SLICES];	/* those that end with the record */
};

/*
 * Go to the next record, in the order of the capture, and set *@walk to it; it holds until the next
 * call. Returns what kb_barman_next() returns: 1; 0 at the end; a negative errno once at the end if
 * records were damaged. After the last record kb_trace_end() gives the slices that are open.
 */
int kb_trace_next(struct kb_trace *trace, const struct kb_walk **walk, struct kb_error *err);

/* Call it after the last record until it returns false: fills @slice with the next open one. */
bool kb_trace_end(struct kb_trace *trace, struct kb_slice *slice);

/*
 * Begin again with the first record. Returns 0, -ESPIPE and a sentence if the capture came from a
 * pipe and was read already, or -ENOMEM.
 */
int kb_trace_rewind(struct kb_trace *trace, struct kb_error *err);

/*
 * The recorded time, ns as kb_barman_ns(): from the first to the last moment of the session, as far
 * as the capture has them. Complete after kb_trace_end() has returned false.
 */
int64_t kb_trace_first(const struct kb_trace *trace);
int64_t kb_trace_last(const struct kb_trace *trace);

/* From first to last, ns; a hostile capture may have up to 2^64 - 1. */
uint64_t kb_trace_duration(const struct kb_trace *trace);

/*
 * The functions at @frame of the call chain of the current record, a sample with a PC or a task
 * switch, as kb_symbolizer_frames() returns them. @frame is below kb_chain_depth(), 0 is the
 * innermost one. The task of the chain is the right one, also of a switch, and the address is that
 * of the call, also of a caller: nothing has to be stepped back. Returns the number of @frames, or
 * a negative errno if kb_trace_symbolizer() fails.
 */
int kb_trace_frames(struct kb_trace *trace, uint32_t frame, const struct kb_frame **frames);

/*
 * What kb_symbolizer_save() does, for the finished capture at @capture, with every image that its
 * samples and call chains hit. @say (may be NULL) is called with one sentence for each image that
 * is left out. Returns 0; 1 if the capture is damaged (@err says where); or a negative errno:
 * -ENOENT if it was removed meanwhile, and nothing is saved.
 */
int kb_capture_save_symbols(const char *capture, const struct kb_symbol_options *options,
			    void (*say)(void *context, const char *sentence), void *context,
			    struct kb_error *err);

#ifdef __cplusplus
}
#endif

#endif
