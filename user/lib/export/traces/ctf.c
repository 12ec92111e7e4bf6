// SPDX-License-Identifier: MIT
/*
 * A capture as a CTF trace. Switches, idling, wakeups, migrations, interrupts, softirqs and
 * frequencies have names and fields of the events of LTTng's kernel tracer, so analyses of LTTng
 * traces work; these look for a folder called kernel, and for a version of that tracer. All others are
 * events of kbarman. Times are CLOCK_MONOTONIC_RAW if the capture has
 * its readings, else ns since the start of the capture's clock.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <kbarman/chain.h>

#include "analysis/time/ended.h"
#include "base/array.h"
#include "export/label.h"
#include "export/list.h"
#include "export/run.h"
#include "format/ctf.h"

#define COMM		16	/* bytes of a task's name in sched_switch, with its NUL */
#define NAME		1024	/* of other names */
#define TEXT		16384	/* of a mark */
#define FRAMES		1024	/* of a call chain */
#define NUMBERS		128	/* room for all numbers of an event */
#define UNKNOWN		"[unknown]"
#define NORMAL_PRIORITY	20	/* as in LTTng; captures have no priorities */
#define HANDLED		1	/* what a handler returned; captures do not have it */

enum event_id {
	SWITCH, IDLE, SAMPLE, COUNTER, SERIES, MARK, TASK, WAKING, WAKEUP_NEW, MIGRATE, IRQ_ENTRY,
	IRQ_EXIT, SOFTIRQ_RAISE, SOFTIRQ_ENTRY, SOFTIRQ_EXIT, FREQUENCY, IPI_ENTRY, IPI_EXIT,
	IDLE_MISS, SYSCALL, FAULT, BLOCK,
};

#define ABOUT_TASK	"char_t _comm[16]; int32_t _tid; int32_t _prio; "
#define EVENT(id, name, fields)			\
	"event {\n"				\
	"\tid = " #id ";\n"			\
	"\tname = \"" name "\";\n"		\
	"\tstream_id = 0;\n"			\
	"\tfields := struct { " fields " };\n" \
	"};\n"

static const char events[] =
	EVENT(0, "sched_switch", "char_t _prev_comm[16]; int32_t _prev_tid; int32_t _prev_prio;"
	      " int64_t _prev_state; char_t _next_comm[16]; int32_t _next_tid; int32_t _next_prio;")
	EVENT(1, "power_cpu_idle", "uint32_t _state; uint32_t _cpu_id;")
	EVENT(2, "kbarman:sample", "int32_t _tid; address_t _ip; string _symbol; string _image;"
	      " uint64_t _period; uint32_t __chain_length; address_t _chain[__chain_length];")
	EVENT(3, "kbarman:counter", "string _name; uint64_t _value;")
	EVENT(4, "kbarman:series", "string _name; uint64_t _value; double_t _scaled;")
	EVENT(5, "kbarman:mark", "int32_t _tid; uint32_t _type; uint32_t _channel; uint32_t _group;"
	      " uint32_t _colour; string _text;")
	EVENT(6, "kbarman:task", "int32_t _tid; int32_t _pid; string _name;")
	EVENT(7, "sched_waking", ABOUT_TASK "int32_t _target_cpu;")
	EVENT(8, "sched_wakeup_new", ABOUT_TASK "int32_t _target_cpu;")
	EVENT(9, "sched_migrate_task", ABOUT_TASK "int32_t _orig_cpu; int32_t _dest_cpu;")
	EVENT(10, "irq_handler_entry", "int32_t _irq; string _name;")
	EVENT(11, "irq_handler_exit", "int32_t _irq; int32_t _ret;")
	EVENT(12, "irq_softirq_raise", "uint32_t _vec;")
	EVENT(13, "irq_softirq_entry", "uint32_t _vec;")
	EVENT(14, "irq_softirq_exit", "uint32_t _vec;")
	EVENT(15, "power_cpu_frequency", "uint32_t _state; uint32_t _cpu_id;")
	EVENT(16, "kbarman:ipi_entry", "string _reason;")
	EVENT(17, "kbarman:ipi_exit", "string _reason;")
	EVENT(18, "kbarman:idle_miss", "uint32_t _state; uint32_t _cpu_id; uint32_t _below;")
	EVENT(19, "kbarman:syscall", "int32_t _tid; string _name; uint32_t _number; uint64_t _duration;"
	      " int64_t _ret; uint64_t _arg0; uint64_t _arg1; uint64_t _arg2;")
	EVENT(20, "kbarman:fault", "int32_t _tid; string _kind; uint32_t _kernel; uint64_t _duration;"
	      " uint64_t _address; uint64_t _ip;")
	EVENT(21, "kbarman:block", "int32_t _tid; string _disk; uint32_t _dev; string _operation; string _flags;"
	      " uint64_t _duration; int64_t _error; uint64_t _sector; uint32_t _bytes;");

struct ctf {
	KB_RUN;
	struct kb_ctf *stream;
	uint64_t now;		/* of the record that is written */
	int64_t base;		/* CLOCK_MONOTONIC_RAW at the capture's base */
	int64_t offset;		/* of the wall clock from that clock */
	uint64_t outside;	/* times that a trace can't have */
};

#define SINK struct ctf
#include "export/sink.h"

/*
 * The time of an event, at least 0. Readers add the clock's offset to get the wall clock, which
 * must fit into 63 bits; the seconds and the rest of the offset are separate, hence the second
 * to spare.
 */
static uint64_t clock_of(struct ctf *x, int64_t ns)
{
	int64_t last = INT64_MAX - 1000000000 - (x->offset > 0 ? x->offset : 0), time;

	if (__builtin_add_overflow(ns, x->base, &time))
		time = INT64_MAX;
	if (time >= 0 && time <= last)
		return (uint64_t)time;
	x->outside++;
	return time < 0 ? 0 : (uint64_t)last;
}

/* ---- fields ---- */

static uint8_t *put_comm(uint8_t *at, struct kb_text name)
{
	memset(at, 0, COMM);
	kb_label((char *)at, COMM - 1, name.data, name.length, false);
	return at + COMM;
}

/* Writes "-" for an empty text: babeltrace2 up to 2.0.4 shows "" as the previous string. */
static uint8_t *put_text(uint8_t *at, const char *text, size_t length, size_t max)
{
	if (!length) {
		text = "-";
		length = 1;
	}
	at += kb_label((char *)at, max, text, length, false);
	*at = 0;
	return at + 1;
}

static uint8_t *put_double(uint8_t *at, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return kb_ctf_put64(at, bits);
}

/* ---- events ---- */

/* Write the name and process of a task when it first appears. */
static void see_task(struct ctf *x, const struct kb_event *event)
{
	int64_t i = kb_task_table_find(&x->tasks, event->task_id, event->timestamp);
	char label[KB_TASK_LABEL];
	struct kb_task_id *task;
	uint8_t *at;

	x->no_memory |= i < 0;
	task = i < 0 ? NULL : kb_task_id(&x->tasks, (uint32_t)i);
	if (!task || task->user)
		return;
	task->user = true;
	at = kb_ctf_begin(x->stream, event->core, TASK, x->now, NUMBERS + NAME);
	at = kb_ctf_put32(at, event->task_id);
	at = kb_ctf_put32(at, task->tgid);
	kb_ctf_end(x->stream, put_text(at, label, kb_task_label(&x->tasks, (uint32_t)i, label), NAME));
}

/* The state as LTTng writes it, which does not tell preempted tasks from others that can run. */
static uint64_t lttng_state(struct ctf *x, uint32_t task_id)
{
	uint32_t state = kb_export_switch_state(x->trace, task_id);

	return state == KB_FTRACE_PREEMPTED ? KB_FTRACE_RUNNING : state;
}

/* @previous: the task that ran; 0: unknown. */
static void put_switch(struct ctf *x, uint32_t core, uint64_t time, uint32_t previous, uint64_t state,
		       uint32_t next)
{
	uint64_t timestamp = x->trace->walk.event.timestamp;
	uint8_t *at = kb_ctf_begin(x->stream, core, SWITCH, time, NUMBERS);

	at = put_comm(at, kb_names_task(x->trace->names, previous, timestamp)->name);
	at = kb_ctf_put32(at, previous);
	at = kb_ctf_put32(at, NORMAL_PRIORITY);
	at = kb_ctf_put64(at, state);
	at = put_comm(at, kb_names_task(x->trace->names, next, timestamp)->name);
	at = kb_ctf_put32(at, next);
	kb_ctf_end(x->stream, kb_ctf_put32(at, NORMAL_PRIORITY));
	*kb_read_cpu(&x->read, core) = (struct kb_read_cpu){ true, next };
}

static void write_switch(struct ctf *x, const struct kb_walk *walk)
{
	see_task(x, &walk->event);
	put_switch(x, walk->event.core, x->now, walk->running, lttng_state(x, walk->running),
		   walk->event.task_id);
}

/* For readers the task that ran leaves the CPU, and sleeps: that takes part in no sum. */
static void write_lost(struct ctf *x, const struct kb_slice *slice)
{
	uint32_t running = kb_read_cpu(&x->read, slice->core)->running;

	if (running)
		put_switch(x, slice->core, clock_of(x, slice->start), running,
			   KB_TASK_INTERRUPTIBLE, 0);
	kb_ctf_discard(x->stream, slice->core, slice->lost);
}

static void write_halt(struct ctf *x, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	uint8_t *at = kb_ctf_begin(x->stream, event->core, IDLE, x->now, NUMBERS);
	int state = event->halt.idle_state;

	at = kb_ctf_put32(at, !event->halt.entered ? UINT32_MAX :
			  state == KB_STATE_UNKNOWN ? 0 : (uint32_t)state);
	kb_ctf_end(x->stream, kb_ctf_put32(at, event->core));
}

static void write_pc(struct ctf *x, const struct kb_event *event)
{
	uint32_t depth = kb_chain_depth(event), i;
	const struct kb_symbol *symbol = !x->trace->symbolizer ? NULL :
		kb_symbolizer_resolve(x->trace->symbolizer, event->task_id, event->timestamp,
				      event->sample.pc);
	const char *name = symbol && *symbol->name ? symbol->name : UNKNOWN;
	const char *image = symbol ? symbol->image : UNKNOWN;
	uint8_t *at;

	if (depth > FRAMES)
		depth = FRAMES;
	at = kb_ctf_begin(x->stream, event->core, SAMPLE, x->now, NUMBERS + 2 * NAME + depth * 8);
	at = kb_ctf_put32(at, event->task_id);
	at = kb_ctf_put64(at, event->sample.pc);
	at = put_text(at, name, strlen(name), NAME);
	at = put_text(at, image, strlen(image), NAME);
	at = kb_ctf_put64(at, event->sample.nr_counters &&
			  event->sample.counters[0] != KB_COUNTER_INVALID ?
			  event->sample.counters[0] : 0);
	at = kb_ctf_put32(at, depth);
	for (i = 0; i < depth; i++)
		at = kb_ctf_put64(at, kb_chain_pc(event, i));
	kb_ctf_end(x->stream, at);
}

static void write_found(struct ctf *x, const struct kb_walk *walk)
{
	see_task(x, &walk->event);
	put_switch(x, walk->event.core, x->now, 0, KB_FTRACE_RUNNING, walk->event.task_id);
}

static void write_sample(struct ctf *x, const struct kb_walk *walk, uint32_t known)
{
	(void)known;
	see_task(x, &walk->event);
	if (walk->event.sample.has_pc)
		write_pc(x, &walk->event);
}

static void write_counter(struct ctf *x, const struct kb_walk *walk, uint32_t id, uint64_t value)
{
	struct kb_text name = kb_names_counter(x->trace->names, id);
	uint8_t *at = kb_ctf_begin(x->stream, walk->event.core, COUNTER, x->now, NUMBERS + NAME);

	at = put_text(at, name.data, name.length, NAME);
	kb_ctf_end(x->stream, kb_ctf_put64(at, value));
}

static void write_series(struct ctf *x, const struct kb_walk *walk, uint32_t id, uint64_t value)
{
	const struct kb_series *series = id < x->header->nr_series ? &x->header->series[id] : NULL;
	const char *name = series && series->name ? series->name : "";
	uint8_t *at;

	see_task(x, &walk->event);
	at = kb_ctf_begin(x->stream, walk->event.core, SERIES, x->now, NUMBERS + NAME);
	at = put_text(at, name, strlen(name), NAME);
	at = kb_ctf_put64(at, value);
	kb_ctf_end(x->stream, put_double(at, (double)value * (series ? series->multiplier : 1.0)));
}

/* ---- what values of kbarman's own series are about ---- */

static const uint8_t ids[] = {
	[KB_WHAT_WAKING] = WAKING,
	[KB_WHAT_WAKING_NEW] = WAKEUP_NEW,
	[KB_WHAT_MIGRATE] = MIGRATE,
	[KB_WHAT_IRQ_ENTRY] = IRQ_ENTRY,
	[KB_WHAT_IRQ_EXIT] = IRQ_EXIT,
	[KB_WHAT_IPI_ENTRY] = IPI_ENTRY,
	[KB_WHAT_IPI_EXIT] = IPI_EXIT,
	[KB_WHAT_SOFTIRQ_RAISE] = SOFTIRQ_RAISE,
	[KB_WHAT_SOFTIRQ_ENTRY] = SOFTIRQ_ENTRY,
	[KB_WHAT_SOFTIRQ_EXIT] = SOFTIRQ_EXIT,
	[KB_WHAT_FREQUENCY] = FREQUENCY,
	[KB_WHAT_IDLE_MISS] = IDLE_MISS,
	[KB_WHAT_SYSCALL] = SYSCALL,
	[KB_WHAT_FAULT] = FAULT,
	[KB_WHAT_BLOCK] = BLOCK,
};

static uint8_t *put_about_task(struct ctf *x, uint8_t *at, const struct kb_event *event)
{
	uint32_t id = event->custom_counter.id;

	at = put_comm(at, kb_names_task(x->trace->names, id, event->timestamp)->name);
	at = kb_ctf_put32(at, id);
	return kb_ctf_put32(at, NORMAL_PRIORITY);
}

static uint8_t *put_handler(struct ctf *x, uint8_t *at, const struct kb_event *event)
{
	struct kb_text name = kb_names_irq(x->trace->names, event->custom_counter.id,
					   event->custom_counter.cpu);

	return put_text(kb_ctf_put32(at, event->custom_counter.id), name.data, name.length, NAME);
}

static uint8_t *put_string(uint8_t *at, const char *text)
{
	return put_text(at, text ?: "", text ? strlen(text) : 0, NAME);
}

static uint8_t *put_syscall(struct ctf *x, uint8_t *at, const struct kb_event *event)
{
	at = put_string(kb_ctf_put32(at, event->task_id), kb_names_call(x->trace->names, event));
	at = kb_ctf_put32(at, event->custom_counter.id);
	at = kb_ctf_put64(at, kb_ended_ns(x->trace->barman, event));
	at = kb_ctf_put64(at, (uint64_t)event->custom_counter.result);
	for (unsigned int i = 0; i < KB_SYSCALL_ARGUMENTS; i++)
		at = kb_ctf_put64(at, event->custom_counter.arguments[i]);
	return at;
}

static uint8_t *put_fault(struct ctf *x, uint8_t *at, const struct kb_event *event)
{
	at = put_string(kb_ctf_put32(at, event->task_id), kb_fault_kind_name(kb_fault_kind(event)));
	at = kb_ctf_put32(at, event->custom_counter.cpu & KB_FAULT_KERNEL);
	at = kb_ctf_put64(at, kb_ended_ns(x->trace->barman, event));
	at = kb_ctf_put64(at, event->custom_counter.arguments[KB_FAULT_ADDRESS]);
	return kb_ctf_put64(at, event->custom_counter.arguments[KB_FAULT_PC]);
}

static uint8_t *put_block(struct ctf *x, uint8_t *at, const struct kb_event *event)
{
	const uint64_t *arguments = event->custom_counter.arguments;
	uint32_t device = (uint32_t)arguments[KB_BLOCK_DEVICE];
	char disk[KB_DISK_TEXT], flags[KB_BLOCK_FLAGS_TEXT];

	at = put_string(kb_ctf_put32(at, event->custom_counter.id), kb_disk_name(x->trace->names, device, disk));
	at = put_string(kb_ctf_put32(at, device), kb_block_operation_name((uint8_t)event->custom_counter.cpu));
	at = put_string(at, kb_block_flags_text(event->custom_counter.cpu, flags));
	at = kb_ctf_put64(at, kb_ended_ns(x->trace->barman, event));
	at = kb_ctf_put64(at, (uint64_t)event->custom_counter.result);
	at = kb_ctf_put64(at, arguments[KB_BLOCK_SECTOR]);
	return kb_ctf_put32(at, (uint32_t)arguments[KB_BLOCK_BYTES]);
}

/* @from: the CPU that a task leaves. */
static uint8_t *put_detail(struct ctf *x, uint8_t *at, const struct kb_event *event, uint32_t from)
{
	uint32_t id = event->custom_counter.id, cpu = event->custom_counter.cpu;
	const char *reason;

	switch (event->custom_counter.what) {
	case KB_WHAT_WAKING:
	case KB_WHAT_WAKING_NEW:
		return kb_ctf_put32(put_about_task(x, at, event), cpu);
	case KB_WHAT_MIGRATE:
		return kb_ctf_put32(kb_ctf_put32(put_about_task(x, at, event), from), cpu);
	case KB_WHAT_IRQ_ENTRY:
		return put_handler(x, at, event);
	case KB_WHAT_IRQ_EXIT:
		return kb_ctf_put32(kb_ctf_put32(at, id), HANDLED);
	case KB_WHAT_IPI_ENTRY:
	case KB_WHAT_IPI_EXIT:
		reason = kb_ipi_name(id);
		return put_text(at, reason, strlen(reason), NAME);
	case KB_WHAT_FREQUENCY:
		return kb_ctf_put32(kb_ctf_put32(at, (uint32_t)event->custom_counter.value), cpu);
	case KB_WHAT_IDLE_MISS:
		at = kb_ctf_put32(kb_ctf_put32(at, id), cpu);
		return kb_ctf_put32(at, event->custom_counter.context);
	case KB_WHAT_SYSCALL:
		return put_syscall(x, at, event);
	case KB_WHAT_FAULT:
		return put_fault(x, at, event);
	case KB_WHAT_BLOCK:
		return put_block(x, at, event);
	default:
		return kb_ctf_put32(at, id);
	}
}

static bool write_detail(struct ctf *x, const struct kb_walk *walk, uint32_t from)
{
	const struct kb_event *event = &walk->event;
	uint8_t *at;

	if (event->custom_counter.what >= ARRAY_SIZE(ids) || !ids[event->custom_counter.what])
		return false;
	see_task(x, event);
	at = kb_ctf_begin(x->stream, event->core, ids[event->custom_counter.what], x->now,
			  NUMBERS + NAME + KB_BLOCK_FLAGS_TEXT);
	kb_ctf_end(x->stream, put_detail(x, at, event, from));
	return true;
}

static void write_mark(struct ctf *x, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	uint8_t *at;

	see_task(x, event);
	at = kb_ctf_begin(x->stream, event->core, MARK, x->now, NUMBERS + TEXT);
	at = kb_ctf_put32(at, event->task_id);
	at = kb_ctf_put32(at, event->annotation.type);
	at = kb_ctf_put32(at, event->annotation.channel);
	at = kb_ctf_put32(at, event->annotation.group);
	at = kb_ctf_put32(at, event->annotation.colour);
	kb_ctf_end(x->stream, put_text(at, event->annotation.text, event->annotation.text_length,
				       TEXT));
}

static void take_time(struct ctf *x, const struct kb_walk *walk)
{
	x->now = clock_of(x, walk->ns);
}

/* ---- metadata ---- */

/* A string in the format's language. All but plain ASCII is escaped. */
static void put_fact(struct kb_out *out, const char *key, const char *value)
{
	char clean[NAME];
	size_t length, i;

	if (!value)
		return;
	length = kb_label(clean, sizeof(clean), value, strlen(value), false);
	kb_out_printf(out, "\t%s = \"", key);
	for (i = 0; i < length; i++) {
		unsigned char c = (unsigned char)clean[i];

		if (c >= ' ' && c < 0x7f && c != '"' && c != '\\')
			kb_out_bytes(out, &c, 1);
		else
			kb_out_printf(out, "\\%03o", c);
	}
	kb_out_printf(out, "\";\n");
}

static int finish(struct ctf *x)
{
	const char *target = x->header->target_name;
	struct kb_out *out;
	size_t size;
	int error;

	if (kb_out_memory(&out))
		return kb_run_no_memory(&x->run);
	kb_out_printf(out, "env {\n\tdomain = \"kernel\";\n\tsysname = \"Linux\";\n"
		      "\ttracer_name = \"lttng-modules\";\n\ttracer_major = 2;\n"
		      "\ttracer_minor = 13;\n\ttracer_patchlevel = 0;\n");
	put_fact(out, "hostname", kb_barman_fact(x->trace->barman, "host"));
	put_fact(out, "kernel_release", kb_barman_fact(x->trace->barman, "release"));
	put_fact(out, "command", kb_barman_fact(x->trace->barman, "command"));
	put_fact(out, "target", target && *target ? target : NULL);
	kb_out_bytes(out, "};\n", 4);	/* with its NUL */
	error = kb_out_error(out);
	if (error)
		kb_error_set(x->err, error, KB_NO_OFFSET, "out of memory");
	else
		error = kb_ctf_finish(x->stream, clock_of(x, kb_shown_last(x->trace)),
				      kb_out_data(out, &size), x->offset, events, x->err);
	kb_out_destroy(out);
	return error;
}

/* ---- all of it ---- */

static int begin(struct ctf *x)
{
	const char *base = kb_barman_fact(x->trace->barman, "raw_base");
	char *folder;
	int error = 0;

	if (!x->options->directory)
		return kb_error_set(x->err, -EINVAL, KB_NO_OFFSET, "a CTF trace is a directory");
	if (asprintf(&folder, "%s/kernel", x->options->directory) < 0)
		return kb_run_no_memory(&x->run);
	if (mkdir(folder, 0777))
		error = kb_error_set(x->err, -errno, KB_NO_OFFSET, "can't make '%s': %s", folder,
				     strerror(errno));
	if (!error)
		error = kb_ctf_create(&x->stream, folder, x->err);
	free(folder);
	x->base = base ? (int64_t)strtoull(base, NULL, 10) : 0;
	if (x->base < 0)
		x->base = 0;
	x->offset = (int64_t)(x->header->unix_base_ns - (uint64_t)x->base);
	return error;
}

static int end(struct ctf *x)
{
	int error = x->no_memory ? kb_run_no_memory(&x->run) : finish(x);

	if (x->outside)
		kb_export_say(x->options, "%" PRIu64 " times before the clock's start, or too far behind "
			      "it, were written as the nearest that CTF has", x->outside);
	if (kb_ctf_moved(x->stream))
		kb_export_say(x->options, "%" PRIu64 " events older than the one before them on their "
			      "CPU were moved to its time", kb_ctf_moved(x->stream));
	return error;
}

static void release(struct ctf *x)
{
	kb_ctf_destroy(x->stream);
}

static const struct sink sink = {
	.uses = KB_USES_MOVES | KB_USES_READ | KB_USES_RUNNING,
	.begin = begin,
	.end = end,
	.release = release,
	.before = take_time,
	.lost = write_lost,
	.switched = write_switch,
	.halt = write_halt,
	.found = write_found,
	.sample = write_sample,
	.counter = write_counter,
	.series = write_series,
	.detail = write_detail,
	.mark = write_mark,
};

const struct kb_export kb_export_ctf = {
	.name = "ctf",
	.extension = ".ctf",
	.description = "a CTF 1.8 trace, a directory: for babeltrace2, Trace Compass",
	.directory = true,
	.run = sink_export,
};
