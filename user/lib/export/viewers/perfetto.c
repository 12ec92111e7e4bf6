// SPDX-License-Identifier: MIT
/*
 * A capture as a Perfetto trace. Scheduling and idling are the kernel's own trace events, which
 * Perfetto understands best. Samples have interned call chains. Counters, marks, page faults, block
 * requests and losses are tracks.
 *
 * Packets are written while the capture is read; a bundle of trace events of a CPU is written
 * when it is full. Memory grows only with tasks, counters and different call chains. Times are
 * CLOCK_MONOTONIC_RAW if the capture has its readings, else ns since the start of the capture's
 * clock. Traces of several machines (machines.h) stand one after the other, and their clocks are UTC.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/wall.h"
#include "analysis/samples/metric_tracks.h"
#include "analysis/time/ended.h"
#include "base/array.h"
#include "base/io/out_packet.h"
#include "base/table.h"
#include "export/label.h"
#include "export/list.h"
#include "export/run.h"
#include "export/viewers/perfetto_events.h"
#include "export/viewers/perfetto_fields.h"
#include "export/viewers/perfetto_sched.h"
#include "format/protobuf.h"
#include "sym/tables/kallsyms.h"

#define SEQUENCE	1	/* all packets have this sequence id */
#define KERNEL_MAPPING	"/kernel"
#define TEXT		4096	/* longest text of a mark */
#define NAME		256	/* of other names */
#define SMALL		256	/* room for all numbers of a packet */
#define REASONS_MAX	65536U	/* more are told by their calls alone */
#define LANES		256U	/* requests to a disk that are under way at a time */

/* Perfetto refuses traces with events of further CPUs. */
#define MAX_CPUS	1024U

/* Trace events of one CPU that wait for their packet. CPUs may have to share a bundle. */
#define BUNDLES		64U
#define BUNDLE_BYTES	8192U
#define FTRACE_BYTES	(SMALL + KB_PERFETTO_EVENT)

_Static_assert(KB_PERFETTO_EVENT >= 2 * NAME, "a switch has two names");

struct bundle {
	uint32_t core;
	bool lost;		/* records were lost in front of these events */
	uint32_t events;
	uint32_t length;
	uint8_t bytes[BUNDLE_BYTES];
	struct kb_perfetto_sched sched;
};

/* What was written to the trace about a task. */
struct seen_task {
	uint64_t key;
	const char *name, *process;	/* the last ones written; name NULL: none yet */
	uint32_t tgid;
	bool track;		/* the task has a track for its marks */
};

/* A track of values, by core and counter or series, or of one channel of marks. */
struct track {
	uint64_t key[2];
	uint64_t uuid;		/* 0: not written yet */
	bool open;		/* marks: a slice is open */
	double sum;		/* running sum of a series of deltas with a multiplier */
	uint64_t count;		/* what the sampling counter has counted so far */
	uint64_t end;		/* requests: when the last one ended */
};

/* What tasks wait for, in words. The number of its row + 1 is its number in the trace. */
struct reason {
	uint64_t key[3];	/* the call and the object, by the places of their names; kind and flags */
};

enum track_kind {
	TRACK_COUNTER = 1,
	TRACK_SERIES,
	TRACK_CHANNEL,
	TRACK_THREAD,
	TRACK_FAULTS,
	TRACK_REQUESTS,
	TRACK_LOST,
	TRACK_METRIC,
	TRACK_TIMEBASE,		/* has no description: Perfetto makes the track from samples */
};

struct perfetto {
	KB_RUN;
	struct kb_table seen, tracks, reasons;
	struct kb_table_recent recent;	/* of the tasks that were seen */
	struct kb_metric_tracks metrics;
	struct bundle *bundles;		/* BUNDLES */
	uint64_t now;			/* of the record that is written */
	uint32_t images, frames;	/* number of those that were written */
	uint32_t callstacks;
	uint32_t *path;			/* frames of the chain that was written last */
	int64_t base;			/* CLOCK_MONOTONIC_RAW at the capture's base */
	uint64_t before;		/* number of times that became 0 */
	uint64_t above;			/* number of left out events of CPUs from MAX_CPUS on */
	uint32_t machine;		/* 0: the first one, or the only one */
	uint8_t *packet;		/* the packet that is being written */
	bool has_release;		/* the capture has a release that Perfetto reads */
};

#define SINK struct perfetto
#include "export/sink.h"

static uint64_t clock_of(struct perfetto *x, int64_t ns)
{
	int64_t time;

	if (!__builtin_add_overflow(ns, x->base, &time) && time >= 0)
		return (uint64_t)time;
	x->before++;
	return 0;
}

/* A string of at most @max bytes, valid UTF-8. */
static uint8_t *put_text(uint8_t *at, uint32_t field, struct kb_text text, size_t max)
{
	char clean[TEXT];

	return kb_proto_put_bytes(at, field, clean,
				  kb_label(clean, max, text.data, text.length, false));
}

/* ---- packets ---- */

/* Each machine has a sequence of its own. That of the first one is what Perfetto calls the host. */
static uint8_t *put_sequence(const struct perfetto *x, uint8_t *at, uint32_t flags)
{
	at = kb_proto_put_uint(at, PACKET_SEQUENCE_ID, SEQUENCE + x->machine);
	if (x->machine)
		at = kb_proto_put_uint(at, PACKET_MACHINE_ID, x->machine);
	return kb_proto_put_uint(at, PACKET_SEQUENCE_FLAGS, flags);
}

/* Begin a packet with @room bytes for its data; NULL after an error. */
static uint8_t *begin_packet(struct perfetto *x, size_t room)
{
	uint8_t *at = kb_out_reserve(x->out, SMALL + room);

	if (!at)
		return NULL;
	x->packet = kb_proto_begin(at, TRACE_PACKET, KB_PROTO_PACKET);
	return put_sequence(x, x->packet, SEQUENCE_NEEDS_STATE);
}

static uint8_t *begin_timed(struct perfetto *x, size_t room, uint64_t time)
{
	uint8_t *at = begin_packet(x, room);

	if (!at)
		return NULL;
	at = kb_proto_put_uint(at, PACKET_TIMESTAMP, time);
	return kb_proto_put_uint(at, PACKET_TIMESTAMP_CLOCK_ID, CLOCK_ID_MONOTONIC_RAW);
}

static void end_packet(struct perfetto *x, uint8_t *at)
{
	kb_out_commit(x->out, kb_proto_end(x->packet, at, KB_PROTO_PACKET));
}

/* End a packet and the one message in it. */
static void end_message(struct perfetto *x, uint8_t *message, uint8_t *at)
{
	end_packet(x, kb_proto_end(message, at, KB_PROTO_PACKET));
}

static uint8_t *put_clock(uint8_t *at, uint32_t id, uint64_t time)
{
	uint8_t *clock = kb_proto_begin(at, SNAPSHOT_CLOCKS, KB_PROTO_EVENT);

	at = kb_proto_put_uint(clock, CLOCK_ID, id);
	return kb_proto_end(clock, kb_proto_put_uint(at, CLOCK_TIMESTAMP, time), KB_PROTO_EVENT);
}

/* The number of a counter whose unit Perfetto knows; 0: another counter. */
static uint32_t known_counter(struct kb_text name)
{
	static const struct {
		const char *name;
		uint32_t counter;
	} known[] = {
		{ "cpu-clock", SW_CPU_CLOCK },
		{ "task-clock", SW_TASK_CLOCK },
		{ "cycles", HW_CPU_CYCLES },
		{ "instructions", HW_INSTRUCTIONS },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (name.length == strlen(known[i].name) &&
		    memcmp(name.data, known[i].name, name.length) == 0)
			return known[i].counter;
	return 0;
}

/*
 * The unit in which samples were taken: the first counter, or the number of samples. Perfetto
 * assumes cpu-clock if a trace does not say.
 */
static uint8_t *put_defaults(struct perfetto *x, uint8_t *at)
{
	bool counts = kb_names_nr_counters(x->trace->names) &&
		      kb_names_one_weight(x->trace->names);
	struct kb_text name = counts ? kb_names_counter(x->trace->names, 0) : kb_text("samples");
	uint32_t counter = counts ? known_counter(name) : 0;
	uint8_t *defaults = kb_proto_begin(at, PACKET_DEFAULTS, KB_PROTO_PACKET);
	uint8_t *samples = kb_proto_begin(defaults, DEFAULTS_PERF_SAMPLE, KB_PROTO_PACKET);
	uint8_t *timebase = kb_proto_begin(samples, SAMPLES_TIMEBASE, KB_PROTO_PACKET);

	at = timebase;
	if (counter)
		at = kb_proto_put_uint(at, TIMEBASE_COUNTER, counter);
	at = kb_proto_end(timebase, put_text(at, TIMEBASE_NAME, name, NAME), KB_PROTO_PACKET);
	return kb_proto_end(defaults, kb_proto_end(samples, at, KB_PROTO_PACKET), KB_PROTO_PACKET);
}

/*
 * The first packet: readings of the clocks at the start of the capture's clock, and the
 * defaults.
 */
static void write_clocks(struct perfetto *x)
{
	uint8_t *at = kb_out_reserve(x->out, 2 * SMALL + NAME), *message;

	if (!at)
		return;
	x->packet = kb_proto_begin(at, TRACE_PACKET, KB_PROTO_PACKET);
	at = put_sequence(x, x->packet, SEQUENCE_CLEARED);
	message = kb_proto_begin(at, PACKET_CLOCK_SNAPSHOT, KB_PROTO_PACKET);
	at = put_clock(message, CLOCK_ID_MONOTONIC_RAW, (uint64_t)x->base);
	/*
	 * Perfetto relates all clocks to this one. A capture has no readings of it: write it as
	 * if the machine had never been suspended.
	 */
	at = put_clock(at, CLOCK_ID_BOOTTIME, (uint64_t)x->base);
	at = put_clock(at, CLOCK_ID_REALTIME,
		       x->trace->machine ? (uint64_t)x->base : x->header->unix_base_ns);
	at = kb_proto_put_uint(at, SNAPSHOT_PRIMARY, CLOCK_ID_MONOTONIC_RAW);
	at = kb_proto_end(message, at, KB_PROTO_PACKET);
	end_packet(x, put_defaults(x, at));
}

/* Perfetto needs the kernel's release to interpret states of tasks. */
static void write_system(struct perfetto *x)
{
	const char *release = kb_barman_fact(x->trace->barman, "release"),
		   *hardware = kb_barman_fact(x->trace->barman, "machine");
	uint8_t *at = begin_packet(x, 5 * NAME), *system, *name;
	unsigned int major, minor;

	x->has_release = release && sscanf(release, "%u.%u", &major, &minor) == 2;
	if (!at)
		return;
	system = kb_proto_begin(at, PACKET_SYSTEM_INFO, KB_PROTO_PACKET);
	name = kb_proto_begin(system, SYSTEM_UTSNAME, KB_PROTO_EVENT);
	at = kb_proto_put_bytes(name, UTSNAME_SYSNAME, "Linux", 5);
	if (release)
		at = put_text(at, UTSNAME_RELEASE, kb_text(release), NAME);
	if (hardware)
		at = put_text(at, UTSNAME_MACHINE, kb_text(hardware), NAME);
	/* the version is a text that older readers show, too, which have numbers of machines alone */
	if (x->trace->machine)
		at = put_text(at, UTSNAME_VERSION, kb_text(x->trace->machine->name), NAME);
	at = kb_proto_end(name, at, KB_PROTO_EVENT);
	if (x->trace->machine)
		at = put_text(at, SYSTEM_MACHINE_NAME, kb_text(x->trace->machine->name), NAME);
	end_message(x, system, kb_proto_put_uint(at, SYSTEM_NUM_CPUS, x->header->max_cores));
}

/* ---- tasks ---- */

static void write_task(struct perfetto *x, const struct seen_task *task, uint64_t timestamp,
		       uint64_t time)
{
	uint32_t id = (uint32_t)task->key;
	uint8_t *at = begin_timed(x, 2 * NAME, time), *tree, *part;

	if (!at)
		return;
	tree = kb_proto_begin(at, PACKET_PROCESS_TREE, KB_PROTO_PACKET);
	part = kb_proto_begin(tree, TREE_PROCESSES, KB_PROTO_EVENT);
	at = kb_proto_put_uint(part, PROCESS_PID, task->tgid);
	at = put_text(at, PROCESS_CMDLINE,
		      kb_names_task(x->trace->names, task->tgid, timestamp)->name, NAME);
	at = kb_proto_end(part, at, KB_PROTO_EVENT);
	part = kb_proto_begin(at, TREE_THREADS, KB_PROTO_EVENT);
	at = kb_proto_put_uint(part, THREAD_TID, id);
	at = put_text(at, THREAD_NAME, kb_names_task(x->trace->names, id, timestamp)->name, NAME);
	at = kb_proto_put_uint(at, THREAD_TGID, task->tgid);
	end_message(x, tree, kb_proto_end(part, at, KB_PROTO_EVENT));
}

/*
 * The row of a task; NULL without memory. New names are written to the trace, because Perfetto
 * prefers these names to those in scheduler events.
 */
static struct seen_task *see_named(struct perfetto *x, uint32_t task_id,
				   const struct kb_task_name *known, uint64_t timestamp, uint64_t time)
{
	const char *name = known->name.data, *process = name;
	struct seen_task *task = kb_table_get_recent(&x->seen, &x->recent, task_id);
	uint32_t tgid = known->tgid;

	if (!task) {
		x->no_memory = true;
		return NULL;
	}
	if (tgid != task_id)
		process = kb_names_task(x->trace->names, tgid, timestamp)->name.data;
	if (task->name == name && task->process == process && task->tgid == tgid)
		return task;
	task->name = name;
	task->process = process;
	task->tgid = tgid;
	if (task_id)	/* Perfetto defines task 0 itself */
		write_task(x, task, timestamp, time);
	return task;
}

static struct seen_task *see_task(struct perfetto *x, uint32_t task_id, uint64_t timestamp,
				  uint64_t time)
{
	return see_named(x, task_id, kb_names_task(x->trace->names, task_id, timestamp), timestamp,
			 time);
}

/* ---- interned data ---- */

static uint8_t *begin_interned(struct perfetto *x, size_t room, uint8_t **message)
{
	uint8_t *at = begin_packet(x, room);

	if (at)
		*message = kb_proto_begin(at, PACKET_INTERNED_DATA, KB_PROTO_PACKET);
	return at ? *message : NULL;
}

static uint8_t *put_string(uint8_t *at, uint32_t field, uint64_t iid, const void *text,
			   size_t length)
{
	uint8_t *string = kb_proto_begin(at, field, KB_PROTO_EVENT);

	at = kb_proto_put_uint(string, INTERNED_IID, iid);
	return kb_proto_end(string, kb_proto_put_bytes(at, STRING_STR, text, length),
			    KB_PROTO_EVENT);
}

/* ---- trace events ---- */

static void flush_bundle(struct perfetto *x, struct bundle *bundle)
{
	uint8_t *at, *message;

	if (!bundle->events)
		return;
	if (bundle->core >= MAX_CPUS) {
		x->above += bundle->events;
		kb_perfetto_forget_sched(&bundle->sched);
		bundle->events = bundle->length = 0;
		return;
	}
	at = begin_packet(x, bundle->length + KB_PERFETTO_SCHED);
	if (!at)
		return;
	message = kb_proto_begin(at, PACKET_FTRACE_EVENTS, KB_PROTO_PACKET);
	at = kb_proto_put_uint(message, BUNDLE_CPU, bundle->core);
	at = kb_perfetto_put_sched(at, &bundle->sched);
	memcpy(at, bundle->bytes, bundle->length);
	at += bundle->length;
	if (bundle->lost)
		at = kb_proto_put_uint(at, BUNDLE_LOST, true);
	end_message(x, message, kb_proto_put_uint(at, BUNDLE_CLOCK, FTRACE_CLOCK_MONO_RAW));
	bundle->events = bundle->length = 0;
	bundle->lost = false;
}

/* The bundle of @core, with room for one more event. */
static struct bundle *bundle_of(struct perfetto *x, uint32_t core)
{
	struct bundle *bundle = &x->bundles[core % BUNDLES];

	if (bundle->core != core || BUNDLE_BYTES - bundle->length < FTRACE_BYTES ||
	    kb_perfetto_sched_full(&bundle->sched))
		flush_bundle(x, bundle);
	if (bundle->core != core)
		bundle->lost = false;	/* a track shows these losses */
	bundle->core = core;
	bundle->events++;
	return bundle;
}

/* An event of @core and task @pid, up to what it is. Ended by end_head(). */
static uint8_t *begin_head(struct perfetto *x, uint32_t core, uint64_t time, uint32_t pid, uint8_t **message)
{
	struct bundle *bundle = bundle_of(x, core);

	*message = kb_proto_begin(bundle->bytes + bundle->length, BUNDLE_EVENT, KB_PROTO_EVENT);
	return kb_proto_put_uint(kb_proto_put_uint(*message, FTRACE_TIMESTAMP, time), FTRACE_PID, pid);
}

static struct bundle *end_head(struct perfetto *x, uint32_t core, uint8_t *message, uint8_t *at)
{
	struct bundle *bundle = &x->bundles[core % BUNDLES];

	bundle->length = (uint32_t)(kb_proto_end(message, at, KB_PROTO_EVENT) - bundle->bytes);
	return bundle;
}

/* The same, up to its body, the field @field. Ended by end_ftrace(). */
static uint8_t *begin_ftrace(struct perfetto *x, uint32_t core, uint64_t time, uint32_t pid, uint32_t field,
			     uint8_t *messages[2])
{
	uint8_t *at = begin_head(x, core, time, pid, &messages[0]);

	messages[1] = kb_proto_begin(at, field, KB_PROTO_EVENT);
	return messages[1];
}

static struct bundle *end_ftrace(struct perfetto *x, uint32_t core, uint8_t *const messages[2], uint8_t *at)
{
	return end_head(x, core, messages[0], kb_proto_end(messages[1], at, KB_PROTO_EVENT));
}

/* TASK_PARKED and TASK_STATE_MAX of include/linux/sched.h of Linux 4.4. */
enum { OLD_PARKED = 0x200, OLD_MAX = 0x800 };

/* The state for a trace without a release, which Perfetto reads as one of Linux 4.4. */
static uint32_t old_state(uint32_t state)
{
	switch (state) {
	case KB_FTRACE_PARKED:
		return OLD_PARKED;
	case KB_FTRACE_IDLE:
		return KB_TASK_IDLE;
	case KB_FTRACE_PREEMPTED:
		return OLD_MAX;
	default:
		return state;
	}
}

/* A switch in the form that says from which task, for readers that don't know who ran. */
static void write_whole_switch(struct perfetto *x, uint32_t core, uint64_t time, uint32_t previous,
			       const struct kb_task_name *from, uint32_t state, uint32_t next,
			       const struct kb_task_name *to)
{
	uint8_t *messages[2], *at = begin_ftrace(x, core, time, previous, FTRACE_SCHED_SWITCH, messages);

	at = kb_perfetto_put_task(at, SWITCH_PREV_COMM, from);
	at = kb_proto_put_uint(at, SWITCH_PREV_PID, previous);
	at = kb_proto_put_uint(at, SWITCH_PREV_STATE, state);
	at = kb_perfetto_put_task(at, SWITCH_NEXT_COMM, to);
	at = kb_proto_put_uint(at, SWITCH_NEXT_PID, next);
	flush_bundle(x, end_ftrace(x, core, messages, at));	/* of one time, the compact ones of a bundle come first */
}

/* The words for what a task waits for, as in "fsync /srv/log". Returns their length. */
static size_t reason_text(const struct kb_event *event, const char *call, const char *name, char text[TEXT])
{
	const struct kb_object *object = &event->task_switch.object;
	bool has_kind = object->kind > KB_OBJECT_NO_CALL && object->kind != KB_OBJECT_FUTEX;
	const char *kind = object->kind == KB_OBJECT_FAULT ? "page fault" : kb_object_name(object->kind) ?: "other";
	const char *what = name ?: has_kind ? kind : NULL;

	snprintf(text, TEXT, "%s%s%s", call ?: "", call && what ? " " : "", what ?: (call ? "" : "no call"));
	return strlen(text);
}

/* The number of what @task_id waits for from @event on; 0 without memory. */
static uint32_t reason_of(struct perfetto *x, const struct kb_event *event, uint32_t task_id)
{
	const char *call = kb_names_call(x->trace->names, event);
	const char *name = x->reasons.nr < REASONS_MAX ? kb_names_object(x->trace->names, event, task_id) : NULL;
	const uint64_t key[3] = { (uintptr_t)call, (uintptr_t)name, event->task_switch.object.kind };
	uint32_t known = x->reasons.nr, number = kb_table_number(&x->reasons, key, kb_table_hash(&x->reasons, key));
	char text[TEXT], clean[TEXT];
	uint8_t *message, *at;
	size_t length;

	x->no_memory |= number == KB_TABLE_NONE;
	if (number == KB_TABLE_NONE || x->reasons.nr == known)
		return number == KB_TABLE_NONE ? 0 : number + 1;
	length = reason_text(event, call, name, text);
	at = begin_interned(x, TEXT + SMALL, &message);
	if (at)
		end_message(x, message, put_string(at, INTERNED_KERNEL_SYMBOLS, number + 1, clean,
						   kb_label(clean, sizeof(clean), text, length, false)));
	return number + 1;
}

/* Why @task_id waits, as Perfetto's table of states has it: in the place of the kernel's function. */
static void write_reason(struct perfetto *x, const struct kb_event *event, uint32_t task_id)
{
	uint32_t number = reason_of(x, event, task_id);
	uint8_t *messages[2], *at = begin_ftrace(x, event->core, x->now, task_id, FTRACE_SCHED_BLOCKED_REASON,
						 messages);

	at = kb_proto_put_uint(at, BLOCKED_PID, task_id);
	at = kb_proto_put_uint(at, BLOCKED_CALLER, number);
	at = kb_proto_put_uint(at, BLOCKED_IO_WAIT, event->task_switch.object.flags & KB_OBJECT_IOWAIT);
	end_ftrace(x, event->core, messages, at);
}

static void write_switch(struct perfetto *x, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	uint32_t previous = walk->running;	/* 0: unknown */
	uint64_t time = x->now;
	/* Copies: a name holds until the next one is asked for. If it has no label, it holds longer. */
	const struct kb_task_name from = *kb_names_task(x->trace->names, previous, event->timestamp),
				  to = *kb_names_task(x->trace->names, event->task_id,
						      event->timestamp);
	uint32_t state = kb_export_switch_state(x->trace, previous);
	struct kb_read_cpu *cpu = kb_read_cpu(&x->read, event->core);

	/* Their names may have changed. */
	see_named(x, previous, &from, event->timestamp, time);
	see_named(x, event->task_id, &to, event->timestamp, time);
	if (!x->has_release)
		state = old_state(state);
	if (cpu->known && cpu->running == previous)
		kb_perfetto_add_switch(&bundle_of(x, event->core)->sched, time, state, event->task_id,
				       &to);
	else
		write_whole_switch(x, event->core, time, previous, &from, state, event->task_id, &to);
	cpu->known = true;
	cpu->running = event->task_id;
	if (previous && event->task_switch.reason == KB_SWITCH_BLOCKED && event->task_switch.object.kind)
		write_reason(x, event, previous);
}

/* A sample shows who runs. */
static void write_found(struct perfetto *x, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	const struct kb_task_name idle = *kb_names_task(x->trace->names, 0, event->timestamp),
				  to = *kb_names_task(x->trace->names, event->task_id,
						      event->timestamp);

	write_whole_switch(x, event->core, x->now, 0, &idle, KB_FTRACE_RUNNING, event->task_id, &to);
	*kb_read_cpu(&x->read, event->core) = (struct kb_read_cpu){ true, event->task_id };
}

/*
 * A wakeup in the compact form, which tells of an interrupt; false: it is to be written as an event,
 * because the reader does not know from the switches who wakes.
 */
static bool write_waking(struct perfetto *x, const struct kb_event *event, uint64_t time)
{
	const struct kb_read_cpu *cpu = kb_read_cpu(&x->read, event->core);
	uint8_t context = event->custom_counter.context;
	uint32_t id = event->custom_counter.id,
		 flags = context == KB_CONTEXT_IRQ ? KB_PERFETTO_IRQ :
			 context == KB_CONTEXT_SOFTIRQ ? KB_PERFETTO_SOFTIRQ : 0;

	if (!cpu->known || (!flags && cpu->running != event->task_id))
		return false;
	kb_perfetto_add_waking(&bundle_of(x, event->core)->sched, time, flags, id,
			       kb_names_task(x->trace->names, id, event->timestamp),
			       event->custom_counter.cpu);
	return true;
}

static void write_halt(struct perfetto *x, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	uint8_t *messages[2], *at = begin_ftrace(x, event->core, x->now, walk->running, FTRACE_CPU_IDLE, messages);
	int state = event->halt.idle_state;

	at = kb_proto_put_uint(at, IDLE_STATE, !event->halt.entered ? UINT32_MAX :
			       state == KB_STATE_UNKNOWN ? 0 : (uint32_t)state);
	end_ftrace(x, event->core, messages, kb_proto_put_uint(at, IDLE_CPU, event->core));
}

/* A system call, from its begin to its end. Perfetto has the names of this machine's calls alone. */
static bool write_call(struct perfetto *x, const struct kb_event *event)
{
	uint64_t since = event->custom_counter.begin;
	uint8_t *messages[2], *at;

	if (!since || since > event->timestamp || event->custom_counter.cpu & KB_SYSCALL_COMPAT)
		return false;
	see_task(x, event->task_id, event->timestamp, x->now);
	at = begin_ftrace(x, event->core, clock_of(x, kb_barman_ns(x->trace->barman, since)), event->task_id,
			  FTRACE_SYS_ENTER, messages);
	end_ftrace(x, event->core, messages, kb_proto_put_uint(at, SYS_ID, event->custom_counter.id));
	at = begin_ftrace(x, event->core, x->now, event->task_id, FTRACE_SYS_EXIT, messages);
	at = kb_proto_put_uint(at, SYS_ID, event->custom_counter.id);
	at = kb_proto_put_uint(at, SYS_EXIT_RET, (uint64_t)event->custom_counter.result);
	end_ftrace(x, event->core, messages, at);
	return true;
}

/* ---- tracks ---- */

/* The track of that kind and key, without its description; NULL without memory. */
static struct track *find_track(struct perfetto *x, enum track_kind kind, uint32_t id,
				uint32_t of, bool *is_new)
{
	uint64_t key[2] = { (uint64_t)kind << 32 | of, id };
	struct track *track = kb_table_get(&x->tracks, key);

	if (!track) {
		x->no_memory = true;
		return NULL;
	}
	*is_new = !track->uuid;
	if (*is_new)
		/* from 1 on; 0 is the trace's own track */
		track->uuid = (uint64_t)x->machine << 32 | x->tracks.nr;
	return track;
}

static uint8_t *begin_descriptor(struct perfetto *x, uint64_t uuid, uint8_t **message)
{
	uint8_t *at = begin_packet(x, NAME + SMALL);

	if (!at)
		return NULL;
	*message = kb_proto_begin(at, PACKET_TRACK_DESCRIPTOR, KB_PROTO_PACKET);
	return kb_proto_put_uint(*message, DESCRIPTOR_UUID, uuid);
}

/* Describe a track: "CPU 3 NAME", or "NAME" without a CPU. @sums: values are increments. */
static void describe_values(struct perfetto *x, uint64_t uuid, uint32_t core, struct kb_text name,
			    bool sums)
{
	uint8_t *message, *counter, *at = begin_descriptor(x, uuid, &message);
	char text[NAME];
	size_t length = 0;

	if (!at)
		return;
	if (core != KB_CORE_NONE)
		length = (size_t)snprintf(text, sizeof(text), "CPU %" PRIu32 " ", core);
	length += kb_label(text + length, sizeof(text) - length, name.data, name.length, false);
	at = kb_proto_put_bytes(at, DESCRIPTOR_NAME, text, length);
	counter = kb_proto_begin(at, DESCRIPTOR_COUNTER, KB_PROTO_EVENT);
	at = kb_proto_put_uint(counter, COUNTER_UNIT, UNIT_COUNT);
	if (sums)
		at = kb_proto_put_uint(at, COUNTER_IS_INCREMENTAL, true);
	end_message(x, message, kb_proto_end(counter, at, KB_PROTO_EVENT));
}

static uint8_t *begin_event(struct perfetto *x, uint64_t time, uint64_t track, uint32_t type,
			    size_t room, uint8_t **message)
{
	uint8_t *at = begin_timed(x, room, time);

	if (!at)
		return NULL;
	*message = kb_proto_begin(at, PACKET_TRACK_EVENT, KB_PROTO_PACKET);
	at = kb_proto_put_uint(*message, EVENT_TYPE, type);
	return kb_proto_put_uint(at, EVENT_TRACK, track);
}

/* A PMU counter. The value of its track is the sum so far. */
static void write_counter(struct perfetto *x, const struct kb_walk *walk, uint32_t id, uint64_t delta)
{
	uint32_t core = walk->event.core;
	bool is_new;
	struct track *track = find_track(x, TRACK_COUNTER, id, core, &is_new);
	uint8_t *message, *at;

	if (!track)
		return;
	if (is_new)
		describe_values(x, track->uuid, core, kb_names_counter(x->trace->names, id), true);
	at = begin_event(x, x->now, track->uuid, TYPE_COUNTER, 0, &message);
	if (at)
		end_message(x, message, kb_proto_put_uint(at, EVENT_COUNTER, delta));
}

/* What the counters of a CPU say in relation to each other, from when on they did. */
static void write_metrics(struct perfetto *x, const struct kb_event *event, int64_t ns)
{
	double values[KB_METRIC_TRACKS_MAX];
	int64_t from;

	if (!kb_metric_tracks_feed(&x->metrics, event, ns, &from, values))
		return;
	for (unsigned int i = 0; i < x->metrics.nr; i++) {
		uint8_t *message, *at;
		struct track *track;
		bool is_new;

		if (isnan(values[i]))
			continue;
		track = find_track(x, TRACK_METRIC, i, event->core, &is_new);
		if (!track)
			return;
		if (is_new)
			describe_values(x, track->uuid, event->core,
					kb_text(x->metrics.metrics[i].name), false);
		at = begin_event(x, clock_of(x, from), track->uuid, TYPE_COUNTER, 0, &message);
		if (at)
			end_message(x, message,
				    kb_proto_put_double(at, EVENT_DOUBLE_COUNTER, values[i]));
	}
}

/* A custom series. Deltas are summed up, as for PMU counters. */
static void write_series(struct perfetto *x, const struct kb_walk *walk, uint32_t id, uint64_t value)
{
	uint32_t core = kb_run_is_per_cpu(&x->run, id) ? walk->event.core : KB_CORE_NONE;
	const struct kb_series *series = id < x->header->nr_series ? &x->header->series[id] : NULL;
	bool scaled = series && series->multiplier != 1.0, deltas, is_new;
	struct track *track;
	uint8_t *message, *at;
	char text[32];

	deltas = series && kb_series_adds_up(series);
	track = find_track(x, TRACK_SERIES, id, core, &is_new);
	if (!track)
		return;
	if (is_new)
		describe_values(x, track->uuid, core, kb_run_series(&x->run, id, text),
				deltas && !scaled);
	at = begin_event(x, x->now, track->uuid, TYPE_COUNTER, 0, &message);
	if (!at)
		return;
	if (scaled) {
		double shown = (double)value * series->multiplier;

		track->sum = deltas ? track->sum + shown : shown;
		at = kb_proto_put_double(at, EVENT_DOUBLE_COUNTER, track->sum);
	} else {
		at = kb_proto_put_uint(at, EVENT_COUNTER, value);
	}
	end_message(x, message, at);
}

/* ---- samples ---- */

static bool is_kernel(const struct kb_stack_image *image)
{
	return image->kernel && strcmp(image->path, KB_KERNEL_IMAGE) == 0;
}

static bool has_limits(const struct kb_stack_image *image)
{
	return image->mapped && !image->kernel;
}

/*
 * Write the mapping of an image. The kernel is one mapping without limits, with the name that
 * Perfetto's own profiler uses: for that name the importer has it once, not once for each
 * process. A mapping without limits belongs to no process, so modules and unmapped code have
 * none either.
 */
static void write_image(struct perfetto *x, uint32_t i)
{
	const struct kb_stack_image *image = kb_stack_image(&x->stacks, i);
	const char *name = is_kernel(image) ? KERNEL_MAPPING : image->path;
	const struct kb_build_id *build_id = image->kernel ? NULL : image->build_id;
	uint8_t *message, *mapping, *at;
	char path[TEXT];

	at = begin_interned(x, TEXT + KB_BUILD_ID_MAX + SMALL, &message);
	if (!at)
		return;
	at = put_string(at, INTERNED_MAPPING_PATHS, i + 1, path,
			kb_label(path, sizeof(path), name, strlen(name), false));
	if (build_id)
		at = put_string(at, INTERNED_BUILD_IDS, i + 1, build_id->bytes, build_id->length);
	mapping = kb_proto_begin(at, INTERNED_MAPPINGS, KB_PROTO_EVENT);
	at = kb_proto_put_uint(mapping, INTERNED_IID, i + 1);
	if (build_id)
		at = kb_proto_put_uint(at, MAPPING_BUILD_ID, i + 1);
	at = kb_proto_put_uint(at, MAPPING_START_OFFSET, 0);
	at = kb_proto_put_uint(at, MAPPING_START, has_limits(image) ? image->start : 0);
	at = kb_proto_put_uint(at, MAPPING_END, has_limits(image) ? image->end : 0);
	at = kb_proto_put_uint(at, MAPPING_PATH, i + 1);
	at = kb_proto_put_uint(at, MAPPING_EXACT_OFFSET, has_limits(image) ? image->offset : 0);
	end_message(x, message, kb_proto_end(mapping, at, KB_PROTO_EVENT));
}

/* The address in the file, or the full address if the mapping has no limits. */
static uint64_t relative_pc(const struct kb_stack_frame *frame, const struct kb_stack_image *image)
{
	return has_limits(image) ? frame->address - image->start + image->offset : frame->address;
}

static void write_frame(struct perfetto *x, uint32_t i)
{
	const struct kb_stack_frame *frame = kb_stack_frame(&x->stacks, i);
	const struct kb_stack_image *image = kb_stack_image(&x->stacks, frame->image);
	uint8_t *message, *body, *at;
	char label[KB_STACK_LABEL];
	size_t length = kb_stack_label(&x->stacks, i, label);

	at = begin_interned(x, length + SMALL, &message);
	if (!at)
		return;
	at = put_string(at, INTERNED_FUNCTION_NAMES, i + 1, label, length);
	body = kb_proto_begin(at, INTERNED_FRAMES, KB_PROTO_EVENT);
	at = kb_proto_put_uint(body, INTERNED_IID, i + 1);
	at = kb_proto_put_uint(at, FRAME_NAME, i + 1);
	at = kb_proto_put_uint(at, FRAME_MAPPING, frame->image + 1);
	at = kb_proto_put_uint(at, FRAME_REL_PC, relative_pc(frame, image));
	at = kb_proto_put_uint(at, FRAME_KIND, frame->kernel ? KIND_KERNEL : KIND_NATIVE);
	end_message(x, message, kb_proto_end(body, at, KB_PROTO_EVENT));
}

/* Write a chain, and its frames and images, unless the trace has them. Returns its number. */
static uint32_t intern_stack(struct perfetto *x, uint32_t node)
{
	uint32_t depth = kb_stack_node(&x->stacks, node)->depth;
	uint8_t *message, *body, *at;
	uint32_t *path, i;

	if (kb_stack_node(&x->stacks, node)->user)
		return kb_stack_node(&x->stacks, node)->user;
	while (x->images < x->stacks.images.nr)
		write_image(x, x->images++);
	while (x->frames < x->stacks.frames.nr)
		write_frame(x, x->frames++);
	path = reallocarray(x->path, depth, sizeof(*path));
	if (!path) {
		x->no_memory = true;
		return 0;
	}
	x->path = path;
	kb_stack_node(&x->stacks, node)->user = ++x->callstacks;
	for (i = depth; i--; node = kb_stack_node(&x->stacks, node)->parent)
		path[i] = kb_stack_node(&x->stacks, node)->frame;
	at = begin_interned(x, depth * KB_PROTO_UINT + SMALL, &message);
	if (!at)
		return x->callstacks;
	body = kb_proto_begin(at, INTERNED_CALLSTACKS, KB_PROTO_EVENT);
	at = kb_proto_put_uint(body, INTERNED_IID, x->callstacks);
	for (i = 0; i < depth; i++)	/* outermost first */
		at = kb_proto_put_uint(at, CALLSTACK_FRAMES, path[i] + 1);
	end_message(x, message, kb_proto_end(body, at, KB_PROTO_EVENT));
	return x->callstacks;
}

/*
 * The sum of the sampling counter on the CPU of @event; NULL: @event does not have it. Holds
 * until the next track is created.
 */
static const uint64_t *count_timebase(struct perfetto *x, const struct kb_event *event)
{
	const struct kb_names *names = x->trace->names;
	bool counts = kb_names_nr_counters(names) && kb_names_one_weight(names), is_new;
	uint64_t advance = event->sample.has_pc;
	struct track *track;

	if (counts) {
		if (!event->sample.nr_counters || !kb_names_of_core(names, event->core) ||
		    kb_names_counter_id(names, event->core, 0) != 0 ||
		    event->sample.counters[0] == KB_COUNTER_INVALID)
			return NULL;
		advance = event->sample.counters[0];
	}
	track = find_track(x, TRACK_TIMEBASE, 0, event->core, &is_new);
	if (!track)
		return NULL;
	track->count += advance;
	return &track->count;
}

static void write_pc(struct perfetto *x, const struct kb_event *event, const uint64_t *count)
{
	int64_t node = kb_stack_table_add(&x->stacks, event, x->trace->symbolizer);
	struct seen_task *task = see_task(x, event->task_id, event->timestamp, x->now);
	uint8_t *at, *message;
	uint32_t stack;

	if (node < 0 || !task) {
		x->no_memory = true;
		return;
	}
	stack = intern_stack(x, (uint32_t)node);
	at = begin_timed(x, SMALL, x->now);
	if (!at)
		return;
	message = kb_proto_begin(at, PACKET_PERF_SAMPLE, KB_PROTO_PACKET);
	at = kb_proto_put_uint(message, SAMPLE_CPU, event->core);
	at = kb_proto_put_uint(at, SAMPLE_PID, task->tgid);
	at = kb_proto_put_uint(at, SAMPLE_TID, event->task_id);
	at = kb_proto_put_uint(at, SAMPLE_CALLSTACK, stack);
	at = kb_proto_put_uint(at, SAMPLE_MODE, kb_stack_node(&x->stacks, (uint32_t)node)->kernel ?
			       MODE_KERNEL : MODE_USER);
	if (count)
		at = kb_proto_put_uint(at, SAMPLE_TIMEBASE_COUNT, *count);
	end_message(x, message, at);
}

static void write_sample(struct perfetto *x, const struct kb_walk *walk, uint32_t known)
{
	const uint64_t *count = count_timebase(x, &walk->event);

	(void)known;
	if (walk->event.sample.has_pc)
		write_pc(x, &walk->event, count);
	write_metrics(x, &walk->event, x->trace->walk.ns);
}

/* ---- marks ---- */

/* The track of a thread itself, which Perfetto shows beside its scheduling. */
static uint64_t thread_track(struct perfetto *x, uint32_t task_id, uint32_t tgid)
{
	bool is_new;
	struct track *track = find_track(x, TRACK_THREAD, task_id, 0, &is_new);
	uint8_t *message, *thread, *at;

	if (!track)
		return 0;
	at = is_new ? begin_descriptor(x, track->uuid, &message) : NULL;
	if (at) {
		thread = kb_proto_begin(at, DESCRIPTOR_THREAD, KB_PROTO_EVENT);
		at = kb_proto_put_uint(thread, THREAD_TRACK_PID, tgid);
		at = kb_proto_put_uint(at, THREAD_TRACK_TID, task_id);
		end_message(x, message, kb_proto_end(thread, at, KB_PROTO_EVENT));
	}
	return track->uuid;
}

/* Describe a track of slices. @parent: the track above it; 0: none. */
static void describe_child(struct perfetto *x, uint64_t uuid, uint64_t parent, struct kb_text name)
{
	uint8_t *message, *at = begin_descriptor(x, uuid, &message);

	if (!at)
		return;
	at = put_text(at, DESCRIPTOR_NAME, name, NAME);
	if (parent)
		at = kb_proto_put_uint(at, DESCRIPTOR_PARENT, parent);
	end_message(x, message, at);
}

/* Channel 0 is the thread's own track. Other channels are tracks below it. */
static struct track *channel_track(struct perfetto *x, uint32_t task_id, uint32_t channel,
				   uint64_t thread, struct kb_text name)
{
	bool is_new;
	struct track *track = find_track(x, TRACK_CHANNEL, task_id, channel, &is_new);
	char text[32];

	if (!track)
		return NULL;
	if (!channel)
		track->uuid = thread;
	snprintf(text, sizeof(text), "channel %" PRIu32, channel);
	if (!channel || (!is_new && !name.length))
		return track;
	describe_child(x, track->uuid, thread, name.length ? name : kb_text(text));
	return track;
}

static void write_mark(struct perfetto *x, uint64_t track, uint32_t type, struct kb_text text)
{
	uint8_t *message, *at = begin_event(x, x->now, track, type, TEXT, &message);

	if (!at)
		return;
	if (type != TYPE_SLICE_END) {
		at = kb_proto_put_bytes(at, EVENT_CATEGORIES, "mark", 4);
		at = put_text(at, EVENT_NAME, text, TEXT);
	}
	end_message(x, message, at);
}

/*
 * A text lasts until the next or an empty text of its channel. A bookmark is an instant. The
 * name of a channel is the name of its track.
 */
static void write_annotation(struct perfetto *x, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	struct kb_text text = { event->annotation.text, event->annotation.text_length };
	struct seen_task *task = see_task(x, event->task_id, event->timestamp, x->now);
	struct track *channel;
	uint64_t thread;

	if (!task)
		return;
	thread = thread_track(x, event->task_id, task->tgid);
	if (event->annotation.type == KB_ANNOTATION_CHANNEL) {
		channel_track(x, event->task_id, event->annotation.channel, thread, text);
		return;
	}
	if (event->annotation.type != KB_ANNOTATION_STRING) {
		write_mark(x, thread, TYPE_INSTANT, text);
		return;
	}
	channel = channel_track(x, event->task_id, event->annotation.channel, thread, kb_text(NULL));
	if (!channel)
		return;
	if (channel->open)
		write_mark(x, channel->uuid, TYPE_SLICE_END, text);
	channel->open = text.length;
	if (channel->open)
		write_mark(x, channel->uuid, TYPE_SLICE_BEGIN, text);
}

/* ---- page faults and block requests ---- */

static uint8_t *put_note(uint8_t *at, const char *name, uint32_t field, uint64_t value)
{
	uint8_t *note = kb_proto_begin(at, EVENT_DEBUG_ANNOTATIONS, KB_PROTO_EVENT);

	at = kb_proto_put_bytes(note, NOTE_NAME, name, strlen(name));
	return kb_proto_end(note, kb_proto_put_uint(at, field, value), KB_PROTO_EVENT);
}

static uint64_t begin_of(const struct perfetto *x, const struct kb_event *event)
{
	uint64_t took = kb_ended_ns(x->trace->barman, event);

	return x->now > took ? x->now - took : 0;
}

/* What ended with @event, as a slice from its begin on, or an instant. Ended by end_ended(). */
static uint8_t *begin_ended(struct perfetto *x, const struct kb_event *event, uint64_t track, bool is_slice,
			    const char *category, const char *name, uint8_t **message)
{
	uint8_t *at = begin_event(x, is_slice ? begin_of(x, event) : x->now, track,
				  is_slice ? TYPE_SLICE_BEGIN : TYPE_INSTANT, TEXT, message);

	if (!at)
		return NULL;
	at = kb_proto_put_bytes(at, EVENT_CATEGORIES, category, strlen(category));
	at = kb_proto_put_bytes(at, EVENT_NAME, name, strlen(name));
	return put_note(at, "cpu", NOTE_UINT, event->core);
}

static void end_ended(struct perfetto *x, uint64_t track, bool is_slice, uint8_t *message, uint8_t *at)
{
	end_message(x, message, at);
	if (is_slice)
		write_mark(x, track, TYPE_SLICE_END, kb_text(NULL));
}

/* On a track below that of the task: a mark may begin in a fault and end in another one. */
static bool write_fault(struct perfetto *x, const struct kb_event *event)
{
	struct seen_task *task = see_task(x, event->task_id, event->timestamp, x->now);
	const uint64_t *arguments = event->custom_counter.arguments;
	uint64_t thread = task ? thread_track(x, event->task_id, task->tgid) : 0;
	bool is_slice = kb_ended_is_timed(event), is_new;
	struct track *track = find_track(x, TRACK_FAULTS, event->task_id, 0, &is_new);
	uint8_t *message, *at;

	if (!track)
		return true;
	if (is_new)
		describe_child(x, track->uuid, thread, kb_text("Page faults"));
	at = begin_ended(x, event, track->uuid, is_slice, "fault", kb_fault_kind_name(kb_fault_kind(event)),
			 &message);
	if (!at)
		return true;
	at = put_note(at, "kernel", NOTE_BOOL, event->custom_counter.cpu & KB_FAULT_KERNEL);
	at = put_note(at, "address", NOTE_POINTER, arguments[KB_FAULT_ADDRESS]);
	at = put_note(at, "pc", NOTE_POINTER, arguments[KB_FAULT_PC]);
	end_ended(x, track->uuid, is_slice, message, at);
	return true;
}

/*
 * A track of @device on which no request was under way at @begin, or the last one. Perfetto shows
 * tracks of one name as one, with the requests below each other.
 */
static struct track *free_lane(struct perfetto *x, uint32_t device, uint64_t begin)
{
	char disk[KB_DISK_TEXT];
	struct track *track = NULL;
	bool is_new = false;

	for (uint32_t lane = 0; lane < LANES; lane++) {
		track = find_track(x, TRACK_REQUESTS, lane, device, &is_new);
		if (!track || is_new || track->end <= begin)
			break;
	}
	if (track && is_new)
		describe_child(x, track->uuid, 0, kb_text(kb_disk_name(x->trace->names, device, disk) ?: "no disk"));
	return track;
}

static bool write_request(struct perfetto *x, const struct kb_event *event)
{
	const uint64_t *arguments = event->custom_counter.arguments;
	uint64_t since = begin_of(x, event);
	struct track *track = free_lane(x, (uint32_t)arguments[KB_BLOCK_DEVICE], since);
	bool is_slice = track && kb_ended_is_timed(event) && track->end <= since;
	const char *operation = kb_block_operation_name((uint8_t)event->custom_counter.cpu) ?: "other";
	char flags[KB_BLOCK_FLAGS_TEXT];
	uint8_t *message, *note, *at;

	if (!track)
		return true;
	at = begin_ended(x, event, track->uuid, is_slice, "block", operation, &message);
	if (!at)
		return true;
	at = put_note(at, "tid", NOTE_UINT, event->custom_counter.id);
	at = put_note(at, "sector", NOTE_UINT, arguments[KB_BLOCK_SECTOR]);
	at = put_note(at, "bytes", NOTE_UINT, arguments[KB_BLOCK_BYTES]);
	note = kb_proto_begin(at, EVENT_DEBUG_ANNOTATIONS, KB_PROTO_EVENT);
	at = kb_proto_put_bytes(note, NOTE_NAME, "flags", 5);
	at = put_text(at, NOTE_STRING, kb_text(kb_block_flags_text(event->custom_counter.cpu, flags)), NAME);
	at = kb_proto_end(note, at, KB_PROTO_EVENT);
	at = put_note(at, "result", NOTE_INT, (uint64_t)event->custom_counter.result);
	track->end = x->now;
	end_ended(x, track->uuid, is_slice, message, at);
	return true;
}

/* A value of kbarman's own series; @from: the CPU that a task leaves. */
static bool write_detail(struct perfetto *x, const struct kb_walk *walk, uint32_t from)
{
	const struct kb_event *event = &walk->event;
	uint8_t what = event->custom_counter.what, context = event->custom_counter.context;
	uint32_t id = event->custom_counter.id, pid = event->task_id;
	struct seen_task *task;
	uint8_t *at, *message;
	uint64_t time = x->now;

	if (what == KB_WHAT_SYSCALL)
		return write_call(x, event);
	if (what == KB_WHAT_FAULT)
		return write_fault(x, event);
	if (what == KB_WHAT_BLOCK)
		return write_request(x, event);
	if (!kb_perfetto_has_event(event))
		return false;
	see_task(x, pid, event->timestamp, time);
	if (what == KB_WHAT_WAKING_NEW) {
		task = kb_table_get_recent(&x->seen, &x->recent, id);
		if (task)
			task->name = NULL;	/* the event makes another task for the reader */
		x->no_memory |= !task;
	} else if (what <= KB_WHAT_MIGRATE) {
		see_task(x, id, event->timestamp, time);
	}
	if (what == KB_WHAT_WAKING) {
		if (write_waking(x, event, time))
			return true;
		if (context == KB_CONTEXT_IRQ || context == KB_CONTEXT_SOFTIRQ)
			pid = 0;	/* at least not the task that was interrupted */
	}
	at = begin_head(x, event->core, time, pid, &message);
	end_head(x, event->core, message, kb_perfetto_put_event(at, x->trace, event, from));
	return true;
}

/* ---- losses ---- */

/*
 * A slice on a track of the CPU, and a flag for readers of its trace events. For them the task that ran
 * leaves the CPU, and sleeps: that takes part in no sum.
 */
static void write_lost(struct perfetto *x, const struct kb_slice *slice)
{
	struct kb_read_cpu *cpu = kb_read_cpu(&x->read, slice->core);
	struct kb_task_name from, idle;
	bool is_new;
	struct track *track = find_track(x, TRACK_LOST, slice->core, 0, &is_new);
	struct bundle *bundle;
	uint8_t *message, *at;
	char text[48];
	int length;

	if (!track)
		return;
	if (cpu->running) {
		from = *kb_names_task(x->trace->names, cpu->running, x->trace->walk.event.timestamp);
		idle = *kb_names_task(x->trace->names, 0, x->trace->walk.event.timestamp);
		write_whole_switch(x, slice->core, clock_of(x, slice->start), cpu->running, &from,
				   KB_TASK_INTERRUPTIBLE, 0, &idle);
		cpu->running = 0;
	}
	bundle = &x->bundles[slice->core % BUNDLES];
	flush_bundle(x, bundle);
	bundle->core = slice->core;
	bundle->lost = true;
	at = is_new ? begin_descriptor(x, track->uuid, &message) : NULL;
	if (at) {
		length = snprintf(text, sizeof(text), "CPU %" PRIu32 " lost", slice->core);
		at = kb_proto_put_bytes(at, DESCRIPTOR_NAME, text, (size_t)length);
		end_message(x, message, at);
	}
	length = snprintf(text, sizeof(text), "%" PRIu64 " records lost", slice->lost);
	at = begin_event(x, clock_of(x, slice->start), track->uuid, TYPE_SLICE_BEGIN, TEXT, &message);
	if (at)
		end_message(x, message, kb_proto_put_bytes(at, EVENT_NAME, text, (size_t)length));
	at = begin_event(x, clock_of(x, slice->end), track->uuid, TYPE_SLICE_END, 0, &message);
	if (at)
		end_message(x, message, at);
}

/* ---- all of it ---- */

static void take_time(struct perfetto *x, const struct kb_walk *walk)
{
	x->now = clock_of(x, walk->ns);
}

/* trace_processor lets tasks run until its last event. The capture may end later. */
static void end_running(struct perfetto *x, uint32_t core)
{
	uint64_t timestamp = x->trace->walk.event.timestamp;
	struct kb_read_cpu *cpu = kb_read_cpu(&x->read, core);
	struct kb_task_name from, idle;

	if (!cpu->running)
		return;
	from = *kb_names_task(x->trace->names, cpu->running, timestamp);
	idle = *kb_names_task(x->trace->names, 0, timestamp);
	write_whole_switch(x, core, clock_of(x, kb_shown_last(x->trace)), cpu->running, &from,
			   KB_FTRACE_RUNNING, 0, &idle);
}

static int end(struct perfetto *x)
{
	uint32_t i;

	for (i = 0; i < x->header->max_cores && i < MAX_CPUS; i++)
		end_running(x, i);
	for (i = 0; i < BUNDLES; i++)
		flush_bundle(x, &x->bundles[i]);
	if (x->above)
		kb_export_say(x->options, "%" PRIu64 " trace events of CPUs from %u on were "
			      "left out: Perfetto refuses traces with them", x->above, MAX_CPUS);
	if (x->before)
		kb_export_say(x->options, "%" PRIu64 " times before the clock's start were written "
			      "as its start: Perfetto has no earlier times", x->before);
	return 0;
}

static int begin(struct perfetto *x)
{
	const char *base = kb_barman_fact(x->trace->barman, "raw_base");

	kb_table_init(&x->seen, sizeof(struct seen_task), 1);
	kb_table_init(&x->tracks, sizeof(struct track), 2);
	kb_table_init(&x->reasons, sizeof(struct reason), 3);
	x->bundles = calloc(BUNDLES, sizeof(*x->bundles));
	if (!x->bundles || kb_metric_tracks_init(&x->metrics, x->trace->names, x->trace->barman,
						 x->header->max_cores))
		return kb_run_no_memory(&x->run);
	x->base = base ? (int64_t)strtoull(base, NULL, 10) : 0;
	if (x->base < 0)
		x->base = 0;
	/* of several machines all clocks are UTC, so they are one for every reader of the trace */
	if (x->trace->machine) {
		x->base = x->trace->machine->wall.at;
		x->machine = x->trace->machine->number;
	}
	write_clocks(x);
	write_system(x);
	return 0;
}

static void release_trace(struct perfetto *x)
{
	free(x->path);
	free(x->bundles);
	kb_metric_tracks_release(&x->metrics);
	kb_table_release(&x->tracks);
	kb_table_release(&x->reasons);
	kb_table_release(&x->seen);
}

static const struct sink sink = {
	.uses = KB_USES_STACKS | KB_USES_ADDRESSES | KB_USES_MOVES | KB_USES_READ | KB_USES_RUNNING,
	.begin = begin,
	.end = end,
	.release = release_trace,
	.before = take_time,
	.lost = write_lost,
	.switched = write_switch,
	.halt = write_halt,
	.found = write_found,
	.sample = write_sample,
	.counter = write_counter,
	.series = write_series,
	.detail = write_detail,
	.mark = write_annotation,
};

const struct kb_export kb_export_perfetto = {
	.name = "perfetto",
	.extension = ".perfetto",
	.description = "Perfetto: scheduling, idling, samples, counters, metrics, marks",
	.run = sink_export,
};
