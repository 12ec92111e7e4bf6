// SPDX-License-Identifier: MIT
/* See fill.h. Nearly all time of kb_columns_next() is spent here. */
#include <errno.h>
#include <string.h>

#include <kbarman/chain.h>
#include <kbarman/names.h>

#include "analysis/columns/fill.h"
#include "analysis/time/origin.h"
#include "analysis/time/ended.h"
#include "format/call_names.h"

#define TABLE_OF(columns, table)	(&(columns)->part->tables[KB_TABLE_##table])
#define WANTED(columns, table)		((columns)->wanted[KB_TABLE_##table])

static kb_always_inline uint8_t word(uint64_t value, uint8_t words)
{
	return value < words ? (uint8_t)value : words;
}

static uint64_t length(int64_t start, int64_t end)
{
	return end < start ? 0 : (uint64_t)end - (uint64_t)start;
}

static kb_always_inline void put_record(struct kb_columns *columns, const struct kb_walk *walk)
{
	struct kb_part_table *at = TABLE_OF(columns, records);

	if (!WANTED(columns, records) || !kb_part_row(columns->part, at))
		return;
	KB_PUT(at, records, ticks, walk->event.timestamp);
	KB_PUT(at, records, at_ns, walk->ns);
	KB_PUT(at, records, cpu, walk->event.core);
	KB_PUT(at, records, type, walk->event.type == KB_EVENT_CUSTOM_COUNTER &&
				  walk->event.custom_counter.what != KB_WHAT_VALUE ?
				  KB_WORD_DETAIL : walk->event.type);
	KB_PUT(at, records, tid, walk->event.task_id);
}

/* ---- frames ---- */

/* The number of @frame; if it is new, functions get a row. KB_TABLE_NONE: there is no memory. */
static uint32_t frame_number(struct kb_columns *columns, const struct kb_frame *frame)
{
	const struct kb_symbol *symbol = &frame->symbol;
	const uint64_t key[2] = {
		symbol->id | (uint64_t)frame->line_id << 32, symbol->inlined,
	};
	uint32_t known = columns->frames.nr, number;
	struct kb_part_table *at = TABLE_OF(columns, functions);

	number = kb_table_number(&columns->frames, key, kb_table_hash(&columns->frames, key));
	if (number == KB_TABLE_NONE || columns->frames.nr == known || !WANTED(columns, functions) ||
	    !kb_part_row(columns->part, at))
		return number;
	KB_PUT_TEXT(columns->part, at, functions, symbol, symbol->name, strlen(symbol->name));
	KB_PUT_TEXT(columns->part, at, functions, image, symbol->image, strlen(symbol->image));
	KB_PUT(at, functions, kernel, symbol->kernel);
	KB_PUT(at, functions, inlined, symbol->inlined);
	KB_PUT(at, functions, address, symbol->kernel ? symbol->address : 0);
	KB_PUT_TEXT(columns->part, at, functions, source, frame->file, strlen(frame->file));
	KB_PUT(at, functions, line, frame->line);
	return number;
}

/* The chain of the current record as numbers of frames. */
static int put_frames(struct kb_columns *columns, struct kb_part_table *table, unsigned int at,
		      uint32_t depth)
{
	const struct kb_frame *frames;

	kb_part_room(columns->part, table, at, 0);
	for (uint32_t i = 0; i < depth; i++) {
		int nr = kb_trace_frames(columns->trace, i, &frames);
		uint32_t *room;

		if (nr < 0)
			return nr;
		room = kb_part_room(columns->part, table, at, (uint64_t)nr);
		if (!room)
			return -ENOMEM;
		for (int j = 0; j < nr; j++) {
			room[j] = frame_number(columns, &frames[j]);
			if (room[j] == KB_TABLE_NONE)
				return -ENOMEM;
		}
	}
	return 0;
}

/* ---- switches, samples and halts ---- */

static uint8_t find_state(const struct kb_columns *columns, int state)
{
	char letter = kb_state_letter(kb_trace_header(columns->trace), state);
	const char *found = letter ? strchr(kb_column_letters, letter) : NULL;

	if (!found)
		found = strchr(kb_column_letters, KB_LETTER_UNKNOWN);
	return (uint8_t)(found - kb_column_letters);
}

/* The number of the word for @state. Nearly all states are small numbers. */
static kb_always_inline uint8_t state_of(struct kb_columns *columns, int state)
{
	uint8_t *known;

	if (kb_unlikely((unsigned int)state >= KB_STATE_WORDS))
		return find_state(columns, state);
	known = &columns->state_words[state];
	if (kb_unlikely(!*known))
		*known = find_state(columns, state) + 1;
	return *known - 1;
}

static void put_name(struct kb_columns *columns, struct kb_part_table *at, unsigned int column,
		     const char *name)
{
	kb_columns_part_text(columns->part, at, column, name ?: "", name ? strlen(name) : 0);
}

/*
 * What @event, a switch or a wakeup, says of an object of task @task_id; not @has: of nobody, so nothing.
 * @first: the first of its columns, which follow each other in both tables.
 */
static kb_always_inline void put_object(struct kb_columns *columns, struct kb_part_table *at,
					unsigned int first, const struct kb_event *event, bool has,
					uint32_t task_id)
{
	enum { OBJECT, CALL, ID, VALUE, NAME };
	const struct kb_part_column *column = &at->columns[first];
	const struct kb_object *object = kb_event_object(event);

	has = has && object && object->kind;
	KB_PUT_AT(at, first + OBJECT, kb_type_switches_object, has ? word(object->kind, KB_WORDS_OBJECT) : 0);
	put_name(columns, at, first + CALL,
		 has && column[CALL].wanted ? kb_names_call(columns->names, event) : NULL);
	KB_PUT_AT(at, first + ID, kb_type_switches_object_id,
		  has && column[ID].wanted ? kb_names_object_id(columns->names, event, task_id) : 0);
	KB_PUT_AT(at, first + VALUE, kb_type_switches_object_value, has ? object->value : 0);
	put_name(columns, at, first + NAME,
		 has && column[NAME].wanted ? kb_names_object(columns->names, event, task_id) : NULL);
}

static kb_always_inline int put_switch(struct kb_columns *columns, const struct kb_walk *walk)
{
	struct kb_part_table *at = TABLE_OF(columns, switches);
	const struct kb_event *event = &walk->event;
	/* Of no task there is no state: a recording begins with who runs. */
	int state = walk->known ? event->task_switch.prev_state : KB_STATE_UNKNOWN;
	uint64_t *chain;

	if (!kb_part_row(columns->part, at))
		return -ENOMEM;
	KB_PUT(at, switches, at_ns, walk->ns);
	KB_PUT(at, switches, cpu, event->core);
	KB_PUT(at, switches, known, walk->known);
	KB_PUT(at, switches, tid, walk->running);
	KB_PUT(at, switches, next_tid, event->task_id);
	KB_PUT(at, switches, blocked, event->task_switch.reason != KB_SWITCH_PREEMPTED);
	if (WANTED_COLUMN(columns, switches, state))
		KB_PUT(at, switches, state, state_of(columns, state));
	KB_PUT(at, switches, prev_state, state);
	put_object(columns, at, KB_AT_switches_object, event, walk->known, walk->running);
	chain = kb_part_room(columns->part, at, KB_AT_switches_stack, event->task_switch.nr_chain);
	if (chain && event->task_switch.nr_chain)
		memcpy(chain, event->task_switch.chain,
		       event->task_switch.nr_chain * sizeof(*chain));
	if (kb_unlikely(WANTED_COLUMN(columns, switches, frames)))
		return put_frames(columns, at, KB_AT_switches_frames, event->task_switch.nr_chain);
	return 0;
}

static kb_always_inline int put_sample(struct kb_columns *columns, const struct kb_walk *walk)
{
	struct kb_part_table *at = TABLE_OF(columns, samples);
	const struct kb_event *event = &walk->event;
	uint32_t depth = event->sample.has_pc ? kb_chain_depth(event) : 0;
	uint64_t *room;

	if (!kb_part_row(columns->part, at))
		return -ENOMEM;
	KB_PUT(at, samples, at_ns, walk->ns);
	KB_PUT(at, samples, cpu, event->core);
	KB_PUT(at, samples, tid, event->task_id);
	KB_PUT(at, samples, has_pc, event->sample.has_pc);
	KB_PUT(at, samples, pc, event->sample.pc);
	room = kb_part_room(columns->part, at, KB_AT_samples_counters, event->sample.nr_counters);
	for (uint32_t i = 0; room && i < event->sample.nr_counters; i++)
		room[i] = event->sample.counters[i];
	room = kb_part_room(columns->part, at, KB_AT_samples_stack, depth);
	for (uint32_t i = 0; room && i < depth; i++)
		room[i] = kb_chain_pc(event, i);
	if (kb_unlikely(WANTED_COLUMN(columns, samples, frames)))
		return put_frames(columns, at, KB_AT_samples_frames, depth);
	return 0;
}

/* A row for each counter of the sample. */
static int put_counters(struct kb_columns *columns, const struct kb_walk *walk)
{
	struct kb_part_table *at = TABLE_OF(columns, counters);
	const struct kb_event *event = &walk->event;

	for (uint32_t i = 0; i < event->sample.nr_counters; i++) {
		if (!kb_part_row(columns->part, at))
			return -ENOMEM;
		KB_PUT(at, counters, at_ns, walk->ns);
		KB_PUT(at, counters, cpu, event->core);
		KB_PUT(at, counters, tid, event->task_id);
		KB_PUT(at, counters, event, kb_names_counter_id(columns->names, event->core, i));
		KB_PUT(at, counters, value, event->sample.counters[i]);
		KB_PUT(at, counters, sampled, event->sample.has_pc);
	}
	return 0;
}

static kb_always_inline int put_halt(struct kb_columns *columns, const struct kb_walk *walk)
{
	struct kb_part_table *at = TABLE_OF(columns, halts);

	if (!kb_part_row(columns->part, at))
		return -ENOMEM;
	KB_PUT(at, halts, at_ns, walk->ns);
	KB_PUT(at, halts, cpu, walk->event.core);
	KB_PUT(at, halts, entered, walk->event.halt.entered);
	KB_PUT(at, halts, idle_state, walk->event.halt.idle_state);
	return 0;
}

/* ---- values ---- */

static int put_value(struct kb_columns *columns, const struct kb_walk *walk, uint32_t series,
		     uint64_t value)
{
	const struct kb_header *header = kb_trace_header(columns->trace);
	struct kb_part_table *at = TABLE_OF(columns, series);
	double multiplier = header->series[series].multiplier;

	if (!kb_part_row(columns->part, at))
		return -ENOMEM;
	KB_PUT(at, series, at_ns, walk->ns);
	KB_PUT(at, series, cpu, walk->event.core);
	KB_PUT(at, series, tid, walk->event.task_id);
	KB_PUT(at, series, series, series);
	/* With a multiplier values are signed: as `script` prints them. */
	KB_PUT(at, series, value, multiplier == 1.0 ? (double)value :
						      (double)(int64_t)value * multiplier);
	KB_PUT(at, series, raw, value);
	KB_PUT(at, series, sampled, walk->event.type == KB_EVENT_SAMPLE);
	return 0;
}

static int put_detail(struct kb_columns *columns, const struct kb_walk *walk)
{
	struct kb_part_table *at = TABLE_OF(columns, details);
	const struct kb_event *event = &walk->event;

	if (!kb_part_row(columns->part, at))
		return -ENOMEM;
	KB_PUT(at, details, at_ns, walk->ns);
	KB_PUT(at, details, cpu, event->core);
	KB_PUT(at, details, tid, event->task_id);
	KB_PUT(at, details, what, word(event->custom_counter.what, KB_WORDS_WHAT));
	KB_PUT(at, details, context, word(event->custom_counter.context, KB_WORDS_CONTEXT));
	KB_PUT(at, details, about_id, event->custom_counter.id);
	KB_PUT(at, details, about_cpu, event->custom_counter.cpu);
	KB_PUT(at, details, value, event->custom_counter.value);
	return 0;
}

static int put_wakeup(struct kb_columns *columns, const struct kb_walk *walk)
{
	struct kb_part_table *at = TABLE_OF(columns, wakeups);
	const struct kb_event *event = &walk->event;

	if (!kb_part_row(columns->part, at))
		return -ENOMEM;
	KB_PUT(at, wakeups, at_ns, walk->ns);
	KB_PUT(at, wakeups, cpu, event->core);
	KB_PUT(at, wakeups, woken_tid, event->custom_counter.id);
	KB_PUT(at, wakeups, tid, event->task_id);
	KB_PUT(at, wakeups, context, word(event->custom_counter.context, KB_WORDS_CONTEXT));
	KB_PUT(at, wakeups, woken_cpu, event->custom_counter.cpu);
	KB_PUT(at, wakeups, new, event->custom_counter.what == KB_WHAT_WAKING_NEW);
	put_object(columns, at, KB_AT_wakeups_object, event, true, event->task_id);
	return 0;
}

/* What the tables of what takes time have in common. */
#define PUT_ENDED(columns, at, table, walk)								\
	do {												\
		uint64_t took_ = kb_ended_ns(kb_trace_barman((columns)->trace), &(walk)->event);	\
													\
		KB_PUT(at, table, at_ns, (int64_t)((uint64_t)(walk)->ns - took_));			\
		KB_PUT(at, table, end_ns, (walk)->ns);							\
		KB_PUT(at, table, known, kb_ended_is_timed(&(walk)->event));				\
		KB_PUT(at, table, duration_ns, took_);							\
		KB_PUT(at, table, cpu, (walk)->event.core);						\
		KB_PUT(at, table, tid, kb_ended_task(&(walk)->event));					\
	} while (0)

static int put_syscall(struct kb_columns *columns, const struct kb_walk *walk)
{
	struct kb_part_table *at = TABLE_OF(columns, syscalls);
	const struct kb_event *event = &walk->event;

	if (!kb_syscall_is_own(columns->names, event))
		return 0;
	if (!kb_part_row(columns->part, at))
		return -ENOMEM;
	PUT_ENDED(columns, at, syscalls, walk);
	put_name(columns, at, KB_AT_syscalls_call,
		 WANTED_COLUMN(columns, syscalls, call) ? kb_names_call(columns->names, event) : NULL);
	KB_PUT(at, syscalls, number, event->custom_counter.id);
	KB_PUT(at, syscalls, compat, event->custom_counter.cpu & KB_SYSCALL_COMPAT);
	KB_PUT(at, syscalls, result, event->custom_counter.result);
	KB_PUT(at, syscalls, arg0, (int64_t)event->custom_counter.arguments[0]);
	KB_PUT(at, syscalls, arg1, (int64_t)event->custom_counter.arguments[1]);
	KB_PUT(at, syscalls, arg2, (int64_t)event->custom_counter.arguments[2]);
	return 0;
}

static int put_fault(struct kb_columns *columns, const struct kb_walk *walk)
{
	struct kb_part_table *at = TABLE_OF(columns, faults);
	const struct kb_event *event = &walk->event;

	if (!kb_part_row(columns->part, at))
		return -ENOMEM;
	PUT_ENDED(columns, at, faults, walk);
	put_name(columns, at, KB_AT_faults_kind, kb_fault_kind_name(kb_fault_kind(event)));
	KB_PUT(at, faults, kernel, event->custom_counter.cpu & KB_FAULT_KERNEL);
	KB_PUT(at, faults, address, event->custom_counter.arguments[KB_FAULT_ADDRESS]);
	KB_PUT(at, faults, pc, event->custom_counter.arguments[KB_FAULT_PC]);
	return 0;
}

static int put_block(struct kb_columns *columns, const struct kb_walk *walk)
{
	char disk[KB_DISK_TEXT], flags[KB_BLOCK_FLAGS_TEXT];
	struct kb_part_table *at = TABLE_OF(columns, block);
	const struct kb_event *event = &walk->event;
	const uint64_t *arguments = event->custom_counter.arguments;

	if (!kb_part_row(columns->part, at))
		return -ENOMEM;
	PUT_ENDED(columns, at, block, walk);
	put_name(columns, at, KB_AT_block_disk,
		 kb_disk_name(columns->names, (uint32_t)arguments[KB_BLOCK_DEVICE], disk));
	KB_PUT(at, block, device, (uint32_t)arguments[KB_BLOCK_DEVICE]);
	KB_PUT(at, block, sector, arguments[KB_BLOCK_SECTOR]);
	KB_PUT(at, block, bytes, (uint32_t)arguments[KB_BLOCK_BYTES]);
	put_name(columns, at, KB_AT_block_operation, kb_block_operation_name((uint8_t)event->custom_counter.cpu));
	put_name(columns, at, KB_AT_block_flags, kb_block_flags_text(event->custom_counter.cpu, flags));
	KB_PUT(at, block, result, event->custom_counter.result);
	return 0;
}

static int put_custom(struct kb_columns *columns, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	uint8_t what = event->custom_counter.what;
	int ret = 0;

	/* What a later release says something about is a value of its series at least. */
	if (WANTED(columns, series) && (what == KB_WHAT_VALUE || !kb_what_name(what)))
		ret = put_value(columns, walk, event->custom_counter.counter,
				event->custom_counter.value);
	if (what == KB_WHAT_VALUE)
		return ret;
	if (!ret && WANTED(columns, details))
		ret = put_detail(columns, walk);
	if (!ret && WANTED(columns, wakeups) &&
	    (what == KB_WHAT_WAKING || what == KB_WHAT_WAKING_NEW))
		ret = put_wakeup(columns, walk);
	if (!ret && WANTED(columns, syscalls) && what == KB_WHAT_SYSCALL)
		ret = put_syscall(columns, walk);
	if (!ret && WANTED(columns, faults) && what == KB_WHAT_FAULT)
		ret = put_fault(columns, walk);
	if (!ret && WANTED(columns, block) && what == KB_WHAT_BLOCK)
		ret = put_block(columns, walk);
	return ret;
}

/* The values of series that a sample has. */
static int put_sampled(struct kb_columns *columns, const struct kb_walk *walk)
{
	int ret = 0;

	for (uint32_t i = 0; i < walk->event.sample.nr_custom && !ret; i++)
		ret = put_value(columns, walk, walk->event.sample.custom[i].id,
				walk->event.sample.custom[i].value);
	return ret;
}

static int put_mark(struct kb_columns *columns, const struct kb_walk *walk)
{
	struct kb_part_table *at = TABLE_OF(columns, marks);
	const struct kb_event *event = &walk->event;

	if (!kb_part_row(columns->part, at))
		return -ENOMEM;
	KB_PUT(at, marks, at_ns, walk->ns);
	KB_PUT(at, marks, cpu, event->core);
	KB_PUT(at, marks, tid, event->task_id);
	KB_PUT(at, marks, type, word(event->annotation.type, KB_WORDS_MARK));
	KB_PUT(at, marks, channel, event->annotation.channel);
	KB_PUT(at, marks, group_id, event->annotation.group);
	KB_PUT(at, marks, colour, event->annotation.colour);
	KB_PUT_TEXT(columns->part, at, marks, text, event->annotation.text,
		    event->annotation.text_length);
	return 0;
}

/* ---- times ---- */

static void put_run(struct kb_columns *columns, const struct kb_slice *slice)
{
	struct kb_part_table *at = TABLE_OF(columns, runs);

	if (!slice->has_task || !kb_part_row(columns->part, at))
		return;
	KB_PUT(at, runs, at_ns, slice->start);
	KB_PUT(at, runs, end_ns, slice->end);
	KB_PUT(at, runs, duration_ns, length(slice->start, slice->end));
	KB_PUT(at, runs, cpu, slice->core);
	KB_PUT(at, runs, tid, slice->task_id);
	KB_PUT(at, runs, ended, slice->how);
	KB_PUT(at, runs, next_tid, slice->next_task);
}

static void put_idle(struct kb_columns *columns, const struct kb_slice *slice)
{
	struct kb_part_table *at = TABLE_OF(columns, idle);

	if (!kb_part_row(columns->part, at))
		return;
	KB_PUT(at, idle, at_ns, slice->start);
	KB_PUT(at, idle, end_ns, slice->end);
	KB_PUT(at, idle, duration_ns, length(slice->start, slice->end));
	KB_PUT(at, idle, cpu, slice->core);
	KB_PUT(at, idle, idle_state, slice->idle_state);
	KB_PUT(at, idle, ended, slice->how);
}

static void put_gap(struct kb_columns *columns, const struct kb_slice *slice)
{
	struct kb_part_table *at = TABLE_OF(columns, gaps);

	if (!kb_part_row(columns->part, at))
		return;
	KB_PUT(at, gaps, at_ns, slice->start);
	KB_PUT(at, gaps, end_ns, slice->end);
	KB_PUT(at, gaps, duration_ns, length(slice->start, slice->end));
	KB_PUT(at, gaps, cpu, slice->core);
	KB_PUT(at, gaps, records, slice->lost);
	KB_PUT(at, gaps, reason, word(slice->reason, KB_WORDS_REASON));
}

void kb_columns_fill_slice(struct kb_columns *columns, const struct kb_slice *slice)
{
	switch (slice->kind) {
	case KB_SLICE_RUN:
		if (WANTED(columns, runs))
			put_run(columns, slice);
		break;
	case KB_SLICE_IDLE:
		if (WANTED(columns, idle))
			put_idle(columns, slice);
		break;
	case KB_SLICE_LOST:
		if (WANTED(columns, gaps))
			put_gap(columns, slice);
		break;
	}
}

static uint8_t handler_word(enum kb_tile_kind kind)
{
	return kind == KB_TILE_IRQ ? KB_WORD_IRQ : kind == KB_TILE_IPI ? KB_WORD_IPI :
	       KB_WORD_SOFTIRQ;
}

/* The number of a handler, for which the table of handlers gets a row when it is new. */
static uint32_t handler_number(struct kb_columns *columns, const struct kb_handler *handler)
{
	struct kb_table *known_names = &columns->handler_names;
	const uint64_t key = kb_origin_key(&handler->origin);
	struct kb_part_table *at = TABLE_OF(columns, handlers);
	uint32_t known = known_names->nr, number;
	char name[KB_ORIGIN_NAME];

	number = kb_table_number(known_names, &key, kb_table_hash(known_names, &key));
	if (number == KB_TABLE_NONE || known_names->nr == known || !WANTED(columns, handlers) ||
	    !kb_part_row(columns->part, at))
		return number;
	kb_origin_name(columns->trace, &handler->origin, handler->timestamp, name, sizeof(name));
	KB_PUT(at, handlers, kind, handler_word(handler->origin.kind));
	KB_PUT(at, handlers, id, handler->origin.id);
	KB_PUT(at, handlers, behind, handler->origin.behind);
	KB_PUT_TEXT(columns->part, at, handlers, handler, name, strlen(name));
	return number;
}

static int put_interrupt(struct kb_columns *columns, const struct kb_walk *walk)
{
	struct kb_part_table *at = TABLE_OF(columns, interrupts);
	struct kb_handler handler;
	int ret = kb_handlers_feed(&columns->handlers, walk, &handler);
	uint32_t number;

	if (ret <= 0)
		return ret;
	number = handler_number(columns, &handler);
	if (number == KB_TABLE_NONE || !kb_part_row(columns->part, at))
		return -ENOMEM;
	KB_PUT(at, interrupts, at_ns, handler.start);
	KB_PUT(at, interrupts, end_ns, handler.end);
	KB_PUT(at, interrupts, duration_ns, length(handler.start, handler.end));
	KB_PUT(at, interrupts, own_ns, handler.own);
	KB_PUT(at, interrupts, cpu, handler.core);
	KB_PUT(at, interrupts, tid, handler.task_id);
	KB_PUT(at, interrupts, kind, handler_word(handler.origin.kind));
	KB_PUT(at, interrupts, id, handler.origin.id);
	KB_PUT(at, interrupts, depth, handler.depth);
	KB_PUT(at, interrupts, handler, number);
	return 0;
}

/* ---- a record ---- */

static kb_always_inline int fill_event(struct kb_columns *columns, const struct kb_walk *walk)
{
	int ret = 0;

	switch (walk->event.type) {
	case KB_EVENT_TASK_SWITCH:
		return WANTED(columns, switches) ? put_switch(columns, walk) : 0;
	case KB_EVENT_SAMPLE:
		if (WANTED(columns, samples))
			ret = put_sample(columns, walk);
		if (!ret && WANTED(columns, counters))
			ret = put_counters(columns, walk);
		if (!ret && WANTED(columns, series))
			ret = put_sampled(columns, walk);
		return ret;
	case KB_EVENT_HALT:
		return WANTED(columns, halts) ? put_halt(columns, walk) : 0;
	case KB_EVENT_CUSTOM_COUNTER:
		return put_custom(columns, walk);
	case KB_EVENT_ANNOTATION:
		return WANTED(columns, marks) ? put_mark(columns, walk) : 0;
	default:
		return 0;
	}
}

int kb_columns_fill(struct kb_columns *columns, const struct kb_walk *walk)
{
	int ret;

	columns->part->records++;
	put_record(columns, walk);
	ret = fill_event(columns, walk);
	for (unsigned int i = 0; i < walk->nr_slices; i++)
		kb_columns_fill_slice(columns, &walk->slices[i]);
	if (!ret && WANTED(columns, interrupts))
		ret = put_interrupt(columns, walk);
	return ret;
}
