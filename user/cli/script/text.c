// SPDX-License-Identifier: MIT
/* Records as lines in the format of perf script. */
#include <inttypes.h>
#include <string.h>

#include <kbarman/chain.h>
#include <kbarman/losses.h>

#include "analysis/time/ended.h"
#include "base/array.h"
#include "cli/script/script.h"

static bool has(const struct script *script, unsigned int field)
{
	return script->fields & field;
}

/* ---- the head of a line ---- */

static const struct script_task *task_of(struct script *script, uint32_t task_id,
					 const struct kb_event *event)
{
	return script_tasks_get(script->tasks, task_id, event->timestamp);
}

static void put_some_of_task(struct script *script, const struct script_task *task, size_t skip)
{
	struct line *line = &script->line;

	if (has(script, FIELD_COMM)) {
		line_padded(line, task->comm.text + skip, task->comm.length - skip);
		line_char(line, ' ');
	}
	if (has(script, FIELD_PID))
		line_decimal_wide(line, task->tgid, 5, ' ');
	if (has(script, FIELD_PID) && has(script, FIELD_TID))
		line_char(line, '/');
	if (has(script, FIELD_TID)) {
		size_t before = line_room(line);

		line_decimal(line, task->task_id);
		while (before - line_room(line) < 5 && line_room(line))
			line_char(line, ' ');
	}
	if (has(script, FIELD_PID | FIELD_TID))
		line_char(line, ' ');
}

/* "[cpu] " */
static void put_cpu(struct line *line, uint32_t core)
{
	char text[8] = { '[', '0', '0', '0', ']', ' ' };

	if (__builtin_expect(core < 1000, 1)) {
		text[1] = (char)('0' + core / 100);
		text[2] = (char)('0' + core / 10 % 10);
		text[3] = (char)('0' + core % 10);
		line_clean(line, text, 6);
		return;
	}
	line_char(line, '[');
	line_decimal(line, core);
	LINE_LITERAL(line, "] ");
}

static void begin_second(struct script *script, uint64_t time, bool negative)
{
	uint8_t digits[LINE_NUMBER + 8];
	uint64_t seconds = time / 1000000000;
	size_t length = (size_t)(kb_decimal_put(digits, seconds) - digits), at = 0;

	script->second_negative = negative;
	script->second_start = seconds * 1000000000;
	if (negative)
		script->second[at++] = '-';
	for (size_t i = length; i < 5; i++)
		script->second[at++] = ' ';
	memcpy(script->second + at, digits, length);
	at += length;
	script->second[at++] = '.';
	script->second_length = at;
}

/* "seconds.micros: " */
static void put_time(struct script *script, int64_t ns)
{
	uint64_t time = script->clock_base + (uint64_t)ns;
	bool negative = time >> 63;
	uint8_t micros[8] = { 0 };

	if (negative)
		time = -time;
	if (__builtin_expect(time - script->second_start >= 1000000000 ||
			     negative != script->second_negative, 0))
		begin_second(script, time, negative);
	line_padded(&script->line, script->second, script->second_length);
	kb_decimal_put_8(micros, (uint32_t)(time - script->second_start) / 1000 * 100);
	micros[6] = ':';
	micros[7] = ' ';
	line_clean(&script->line, (const char *)micros, 8);
}

/*
 * "            comm   pid/tid   [cpu] seconds.micros: ". As in perf, a line that a call chain
 * follows does not begin with blanks: readers distinguish it from frames by that.
 */
static void put_head(struct script *script, const struct kb_walk *walk,
		     const struct script_task *task, bool chain)
{
	size_t skip = chain ? task->blanks : 0;

	if (__builtin_expect((script->fields & FIELDS_TASK) == FIELDS_TASK, 1))
		line_padded(&script->line, task->head.text + skip, task->head.length - skip);
	else
		put_some_of_task(script, task, skip);
	if (has(script, FIELD_CPU))
		put_cpu(&script->line, walk->event.core);
	if (has(script, FIELD_TIME))
		put_time(script, walk->ns);
}

/* The line begins with the task of the record. */
static void begin_line(struct script *script, const struct kb_walk *walk)
{
	line_begin(&script->line);
	put_head(script, walk, task_of(script, walk->event.task_id, &walk->event), false);
}

#define PUT_EVENT(script, literal) \
	do { \
		if (has(script, FIELD_EVENT)) \
			LINE_LITERAL(&(script)->line, literal); \
	} while (0)

/* ---- frames ---- */

/* " symbol+0xoffset (image)", behind the address */
static void put_symbol(struct script *script, const struct kb_symbol *symbol, uint64_t pc)
{
	struct line *line = &script->line;

	if (has(script, FIELD_IP))
		line_hex(line, pc, 16);
	if (has(script, FIELD_SYM)) {
		line_char(line, ' ');
		line_string(line, symbol->name[0] ? symbol->name : "[unknown]");
		if (symbol->name[0] && has(script, FIELD_SYMOFF)) {
			LINE_LITERAL(line, "+0x");
			line_hex(line, pc - symbol->address, 0);
		}
	}
	if (has(script, FIELD_DSO)) {
		LINE_LITERAL(line, " (");
		line_string(line, symbol->inlined ? "inlined" : symbol->image);
		line_char(line, ')');
	}
}

/* The source line of the frame, on a line of its own. */
static void put_source(struct line *line, const struct kb_frame *frame)
{
	const char *slash = strrchr(frame->file, '/');

	if (!frame->file[0])
		return;
	line_end(line);
	line_begin(line);
	LINE_LITERAL(line, "  ");
	line_string(line, slash ? slash + 1 : frame->file);
	line_char(line, ':');
	line_decimal(line, frame->line);
}

/*
 * The function at an address of @task's chain and those inlined there; @before is put before each.
 */
static void put_frame(struct script *script, const struct kb_event *event, uint32_t task,
		      uint32_t frame, char before)
{
	const struct kb_frame *frames;
	uint32_t nr = kb_symbolizer_frames(script->symbolizer, task, event->timestamp,
					   kb_chain_lookup(event, frame), &frames), i;

	for (i = 0; i < nr; i++) {
		if (i) {
			line_end(&script->line);
			line_begin(&script->line);
		}
		line_char(&script->line, before);
		put_symbol(script, &frames[i].symbol, kb_chain_pc(event, frame));
		if (has(script, FIELD_SRCLINE))
			put_source(&script->line, &frames[i]);
	}
}

/* Ends the current line and prints the chain, one frame per line. */
static void put_chain(struct script *script, const struct kb_event *event, uint32_t task)
{
	uint32_t frame, depth = kb_chain_depth(event);

	line_end(&script->line);
	line_begin(&script->line);
	for (frame = 0; frame < depth; frame++) {
		put_frame(script, event, task, frame, '\t');
		line_end(&script->line);
		line_begin(&script->line);
	}
}

/* ---- samples, switches, halts ---- */

static void put_sample_of(struct script *script, const struct kb_walk *walk, uint64_t period,
			  const char *name, size_t length)
{
	const struct kb_event *event = &walk->event;
	bool frames = has(script, FIELDS_FRAME), chain = frames && script_has_chain(event);
	struct line *line = &script->line;

	line_begin(line);
	put_head(script, walk, task_of(script, event->task_id, event), chain);
	if (has(script, FIELD_PERIOD)) {
		line_decimal_wide(line, period, 10, ' ');
		line_char(line, ' ');
	}
	if (has(script, FIELD_EVENT)) {
		line_text(line, name, length);
		LINE_LITERAL(line, ": ");
	}
	if (chain)
		put_chain(script, event, event->task_id);
	else if (frames && event->sample.has_pc)
		put_frame(script, event, event->task_id, 0, ' ');
	line_end(line);
}

static void put_sample(struct script *script, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	uint32_t named = kb_names_of_core(script->names, event->core), i;
	uint32_t nr = event->sample.nr_counters;

	if (nr > named)
		nr = named;
	if (!nr) {
		put_sample_of(script, walk, 1, "sample", 6);
		return;
	}
	for (i = 0; i < (script->counters ? nr : 1); i++) {
		struct kb_text name = kb_names_counter(script->names,
						       kb_names_counter_id(script->names,
									   event->core, i));
		uint64_t value = event->sample.counters[i];

		put_sample_of(script, walk, value == KB_COUNTER_INVALID ? 0 : value,
			      name.data, name.length);
	}
}

static void put_switch(struct script *script, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	bool chain = has(script, FIELDS_FRAME) && script_has_chain(event);
	const struct script_task *task;
	struct line *line = &script->line;

	line_begin(line);
	task = task_of(script, walk->known ? walk->running : event->task_id, event);
	put_head(script, walk, task, chain);
	PUT_EVENT(script, "sched:sched_switch: ");
	if (has(script, FIELD_TRACE)) {
		if (walk->known) {
			line_padded(line, task->previous.text, task->previous.length);
			line_char(line, kb_state_letter(script->header,
							event->task_switch.prev_state));
			LINE_LITERAL(line, " ==> ");
			task = task_of(script, event->task_id, event);
		}
		line_padded(line, task->next.text, task->next.length);
	}
	/* The chain is that of the task that leaves the CPU, which the line is about. */
	if (chain && walk->known)
		put_chain(script, event, walk->running);
	line_end(line);
}

static void put_halt(struct script *script, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	struct line *line = &script->line;

	line_begin(line);
	put_head(script, walk, task_of(script, walk->running, event), false);
	PUT_EVENT(script, "power:cpu_idle: ");
	if (has(script, FIELD_TRACE)) {
		LINE_LITERAL(line, "state=");
		if (!event->halt.entered)
			LINE_LITERAL(line, "4294967295");	/* the tracepoint's, for leaving idle */
		else if (event->halt.idle_state == KB_STATE_UNKNOWN)
			line_char(line, '?');
		else
			line_decimal(line, (uint64_t)event->halt.idle_state);
		LINE_LITERAL(line, " cpu_id=");
		line_decimal(line, event->core);
	}
	line_end(line);
}

/* ---- marks and values ---- */

static void put_annotation(struct script *script, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;

	begin_line(script, walk);
	switch (event->annotation.type) {
	case KB_ANNOTATION_BOOKMARK:
		PUT_EVENT(script, "kbarman:bookmark: ");
		break;
	case KB_ANNOTATION_CHANNEL:
		PUT_EVENT(script, "kbarman:channel: ");
		break;
	case KB_ANNOTATION_GROUP:
		PUT_EVENT(script, "kbarman:group: ");
		break;
	default:
		PUT_EVENT(script, "kbarman:annotation: ");
	}
	if (has(script, FIELD_TRACE))
		line_text(&script->line, event->annotation.text, event->annotation.text_length);
	line_end(&script->line);
}

/* Prints the value times the multiplier. With a multiplier other than 1 the value is signed. */
static void put_value(struct line *line, uint64_t value, double multiplier)
{
	char text[32];

	if (multiplier == 1.0) {
		line_decimal(line, value);
		return;
	}
	snprintf(text, sizeof(text), "%.12g", (double)(int64_t)value * multiplier);
	line_string(line, text);
}

static void put_counter(struct script *script, const struct kb_walk *walk)
{
	const struct kb_header *header = script->header;
	uint32_t i = walk->event.custom_counter.counter;

	begin_line(script, walk);
	PUT_EVENT(script, "kbarman:counter: ");
	if (has(script, FIELD_TRACE)) {
		line_string(&script->line, i < header->nr_series && header->series[i].name ?
			    header->series[i].name : "?");
		line_char(&script->line, '=');
		put_value(&script->line, walk->event.custom_counter.value,
			  i < header->nr_series ? header->series[i].multiplier : 1.0);
		if (walk->event.custom_counter.lost) {
			line_string(&script->line, " reason=");
			line_string(&script->line,
				    kb_loss_name(walk->event.custom_counter.lost - 1U) ?: "?");
		}
	}
	line_end(&script->line);
}

/* ---- what values of kbarman's own series are about, as the kernel's tracepoints ---- */

static void put_named_number(struct line *line, const char *name, uint64_t number)
{
	line_clean(line, name, strlen(name));
	line_decimal(line, number);
}

/* The task that the record is about; the line is about the one that runs. */
static void put_other_task(struct script *script, const struct kb_event *event)
{
	const struct script_task *task = task_of(script, event->custom_counter.id, event);

	line_padded(&script->line, task->about.text, task->about.length);
}

static void put_wakeup(struct script *script, const struct kb_event *event)
{
	if (event->custom_counter.what == KB_WHAT_WAKING)
		PUT_EVENT(script, "sched:sched_waking: ");
	else
		PUT_EVENT(script, "sched:sched_wakeup_new: ");
	if (!has(script, FIELD_TRACE))
		return;
	put_other_task(script, event);
	LINE_LITERAL(&script->line, " target_cpu=");
	line_decimal_wide(&script->line, event->custom_counter.cpu, 3, '0');
}

static void put_migration(struct script *script, const struct kb_event *event, uint32_t from)
{
	PUT_EVENT(script, "sched:sched_migrate_task: ");
	if (!has(script, FIELD_TRACE))
		return;
	put_other_task(script, event);
	put_named_number(&script->line, " orig_cpu=", from);
	put_named_number(&script->line, " dest_cpu=", event->custom_counter.cpu);
}

static void put_irq(struct script *script, const struct kb_event *event)
{
	bool entry = event->custom_counter.what == KB_WHAT_IRQ_ENTRY;
	struct kb_text name;

	if (entry)
		PUT_EVENT(script, "irq:irq_handler_entry: ");
	else
		PUT_EVENT(script, "irq:irq_handler_exit: ");
	if (!has(script, FIELD_TRACE))
		return;
	put_named_number(&script->line, "irq=", event->custom_counter.id);
	if (!entry)
		return;
	name = kb_names_irq(script->names, event->custom_counter.id, event->custom_counter.cpu);
	LINE_LITERAL(&script->line, " name=");
	line_text(&script->line, name.length ? name.data : "?", name.length ? name.length : 1);
}

static void put_ipi(struct script *script, const struct kb_event *event)
{
	if (event->custom_counter.what == KB_WHAT_IPI_ENTRY)
		PUT_EVENT(script, "ipi:ipi_entry: ");
	else
		PUT_EVENT(script, "ipi:ipi_exit: ");
	if (!has(script, FIELD_TRACE))
		return;
	line_char(&script->line, '(');
	line_string(&script->line, kb_ipi_name(event->custom_counter.id));
	line_char(&script->line, ')');
}

static void put_softirq(struct script *script, const struct kb_event *event)
{
	const char *name = kb_softirq_name(event->custom_counter.id);

	if (event->custom_counter.what == KB_WHAT_SOFTIRQ_RAISE)
		PUT_EVENT(script, "irq:softirq_raise: ");
	else if (event->custom_counter.what == KB_WHAT_SOFTIRQ_ENTRY)
		PUT_EVENT(script, "irq:softirq_entry: ");
	else
		PUT_EVENT(script, "irq:softirq_exit: ");
	if (!has(script, FIELD_TRACE))
		return;
	put_named_number(&script->line, "vec=", event->custom_counter.id);
	LINE_LITERAL(&script->line, " [action=");
	line_string(&script->line, name ? name : "?");
	line_char(&script->line, ']');
}

static void put_power(struct script *script, const struct kb_event *event)
{
	struct line *line = &script->line;

	if (event->custom_counter.what == KB_WHAT_FREQUENCY) {
		PUT_EVENT(script, "power:cpu_frequency: ");
		if (!has(script, FIELD_TRACE))
			return;
		put_named_number(line, "state=", event->custom_counter.value);
		put_named_number(line, " cpu_id=", event->custom_counter.cpu);
		return;
	}
	PUT_EVENT(script, "power:cpu_idle_miss: ");
	if (!has(script, FIELD_TRACE))
		return;
	put_named_number(line, "cpu_id=", event->custom_counter.cpu);
	put_named_number(line, " state=", event->custom_counter.id);
	line_string(line, event->custom_counter.context ? " type=below" : " type=above");
}

static void put_length(struct script *script, const struct kb_event *event)
{
	char text[32];

	if (!kb_ended_is_timed(event))
		return;
	snprintf(text, sizeof(text), " (%.3f us)",
		 (double)kb_ended_ns(kb_trace_barman(script->trace), event) / 1000.0);
	line_string(&script->line, text);
}

/* The name of the error that a call returned; NULL: it returned none, or this C library has no name for it. */
static const char *error_name(int64_t result)
{
	/* What programs do not see: the call begins again, or a signal ends it. Source: include/linux/errno.h. */
	static const char *const restarts[] = {
		"ERESTARTSYS", "ERESTARTNOINTR", "ERESTARTNOHAND", "ENOIOCTLCMD", "ERESTART_RESTARTBLOCK",
	};

	if (result >= 0 || result < -4095)
		return NULL;
	if (-result >= 512 && -result < 512 + (int64_t)ARRAY_SIZE(restarts))
		return restarts[-result - 512];
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 32)
	return strerrorname_np((int)-result);
#endif
#endif
	return NULL;
}

/* As of a program that is traced: read(0x3, 0x7ffd0000, 0x1000) = 4096 (0.700 us). */
static void put_syscall(struct script *script, const struct kb_event *event)
{
	const char *name = kb_names_call(script->names, event);
	struct line *line = &script->line;
	char text[64];

	PUT_EVENT(script, "raw_syscalls:sys_exit: ");
	if (!has(script, FIELD_TRACE))
		return;
	if (name)
		line_string(line, name);
	else
		put_named_number(line, "syscall_", event->custom_counter.id);
	for (unsigned int i = 0; i < KB_SYSCALL_ARGUMENTS; i++) {
		line_string(line, i ? ", 0x" : "(0x");
		line_hex(line, event->custom_counter.arguments[i], 0);
	}
	snprintf(text, sizeof(text), ") = %" PRId64, event->custom_counter.result);
	line_string(line, text);
	if (error_name(event->custom_counter.result)) {
		line_string(line, " ");
		line_string(line, error_name(event->custom_counter.result));
	}
	put_length(script, event);
}

/* As perf has it of its software events, and the end of it. */
static void put_fault(struct script *script, const struct kb_event *event)
{
	struct line *line = &script->line;

	PUT_EVENT(script, "kbarman:fault: ");
	if (!has(script, FIELD_TRACE))
		return;
	line_string(line, kb_fault_kind_name(kb_fault_kind(event)));
	line_string(line, " address=0x");
	line_hex(line, event->custom_counter.arguments[KB_FAULT_ADDRESS], 0);
	line_string(line, " ip=0x");
	line_hex(line, event->custom_counter.arguments[KB_FAULT_PC], 0);
	line_string(line, event->custom_counter.cpu & KB_FAULT_KERNEL ? " kernel" : " user");
	put_length(script, event);
}

/* The letters of Linux's traces. Source: blk_fill_rwbs() of kernel/trace/blktrace.c. */
static const char *request_letters(uint16_t flags, char letters[8])
{
	static const char operations[] = "RWFD.D";
	unsigned int operation = flags & KB_BLOCK_OPERATION;
	char *at = letters;

	if (flags & KB_BLOCK_PREFLUSH)
		*at++ = 'F';
	*at++ = operation < sizeof(operations) - 1 && operations[operation] != '.' ? operations[operation] : 'N';
	if (operation == 5)	/* a secure erase */
		*at++ = 'E';
	if (flags & KB_BLOCK_FUA)
		*at++ = 'F';
	if (flags & KB_BLOCK_AHEAD)
		*at++ = 'A';
	if (flags & KB_BLOCK_SYNC)
		*at++ = 'S';
	if (flags & KB_BLOCK_META)
		*at++ = 'M';
	*at = '\0';
	return letters;
}

/* As Linux's tracepoint of that name, with the task that gave the request to its queue. */
static void put_block(struct script *script, const struct kb_event *event)
{
	const uint64_t *arguments = event->custom_counter.arguments;
	uint32_t device = (uint32_t)arguments[KB_BLOCK_DEVICE];
	struct line *line = &script->line;
	char text[96], letters[8];

	PUT_EVENT(script, "block:block_rq_complete: ");
	if (!has(script, FIELD_TRACE))
		return;
	snprintf(text, sizeof(text), "%u,%u %s () %" PRIu64 " + %" PRIu64 " [%" PRId64 "]", device >> 20,
		 device & 0xfffff, request_letters(event->custom_counter.cpu, letters), arguments[KB_BLOCK_SECTOR],
		 arguments[KB_BLOCK_BYTES] / 512, event->custom_counter.result);
	line_string(line, text);
	if (event->custom_counter.id)
		put_named_number(line, " tid=", event->custom_counter.id);
	put_length(script, event);
}

void script_text(struct script *script, const struct kb_walk *walk, enum script_kind kind,
		 uint32_t from)
{
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
	case SCRIPT_ANNOTATION:
		put_annotation(script, walk);
		return;
	case SCRIPT_COUNTER:
		put_counter(script, walk);
		return;
	default:
		break;
	}
	begin_line(script, walk);
	if (kind == SCRIPT_WAKE)
		put_wakeup(script, event);
	else if (kind == SCRIPT_MIGRATE)
		put_migration(script, event, from);
	else if (kind == SCRIPT_IRQ && event->custom_counter.what <= KB_WHAT_IRQ_EXIT)
		put_irq(script, event);
	else if (kind == SCRIPT_IRQ)
		put_ipi(script, event);
	else if (kind == SCRIPT_SOFTIRQ)
		put_softirq(script, event);
	else if (kind == SCRIPT_SYSCALLS)
		put_syscall(script, event);
	else if (kind == SCRIPT_FAULTS)
		put_fault(script, event);
	else if (kind == SCRIPT_BLOCK)
		put_block(script, event);
	else
		put_power(script, event);
	line_end(&script->line);
}
