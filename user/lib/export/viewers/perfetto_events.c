// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "export/label.h"
#include "export/viewers/perfetto_events.h"
#include "export/viewers/perfetto_fields.h"
#include "format/protobuf.h"

#define NAME	256	/* of a task or a handler */
#define HANDLED	1	/* what a handler returned: a capture does not have it */
#define THREAD	0x10000	/* CLONE_THREAD of linux/sched.h */

/*
 * The numbers of the fields; 0: there is no such event. trace_processor takes the beginning of a task
 * from task_newtask alone, and makes slices of IPIs if they are handlers of interrupts.
 */
static const uint16_t fields[] = {
	[KB_WHAT_WAKING] = FTRACE_SCHED_WAKING,
	[KB_WHAT_WAKING_NEW] = FTRACE_TASK_NEWTASK,
	[KB_WHAT_MIGRATE] = FTRACE_SCHED_MIGRATE_TASK,
	[KB_WHAT_IRQ_ENTRY] = FTRACE_IRQ_HANDLER_ENTRY,
	[KB_WHAT_IRQ_EXIT] = FTRACE_IRQ_HANDLER_EXIT,
	[KB_WHAT_IPI_ENTRY] = FTRACE_IRQ_HANDLER_ENTRY,
	[KB_WHAT_IPI_EXIT] = FTRACE_IRQ_HANDLER_EXIT,
	[KB_WHAT_SOFTIRQ_RAISE] = FTRACE_SOFTIRQ_RAISE,
	[KB_WHAT_SOFTIRQ_ENTRY] = FTRACE_SOFTIRQ_ENTRY,
	[KB_WHAT_SOFTIRQ_EXIT] = FTRACE_SOFTIRQ_EXIT,
	[KB_WHAT_FREQUENCY] = FTRACE_CPU_FREQUENCY,
};

static uint16_t field_of(const struct kb_event *event)
{
	uint8_t what = event->type == KB_EVENT_CUSTOM_COUNTER ? event->custom_counter.what : 0;

	return what < ARRAY_SIZE(fields) ? fields[what] : 0;
}

bool kb_perfetto_has_event(const struct kb_event *event)
{
	return field_of(event);
}

static uint8_t *put_text(uint8_t *at, uint32_t field, struct kb_text text)
{
	char clean[NAME];

	return kb_proto_put_bytes(at, field, clean,
				  kb_label(clean, sizeof(clean), text.data, text.length, false));
}

uint8_t *kb_perfetto_put_task(uint8_t *at, uint32_t field, const struct kb_task_name *task)
{
	if (!task->label_length)
		return put_text(at, field, task->name);
	at = kb_proto_put_varint(at, field << 3 | KB_PROTO_BYTES);
	*at++ = task->label_length;
	memcpy(at, task->label, KB_SHORT_NAME);
	return at + task->label_length;
}

/* The fields that all events about a task begin with. */
static uint8_t *put_task(uint8_t *at, const struct kb_trace *trace, const struct kb_event *event)
{
	uint32_t id = event->custom_counter.id;

	at = kb_perfetto_put_task(at, WAKEUP_COMM, kb_names_task(trace->names, id, event->timestamp));
	return kb_proto_put_uint(at, WAKEUP_PID, id);
}

static uint8_t *put_new_task(uint8_t *at, const struct kb_trace *trace, const struct kb_event *event)
{
	uint32_t id = event->custom_counter.id;
	const struct kb_task_name *task = kb_names_task(trace->names, id, event->timestamp);

	at = kb_proto_put_uint(at, NEWTASK_PID, id);
	at = kb_perfetto_put_task(at, NEWTASK_COMM, task);
	return kb_proto_put_uint(at, NEWTASK_CLONE_FLAGS, task->tgid == id ? 0 : THREAD);
}

static uint8_t *put_handler(uint8_t *at, const struct kb_trace *trace, const struct kb_event *event)
{
	uint32_t irq = event->custom_counter.id;
	struct kb_text name = kb_names_irq(trace->names, irq, event->custom_counter.cpu);
	char number[24];

	snprintf(number, sizeof(number), "irq %" PRIu32, irq);
	at = kb_proto_put_uint(at, IRQ_NUMBER, irq);
	return put_text(at, IRQ_ENTRY_NAME, name.length ? name : kb_text(number));
}

static uint8_t *put_body(uint8_t *at, const struct kb_trace *trace, const struct kb_event *event,
			 uint32_t from)
{
	uint32_t id = event->custom_counter.id, cpu = event->custom_counter.cpu;

	switch (event->custom_counter.what) {
	case KB_WHAT_WAKING:
		at = kb_proto_put_uint(put_task(at, trace, event), WAKEUP_SUCCESS, true);
		return kb_proto_put_uint(at, WAKEUP_TARGET_CPU, cpu);
	case KB_WHAT_WAKING_NEW:
		return put_new_task(at, trace, event);
	case KB_WHAT_MIGRATE:
		at = kb_proto_put_uint(put_task(at, trace, event), MIGRATE_ORIG_CPU, from);
		return kb_proto_put_uint(at, MIGRATE_DEST_CPU, cpu);
	case KB_WHAT_IRQ_ENTRY:
		return put_handler(at, trace, event);
	case KB_WHAT_IRQ_EXIT:
		at = kb_proto_put_uint(at, IRQ_NUMBER, id);
		return kb_proto_put_uint(at, IRQ_EXIT_RET, HANDLED);
	case KB_WHAT_IPI_ENTRY:
		return put_text(at, IRQ_ENTRY_NAME, kb_text(kb_ipi_name(id)));
	case KB_WHAT_IPI_EXIT:
		return kb_proto_put_uint(at, IRQ_EXIT_RET, HANDLED);
	case KB_WHAT_FREQUENCY:
		at = kb_proto_put_uint(at, FREQUENCY_STATE, (uint32_t)event->custom_counter.value);
		return kb_proto_put_uint(at, FREQUENCY_CPU, cpu);
	default:
		return kb_proto_put_uint(at, SOFTIRQ_VEC, id);
	}
}

uint8_t *kb_perfetto_put_event(uint8_t *at, const struct kb_trace *trace,
			       const struct kb_event *event, uint32_t from)
{
	uint8_t *body = kb_proto_begin(at, field_of(event), KB_PROTO_EVENT);

	return kb_proto_end(body, put_body(body, trace, event, from), KB_PROTO_EVENT);
}
