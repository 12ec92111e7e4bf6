// SPDX-License-Identifier: MIT
/*
 * kbarman script: prints a line for each record in the format of perf script, for programs that read
 * that format, or as JSON.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/trace/wanted.h"
#include "cli/base/cli.h"
#include "cli/base/sandbox.h"
#include "cli/base/symbols.h"
#include "cli/script/script.h"

enum {
	OPTION_COUNTERS = 256, OPTION_LINES, OPTION_INLINE,
};

static const struct cli_option options[] = {
	{ 'i', "input", "FILE", "the same as the argument FILE" },
	{ 'k', "kinds", "KIND,...",
	  "print only these kinds (default all): sample, switch, idle, wake,\n"
	  "migrate, irq, softirq, freq, syscalls, faults, block, annotation,\n"
	  "counter" },
	{ 'e', "events", "KIND,...", NULL },
	FILTERS_OPTIONS,
	{ 'F', "fields", "FIELD,...",
	  "print only these fields: comm, pid, tid, cpu, time, period, event,\n"
	  "trace, ip, sym, symoff, dso, srcline (default all but srcline)" },
	{ OPTION_COUNTERS, "counters", NULL,
	  "show all counters of a sample, not only the sampling one" },
	{ OPTION_LINES, "lines", NULL, "with lines of source files: below each frame" },
	{ OPTION_INLINE, "inline", NULL,
	  "treat inlined functions as called ones, with frames of their own" },
	SYMBOLS_OPTIONS,
	{ 'j', "json", NULL, "print JSON, one object per line" },
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman script [OPTIONS] [FILE]\n"
	"\n"
	"Print the records of the capture FILE (default kbarman.cap; '-' is standard input) in\n"
	"the format of perf script, with call chains, or as JSON.\n"
	"\n",
	.options = options,
	.column = 25,
	.tail =
	"\n"
	"Exit status: 0 FILE was read; 1 FILE is damaged, its undamaged part is printed;\n"
	"2 nothing was printed.\n",
};

/* How the record is called in --kinds; SCRIPT_KINDS: it is not printed. */
static enum script_kind kind_of(const struct kb_event *event)
{
	switch (event->type) {
	case KB_EVENT_SAMPLE:
		return SCRIPT_SAMPLE;
	case KB_EVENT_TASK_SWITCH:
		return SCRIPT_SWITCH;
	case KB_EVENT_HALT:
		return SCRIPT_IDLE;
	case KB_EVENT_ANNOTATION:
		return SCRIPT_ANNOTATION;
	case KB_EVENT_CUSTOM_COUNTER:
		break;
	default:
		return SCRIPT_KINDS;
	}
	switch (event->custom_counter.what) {
	case KB_WHAT_WAKING:
	case KB_WHAT_WAKING_NEW:
		return SCRIPT_WAKE;
	case KB_WHAT_MIGRATE:
		return SCRIPT_MIGRATE;
	case KB_WHAT_IRQ_ENTRY:
	case KB_WHAT_IRQ_EXIT:
	case KB_WHAT_IPI_ENTRY:
	case KB_WHAT_IPI_EXIT:
		return SCRIPT_IRQ;
	case KB_WHAT_SOFTIRQ_RAISE:
	case KB_WHAT_SOFTIRQ_ENTRY:
	case KB_WHAT_SOFTIRQ_EXIT:
		return SCRIPT_SOFTIRQ;
	case KB_WHAT_FREQUENCY:
	case KB_WHAT_IDLE_MISS:
		return SCRIPT_FREQ;
	case KB_WHAT_SYSCALL:
		return SCRIPT_SYSCALLS;
	case KB_WHAT_FAULT:
		return SCRIPT_FAULTS;
	case KB_WHAT_BLOCK:
		return SCRIPT_BLOCK;
	default:	/* also what a later release writes */
		return SCRIPT_COUNTER;
	}
}

static void put_event(struct script *script, const struct kb_walk *walk,
		      const struct kb_wanted *wanted)
{
	int64_t from = kb_task_cpus_feed(&script->cpus, &walk->event);
	enum script_kind kind = kind_of(&walk->event);
	uint32_t from_cpu = from < 0 ? walk->event.core : (uint32_t)from;

	if (!(script->kinds >> kind & 1) || (wanted && !kb_wanted_record(wanted, walk)))
		return;
	script->records++;
	if (script->json)
		script_json(script, walk, kind, from_cpu);
	else
		script_text(script, walk, kind, from_cpu);
}

/* ---- the verb ---- */

static int open_script(struct script *script)
{
	const struct kb_trace_options how = {
		.size = sizeof(how), .symbols = &script->symbols,
	};
	struct kb_error err = { 0 };
	const struct kb_tasks *tasks;
	struct kb_out *out;
	const char *base;

	kb_task_cpus_init(&script->cpus);
	cli_progress(NULL, true);
	cli_sandbox_reading(script->path);
	if (kb_trace_open(&script->trace, script->path, &how, &err))
		return cli_fail_error(&err);
	script->header = kb_trace_header(script->trace);
	tasks = kb_trace_tasks(script->trace, &err);
	script->names = tasks ? kb_trace_names(script->trace, &err) : NULL;
	script->symbolizer = script->names ? kb_trace_symbolizer(script->trace, &err) : NULL;
	if (!script->symbolizer)
		return cli_fail_error(&err);
	script->tasks = script_tasks_create(tasks, script->json);
	if (!script->tasks || kb_out_fd(&out, STDOUT_FILENO) || !line_create(&script->line, out))
		return cli_fail("out of memory");
	base = kb_barman_fact(kb_trace_barman(script->trace), "raw_base");
	script->clock_base = base ? strtoull(base, NULL, 10) : 0;
	script->second_start = UINT64_C(1) << 63;	/* the first time begins a second */
	return CLI_OK;
}

static void close_script(struct script *script)
{
	kb_out_destroy(script->line.out);
	line_destroy(&script->line);
	script_tasks_destroy(script->tasks);
	filters_release(&script->filters);
	kb_task_cpus_release(&script->cpus);
	kb_trace_close(script->trace);
}

static void complain(void *context, const char *sentence)
{
	(void)context;
	cli_warn("%s", sentence);
}

/* Where the lines go to a file, says what is there now. */
static void say_what_was_written(const struct script *script)
{
	struct stat st;

	if (fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode))
		cli_note("wrote standard output: %llu records, %llu bytes",
			 (unsigned long long)script->records,
			 (unsigned long long)kb_out_count(script->line.out));
}

static int run(struct script *script)
{
	const struct kb_filter *filter = filters_get(&script->filters);
	struct kb_wanted wanted;
	struct kb_out *out;
	const struct kb_error *first;
	const struct kb_walk *walk;
	struct kb_error err = { 0 };
	int ret, status = open_script(script);

	if (status)
		return status;
	if (filter && kb_wanted_init(&wanted, script->trace, filter, &err))
		return cli_fail_error(&err);
	if (filters_check(&script->filters, script->trace, script->path))
		return CLI_IMPOSSIBLE;
	signal(SIGPIPE, SIG_IGN);
	out = script->line.out;
	while ((ret = kb_trace_next(script->trace, &walk, &err)) > 0 && !kb_out_error(out))
		put_event(script, walk, filter ? &wanted : NULL);
	if (kb_out_flush(out) == -EPIPE)
		return CLI_OK;		/* the reader has ended, as in `| head` */
	if (kb_out_error(out))
		return cli_fail("can't write standard output: %s", strerror(-kb_out_error(out)));
	kb_symbolizer_complaints(script->symbolizer, complain, NULL);
	say_what_was_written(script);
	if (ret >= 0 && !kb_barman_damage(kb_trace_barman(script->trace), &first))
		return CLI_OK;
	cli_warn("%s", ret < 0 ? kb_error_text(&err) : kb_error_text(first));
	return CLI_DAMAGED;
}

/* Takes the options that several verbs have. Returns CLI_OK, or an exit status after a message. */
static int take_common(struct script *script, int option)
{
	switch (filters_take(&script->filters, option, optarg)) {
	case FILTERS_TAKEN:
		return CLI_OK;
	case FILTERS_WRONG:
		return CLI_IMPOSSIBLE;
	case FILTERS_OTHER:
		break;
	}
	return symbols_take(&script->symbols, option, optarg) ? CLI_OK : cli_usage(false, &usage);
}

int cmd_script(int argc, char **argv)
{
	static struct script script = {
		.kinds = (1U << SCRIPT_KINDS) - 1,
		.fields = FIELDS_DEFAULT,
		.symbols.size = sizeof(script.symbols),
	};
	bool lines = false;
	int option, status;

	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		switch (option) {
		case 'i':
			script.path = optarg;
			break;
		case 'k':
		case 'e':
			if (!script_take_kinds(optarg, &script.kinds))
				return CLI_IMPOSSIBLE;
			break;
		case 'F':
			if (!script_take_fields(optarg, &script.fields))
				return CLI_IMPOSSIBLE;
			break;
		case 'j':
			script.json = true;
			break;
		case 'h':
			return cli_usage(true, &usage);
		case OPTION_COUNTERS:
			script.counters = true;
			break;
		case OPTION_LINES:
			lines = true;
			break;
		case OPTION_INLINE:
			script.symbols.inlined = true;
			break;
		default:
			status = take_common(&script, option);
			if (status)
				return status;
		}
	}
	script.path = cli_input(script.path, argc, argv, CLI_CAPTURE);
	if (!script.path)
		return CLI_IMPOSSIBLE;
	if (lines)
		script.fields |= FIELD_SRCLINE;
	script.symbols.lines = script.fields & FIELD_SRCLINE;
	symbols_end(&script.symbols);
	status = run(&script);
	cli_progress_end();
	close_script(&script);
	return status;
}
