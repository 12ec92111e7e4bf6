// SPDX-License-Identifier: MIT
/*
 * kbarman script: prints a line for each record in the format of perf script, for programs that
 * read that format. Lines are built without printf, which would take most of the time.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kbarman/chain.h>
#include <kbarman/names.h>
#include <kbarman/out.h>
#include <kbarman/trace.h>

#include "analysis/task_cpus.h"
#include "base/array.h"
#include "base/utf8.h"
#include "cli.h"
#include "sandbox.h"
#include "symbols.h"

enum {
	OPTION_COUNTERS = 256, OPTION_LINES, OPTION_INLINE,
};

static const struct cli_option options[] = {
	{ 'i', "input", "FILE", "the same as the argument FILE" },
	{ 'e', "events", "TYPE,...",
	  "print only these types (default all): sample, switch, idle, wake,\n"
	  "migrate, irq, softirq, freq, annotation, counter" },
	{ OPTION_COUNTERS, "counters", NULL,
	  "print all counters of a sample, not only the sampling one" },
	{ OPTION_LINES, "lines", NULL, "print the source line of each frame below it" },
	{ OPTION_INLINE, "inline", NULL, "print inlined functions as frames of their own" },
	SYMBOLS_OPTIONS,
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman script [OPTIONS] [FILE]\n"
	"\n"
	"Print the records of the capture FILE (default kbarman.cap; '-' is standard input) in\n"
	"the format of perf script, with call chains.\n"
	"\n",
	.options = options,
	.column = 25,
	.tail =
	"\n"
	"Exit status: 0 FILE was read; 1 FILE is damaged, its undamaged part is printed;\n"
	"2 nothing was printed.\n",
};

/* Values of kbarman's own series, beside the bits of each enum kb_event_type. */
enum shown {
	SHOWN_WAKE	= 1U << 8,
	SHOWN_MIGRATE	= 1U << 9,
	SHOWN_IRQ	= 1U << 10,
	SHOWN_SOFTIRQ	= 1U << 11,
	SHOWN_FREQ	= 1U << 12,
};

struct script {
	const char *path;
	unsigned int events;		/* bit of each enum kb_event_type, and enum shown */
	bool counters;
	struct kb_symbol_options symbols;

	struct kb_trace *trace;
	const struct kb_header *header;
	const struct kb_tasks *tasks;
	struct kb_names *names;
	struct kb_symbolizer *symbolizer;
	struct kb_task_cpus cpus;
	struct kb_out *out;
	uint64_t clock_base;		/* ns that are added to the times of the lines */

	size_t length;			/* length of line */
	char line[16384];
};

/* ---- pieces of a line: text that does not fit is cut ---- */

static void put_char(struct script *script, char c)
{
	if (script->length < sizeof(script->line))
		script->line[script->length++] = c;
}

/* Names come from files. They must not control the terminal, and not end the line. */
static void put_bytes(struct script *script, const char *text, size_t length)
{
	for (size_t i = 0, taken; i < length; i += taken) {
		char shown[4];
		size_t size;

		taken = 1;
		if (kb_utf8_is_plain(text[i])) {
			put_char(script, text[i]);
			continue;
		}
		size = kb_utf8_shown_next(shown, text + i, length - i, &taken);
		/* print a whole character or nothing */
		if (size > sizeof(script->line) - script->length)
			break;
		memcpy(script->line + script->length, shown, size);
		script->length += size;
	}
}

static void put(struct script *script, const char *text)
{
	put_bytes(script, text, strlen(text));
}

static void put_right(struct script *script, const char *text, size_t length, size_t width)
{
	for (; width > length; width--)
		put_char(script, ' ');
	put_bytes(script, text, length);
}

static void put_number(struct script *script, uint64_t number, unsigned int base, size_t width,
		       char fill)
{
	char digits[24], *at = digits + sizeof(digits);

	do
		*--at = "0123456789abcdef"[number % base];
	while (number /= base);
	for (; width > (size_t)(digits + sizeof(digits) - at); width--)
		put_char(script, fill);
	put_bytes(script, at, digits + sizeof(digits) - at);
}

/* Prints the line and begins another one. */
static void end_line(struct script *script)
{
	if (script->length == sizeof(script->line))
		script->length--;
	script->line[script->length++] = '\n';
	kb_out_bytes(script->out, script->line, script->length);
	script->length = 0;
}

/* ---- records ---- */

static void put_task(struct script *script, uint32_t task_id, uint64_t timestamp)
{
	char buffer[KB_TASK_NAME_BUFFER];
	const char *name = kb_tasks_name(script->tasks, task_id, timestamp, buffer);

	put(script, name);
}

static bool has_chain(const struct kb_event *event)
{
	return event->type == KB_EVENT_TASK_SWITCH ? event->task_switch.nr_chain :
	       event->type == KB_EVENT_SAMPLE && event->sample.has_pc && event->sample.nr_chain;
}

/*
 * "            comm   pid/tid   [cpu] seconds.micros: ", about 60 bytes. As in perf, a line that a
 * call chain follows does not begin with blanks: readers distinguish it from frames by that.
 */
static void put_head(struct script *script, const struct kb_event *event, uint32_t task_id,
		     int64_t ns)
{
	char buffer[KB_TASK_NAME_BUFFER];
	const char *name = kb_tasks_name(script->tasks, task_id, event->timestamp, buffer);
	uint64_t time = script->clock_base + (uint64_t)ns;
	struct kb_task_hit hit;
	size_t start;

	kb_tasks_find(script->tasks, task_id, event->timestamp, &hit);
	put_right(script, name, strlen(name), has_chain(event) ? 0 : 16);
	put_char(script, ' ');
	put_number(script, hit.tgid, 10, 5, ' ');
	put_char(script, '/');
	start = script->length;
	put_number(script, task_id, 10, 0, ' ');
	put_right(script, "", 0, script->length - start < 5 ? 6 - (script->length - start) : 1);
	put_char(script, '[');
	put_number(script, event->core, 10, 3, '0');
	put(script, "] ");
	if ((int64_t)time < 0) {
		put_char(script, '-');
		time = -time;
	}
	put_number(script, time / 1000000000, 10, 5, ' ');
	put_char(script, '.');
	put_number(script, time % 1000000000 / 1000, 10, 6, '0');
	put(script, ": ");
}

/* "address symbol+0xoffset (image)" */
static void put_symbol(struct script *script, const struct kb_symbol *symbol, uint64_t pc)
{
	put_number(script, pc, 16, 16, ' ');
	put_char(script, ' ');
	put(script, symbol->name[0] ? symbol->name : "[unknown]");
	if (symbol->name[0]) {
		put(script, "+0x");
		put_number(script, pc - symbol->address, 16, 0, ' ');
	}
	put(script, " (");
	put(script, symbol->inlined ? "inlined" : symbol->image);
	put_char(script, ')');
}

/* The source line of the frame, on a line of its own. */
static void put_line(struct script *script, const struct kb_frame *frame)
{
	const char *slash = strrchr(frame->file, '/');

	if (!frame->file[0])
		return;
	end_line(script);
	put(script, "  ");
	put(script, slash ? slash + 1 : frame->file);
	put_char(script, ':');
	put_number(script, frame->line, 10, 0, ' ');
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
		if (i)
			end_line(script);
		put_char(script, before);
		put_symbol(script, &frames[i].symbol, kb_chain_pc(event, frame));
		if (script->symbols.lines)
			put_line(script, &frames[i]);
	}
}

/* Ends the current line and prints the chain, one frame per line. */
static void put_chain(struct script *script, const struct kb_event *event, uint32_t task)
{
	uint32_t frame, depth = kb_chain_depth(event);

	end_line(script);
	for (frame = 0; frame < depth; frame++) {
		put_frame(script, event, task, frame, '\t');
		end_line(script);
	}
}

static void put_sample_of(struct script *script, const struct kb_event *event, int64_t ns,
			  uint64_t period, const char *name, size_t length)
{
	put_head(script, event, event->task_id, ns);
	put_number(script, period, 10, 10, ' ');
	put_char(script, ' ');
	put_bytes(script, name, length);
	put(script, ": ");
	if (has_chain(event))
		put_chain(script, event, event->task_id);
	else if (event->sample.has_pc)
		put_frame(script, event, event->task_id, 0, ' ');
	end_line(script);
}

static void put_sample(struct script *script, const struct kb_event *event, int64_t ns)
{
	uint32_t named = kb_names_of_core(script->names, event->core), i;
	uint32_t nr = event->sample.nr_counters;

	if (nr > named)
		nr = named;
	if (!nr) {
		put_sample_of(script, event, ns, 1, "sample", 6);
		return;
	}
	for (i = 0; i < (script->counters ? nr : 1); i++) {
		struct kb_text name = kb_names_counter(script->names,
						       kb_names_counter_id(script->names,
									   event->core, i));
		uint64_t value = event->sample.counters[i];

		put_sample_of(script, event, ns, value == KB_COUNTER_INVALID ? 0 : value,
			      name.data, name.length);
	}
}

/* @running: the task that ran before, if @known. */
static void put_switch(struct script *script, const struct kb_event *event, int64_t ns,
		       uint32_t running, bool known)
{
	put_head(script, event, known ? running : event->task_id, ns);
	put(script, "sched:sched_switch: ");
	if (known) {
		put(script, "prev_comm=");
		put_task(script, running, event->timestamp);
		put(script, " prev_pid=");
		put_number(script, running, 10, 0, ' ');
		put(script, " prev_state=");
		put_char(script, kb_state_letter(script->header,
					 event->task_switch.prev_state));
		put(script, " ==> ");
	}
	put(script, "next_comm=");
	put_task(script, event->task_id, event->timestamp);
	put(script, " next_pid=");
	put_number(script, event->task_id, 10, 0, ' ');
	/* The chain is that of the task that leaves the CPU, which the line is about. */
	if (has_chain(event) && known)
		put_chain(script, event, running);
	end_line(script);
}

static void put_halt(struct script *script, const struct kb_event *event, int64_t ns,
		     uint32_t running)
{
	put_head(script, event, running, ns);
	put(script, "power:cpu_idle: state=");
	if (!event->halt.entered)
		put(script, "4294967295");	/* the tracepoint's value for leaving idle */
	else if (event->halt.idle_state == KB_STATE_UNKNOWN)
		put_char(script, '?');
	else
		put_number(script, event->halt.idle_state, 10, 0, ' ');
	put(script, " cpu_id=");
	put_number(script, event->core, 10, 0, ' ');
	end_line(script);
}

static void put_annotation(struct script *script, const struct kb_event *event, int64_t ns)
{
	put_head(script, event, event->task_id, ns);
	switch (event->annotation.type) {
	case KB_ANNOTATION_BOOKMARK:
		put(script, "kbarman:bookmark: ");
		break;
	case KB_ANNOTATION_CHANNEL:
		put(script, "kbarman:channel: ");
		break;
	case KB_ANNOTATION_GROUP:
		put(script, "kbarman:group: ");
		break;
	default:
		put(script, "kbarman:annotation: ");
	}
	put_bytes(script, event->annotation.text, event->annotation.text_length);
	end_line(script);
}

/* Prints the value times the multiplier. With a multiplier other than 1 the value is signed. */
static void put_value(struct script *script, uint64_t value, double multiplier)
{
	char text[32];

	if (multiplier == 1.0) {
		put_number(script, value, 10, 0, ' ');
		return;
	}
	snprintf(text, sizeof(text), "%.12g", (double)(int64_t)value * multiplier);
	put(script, text);
}

static void put_counter(struct script *script, const struct kb_event *event, int64_t ns)
{
	const struct kb_header *header = script->header;
	uint32_t i = event->custom_counter.counter;

	put_head(script, event, event->task_id, ns);
	put(script, "kbarman:counter: ");
	put(script, i < header->nr_series && header->series[i].name ? header->series[i].name : "?");
	put_char(script, '=');
	put_value(script, event->custom_counter.value,
		  i < header->nr_series ? header->series[i].multiplier : 1.0);
	end_line(script);
}

/* ---- what values of kbarman's own series are about, as the kernel's tracepoints ---- */

static void put_named_number(struct script *script, const char *name, uint64_t number)
{
	put(script, name);
	put_number(script, number, 10, 0, ' ');
}

/* The task that the record is about; the line is about the one that runs. */
static void put_other_task(struct script *script, const struct kb_event *event)
{
	put(script, "comm=");
	put_task(script, event->custom_counter.id, event->timestamp);
	put_named_number(script, " pid=", event->custom_counter.id);
}

static void put_wakeup(struct script *script, const struct kb_event *event)
{
	put(script, event->custom_counter.what == KB_WHAT_WAKING ? "sched:sched_waking: " :
								   "sched:sched_wakeup_new: ");
	put_other_task(script, event);
	put(script, " target_cpu=");
	put_number(script, event->custom_counter.cpu, 10, 3, '0');
}

static void put_migration(struct script *script, const struct kb_event *event, int64_t from)
{
	put(script, "sched:sched_migrate_task: ");
	put_other_task(script, event);
	put_named_number(script, " orig_cpu=", (uint64_t)from);
	put_named_number(script, " dest_cpu=", event->custom_counter.cpu);
}

static void put_irq(struct script *script, const struct kb_event *event)
{
	bool entry = event->custom_counter.what == KB_WHAT_IRQ_ENTRY;
	struct kb_text name = kb_names_irq(script->names, event->custom_counter.id,
					   event->custom_counter.cpu);

	put(script, entry ? "irq:irq_handler_entry: " : "irq:irq_handler_exit: ");
	put_named_number(script, "irq=", event->custom_counter.id);
	if (!entry)
		return;
	put(script, " name=");
	put_bytes(script, name.length ? name.data : "?", name.length ? name.length : 1);
}

static void put_ipi(struct script *script, const struct kb_event *event)
{
	put(script, event->custom_counter.what == KB_WHAT_IPI_ENTRY ? "ipi:ipi_entry: (" :
								      "ipi:ipi_exit: (");
	put(script, kb_ipi_name(event->custom_counter.id));
	put_char(script, ')');
}

static void put_softirq(struct script *script, const struct kb_event *event)
{
	const char *name = kb_softirq_name(event->custom_counter.id);

	put(script, event->custom_counter.what == KB_WHAT_SOFTIRQ_RAISE ? "irq:softirq_raise: " :
		    event->custom_counter.what == KB_WHAT_SOFTIRQ_ENTRY ? "irq:softirq_entry: " :
									  "irq:softirq_exit: ");
	put_named_number(script, "vec=", event->custom_counter.id);
	put(script, " [action=");
	put(script, name ? name : "?");
	put_char(script, ']');
}

static void put_power(struct script *script, const struct kb_event *event)
{
	if (event->custom_counter.what == KB_WHAT_FREQUENCY) {
		put_named_number(script, "power:cpu_frequency: state=", event->custom_counter.value);
		put_named_number(script, " cpu_id=", event->custom_counter.cpu);
		return;
	}
	put_named_number(script, "power:cpu_idle_miss: cpu_id=", event->custom_counter.cpu);
	put_named_number(script, " state=", event->custom_counter.id);
	put(script, event->custom_counter.context ? " type=below" : " type=above");
}

/* How an event is called in -e. */
static unsigned int shown_as(const struct kb_event *event)
{
	if (event->type != KB_EVENT_CUSTOM_COUNTER)
		return 1U << event->type;
	switch (event->custom_counter.what) {
	case KB_WHAT_WAKING:
	case KB_WHAT_WAKING_NEW:
		return SHOWN_WAKE;
	case KB_WHAT_MIGRATE:
		return SHOWN_MIGRATE;
	case KB_WHAT_IRQ_ENTRY:
	case KB_WHAT_IRQ_EXIT:
	case KB_WHAT_IPI_ENTRY:
	case KB_WHAT_IPI_EXIT:
		return SHOWN_IRQ;
	case KB_WHAT_SOFTIRQ_RAISE:
	case KB_WHAT_SOFTIRQ_ENTRY:
	case KB_WHAT_SOFTIRQ_EXIT:
		return SHOWN_SOFTIRQ;
	case KB_WHAT_FREQUENCY:
	case KB_WHAT_IDLE_MISS:
		return SHOWN_FREQ;
	default:	/* also what a later release writes */
		return 1U << KB_EVENT_CUSTOM_COUNTER;
	}
}

/* @from: the CPU that a task leaves. */
static void put_detail(struct script *script, const struct kb_event *event, int64_t ns, int64_t from)
{
	unsigned int shown = shown_as(event);

	put_head(script, event, event->task_id, ns);
	switch (shown) {
	case SHOWN_WAKE:
		put_wakeup(script, event);
		break;
	case SHOWN_MIGRATE:
		put_migration(script, event, from);
		break;
	case SHOWN_IRQ:
		if (event->custom_counter.what <= KB_WHAT_IRQ_EXIT)
			put_irq(script, event);
		else
			put_ipi(script, event);
		break;
	case SHOWN_SOFTIRQ:
		put_softirq(script, event);
		break;
	default:
		put_power(script, event);
	}
	end_line(script);
}

static void put_event(struct script *script, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	int64_t ns = walk->ns, from = kb_task_cpus_feed(&script->cpus, event);

	if (!(script->events & shown_as(event)))
		return;
	switch (event->type) {
	case KB_EVENT_SAMPLE:
		put_sample(script, event, ns);
		break;
	case KB_EVENT_TASK_SWITCH:
		put_switch(script, event, ns, walk->running, walk->known);
		break;
	case KB_EVENT_HALT:
		put_halt(script, event, ns, walk->running);
		break;
	case KB_EVENT_ANNOTATION:
		put_annotation(script, event, ns);
		break;
	case KB_EVENT_CUSTOM_COUNTER:
		if (shown_as(event) == 1U << event->type)
			put_counter(script, event, ns);
		else
			put_detail(script, event, ns, from < 0 ? event->core : from);
		break;
	default:
		break;
	}
}

/* ---- the verb ---- */

static int open_script(struct script *script)
{
	const struct kb_trace_options how = {
		.size = sizeof(how), .symbols = &script->symbols,
	};
	struct kb_error err = { 0 };
	const char *base;

	kb_task_cpus_init(&script->cpus);
	cli_progress(NULL, true);
	cli_sandbox_reading(script->path);
	if (kb_trace_open(&script->trace, script->path, &how, &err))
		return cli_fail_error(&err);
	script->header = kb_trace_header(script->trace);
	script->tasks = kb_trace_tasks(script->trace, &err);
	script->names = script->tasks ? kb_trace_names(script->trace, &err) : NULL;
	script->symbolizer = script->names ? kb_trace_symbolizer(script->trace, &err) : NULL;
	if (!script->symbolizer)
		return cli_fail_error(&err);
	if (kb_out_fd(&script->out, STDOUT_FILENO))
		return cli_fail("out of memory");
	base = kb_barman_fact(kb_trace_barman(script->trace), "raw_base");
	script->clock_base = base ? strtoull(base, NULL, 10) : 0;
	return CLI_OK;
}

static void close_script(struct script *script)
{
	kb_out_destroy(script->out);
	kb_task_cpus_release(&script->cpus);
	kb_trace_close(script->trace);
}

static void complain(void *context, const char *sentence)
{
	(void)context;
	cli_warn("%s", sentence);
}

static int run(struct script *script)
{
	const struct kb_error *first;
	const struct kb_walk *walk;
	struct kb_error err = { 0 };
	int ret, status = open_script(script);

	if (status)
		return status;
	signal(SIGPIPE, SIG_IGN);
	while ((ret = kb_trace_next(script->trace, &walk, &err)) > 0 && !kb_out_error(script->out))
		put_event(script, walk);
	if (kb_out_flush(script->out) == -EPIPE)
		return CLI_OK;		/* the reader has ended, as in `| head` */
	if (kb_out_error(script->out))
		return cli_fail("can't write standard output: %s",
				strerror(-kb_out_error(script->out)));
	kb_symbolizer_complaints(script->symbolizer, complain, NULL);
	if (ret >= 0 && !kb_barman_damage(kb_trace_barman(script->trace), &first))
		return CLI_OK;
	cli_warn("%s", ret < 0 ? kb_error_text(&err) : kb_error_text(first));
	return CLI_DAMAGED;
}

static bool parse_events(const char *text, unsigned int *events)
{
	static const struct {
		const char *name;
		unsigned int shown;
	} types[] = {
		{ "sample", 1U << KB_EVENT_SAMPLE },	{ "switch", 1U << KB_EVENT_TASK_SWITCH },
		{ "idle", 1U << KB_EVENT_HALT },	{ "annotation", 1U << KB_EVENT_ANNOTATION },
		{ "wake", SHOWN_WAKE },			{ "migrate", SHOWN_MIGRATE },
		{ "irq", SHOWN_IRQ },			{ "softirq", SHOWN_SOFTIRQ },
		{ "freq", SHOWN_FREQ },
		{ "counter", 1U << KB_EVENT_CUSTOM_COUNTER },
	};
	size_t i, length, nr = ARRAY_SIZE(types);

	for (*events = 0; *text; text += length + (text[length] == ',')) {
		length = strcspn(text, ",");
		for (i = 0; i < nr; i++)
			if (strlen(types[i].name) == length &&
			    memcmp(types[i].name, text, length) == 0)
				break;
		if (i == nr)
			return false;
		*events |= types[i].shown;
	}
	return *events;
}

int cmd_script(int argc, char **argv)
{
	static struct script script = { .events = ~0U, .symbols.size = sizeof(script.symbols) };
	int option, status;

	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		switch (option) {
		case 'i':
			script.path = optarg;
			break;
		case 'e':
			if (!parse_events(optarg, &script.events))
				return cli_fail("--events %s: give some of sample, switch, idle, wake, "
						"migrate, irq, softirq, freq, annotation, counter, "
						"with commas between", optarg);
			break;
		case OPTION_COUNTERS:
			script.counters = true;
			break;
		case OPTION_LINES:
			script.symbols.lines = true;
			break;
		case OPTION_INLINE:
			script.symbols.inlined = true;
			break;
		default:
			if (symbols_take(&script.symbols, option, optarg))
				break;
			return cli_usage(option == 'h', &usage);
		}
	}
	script.path = cli_input(script.path, argc, argv, CLI_CAPTURE);
	if (!script.path)
		return CLI_IMPOSSIBLE;
	status = run(&script);
	cli_progress_end();
	close_script(&script);
	return status;
}
