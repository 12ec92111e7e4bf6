// SPDX-License-Identifier: MIT
/*
 * A capture in Chrome's Trace Event Format, JSON that many viewers read. CPUs are threads of a
 * process 0, with a complete event for each slice. Handlers of interrupts and softirqs are slices of
 * a process of their own, so are system calls and page faults, by task, and requests to block
 * devices. Flow events go from a waker to the one that is woken. Samples, counters and marks are
 * events of the phases for them. Events are written while the capture is read; memory grows only with
 * tasks and their different call chains.
 *
 * Samples are chunks of one profile for each thread, as V8 writes them; Perfetto and Speedscope
 * read these. The samples also refer to "stackFrames".
 *
 * Of several machines (machines.h), all events are in one list. Processes have numbers of their machine
 * and its name in front of theirs, and ts 0 is the earliest start. There is one table of "stackFrames"
 * for a file, so the samples do without.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/wall.h"
#include "analysis/time/origin.h"
#include "analysis/time/ended.h"
#include "base/table.h"
#include "base/text/json.h"
#include "export/list.h"
#include "export/run.h"

#define CPUS	0		/* id of the process whose threads are the CPUs */
#define INTERRUPTS 4194305	/* ... whose threads are their interrupts: no process of Linux has it */
#define CALLS	4194306		/* ... whose threads are tasks with their system calls and page faults */
#define REQUESTS 4194307	/* ... that has requests to block devices */
#define REQUEST_NAME 128	/* bytes */
#define PROCESSES 10000000U	/* of a machine: its numbers begin with its own */

/* The profile of a thread. Its session is its number among all profiles, from 1 on. */
struct profile {
	uint64_t key[2];	/* process, thread */
	int64_t last;		/* us: time of its last sample */
	uint64_t begun;		/* not 0: the profile has begun */
};

/* A node of the call chains that was already written to a profile. */
struct known_node {
	uint64_t key;		/* session, node */
	uint64_t written;
};

struct chrome {
	KB_RUN;
	struct kb_table profiles, known_nodes;
	bool *has_interrupts;		/* by CPU: its thread has a name */
	struct kb_table callers;	/* tasks that have a thread of CALLS */
	uint64_t flows, requests;	/* numbers of the last ones */
	uint32_t *path;			/* nodes of the chain that was written last */
	uint32_t machine;
	int64_t since;			/* ns: ts of the capture's 0 */
};

#define SINK struct chrome
#include "export/sink.h"

/* ---- events ---- */

static void begin(struct chrome *x, const char *phase, uint64_t pid, uint64_t tid)
{
	kb_out_bytes(x->out, x->json.comma ? ",\n" : "\n", x->json.comma ? 2 : 1);
	x->json.comma = false;
	kb_json_object(&x->json, NULL);
	kb_json_string(&x->json, "ph", phase);
	kb_json_u64(&x->json, "pid", pid + (uint64_t)x->machine * PROCESSES);
	kb_json_u64(&x->json, "tid", tid);
}

static void begin_timed(struct chrome *x, const char *phase, uint64_t pid, uint64_t tid, int64_t ns)
{
	begin(x, phase, pid, tid);
	/* microseconds */
	kb_json_fixed(&x->json, "ts", (int64_t)((uint64_t)ns + (uint64_t)x->since), 3);
}

static void end(struct chrome *x)
{
	kb_json_object_end(&x->json);
}

/* An identifier that no other machine has. */
static uint64_t apart(const struct chrome *x, uint64_t id)
{
	return (uint64_t)x->machine << 40 | id;
}

/* Write the name or the position of a process or thread. */
static void write_metadata(struct chrome *x, uint64_t pid, uint64_t tid, const char *what,
			   const char *name, size_t length)
{
	const struct kb_machine *machine = x->trace->machine;
	char text[KB_TASK_LABEL + KB_ORIGIN_NAME];
	int all;

	if (machine && !strcmp(what, "process_name")) {
		all = snprintf(text, sizeof(text), "%.*s: %.*s", KB_ORIGIN_NAME - 3, machine->name,
			       (int)length, name);
		name = text;
		length = (size_t)all < sizeof(text) ? (size_t)all : sizeof(text) - 1;
	}
	begin_timed(x, "M", pid, tid, -x->since);
	kb_json_string(&x->json, "cat", "__metadata");
	kb_json_string(&x->json, "name", what);
	kb_json_object(&x->json, "args");
	kb_json_text(&x->json, "name", name, length);
	kb_json_object_end(&x->json);
	end(x);
}

static void write_cpus(struct chrome *x)
{
	uint32_t core;
	char name[24];

	write_metadata(x, CPUS, 0, "process_name", "CPUs", 4);
	for (core = 0; core < x->header->max_cores; core++) {
		int length = snprintf(name, sizeof(name), "CPU %" PRIu32, core);

		write_metadata(x, CPUS, core, "thread_name", name, (size_t)length);
	}
}

/* Find a task. The names of a new task are written. */
static const struct kb_task_id *find_task(struct chrome *x, uint32_t task_id, uint64_t timestamp,
					  uint32_t *number)
{
	static const struct kb_task_id nobody;
	int64_t i = kb_task_table_find(&x->tasks, task_id, timestamp);
	struct kb_task_id *task;
	char label[KB_TASK_LABEL];
	size_t length;

	if (i < 0) {
		x->no_memory = true;
		*number = 0;
		return &nobody;
	}
	*number = (uint32_t)i;
	task = kb_task_id(&x->tasks, *number);
	if (!task->user && task_id) {
		task->user = true;
		length = kb_task_label(&x->tasks, *number, label);
		write_metadata(x, task->tgid, task_id, "thread_name", label, length);
		if (task->tgid == task_id)
			write_metadata(x, task->tgid, task_id, "process_name", label, length);
	}
	return task;
}

static void begin_slice(struct chrome *x, const struct kb_slice *slice, const char *category)
{
	begin_timed(x, "X", CPUS, slice->core, slice->start);
	kb_json_fixed(&x->json, "dur", (int64_t)((uint64_t)slice->end - (uint64_t)slice->start), 3);
	kb_json_string(&x->json, "cat", category);
}

static void write_run(struct chrome *x, const struct kb_slice *slice, const struct kb_event *event)
{
	uint32_t number, tgid = find_task(x, slice->task_id, event->timestamp, &number)->tgid;
	char label[KB_TASK_LABEL];

	if (x->no_memory)
		return;
	begin_slice(x, slice, "run");
	kb_json_text(&x->json, "name", label, kb_task_label(&x->tasks, number, label));
	kb_json_object(&x->json, "args");
	kb_json_u64(&x->json, "tid", slice->task_id);
	kb_json_u64(&x->json, "process", tgid);
	if (slice->how == KB_END_PREEMPTED || slice->how == KB_END_BLOCKED)
		kb_json_string(&x->json, "then",
			       slice->how == KB_END_BLOCKED ? "blocked" : "preempted");
	kb_json_object_end(&x->json);
	end(x);
}

static void write_idle(struct chrome *x, const struct kb_slice *slice)
{
	begin_slice(x, slice, "idle");
	kb_json_string(&x->json, "name", "idle");
	kb_json_object(&x->json, "args");
	if (slice->idle_state != KB_STATE_UNKNOWN)
		kb_json_u64(&x->json, "state", (uint64_t)slice->idle_state);
	kb_json_object_end(&x->json);
	end(x);
}

static void write_lost(struct chrome *x, const struct kb_slice *slice)
{
	char name[48];
	int length = snprintf(name, sizeof(name), "%" PRIu64 " records lost", slice->lost);

	begin_slice(x, slice, "lost");
	kb_json_text(&x->json, "name", name, (size_t)length);
	kb_json_object(&x->json, "args");
	kb_json_u64(&x->json, "lost", slice->lost);
	kb_json_object_end(&x->json);
	end(x);
}

/* A value: the increase of a PMU counter since the last value, or a value of a series. */
static void write_value(struct chrome *x, const char *category, uint32_t core, int64_t ns,
			struct kb_text name, uint64_t value, double multiplier)
{
	char text[KB_TASK_LABEL];
	size_t length = 0;

	if (core != KB_CORE_NONE)
		length = (size_t)snprintf(text, sizeof(text), "CPU %" PRIu32 " ", core);
	if (name.length > sizeof(text) - length)
		name.length = sizeof(text) - length;
	memcpy(text + length, name.data, name.length);
	begin_timed(x, "C", CPUS, 0, ns);
	kb_json_string(&x->json, "cat", category);
	kb_json_text(&x->json, "name", text, length + name.length);
	kb_json_object(&x->json, "args");
	if (multiplier == 1.0)
		kb_json_u64(&x->json, "value", value);
	else
		kb_json_double(&x->json, "value", (double)value * multiplier);
	kb_json_object_end(&x->json);
	end(x);
}

static void write_counter(struct chrome *x, const struct kb_walk *walk, uint32_t id, uint64_t value)
{
	write_value(x, "counter", walk->event.core, walk->ns, kb_names_counter(x->trace->names, id),
		    value, 1.0);
}

static void write_series(struct chrome *x, const struct kb_walk *walk, uint32_t id, uint64_t value)
{
	const struct kb_series *series = id < x->header->nr_series ? &x->header->series[id] : NULL;
	uint32_t core = kb_run_is_per_cpu(&x->run, id) ? walk->event.core : KB_CORE_NONE;
	char text[32];

	write_value(x, "series", core, walk->ns, kb_run_series(&x->run, id, text), value,
		    series ? series->multiplier : 1.0);
}

/* The thread of a task. Each CPU has its own idle task, whose thread is that of the CPU. */
static uint64_t thread_of(uint32_t task_id, uint32_t core)
{
	return task_id ? task_id : core;
}

static void write_session(struct chrome *x, uint64_t session)
{
	char id[24];

	snprintf(id, sizeof(id), "0x%" PRIx64, apart(x, session));
	kb_json_string(&x->json, "id", id);
}

/*
 * The session of a thread's profile; 0 without memory. It begins a microsecond before its first
 * sample: Speedscope fails on a profile that ends at its start.
 */
static uint64_t find_session(struct chrome *x, uint64_t pid, uint64_t tid, int64_t us,
			     int64_t *since)
{
	struct profile *profile = kb_table_get(&x->profiles, (uint64_t[]) { pid, tid });
	uint64_t session;

	if (!profile)
		return 0;
	session = (uint64_t)((char *)profile - x->profiles.rows) / x->profiles.row_size + 1;
	if (!profile->begun) {
		profile->begun = true;
		profile->last = us - 1;
		begin(x, "P", pid, tid);
		kb_json_i64(&x->json, "ts", profile->last);
		kb_json_string(&x->json, "cat", "sample");
		kb_json_string(&x->json, "name", "Profile");
		write_session(x, session);
		kb_json_object(&x->json, "args");
		kb_json_object(&x->json, "data");
		kb_json_i64(&x->json, "startTime", profile->last);
		kb_json_object_end(&x->json);
		kb_json_object_end(&x->json);
		end(x);
	}
	*since = us - profile->last;
	profile->last = us;
	return session;
}

static void write_node(struct chrome *x, uint32_t number)
{
	const struct kb_stack_node *node = kb_stack_node(&x->stacks, number);
	const struct kb_stack_frame *frame = kb_stack_frame(&x->stacks, node->frame);
	char label[KB_STACK_LABEL];

	kb_json_object(&x->json, NULL);
	kb_json_u64(&x->json, "id", number);
	if (node->parent)
		kb_json_u64(&x->json, "parent", node->parent);
	kb_json_object(&x->json, "callFrame");
	kb_json_text(&x->json, "functionName", label, kb_stack_label(&x->stacks, node->frame, label));
	kb_json_string(&x->json, "url", kb_stack_image(&x->stacks, frame->image)->path);
	kb_json_object_end(&x->json);
	kb_json_object_end(&x->json);
}

/* Write the nodes of the chain that the session does not have yet, callers first. */
static void write_nodes(struct chrome *x, uint64_t session, uint32_t number)
{
	uint32_t depth = kb_stack_node(&x->stacks, number)->depth, nr = 0;
	uint32_t *path = reallocarray(x->path, depth, sizeof(*path));

	if (!path) {
		x->no_memory = true;
		return;
	}
	x->path = path;
	for (; number; number = kb_stack_node(&x->stacks, number)->parent) {
		uint64_t key = session << 32 | number;
		struct known_node *known = kb_table_get(&x->known_nodes, &key);

		if (!known) {
			x->no_memory = true;
			return;
		}
		if (known->written)
			break;
		known->written = true;
		path[nr++] = number;
	}
	kb_json_array(&x->json, "nodes");
	while (nr)
		write_node(x, path[--nr]);
	kb_json_array_end(&x->json);
}

/* Times of profiles are whole microseconds. */
static int64_t whole_us(int64_t ns)
{
	return ns / 1000 - (ns % 1000 < 0);
}

static void write_pc(struct chrome *x, const struct kb_walk *walk, uint32_t counters, uint32_t node)
{
	const struct kb_event *event = &walk->event;
	int64_t ns = walk->ns, since;
	uint32_t number, tgid = find_task(x, event->task_id, event->timestamp, &number)->tgid;
	uint64_t tid = thread_of(event->task_id, event->core), session;
	struct kb_text name;

	session = find_session(x, tgid, tid, whole_us((int64_t)((uint64_t)ns + (uint64_t)x->since)),
			       &since);
	if (!session || x->no_memory) {
		x->no_memory = true;
		return;
	}
	begin_timed(x, "P", tgid, tid, ns);
	kb_json_string(&x->json, "cat", "sample");
	kb_json_string(&x->json, "name", "ProfileChunk");
	write_session(x, session);
	if (!x->trace->machine)
		kb_json_u64(&x->json, "sf", node);
	if (counters && kb_names_one_weight(x->trace->names) &&
	    event->sample.counters[0] != KB_COUNTER_INVALID)
		kb_json_u64(&x->json, "weight", event->sample.counters[0]);
	kb_json_object(&x->json, "args");
	kb_json_u64(&x->json, "cpu", event->core);
	if (counters) {
		name = kb_names_counter(x->trace->names,
					kb_names_counter_id(x->trace->names, event->core, 0));
		kb_json_text(&x->json, "weight_of", name.data, name.length);
	}
	kb_json_object(&x->json, "data");
	kb_json_object(&x->json, "cpuProfile");
	write_nodes(x, session, node);
	kb_json_array(&x->json, "samples");
	kb_json_u64(&x->json, NULL, node);
	kb_json_array_end(&x->json);
	kb_json_object_end(&x->json);
	kb_json_array(&x->json, "timeDeltas");
	kb_json_i64(&x->json, NULL, since);
	kb_json_array_end(&x->json);
	kb_json_object_end(&x->json);
	kb_json_object_end(&x->json);
	end(x);
}

/* @ns: end of the span. @core: the CPU of an instant. */
static void write_span(struct chrome *x, const struct kb_span *span, int64_t ns, bool instant,
		       uint32_t core)
{
	const struct kb_task_id *task = kb_task_id(&x->tasks, span->task);
	uint64_t tid = thread_of((uint32_t)task->key[0], instant ? core : 0);

	begin_timed(x, instant ? "i" : "X", task->tgid, tid, span->start);
	if (instant)
		kb_json_string(&x->json, "s", "t");	/* of the thread */
	else
		kb_json_fixed(&x->json, "dur", (int64_t)((uint64_t)ns - (uint64_t)span->start), 3);
	kb_json_string(&x->json, "cat", "mark");
	kb_json_text(&x->json, "name", span->text, span->length);
	if (!instant) {
		kb_json_object(&x->json, "args");
		kb_json_u64(&x->json, "channel", span->key[1]);
		kb_json_object_end(&x->json);
	}
	end(x);
}

static void write_annotation(struct chrome *x, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	struct kb_span span;
	uint32_t task;
	bool instant = event->annotation.type != KB_ANNOTATION_STRING;
	int done;

	find_task(x, event->task_id, event->timestamp, &task);
	done = kb_spans_feed(&x->spans, event, walk->ns, task, &span);
	x->no_memory |= done < 0;
	if (done > 0)
		write_span(x, &span, walk->ns, instant, event->core);
}

/* ---- interrupts and wakeups ---- */

/* Name the process and the thread of a CPU's interrupts when the first one comes. */
static void name_interrupts(struct chrome *x, uint32_t core)
{
	char name[24];
	int length = snprintf(name, sizeof(name), "CPU %" PRIu32, core);

	if (x->has_interrupts[core])
		return;
	x->has_interrupts[core] = true;
	write_metadata(x, INTERRUPTS, core, "process_name", "Interrupts", 10);
	write_metadata(x, INTERRUPTS, core, "thread_name", name, (size_t)length);
}

static void write_handler(struct chrome *x, const struct kb_handler *handler)
{
	char name[KB_ORIGIN_NAME];

	kb_origin_name(x->trace, &handler->origin, handler->timestamp, name, sizeof(name));
	name_interrupts(x, handler->core);
	begin_timed(x, "X", INTERRUPTS, handler->core, handler->start);
	kb_json_fixed(&x->json, "dur", (int64_t)((uint64_t)handler->end - (uint64_t)handler->start),
		      3);
	kb_json_string(&x->json, "cat", kb_origin_kind(handler->origin.kind));
	kb_json_text(&x->json, "name", name, strlen(name));
	kb_json_object(&x->json, "args");
	kb_json_u64(&x->json, "number", handler->origin.id);
	kb_json_u64(&x->json, "tid", handler->task_id);
	kb_json_object_end(&x->json);
	end(x);
}

/* An end of an arrow, in the slice that the CPU has there. */
static void write_flow(struct chrome *x, const char *phase, uint32_t core, int64_t ns)
{
	begin_timed(x, phase, CPUS, core, ns);
	kb_json_string(&x->json, "cat", "wakeup");
	kb_json_string(&x->json, "name", "wakeup");
	kb_json_u64(&x->json, "id", apart(x, x->flows));
	if (*phase == 'f')
		kb_json_string(&x->json, "bp", "e");	/* the slice around it, not the next one */
	end(x);
}

/* Whether both ends of an arrow are in slices. Without one trace_processor counts an error. */
static bool has_slices(const struct chrome *x, const struct kb_arrow *wakeup)
{
	const struct kb_wanted *wanted = x->trace->wanted;

	return wakeup->waker_known &&
	       (!wanted || (kb_wanted_cpu(wanted, wakeup->from_core) &&
			    kb_wanted_task(wanted, wakeup->waker, wakeup->timestamp) &&
			    kb_wanted_task(wanted, wakeup->task_id, wakeup->timestamp)));
}

/*
 * trace_processor puts an end into the slice that began last. What begins at the same time may stand
 * behind, so the end comes a nanosecond later.
 */
static void write_wakeup(struct chrome *x, const struct kb_arrow *wakeup)
{
	if (!has_slices(x, wakeup))
		return;
	x->flows++;
	write_flow(x, "s", wakeup->from_core, wakeup->from);
	write_flow(x, "f", wakeup->to_core, wakeup->to + (wakeup->to < INT64_MAX));
}

/* A migration, a softirq that is asked for, and an idle state that did not pay. */
static void write_moment(struct chrome *x, const struct kb_event *event, int64_t ns)
{
	const char *what = kb_what_name(event->custom_counter.what);

	begin_timed(x, "i", CPUS, event->core, ns);
	kb_json_string(&x->json, "s", "t");
	kb_json_string(&x->json, "cat", what);
	kb_json_string(&x->json, "name", what);
	kb_json_object(&x->json, "args");
	kb_json_u64(&x->json, "id", event->custom_counter.id);
	kb_json_u64(&x->json, "cpu", event->custom_counter.cpu);
	kb_json_object_end(&x->json);
	end(x);
}

/* Name the thread of a task's system calls and page faults when the first one comes. */
static void name_caller(struct chrome *x, const struct kb_event *event)
{
	uint64_t *known, key = event->task_id, before = x->callers.nr;
	char label[KB_TASK_LABEL];
	uint32_t number;

	find_task(x, event->task_id, event->timestamp, &number);
	known = kb_table_get(&x->callers, &key);
	x->no_memory |= !known;
	if (x->no_memory || x->callers.nr == before)
		return;
	write_metadata(x, CALLS, event->task_id, "process_name", "System calls and faults", 23);
	write_metadata(x, CALLS, event->task_id, "thread_name", label,
		       kb_task_label(&x->tasks, number, label));
}

static void put_call(struct chrome *x, const struct kb_event *event)
{
	kb_json_u64(&x->json, "number", event->custom_counter.id);
	kb_json_u64(&x->json, "cpu", event->core);
	kb_json_i64(&x->json, "result", event->custom_counter.result);
	kb_json_array(&x->json, "arguments");
	for (unsigned int i = 0; i < KB_SYSCALL_ARGUMENTS; i++)
		kb_json_i64(&x->json, NULL, (int64_t)event->custom_counter.arguments[i]);
	kb_json_array_end(&x->json);
}

static void put_fault(struct chrome *x, const struct kb_event *event)
{
	kb_json_u64(&x->json, "cpu", event->core);
	kb_json_bool(&x->json, "kernel", event->custom_counter.cpu & KB_FAULT_KERNEL);
	kb_json_u64(&x->json, "address", event->custom_counter.arguments[KB_FAULT_ADDRESS]);
	kb_json_u64(&x->json, "pc", event->custom_counter.arguments[KB_FAULT_PC]);
}

/*
 * A system call or a page fault, which are apart from marks: a mark may begin in one call and end in another one.
 * A fault lies in a call, or between two.
 */
static void write_called(struct chrome *x, const struct kb_event *event, int64_t ns)
{
	bool known = kb_ended_is_timed(event), call = event->custom_counter.what == KB_WHAT_SYSCALL;
	uint64_t took = kb_ended_ns(x->trace->barman, event);
	const char *name = call ? kb_names_call(x->trace->names, event) ?: "syscall" :
				  kb_fault_kind_name(kb_fault_kind(event));

	if (call && !kb_syscall_is_own(x->trace->names, event))
		return;
	name_caller(x, event);
	if (x->no_memory)
		return;
	begin_timed(x, known ? "X" : "i", CALLS, event->task_id, (int64_t)((uint64_t)ns - took));
	if (known)
		kb_json_fixed(&x->json, "dur", (int64_t)took, 3);
	else
		kb_json_string(&x->json, "s", "t");
	kb_json_string(&x->json, "cat", call ? "syscall" : "fault");
	kb_json_string(&x->json, "name", name);
	kb_json_object(&x->json, "args");
	if (call)
		put_call(x, event);
	else
		put_fault(x, event);
	kb_json_object_end(&x->json);
	end(x);
}

static void begin_request(struct chrome *x, const char *phase, const struct kb_event *event, int64_t ns)
{
	char disk[KB_DISK_TEXT], text[REQUEST_NAME];
	uint32_t device = (uint32_t)event->custom_counter.arguments[KB_BLOCK_DEVICE];

	snprintf(text, sizeof(text), "%s %s", kb_disk_name(x->trace->names, device, disk) ?: "no disk",
		 kb_block_operation_name((uint8_t)event->custom_counter.cpu) ?: "other");
	begin_timed(x, phase, REQUESTS, device, ns);
	kb_json_u64(&x->json, "id", apart(x, x->requests));
	kb_json_string(&x->json, "cat", "block");
	kb_json_string(&x->json, "name", text);
}

/* Several are under way at a time, and they do not nest: each has a number. */
static void write_request(struct chrome *x, const struct kb_event *event, int64_t ns)
{
	const uint64_t *arguments = event->custom_counter.arguments;
	char flags[KB_BLOCK_FLAGS_TEXT];

	if (!x->requests++)
		write_metadata(x, REQUESTS, 0, "process_name", "Block requests", 14);
	begin_request(x, "b", event, (int64_t)((uint64_t)ns - kb_ended_ns(x->trace->barman, event)));
	kb_json_object(&x->json, "args");
	kb_json_u64(&x->json, "tid", event->custom_counter.id);
	kb_json_u64(&x->json, "sector", arguments[KB_BLOCK_SECTOR]);
	kb_json_u64(&x->json, "bytes", arguments[KB_BLOCK_BYTES]);
	kb_json_string(&x->json, "flags", kb_block_flags_text(event->custom_counter.cpu, flags));
	kb_json_i64(&x->json, "result", event->custom_counter.result);
	kb_json_object_end(&x->json);
	end(x);
	begin_request(x, "e", event, ns);
	end(x);
}

static bool write_detail(struct chrome *x, const struct kb_walk *walk, uint32_t from)
{
	const struct kb_event *event = &walk->event;

	(void)from;
	switch (event->custom_counter.what) {
	case KB_WHAT_MIGRATE:
	case KB_WHAT_SOFTIRQ_RAISE:
	case KB_WHAT_IDLE_MISS:
		write_moment(x, event, walk->ns);
		return true;
	case KB_WHAT_FREQUENCY:		/* of the CPU that it is about, which need not have written it */
		write_value(x, "series", event->custom_counter.cpu, walk->ns, kb_text("kHz"),
			    event->custom_counter.value, 1.0);
		return true;
	case KB_WHAT_SYSCALL:
	case KB_WHAT_FAULT:
		write_called(x, event, walk->ns);
		return true;
	case KB_WHAT_BLOCK:
		write_request(x, event, walk->ns);
		return true;
	default:
		return false;
	}
}

/* ---- what stands behind them ---- */

static void write_stacks(struct chrome *x)
{
	char id[16], label[KB_STACK_LABEL];
	uint32_t i;

	kb_json_object(&x->json, "stackFrames");
	for (i = 1; i < x->stacks.nodes.nr; i++) {
		const struct kb_stack_node *node = kb_stack_node(&x->stacks, i);
		const struct kb_stack_frame *frame = kb_stack_frame(&x->stacks, node->frame);

		snprintf(id, sizeof(id), "%" PRIu32, i);
		kb_json_object(&x->json, id);
		kb_json_text(&x->json, "name", label,
			     kb_stack_label(&x->stacks, node->frame, label));
		kb_json_string(&x->json, "category",
			       kb_stack_image(&x->stacks, frame->image)->path);
		if (node->parent)
			kb_json_u64(&x->json, "parent", node->parent);
		kb_json_object_end(&x->json);
	}
	kb_json_object_end(&x->json);
}

static void write_facts(struct chrome *x)
{
	const char *target = x->header->target_name;

	kb_json_object(&x->json, "otherData");
	kb_json_string(&x->json, "target", target ? target : "");
	kb_json_string(&x->json, "host", kb_barman_fact(x->trace->barman, "host"));
	kb_json_string(&x->json, "release", kb_barman_fact(x->trace->barman, "release"));
	kb_json_string(&x->json, "command", kb_barman_fact(x->trace->barman, "command"));
	kb_json_u64(&x->json, "epoch_ns", x->header->unix_base_ns);	/* at ts 0 */
	kb_json_object_end(&x->json);
}

static int end_events(struct chrome *x)
{
	const struct kb_machine *machine = x->trace->machine;
	struct kb_span span;

	while (!x->no_memory && kb_spans_end(&x->spans, &span))
		write_span(x, &span, kb_shown_last(x->trace), false, 0);
	if (machine && !machine->last)
		return 0;
	kb_json_array_end(&x->json);
	kb_json_string(&x->json, "displayTimeUnit", "ns");
	if (!machine) {
		write_stacks(x);
		write_facts(x);
	}
	kb_json_object_end(&x->json);
	kb_out_bytes(x->out, "\n", 1);
	return 0;
}

/* Begin the list of events, or go on in that of the machine before. */
static int begin_events(struct chrome *x)
{
	const struct kb_machine *machine = x->trace->machine;

	kb_table_init(&x->profiles, sizeof(struct profile), 2);
	kb_table_init(&x->callers, sizeof(uint64_t), 1);
	kb_table_init(&x->known_nodes, sizeof(struct known_node), 1);
	x->has_interrupts = calloc((size_t)x->header->max_cores + 1, sizeof(*x->has_interrupts));
	if (!x->has_interrupts)
		return kb_run_no_memory(&x->run);
	if (machine) {
		x->machine = machine->number;
		x->since = machine->wall.at - machine->since;
	}
	if (!machine || machine->first) {
		kb_json_object(&x->json, NULL);
		kb_json_array(&x->json, "traceEvents");
	} else {
		x->json.comma = true;
		x->json.arrays = 1;
	}
	write_cpus(x);
	return 0;
}

static void release(struct chrome *x)
{
	free(x->path);
	free(x->has_interrupts);
	kb_table_release(&x->known_nodes);
	kb_table_release(&x->profiles);
	kb_table_release(&x->callers);
}

static const struct sink sink = {
	.uses = KB_USES_STACKS | KB_USES_PAIRS | KB_USES_RUNNING,
	.begin = begin_events,
	.end = end_events,
	.release = release,
	.ran = write_run,
	.idled = write_idle,
	.lost = write_lost,
	.woken = write_wakeup,
	.handled = write_handler,
	.call = write_pc,
	.counter = write_counter,
	.series = write_series,
	.detail = write_detail,
	.mark = write_annotation,
};

const struct kb_export kb_export_chrome = {
	.name = "chrome",
	.extension = ".trace.json",
	.description = "Chrome's trace events, JSON: slices, samples, counters, marks",
	.run = sink_export,
};
