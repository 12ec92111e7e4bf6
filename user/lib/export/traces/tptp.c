// SPDX-License-Identifier: MIT
/*
 * A capture as a TPTP trace. The machine is the process, and tasks are its threads. The idle
 * task of CPU c is thread -(c + 1). Images are classes, and symbols are methods.
 *
 * A sample shows where a thread is, but not since when. So the method is entered at the sample,
 * and left at the thread's next sample or when the thread leaves the CPU. With a call chain
 * this applies to the whole stack: only methods that changed are left and entered. The
 * innermost method is always entered anew, so the number of its entries is the number of
 * samples.
 *
 * Guarantees: definitions come before uses; each exit closes the innermost open entry of its
 * thread and has the ticket of that entry; ids and tickets are below 2^31; names of classes and
 * methods have no blanks.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/io/out_packet.h"
#include "export/label.h"
#include "export/list.h"
#include "export/run.h"
#include "export/traces/tptp_ends.h"
#include "export/traces/tptp_methods.h"
#include "export/traces/tptp_threads.h"
#include "format/barman/inside.h"
#include "format/tptp/codec.h"
#include "format/wire.h"

#define MAX_FRAMES	512		/* of a call chain; further outer frames are left out */
#define BODY_BYTES	65536		/* of a custom message */

struct frame {
	uint32_t method;
	int32_t ticket;
};

/* A CPU and the thread whose methods are open there, outermost first. */
struct cpu {
	int64_t holder;
	int64_t now;			/* time of its last record, in the trace's time */
	int64_t since;			/* aggregate: time of the sample */
	struct tptp_thread *current;	/* thread of the last switch; its struct may be reused
					 * for another thread */
	uint32_t nr, room;
	struct frame *frames;
	bool halted;			/* monWait of the idle thread was written */
};

struct task_exit {
	int64_t time;
	uint32_t task_id;
};

struct tptp {
	KB_RUN;
	struct kb_tptp_writer *writer;
	struct tptp_methods *methods;
	struct tptp_threads *threads;
	int64_t base;			/* Unix time of the start of the capture's clock */
	struct cpu *cpus;		/* max_cores, and one for records without a core */
	struct task_exit *exits;	/* ordered by time */
	uint32_t nr_exits, next_exit;
	int32_t ticket;
	uint32_t chain[MAX_FRAMES];	/* methods of a sample, outermost first */
	char *body;			/* BODY_BYTES */
	uint64_t cut_texts, cut_chains, cut_sums;

	/* Of the record that is written. */
	int64_t now;
	struct cpu *cpu;
	struct tptp_thread *thread;	/* NULL: it says of none */
	char *common;			/* behind the beginning of the bodies of a sample's counters */

	/* Frequent messages. Fields that never change are set once. */
	struct kb_tptp_message entry, leave, wait, left, contend, contended, custom;
};

#define SINK struct tptp
#include "export/sink.h"

static int64_t trace_time(const struct tptp *x, int64_t ns)
{
	int64_t time;

	if (__builtin_add_overflow(x->base, ns, &time))
		return ns < 0 ? INT64_MIN : INT64_MAX;
	return time;
}

static struct cpu *cpu_of(struct tptp *x, uint32_t core)
{
	return &x->cpus[core < x->header->max_cores ? core : x->header->max_cores];
}

static uint32_t core_of(const struct tptp *x, const struct cpu *cpu)
{
	return cpu - x->cpus;
}

/* ---- methods ---- */

static void write_entry(struct tptp *x, int64_t thread, const struct frame *frame,
			uint32_t depth, int64_t time)
{
	union kb_tptp_value *v = x->entry.values;

	v[KB_TPTP_METHOD_ENTRY_THREAD_ID].number = thread;
	v[KB_TPTP_METHOD_ENTRY_TIMESTAMP].number = time;
	v[KB_TPTP_METHOD_ENTRY_METHOD_ID].number = frame->method;
	v[KB_TPTP_METHOD_ENTRY_TICKET].number = frame->ticket;
	v[KB_TPTP_METHOD_ENTRY_CLASS_ID].number = tptp_methods_class(x->methods, frame->method);
	v[KB_TPTP_METHOD_ENTRY_STACK_DEPTH].number = depth;
	kb_tptp_writer_message(x->writer, &x->entry);
}

static void write_exit(struct tptp *x, int64_t thread, const struct frame *frame, int64_t time)
{
	union kb_tptp_value *v = x->leave.values;

	v[KB_TPTP_METHOD_EXIT_THREAD_ID].number = thread;
	v[KB_TPTP_METHOD_EXIT_TIMESTAMP].number = time;
	v[KB_TPTP_METHOD_EXIT_METHOD_ID].number = frame->method;
	v[KB_TPTP_METHOD_EXIT_TICKET].number = frame->ticket;
	v[KB_TPTP_METHOD_EXIT_CLASS_ID].number = tptp_methods_class(x->methods, frame->method);
	kb_tptp_writer_message(x->writer, &x->leave);
}

static void write_sums(struct tptp *x, struct tptp_thread *thread)
{
	struct kb_tptp_message message;
	struct tptp_sum sum;

	while (tptp_threads_take(x->threads, thread, &sum)) {
		kb_tptp_message_init(&message, KB_TPTP_AG_METHOD_ENTRY);
		message.values[KB_TPTP_AG_METHOD_ENTRY_THREAD_ID].number = thread->id;
		message.values[KB_TPTP_AG_METHOD_ENTRY_METHOD_ID].number = sum.method;
		message.values[KB_TPTP_AG_METHOD_ENTRY_BASE_TIME].number = sum.base;
		message.values[KB_TPTP_AG_METHOD_ENTRY_MINIMUM_TIME].number = sum.minimum;
		message.values[KB_TPTP_AG_METHOD_ENTRY_MAXIMUM_TIME].number = sum.maximum;
		message.values[KB_TPTP_AG_METHOD_ENTRY_BASE_CPU_TIME].number = sum.base;
		message.values[KB_TPTP_AG_METHOD_ENTRY_NUMBER_OF_CALLS].number = sum.calls;
		kb_tptp_writer_message(x->writer, &message);
		kb_tptp_message_init(&message, KB_TPTP_AG_METHOD_EXIT);
		message.values[KB_TPTP_AG_METHOD_EXIT_THREAD_ID].number = thread->id;
		message.values[KB_TPTP_AG_METHOD_EXIT_METHOD_ID].number = sum.method;
		kb_tptp_writer_message(x->writer, &message);
	}
}

static void write_all_sums(struct tptp *x)
{
	struct tptp_thread *thread;
	uint32_t at = 0;

	while ((thread = tptp_threads_next(x->threads, &at)))
		write_sums(x, thread);
}

static void add_sum(struct tptp *x, struct tptp_thread *thread, uint32_t method, int64_t ns)
{
	if (tptp_threads_add(x->threads, thread, method, ns))
		return;
	write_all_sums(x);
	x->cut_sums++;
	tptp_threads_add(x->threads, thread, method, ns);
}

/* Time from @since to @time. It saturates. */
static int64_t time_spent(int64_t since, int64_t time)
{
	int64_t ns;

	return __builtin_sub_overflow(time, since, &ns) ? INT64_MAX : ns;
}

/* Leave the open methods on @cpu except the outermost @keep. */
static void leave_methods(struct tptp *x, struct cpu *cpu, uint32_t keep, int64_t time)
{
	struct tptp_thread *holder;

	if (!cpu->nr)
		return;
	holder = tptp_threads_find(x->threads, cpu->holder);
	if (x->options->aggregate) {
		if (holder && time >= cpu->since)
			add_sum(x, holder, cpu->frames[0].method, time_spent(cpu->since, time));
		cpu->nr = 0;
	}
	while (cpu->nr > keep) {
		cpu->nr--;
		write_exit(x, cpu->holder, &cpu->frames[cpu->nr], time);
	}
	if (!cpu->nr && holder)
		holder->held_on = 0;
}

/* Number of outermost methods that stay open; never includes the innermost of either stack. */
static uint32_t common_methods(const struct tptp *x, const struct cpu *cpu, uint32_t nr)
{
	uint32_t same = 0;

	while (same < cpu->nr && same + 1 < nr && cpu->frames[same].method == x->chain[same])
		same++;
	return same;
}

/* Open the first @nr methods of x->chain for @thread, and leave those that changed. */
static void hold_methods(struct tptp *x, struct cpu *cpu, struct tptp_thread *thread, uint32_t nr,
			 int64_t time)
{
	bool aggregate = x->options->aggregate;

	if (cpu->nr && cpu->holder != thread->id)
		leave_methods(x, cpu, 0, time);		/* a switch that was not recorded */
	if (thread->held_on && thread->held_on != core_of(x, cpu) + 1)
		leave_methods(x, &x->cpus[thread->held_on - 1], 0, time);
	if (!KB_ARRAY_ROOM(cpu->frames, cpu->room, nr)) {
		x->no_memory = true;
		return;
	}
	leave_methods(x, cpu, aggregate ? 0 : common_methods(x, cpu, nr), time);
	cpu->holder = thread->id;
	cpu->since = time;
	thread->held_on = core_of(x, cpu) + 1;
	if (aggregate) {
		cpu->frames[cpu->nr++].method = x->chain[nr - 1];
		return;
	}
	while (cpu->nr < nr) {
		struct frame *frame = &cpu->frames[cpu->nr];

		frame->method = x->chain[cpu->nr];
		frame->ticket = x->ticket;
		x->ticket = x->ticket == INT32_MAX ? 1 : x->ticket + 1;
		cpu->nr++;
		write_entry(x, thread->id, frame, cpu->nr, time);
	}
}

/* ---- threads ---- */

static void write_thread_start(struct tptp *x, struct tptp_thread *thread, uint32_t core,
			       uint64_t timestamp, int64_t time)
{
	struct kb_tptp_message message;
	char name[256];
	int length;

	if (thread->id < 0) {
		length = snprintf(name, sizeof(name), x->header->max_task_infos ? "swapper/%u" :
				  "cpu %u", core);
		kb_tptp_message_init(&message, KB_TPTP_THREAD_START);
		message.values[KB_TPTP_THREAD_START_GROUP_NAME].string = kb_text("swapper");
	} else {
		const struct kb_task_name *task = kb_names_task(x->trace->names, thread->id, timestamp);
		uint32_t tgid = task->tgid;

		/* The second one may overwrite the first. */
		length = kb_label(name, sizeof(name), task->name.data, task->name.length, false);
		kb_tptp_message_init(&message, KB_TPTP_THREAD_START);
		message.values[KB_TPTP_THREAD_START_GROUP_NAME].string =
			kb_names_task(x->trace->names, tgid, timestamp)->name;
	}
	message.values[KB_TPTP_THREAD_START_THREAD_ID].number = thread->id;
	message.values[KB_TPTP_THREAD_START_TIMESTAMP].number = time;
	message.values[KB_TPTP_THREAD_START_THREAD_NAME].string = (struct kb_text){ name, length };
	kb_tptp_writer_message(x->writer, &message);
	tptp_threads_announce(x->threads, thread, true);
}

/* The thread of a task on @core. A new one is announced. */
static struct tptp_thread *thread_of(struct tptp *x, uint32_t task_id, uint32_t core,
				     uint64_t timestamp, int64_t time)
{
	int64_t id = task_id ? (int64_t)task_id : -(int64_t)core - 1;
	struct tptp_thread *thread = x->cpus[core].current;

	if (thread && thread->id == id && thread->used && thread->announced)
		return thread;
	thread = tptp_threads_get(x->threads, id);
	if (!thread) {
		struct tptp_thread *victim = tptp_threads_victim(x->threads);

		if (victim->held_on)
			leave_methods(x, &x->cpus[victim->held_on - 1], 0, time);
		write_sums(x, victim);
		tptp_threads_forget(x->threads, victim);
		thread = tptp_threads_get(x->threads, id);
	}
	if (!thread->announced)
		write_thread_start(x, thread, core, timestamp, time);
	return thread;
}

static void end_thread(struct tptp *x, struct tptp_thread *thread, int64_t time)
{
	struct kb_tptp_message message;

	if (thread->held_on)
		leave_methods(x, &x->cpus[thread->held_on - 1], 0, time);
	write_sums(x, thread);
	kb_tptp_message_init(&message, KB_TPTP_THREAD_END);
	message.values[KB_TPTP_THREAD_END_THREAD_ID].number = thread->id;
	message.values[KB_TPTP_THREAD_END_TIMESTAMP].number = time;
	kb_tptp_writer_message(x->writer, &message);
	tptp_threads_announce(x->threads, thread, false);
	tptp_threads_forget(x->threads, thread);
}

/* End threads that have exited by now. Those that still run end with their slice. */
static void end_exited(struct tptp *x, int64_t time)
{
	while (x->next_exit < x->nr_exits && x->exits[x->next_exit].time <= time) {
		const struct task_exit *e = &x->exits[x->next_exit++];
		struct tptp_thread *thread = tptp_threads_find(x->threads, e->task_id);

		if (!thread || !thread->announced)
			continue;
		if (thread->running)
			thread->ending = true;
		else
			end_thread(x, thread, e->time);
	}
}

_Static_assert((int)KB_TPTP_MON_WAITED_THREAD_ID == (int)KB_TPTP_MON_WAIT_THREAD_ID &&
	       (int)KB_TPTP_MON_CONTENDED_ENTER_TIMESTAMP == (int)KB_TPTP_MON_WAIT_TIMESTAMP &&
	       (int)KB_TPTP_MON_CONTENDED_ENTERED_OBJECT_ID == (int)KB_TPTP_MON_WAIT_OBJECT_ID,
	       "messages about monitors begin with the same fields");

/* One of the four messages about a monitor. */
static void write_monitor(struct tptp *x, struct kb_tptp_message *message, int64_t thread,
			  uint64_t object, int64_t time)
{
	message->values[KB_TPTP_MON_WAIT_THREAD_ID].number = thread;
	message->values[KB_TPTP_MON_WAIT_TIMESTAMP].number = time;
	message->values[KB_TPTP_MON_WAIT_OBJECT_ID].number = object;
	kb_tptp_writer_message(x->writer, message);
}

static void switch_in(struct tptp *x, struct tptp_thread *thread, int64_t time)
{
	if (thread->waits == TPTP_WAITS)
		write_monitor(x, &x->left, thread->id, thread->object, time);
	else if (thread->waits == TPTP_CONTENDS)
		write_monitor(x, &x->contended, thread->id, thread->object, time);
	thread->waits = TPTP_WAITS_NOT;
}

/* The slice of a task ends with a switch to another task. */
static void switch_out(struct tptp *x, const struct kb_slice *slice, uint64_t timestamp,
		       int64_t time)
{
	struct tptp_thread *thread = thread_of(x, slice->task_id, slice->core, timestamp, time);
	bool dead = kb_state_letter(x->header, slice->prev_state) == KB_LETTER_DEAD;
	int64_t next = slice->next_task ? (int64_t)slice->next_task : -(int64_t)slice->core - 1;

	if (thread->id == next)
		return;
	thread->running = false;
	if (thread->ending || dead) {
		end_thread(x, thread, time);
	} else if (slice->how == KB_END_BLOCKED) {
		thread->waits = TPTP_WAITS;
		thread->object = 0;
		write_monitor(x, &x->wait, thread->id, 0, time);
	} else {
		thread->waits = TPTP_CONTENDS;
		thread->object = (uint64_t)slice->core + 1;
		x->contend.values[KB_TPTP_MON_CONTENDED_ENTER_THREAD_OWNER_ID].number = next;
		write_monitor(x, &x->contend, thread->id, thread->object, time);
	}
}

/* The CPU halts: its idle thread waits. */
static void halt(struct tptp *x, struct cpu *cpu, uint64_t timestamp, int64_t time)
{
	uint32_t core = core_of(x, cpu);
	struct tptp_thread *thread = thread_of(x, 0, core, timestamp, time);

	leave_methods(x, cpu, 0, time);
	if (cpu->halted)
		return;
	cpu->halted = true;
	write_monitor(x, &x->wait, thread->id, (uint64_t)core + 1, time);
}

static void resume(struct tptp *x, struct cpu *cpu, int64_t time)
{
	uint32_t core = core_of(x, cpu);

	if (!cpu->halted)
		return;
	cpu->halted = false;
	write_monitor(x, &x->left, -(int64_t)core - 1, (uint64_t)core + 1, time);
}

/* Records are missing from here on: end what is open. */
static void stop_knowing(struct tptp *x, const struct kb_slice *slice, int64_t time)
{
	struct tptp_thread *thread = tptp_threads_find(x->threads, slice->task_id);

	if (!thread)
		return;
	thread->running = false;
	if (thread->ending)
		end_thread(x, thread, time);
}

static void end_slice(struct tptp *x, const struct kb_slice *slice, const struct kb_event *event)
{
	struct cpu *cpu = cpu_of(x, slice->core);
	int64_t time = trace_time(x, slice->end);

	if (slice->kind == KB_SLICE_LOST)
		return;
	if (slice->kind == KB_SLICE_IDLE)
		resume(x, cpu, time);
	leave_methods(x, cpu, 0, time);
	if (!slice->has_task)
		return;
	if (slice->how == KB_END_PREEMPTED || slice->how == KB_END_BLOCKED) {
		switch_out(x, slice, event->timestamp, time);
	} else if (slice->how == KB_END_LOST || slice->how == KB_END_CAPTURE) {
		stop_knowing(x, slice, time);
	}
}

/* ---- samples, counters, annotations ---- */

/* Resolve the methods of a sample into x->chain, outermost first. Returns their number. */
static uint32_t resolve_chain(struct tptp *x, const struct kb_event *event, int64_t time)
{
	const uint64_t *chain = event->sample.chain;
	uint32_t nr = event->sample.nr_chain, kernel = event->sample.nr_chain_kernel;
	uint32_t pc_apart = !nr || chain[0] != event->sample.pc;
	uint32_t total, i;

	if (x->options->aggregate)
		nr = 1 - pc_apart;
	if (nr + pc_apart > MAX_FRAMES) {
		x->cut_chains++;
		nr = MAX_FRAMES - pc_apart;
	}
	total = nr + pc_apart;
	for (i = 0; i < total; i++) {
		uint64_t pc = event->sample.pc;

		if (i >= pc_apart) {
			uint32_t k = i - pc_apart;

			/*
			 * The address of a caller is behind its call: look up the byte before.
			 * The outermost kernel frame's "caller" is user code, which was
			 * interrupted and did not call.
			 */
			pc = chain[k] - (i && k != kernel && chain[k]);
		}
		x->chain[total - 1 - i] = tptp_methods_resolve(x->methods, event->task_id,
							       event->timestamp, pc, time);
		if (!x->chain[total - 1 - i]) {
			x->no_memory = true;
			return 0;
		}
	}
	return total;
}

/* Write " key=number". Inlined, so that the length of the key is a constant. */
static kb_always_inline char *put_number(char *p, const char *key, size_t length, int64_t value)
{
	memcpy(p, key, length);
	return (char *)tptp_put_number((uint8_t *)p + length, value);
}

#define PUT_NUMBER(p, key, value) put_number(p, " " key "=", sizeof(" " key "=") - 1, value)

/* Write the common beginning of a custom message's body. */
static char *begin_body(struct tptp *x, const char *kind, const struct kb_event *event,
			int64_t time)
{
	size_t length = strlen(kind);
	char *p = x->body;

	memcpy(p, kind, length);
	p = PUT_NUMBER(p + length, "cpu", (int32_t)event->core);
	if (x->header->max_task_infos)
		p = PUT_NUMBER(p, "thread", event->task_id ? (int64_t)event->task_id :
				       -(int64_t)event->core - 1);
	memcpy(p, " time=", 6);
	return (char *)tptp_put_seconds((uint8_t *)p + 6, time, KB_TPTP_FREQUENCY_NS);
}

/* The text ends the body, so nothing in it needs an escape. */
static void finish_body(struct tptp *x, char *p, const char *key, struct kb_text text)
{
	size_t length = strlen(key), room;

	memcpy(p, key, length);
	p += length;
	room = x->body + BODY_BYTES - p;
	if (text.length > room) {
		text.length = room;
		x->cut_texts++;
	}
	if (text.length)
		memcpy(p, text.data, text.length);
	x->custom.values[KB_TPTP_CUSTOM_CUSTOM_BODY].string =
		(struct kb_text){ x->body, p + text.length - x->body };
	kb_tptp_writer_message(x->writer, &x->custom);
}

static void write_series(struct tptp *x, const struct kb_walk *walk, uint32_t id, uint64_t value)
{
	const char *name = id < x->header->nr_series ? x->header->series[id].name : NULL;
	char *p = begin_body(x, "series", &walk->event, x->now);

	p = PUT_NUMBER(p, "id", id);
	p = PUT_NUMBER(p, "value", (int64_t)value);
	finish_body(x, p, " name=", kb_text(name));
}

static void write_annotation(struct tptp *x, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	struct kb_text text = { event->annotation.text, event->annotation.text_length };
	char *p = begin_body(x, "annotation", event, x->now);

	p = PUT_NUMBER(p, "type", event->annotation.type);
	p = PUT_NUMBER(p, "channel", event->annotation.channel);
	p = PUT_NUMBER(p, "group", event->annotation.group);
	p = PUT_NUMBER(p, "colour", event->annotation.colour);
	finish_body(x, p, " text=", text);
}

static void write_sample(struct tptp *x, const struct kb_walk *walk, uint32_t known)
{
	uint32_t nr = walk->event.sample.has_pc ? resolve_chain(x, &walk->event, x->now) : 0;

	(void)known;
	x->common = NULL;
	if (nr)
		hold_methods(x, x->cpu, x->thread, nr, x->now);
}

static void write_counter(struct tptp *x, const struct kb_walk *walk, uint32_t id, uint64_t value)
{
	char *p;

	if (!x->common)
		x->common = begin_body(x, "counter", &walk->event, x->now);
	p = PUT_NUMBER(x->common, "value", (int64_t)value);
	finish_body(x, p, " name=", kb_names_counter(x->trace->names, id));
}

/* Behind the slices that end with the record. */
static void write_switch(struct tptp *x, const struct kb_walk *walk)
{
	(void)walk;
	leave_methods(x, x->cpu, 0, x->now);
	switch_in(x, x->thread, x->now);
	x->cpu->current = x->thread;
}

static void write_halt(struct tptp *x, const struct kb_walk *walk)
{
	if (walk->event.halt.entered)
		halt(x, x->cpu, walk->event.timestamp, x->now);
}

static bool says_thread(const struct tptp *x, enum kb_event_type type)
{
	return type == KB_EVENT_TASK_SWITCH || type == KB_EVENT_SAMPLE ||
	       (x->header->max_task_infos &&
		(type == KB_EVENT_CUSTOM_COUNTER || type == KB_EVENT_ANNOTATION));
}

/*
 * The thread of a record is announced first: at a switch the previous task waits for a monitor whose
 * owner is the next one.
 */
static void begin_record(struct tptp *x, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;

	x->cpu = cpu_of(x, event->core);
	x->now = trace_time(x, walk->ns);
	/* As in the timeline, the time of a CPU does not go back. */
	if (x->now < x->cpu->now)
		x->now = x->cpu->now;
	x->cpu->now = x->now;
	end_exited(x, x->now);
	x->thread = NULL;
	if (says_thread(x, event->type))
		x->thread = thread_of(x, event->task_id, core_of(x, x->cpu), event->timestamp, x->now);
	if (event->type == KB_EVENT_TASK_SWITCH)
		x->thread->running = true;	/* it must not be forgotten from here on */
}

/* ---- the whole capture ---- */

static int by_time(const void *a, const void *b)
{
	const struct task_exit *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

static int read_exits(struct tptp *x)
{
	const char *fact;
	uint32_t at = 0;

	x->exits = calloc((size_t)x->header->nr_tasks + 1, sizeof(*x->exits));
	if (!x->exits)
		return -ENOMEM;
	while (x->nr_exits < x->header->nr_tasks && (fact = tptp_next_fact(x->header, &at))) {
		unsigned long row;
		uint64_t ticks;

		if (sscanf(fact, "exit.%lu=%" SCNu64, &row, &ticks) != 2 ||
		    row >= x->header->nr_tasks)
			continue;
		x->exits[x->nr_exits++] = (struct task_exit){
			.time = trace_time(x, kb_barman_ns(x->trace->barman, ticks)),
			.task_id = x->header->tasks[row].task_id,
		};
	}
	qsort(x->exits, x->nr_exits, sizeof(*x->exits), by_time);
	return 0;
}

static int begin(struct tptp *x)
{
	const char *format = x->options->format;
	struct kb_tptp_layout layout = {
		.size = sizeof(layout), .binary = format && strcmp(format, "binary") == 0,
	};
	int error;

	x->base = x->header->unix_base_ns > INT64_MAX ? INT64_MAX : (int64_t)x->header->unix_base_ns;
	x->ticket = 1;
	kb_tptp_message_init(&x->entry, KB_TPTP_METHOD_ENTRY);
	kb_tptp_message_init(&x->leave, KB_TPTP_METHOD_EXIT);
	kb_tptp_message_init(&x->wait, KB_TPTP_MON_WAIT);
	kb_tptp_message_init(&x->left, KB_TPTP_MON_WAITED);
	kb_tptp_message_init(&x->contend, KB_TPTP_MON_CONTENDED_ENTER);
	kb_tptp_message_init(&x->contended, KB_TPTP_MON_CONTENDED_ENTERED);
	kb_tptp_message_init(&x->custom, KB_TPTP_CUSTOM);

	x->cpus = calloc((size_t)x->header->max_cores + 1, sizeof(*x->cpus));
	x->body = malloc(BODY_BYTES);
	x->threads = tptp_threads_create();
	if (!x->cpus || !x->body || !x->threads || read_exits(x))
		return kb_run_no_memory(&x->run);
	for (uint32_t i = 0; i <= x->header->max_cores; i++)
		x->cpus[i].now = INT64_MIN;
	error = kb_tptp_writer_create(&x->writer, x->out, &layout);
	if (!error)
		x->methods = tptp_methods_create(x->writer, x->trace->symbolizer);
	if (!x->methods)
		return kb_error_set(x->err, error ? error : -ENOMEM, KB_NO_OFFSET,
				    "can't begin a trace: %s", strerror(error ? -error : ENOMEM));
	tptp_write_beginning(x->writer, x->trace->barman, x->options->aggregate, x->base);
	return 0;
}

static int end(struct tptp *x)
{
	int64_t time = trace_time(x, kb_shown_last(x->trace));

	for (uint32_t i = 0; i <= x->header->max_cores; i++) {
		struct cpu *cpu = &x->cpus[i];

		leave_methods(x, cpu, 0, time > cpu->now ? time : cpu->now);
		resume(x, cpu, time > cpu->now ? time : cpu->now);
	}
	end_exited(x, time);
	write_all_sums(x);

	tptp_write_ending(x->writer, x->header, time);
	kb_tptp_writer_finish(x->writer);
	if (x->cut_texts)
		kb_export_say(x->options, "%" PRIu64 " texts were cut to 64 KiB", x->cut_texts);
	if (x->cut_chains)
		kb_export_say(x->options, "%" PRIu64 " call chains were cut to their %d innermost "
			      "frames", x->cut_chains, MAX_FRAMES);
	if (x->cut_sums)
		kb_export_say(x->options, "there were too many pairs of thread and method to keep: "
			      "some are written more than once");
	return 0;
}

static void release(struct tptp *x)
{
	for (uint32_t i = 0; x->cpus && i <= x->header->max_cores; i++)
		free(x->cpus[i].frames);
	free(x->cpus);
	free(x->body);
	free(x->exits);
	tptp_methods_destroy(x->methods);
	tptp_threads_destroy(x->threads);
	kb_tptp_writer_destroy(x->writer);
}

static const struct sink sink = {
	.begin = begin,
	.end = end,
	.release = release,
	.before = begin_record,
	.slice = end_slice,
	.switched = write_switch,
	.halt = write_halt,
	.sample = write_sample,
	.counter = write_counter,
	.series = write_series,
	.mark = write_annotation,
};

static const char *const formats[] = { "xml", ".trcxml", "binary", ".trcbin", NULL };

const struct kb_export kb_export_tptp = {
	.name = "tptp",
	.extension = ".trcxml",
	.description = "TPTP trace: method entries and exits, monitor events, counters",
	.formats = formats,
	.run = sink_export,
};
