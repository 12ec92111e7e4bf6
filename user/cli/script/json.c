// SPDX-License-Identifier: MIT
/*
 * Records as JSON, one object a line: kbarman-json(5) has the keys. What nearly all lines have is
 * written without looking at each character.
 */
#include <string.h>

#include <kbarman/chain.h>
#include <kbarman/losses.h>

#include "analysis/time/ended.h"
#include "base/text/json.h"
#include "cli/script/script.h"

#define HEAD_BYTES	128U	/* what begin() writes, without the task */

static bool has(const struct script *script, unsigned int field)
{
	return script->fields & field;
}

/* ---- pieces ---- */

#define PUT(at, literal) \
	(memcpy(at, literal, sizeof(literal) - 1), (at) + sizeof(literal) - 1)

static uint8_t *put_signed(uint8_t *at, int64_t number)
{
	if (number >= 0)
		return kb_decimal_put(at, (uint64_t)number);
	*at++ = '-';
	return kb_decimal_put(at, -(uint64_t)number);
}

static void put_padded(struct kb_out *out, const struct task_text *text)
{
	uint8_t *at = kb_out_reserve(out, text->length + LINE_SLACK);

	if (!at)
		return;
	memcpy(at, text->text, 64);
	if (text->length > 64)
		memcpy(at + 64, text->text + 64, text->length - 64);
	kb_out_commit(out, at + text->length);
}

static void put_task(struct script *script, uint32_t task_id, const struct kb_event *event)
{
	const struct script_task *task = script_tasks_get(script->tasks, task_id, event->timestamp);

	if (__builtin_expect((script->fields & FIELDS_TASK) == FIELDS_TASK, 1)) {
		put_padded(script->line.out, &task->all);
		return;
	}
	for (unsigned int i = 0; i < 3; i++)
		if (has(script, FIELD_COMM << i))
			put_padded(script->line.out, &task->members[i]);
}

/* {"kind":"switch","at_ns":5,"cpu":0 */
static void put_head(struct script *script, const struct kb_walk *walk, enum script_kind kind)
{
	static const char start[] = "{\"kind\":\"";
	struct kb_text word = script_kind_word(kind);
	uint8_t *at = kb_out_reserve(script->line.out, HEAD_BYTES);

	if (!at)
		return;
	at = PUT(at, start);
	memcpy(at, word.data, word.length);
	at += word.length;
	*at++ = '"';
	if (has(script, FIELD_TIME))
		at = put_signed(PUT(at, ",\"at_ns\":"), walk->ns);
	if (has(script, FIELD_CPU) && walk->event.core == KB_CORE_NONE)
		at = PUT(at, ",\"cpu\":null");
	else if (has(script, FIELD_CPU))
		at = kb_decimal_put(PUT(at, ",\"cpu\":"), walk->event.core);
	kb_out_commit(script->line.out, at);
}

static void put_end(struct script *script)
{
	uint8_t *at = kb_out_reserve(script->line.out, 2);

	if (at)
		kb_out_commit(script->line.out, PUT(at, "}\n"));
}

/* ---- samples ---- */

static void put_place(struct kb_json *json, const struct kb_frame *frame)
{
	if (!frame->file[0])
		return;
	kb_json_string(json, "source", frame->file);
	kb_json_u64(json, "line", frame->line);
}

/* [address, symbol, image] or, with source lines, [address, symbol, image, source, line] */
static void put_stack_frame(const struct script *script, struct kb_json *json,
			    const struct kb_frame *frame, uint64_t pc)
{
	const struct kb_symbol *symbol = &frame->symbol;

	kb_json_array(json, NULL);
	kb_json_u64(json, NULL, pc);
	kb_json_string(json, NULL, symbol->name[0] ? symbol->name : NULL);
	kb_json_string(json, NULL, symbol->image);
	if (has(script, FIELD_SRCLINE)) {
		kb_json_string(json, NULL, frame->file[0] ? frame->file : NULL);
		kb_json_u64(json, NULL, frame->line);
	}
	kb_json_array_end(json);
}

static void put_stack(struct script *script, struct kb_json *json, const struct kb_event *event,
		      uint32_t task)
{
	uint32_t frame, depth = kb_chain_depth(event), nr, i;
	const struct kb_frame *frames;

	kb_json_array(json, "stack");
	for (frame = 0; frame < depth; frame++) {
		nr = kb_symbolizer_frames(script->symbolizer, task, event->timestamp,
					  kb_chain_lookup(event, frame), &frames);
		for (i = 0; i < nr; i++)
			put_stack_frame(script, json, &frames[i], kb_chain_pc(event, frame));
	}
	kb_json_array_end(json);
}

/* Where the sample fell. */
static void put_pc(struct script *script, struct kb_json *json, const struct kb_event *event)
{
	const struct kb_symbol *symbol;
	const struct kb_frame *frames;
	uint32_t nr = kb_symbolizer_frames(script->symbolizer, event->task_id, event->timestamp,
					   event->sample.pc, &frames);

	symbol = &frames->symbol;
	if (has(script, FIELD_IP))
		kb_json_u64(json, "pc", event->sample.pc);
	if (has(script, FIELD_SYM))
		kb_json_string(json, "symbol", symbol->name[0] ? symbol->name : NULL);
	if (has(script, FIELD_SYMOFF) && symbol->name[0])
		kb_json_u64(json, "offset", event->sample.pc - symbol->address);
	if (has(script, FIELD_DSO))
		kb_json_string(json, "image", symbol->image);
	if (has(script, FIELD_SRCLINE))
		put_place(json, frames);
	if (event->sample.nr_chain || nr > 1)
		put_stack(script, json, event, event->task_id);
}

/* @name: of the counter that @period is of; its data is NULL if there is no counter. */
static void put_sample_of(struct script *script, const struct kb_walk *walk, struct kb_text name,
			  uint64_t period)
{
	struct kb_json json = { .out = script->line.out, .comma = true };
	const struct kb_event *event = &walk->event;

	put_head(script, walk, SCRIPT_SAMPLE);
	put_task(script, event->task_id, event);
	if (name.data && has(script, FIELD_EVENT))
		kb_json_text(&json, "event", name.data, name.length);
	if (name.data && has(script, FIELD_PERIOD) && period == KB_COUNTER_INVALID)
		kb_json_string(&json, "weight", NULL);
	else if (name.data && has(script, FIELD_PERIOD))
		kb_json_u64(&json, "weight", period);
	if (event->sample.has_pc && has(script, FIELDS_FRAME))
		put_pc(script, &json, event);
	put_end(script);
}

static void put_sample(struct script *script, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	uint32_t nr = kb_names_of_core(script->names, event->core), i;

	if (nr > event->sample.nr_counters)
		nr = event->sample.nr_counters;
	if (!nr)
		put_sample_of(script, walk, (struct kb_text){ 0 }, 0);
	for (i = 0; i < nr && (!i || script->counters); i++)
		put_sample_of(script, walk,
			      kb_names_counter(script->names,
					       kb_names_counter_id(script->names, event->core, i)),
			      event->sample.counters[i]);
}

/* ---- switches and halts ---- */

static void put_switch(struct script *script, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	struct kb_out *out = script->line.out;
	const struct script_task *next;
	uint8_t *at;

	put_head(script, walk, SCRIPT_SWITCH);
	if (walk->known)
		put_task(script, walk->running, event);
	at = has(script, FIELD_TRACE) ? kb_out_reserve(out, HEAD_BYTES) : NULL;
	if (at) {
		if (walk->known) {	/* else no task left: a recording begins so */
			at = event->task_switch.reason == KB_SWITCH_PREEMPTED ?
			     PUT(at, ",\"blocked\":false") : PUT(at, ",\"blocked\":true");
			at = PUT(at, ",\"state\":\"");
			*at++ = (uint8_t)kb_state_letter(script->header,
							 event->task_switch.prev_state);
			*at++ = '"';
		}
		kb_out_commit(out, at);
		next = script_tasks_get(script->tasks, event->task_id, event->timestamp);
		put_padded(out, &next->next_all);
	}
	if (event->task_switch.nr_chain && walk->known && has(script, FIELDS_FRAME))
		put_stack(script, &(struct kb_json){ .out = out, .comma = true }, event,
			  walk->running);
	put_end(script);
}

static void put_halt(struct script *script, const struct kb_walk *walk)
{
	struct kb_json json = { .out = script->line.out, .comma = true };
	const struct kb_event *event = &walk->event;

	put_head(script, walk, SCRIPT_IDLE);
	if (walk->known)
		put_task(script, walk->running, event);
	if (has(script, FIELD_TRACE)) {
		kb_json_bool(&json, "entered", event->halt.entered);
		if (event->halt.entered && event->halt.idle_state != KB_STATE_UNKNOWN)
			kb_json_i64(&json, "idle_state", event->halt.idle_state);
	}
	put_end(script);
}

/* ---- marks and values ---- */

static void put_annotation(struct kb_json *json, const struct kb_event *event)
{
	kb_json_u64(json, "annotation_type", event->annotation.type);
	kb_json_u64(json, "channel", event->annotation.channel);
	kb_json_u64(json, "group_id", event->annotation.group);
	kb_json_u64(json, "colour", event->annotation.colour);
	kb_json_text(json, "text", event->annotation.text, event->annotation.text_length);
}

static void put_counter(struct script *script, struct kb_json *json, const struct kb_event *event)
{
	const struct kb_header *header = script->header;
	uint32_t i = event->custom_counter.counter;
	const struct kb_series *series = i < header->nr_series ? &header->series[i] : NULL;

	kb_json_string(json, "series", series ? series->name : NULL);
	if (!series || series->multiplier == 1.0)
		kb_json_u64(json, "value", event->custom_counter.value);
	else
		kb_json_double(json, "value", (double)(int64_t)event->custom_counter.value *
			       series->multiplier);
	if (event->custom_counter.lost) {
		kb_json_string(json, "reason", kb_loss_name(event->custom_counter.lost - 1U) ?: "?");
		kb_json_i64(json, "begin_ns", kb_barman_ns(kb_trace_barman(script->trace),
							   event->custom_counter.begin));
	}
}

/* ---- what values of kbarman's own series are about ---- */

static void put_handler(struct script *script, struct kb_json *json, const struct kb_event *event)
{
	bool irq = event->custom_counter.what <= KB_WHAT_IRQ_EXIT;
	struct kb_text name = kb_names_irq(script->names, event->custom_counter.id,
					   event->custom_counter.cpu);

	kb_json_u64(json, "id", event->custom_counter.id);
	if (!irq)
		kb_json_string(json, "handler", kb_ipi_name(event->custom_counter.id));
	else if (event->custom_counter.what == KB_WHAT_IRQ_ENTRY && name.length)
		kb_json_text(json, "handler", name.data, name.length);
}

static void put_power(struct kb_json *json, const struct kb_event *event)
{
	kb_json_u64(json, "about_cpu", event->custom_counter.cpu);
	if (event->custom_counter.what == KB_WHAT_FREQUENCY) {
		kb_json_u64(json, "khz", event->custom_counter.value);
		return;
	}
	kb_json_u64(json, "idle_state", event->custom_counter.id);
	kb_json_string(json, "was", event->custom_counter.context ? "below" : "above");
}

static void put_length(struct script *script, struct kb_json *json, const struct kb_event *event)
{
	if (kb_ended_is_timed(event))
		kb_json_u64(json, "duration_ns", kb_ended_ns(kb_trace_barman(script->trace), event));
	kb_json_i64(json, "result", event->custom_counter.result);
}

static void put_syscall(struct script *script, struct kb_json *json, const struct kb_event *event)
{
	kb_json_string(json, "call", kb_names_call(script->names, event));
	kb_json_u64(json, "number", event->custom_counter.id);
	kb_json_bool(json, "compat", event->custom_counter.cpu & KB_SYSCALL_COMPAT);
	put_length(script, json, event);
	kb_json_array(json, "arguments");
	for (unsigned int i = 0; i < KB_SYSCALL_ARGUMENTS; i++)
		kb_json_i64(json, NULL, (int64_t)event->custom_counter.arguments[i]);
	kb_json_array_end(json);
}

static void put_fault(struct script *script, struct kb_json *json, const struct kb_event *event)
{
	kb_json_string(json, "fault", kb_fault_kind_name(kb_fault_kind(event)));
	kb_json_bool(json, "kernel", event->custom_counter.cpu & KB_FAULT_KERNEL);
	kb_json_u64(json, "address", event->custom_counter.arguments[KB_FAULT_ADDRESS]);
	kb_json_u64(json, "pc", event->custom_counter.arguments[KB_FAULT_PC]);
	put_length(script, json, event);
}

static void put_block(struct script *script, struct kb_json *json, const struct kb_event *event)
{
	const uint64_t *arguments = event->custom_counter.arguments;
	char disk[KB_DISK_TEXT], flags[KB_BLOCK_FLAGS_TEXT];

	if (event->custom_counter.id)
		kb_json_u64(json, "request_tid", event->custom_counter.id);
	kb_json_string(json, "disk", kb_disk_name(script->names, (uint32_t)arguments[KB_BLOCK_DEVICE], disk));
	kb_json_u64(json, "device", arguments[KB_BLOCK_DEVICE]);
	kb_json_string(json, "operation", kb_block_operation_name((uint8_t)event->custom_counter.cpu));
	kb_json_string(json, "flags", kb_block_flags_text(event->custom_counter.cpu, flags));
	kb_json_u64(json, "sector", arguments[KB_BLOCK_SECTOR]);
	kb_json_u64(json, "bytes", arguments[KB_BLOCK_BYTES]);
	put_length(script, json, event);
}

static void put_detail(struct script *script, struct kb_json *json, const struct kb_event *event,
		       enum script_kind kind, uint32_t from)
{
	const struct script_task *task;

	kb_json_string(json, "what", kb_what_name(event->custom_counter.what));
	switch (kind) {
	case SCRIPT_WAKE:
		task = script_tasks_get(script->tasks, event->custom_counter.id, event->timestamp);
		put_padded(script->line.out, &task->woken_all);
		kb_json_u64(json, "woken_cpu", event->custom_counter.cpu);
		break;
	case SCRIPT_MIGRATE:
		task = script_tasks_get(script->tasks, event->custom_counter.id, event->timestamp);
		put_padded(script->line.out, &task->moved_all);
		kb_json_u64(json, "from_cpu", from);
		kb_json_u64(json, "to_cpu", event->custom_counter.cpu);
		break;
	case SCRIPT_IRQ:
		put_handler(script, json, event);
		break;
	case SCRIPT_SOFTIRQ:
		kb_json_u64(json, "id", event->custom_counter.id);
		if (kb_softirq_name(event->custom_counter.id))
			kb_json_string(json, "handler", kb_softirq_name(event->custom_counter.id));
		break;
	case SCRIPT_SYSCALLS:
		put_syscall(script, json, event);
		break;
	case SCRIPT_FAULTS:
		put_fault(script, json, event);
		break;
	case SCRIPT_BLOCK:
		put_block(script, json, event);
		break;
	default:
		put_power(json, event);
	}
}

void script_json(struct script *script, const struct kb_walk *walk, enum script_kind kind,
		 uint32_t from)
{
	struct kb_json json = { .out = script->line.out, .comma = true };
	const struct kb_event *event = &walk->event;

	switch (kind) {
	case SCRIPT_SAMPLE:
		put_sample(script, walk);
		return;
	case SCRIPT_SWITCH:
		put_switch(script, walk);
		return;
	case SCRIPT_IDLE:
		put_halt(script, walk);
		return;
	default:
		break;
	}
	put_head(script, walk, kind);
	put_task(script, event->task_id, event);
	if (!has(script, FIELD_TRACE))
		;
	else if (kind == SCRIPT_ANNOTATION)
		put_annotation(&json, event);
	else if (kind == SCRIPT_COUNTER)
		put_counter(script, &json, event);
	else
		put_detail(script, &json, event, kind, from);
	put_end(script);
}
