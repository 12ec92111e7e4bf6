// SPDX-License-Identifier: MIT
/* See options.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text/size.h"
#include "cli/record/options.h"
#include "cli/session/event_list.h"
#include "cli/session/sources.h"

#define TURN_MS_MIN	10
#define TURN_MS_MAX	60000
#define DEFAULT_EVENT		"cycles"
#define COUNTERS_HZ_MAX		(1000000000 / KBARMAN_COUNT_NS_MIN)
#define DEFAULT_RING_BYTES	(4U << 20)
#define TASKS_MAX		(1U << 18)	/* readers take no more mappings than these have */
#define OFF_CPU_MIN_MAX	(3600 * KB_NS_PER_S)

enum {
	OPTION_READ_COUNTERS = 256, OPTION_MODE, OPTION_CALL_GRAPH, OPTION_MAX_STACK, OPTION_MAX_TASKS,
	OPTION_OFF_CPU, OPTION_OFF_CPU_MIN, OPTION_BUNDLE, OPTION_NO_BUNDLE, OPTION_ANNOTATE_SOCKET,
	OPTION_POLL, OPTION_CHART, OPTION_ROTATE, OPTION_BOOT,
	OPTION_NO_COMMANDS, OPTION_RESERVED, OPTION_KEEP_SYMBOLS,
};

static const struct cli_option options[] = {
	{ 'o', "output", "FILE", "write to FILE (default kbarman.cap; '-' is standard output)" },
	{ 'e', "event", "EVENTS",
	  "use these events, comma-separated; the first one samples\n"
	  "(default cycles, or cpu-clock where there is no PMU)" },
	{ 'F', "freq", "HZ",
	  "take HZ samples per second and CPU (default 1000; 0: no samples\n"
	  "of code)" },
	{ 'c', "count", "PERIOD", "take a sample every PERIOD events instead" },
	{ OPTION_READ_COUNTERS, "read-counters", "WHEN",
	  "read all counters at each task switch (switch), HZ times per\n"
	  "second and CPU (a number), or both (switch,HZ)" },
	{ OPTION_READ_COUNTERS, "counters", "WHEN", NULL },
	{ OPTION_ROTATE, "rotate", "TIME",
	  "let groups of events take turns of about TIME, as in 20ms, but for\n"
	  "the first one, and say how far off the counts may be; implies\n"
	  "--read-counters switch" },
	{ 'm', "buffer", "SIZE", "size of each CPU's buffer, with suffix K, M or G (default 4M)" },
	{ OPTION_MODE, "mode", "MODE",
	  "stream: write while recording (default)\n"
	  "overwrite: keep the newest records, write them at the end" },
	CLI_CPU_OPTION,
	{ 'a', "all-cpus", NULL, "use the whole system, even if COMMAND is given" },
	{ 'p', "pid", "PIDS",
	  "use only these processes, comma-separated, and their children, until\n"
	  "the processes end" },
	{ OPTION_BOOT, "boot", NULL,
	  "take over the recording that began when the module was loaded with\n"
	  "its parameter boot, and go on with it" },
	{ OPTION_RESERVED, "reserved", NULL,
	  "record into the module's memory that survives a reset, with buffers\n"
	  "as large as fit: 'kbarman recover --previous' reads them after a crash" },
	{ OPTION_KEEP_SYMBOLS, "keep-symbols", NULL,
	  "keep the kernel's symbols in memory beside the buffers, for\n"
	  "'kbarman recover' after a crash" },
	{ OPTION_ANNOTATE_SOCKET, "annotate-socket", NULL,
	  "record the marks of programs that are made for Arm's Annotate" },
	{ OPTION_POLL, "poll", "NAME=FILE[@HZ]",
	  "record the number in FILE, HZ times per second (default 10)" },
	{ OPTION_CHART, "chart", "LIST",
	  "record numbers about the machine: freq, idle, runnable, memory,\n"
	  "irq; as in memory,irq@50" },
	{ 'g', NULL, "[user|kernel|both]",
	  "record the call chain of each sample" },
	{ OPTION_CALL_GRAPH, "call-graph", "HOW",
	  "use call chains, as -g does, and find the callers in user code by\n"
	  "stack (the unwind tables of the programs; default where the machine\n"
	  "can) or fp (frame pointers)" },
	{ OPTION_MAX_STACK, "max-stack", "N", "cut call chains to N addresses (default 127)" },
	{ OPTION_MAX_TASKS, "max-tasks", "N",
	  "make room for N tasks and four times as many mappings\n"
	  "(default 16384 or 16 a CPU)" },
	{ OPTION_OFF_CPU, "off-cpu", NULL,
	  "also record the call chain with which a task leaves its CPU" },
	NO_OBJECTS_OPTION,
	{ OPTION_OFF_CPU_MIN, "off-cpu-min", "TIME",
	  "with --off-cpu: keep the call chains of waits that take TIME or\n"
	  "longer, as in 1ms; task switches are all kept" },
	SOURCES_OPTIONS,
	RECORD_TRIGGER_OPTIONS,
	{ OPTION_NO_COMMANDS, "no-commands", NULL,
	  "leave out the command lines of processes" },
	{ OPTION_NO_BUNDLE, "no-bundle", NULL,
	  "don't save the symbols of the sampled code as FILE.symbols" },
	{ OPTION_BUNDLE, "bundle", NULL, "save these symbols (default)" },
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman record [OPTIONS] [--] [COMMAND [ARGUMENT]...]\n"
	"\n"
	"Record scheduling, idling and sampled code into a Barman v2 capture. With COMMAND:\n"
	"record COMMAND and its children while COMMAND runs. Without COMMAND or -p: record the\n"
	"whole system until Ctrl-C.\n"
	"\n",
	.options = options,
	.column = 25,
	.in_order = true,	/* options behind COMMAND belong to it */
};

static bool parse_positive(const char *text, unsigned long long *value)
{
	char *rest;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &rest, 10);
	return !errno && !*rest && *value;
}

/* Parses the value of -g, which is in the same word; NULL: all parts. */
static int parse_chain(struct record_options *o, const char *parts)
{
	o->any_chain = !parts;
	o->chain_flags &= ~RECORD_CHAIN_PARTS;
	if (!parts || !strcmp(parts, "both"))
		o->chain_flags |= RECORD_CHAIN_PARTS;
	else if (!strcmp(parts, "user"))
		o->chain_flags |= KBARMAN_CONFIGURE_CHAIN_USER;
	else if (!strcmp(parts, "kernel"))
		o->chain_flags |= KBARMAN_CONFIGURE_CHAIN_KERNEL;
	else
		return cli_fail("-g%s: give -g, -guser, -gkernel or -gboth", parts);
	return 0;
}

/* How callers in user code are found. */
static int parse_call_graph(struct record_options *o, const char *how)
{
	bool stack = !strcmp(how, "stack");

	if (!stack && strcmp(how, "fp") != 0)
		return cli_fail("--call-graph %s: give fp (frame pointers) or stack (unwind tables)",
				how);
	o->any_method = false;
	o->chain_flags &= ~KBARMAN_CONFIGURE_CHAIN_STACK;
	if (stack)
		o->chain_flags |= KBARMAN_CONFIGURE_CHAIN_STACK;
	return o->chain_flags & RECORD_CHAIN_PARTS ? 0 : parse_chain(o, NULL);
}

/* What --read-counters says: "switch", a number, or both. */
static int parse_counters(struct record_options *o, const char *when)
{
	static const char at_switches[] = "switch";
	size_t length = sizeof(at_switches) - 1;

	o->counters_switch = !strncmp(when, at_switches, length) &&
			     (!when[length] || when[length] == ',');
	o->counters_hz = 0;
	if (o->counters_switch && !when[length])
		return 0;
	if (o->counters_switch)
		when += length + 1;
	return parse_positive(when, &o->counters_hz) && o->counters_hz <= COUNTERS_HZ_MAX ? 0 :
		cli_fail("--read-counters %s: there are switch, a number from 1 to %llu (times a "
			 "second), and switch,NUMBER", optarg, COUNTERS_HZ_MAX);
}

static int parse_option(struct record_options *o, int option)
{
	int ret = sources_take(&o->sources, option, optarg);

	if (ret < 0)
		ret = record_trigger_take(&o->trigger, option, optarg);
	if (ret >= 0)
		return ret;
	switch (option) {
	case 'o':
		o->output = optarg;
		return 0;
	case 'e':
		return event_list_add(&o->events_text, optarg);
	case 'F':
		o->no_samples = !strcmp(optarg, "0");
		return o->no_samples || parse_positive(optarg, &o->frequency) ? 0 :
			cli_fail("-F %s: not a number of samples per second", optarg);
	case 'c':
		return parse_positive(optarg, &o->period) ? 0 :
			cli_fail("-c %s: not a number of events", optarg);
	case OPTION_READ_COUNTERS:
		return parse_counters(o, optarg);
	case OPTION_ROTATE:
		return cli_take_ms("--rotate", optarg, TURN_MS_MIN, TURN_MS_MAX, &o->turn_ms);
	case 'm':
		return kb_size_parse(optarg, &o->ring_bytes) && o->ring_bytes ? 0 :
			cli_fail("-m %s: not a size, as in 512K, 4M, 1G", optarg);
	case OPTION_MODE:
		o->mode = strcmp(optarg, "stream") ? KBARMAN_MODE_OVERWRITE : KBARMAN_MODE_STREAM;
		o->stream = o->mode == KBARMAN_MODE_STREAM;
		return o->mode == KBARMAN_MODE_STREAM || !strcmp(optarg, "overwrite") ? 0 :
			cli_fail("--mode %s: give stream or overwrite", optarg);
	case 'C':
		o->cpus_text = optarg;
		return 0;
	case 'a':
		o->all = true;
		return 0;
	case 'p':
		o->pids_text = optarg;
		return 0;
	case 'g':
		return parse_chain(o, optarg);
	case OPTION_CALL_GRAPH:
		return parse_call_graph(o, optarg);
	case OPTION_MAX_STACK:
		return parse_positive(optarg, &o->max_stack) && o->max_stack <= KBARMAN_MAX_STACK ? 0 :
			cli_fail("--max-stack %s: not a number from 1 to %d", optarg,
				 KBARMAN_MAX_STACK);
	case OPTION_MAX_TASKS:
		return parse_positive(optarg, &o->max_tasks) && o->max_tasks <= TASKS_MAX ? 0 :
			cli_fail("--max-tasks %s: not a number from 1 to %u", optarg, TASKS_MAX);
	case OPTION_OFF_CPU:
		o->chain_flags |= KBARMAN_CONFIGURE_CHAIN_SWITCH;
		return 0;
	case OPTION_NO_OBJECTS:
		o->no_objects = true;
		return 0;
	case OPTION_OFF_CPU_MIN:
		return cli_take_duration("--off-cpu-min", optarg, KB_NS_PER_S, 1, OFF_CPU_MIN_MAX,
					 &o->off_cpu_min);
	case OPTION_BOOT:
		o->boot = true;
		return 0;
	case OPTION_RESERVED:
		o->reserved = true;
		return 0;
	case OPTION_KEEP_SYMBOLS:
		o->keep_symbols = true;
		return 0;
	case OPTION_ANNOTATE_SOCKET:
		o->extra.socket = true;
		return 0;
	case OPTION_POLL:
		return record_extra_poll(&o->extra, optarg);
	case OPTION_CHART:
		return record_extra_chart(&o->extra, optarg);
	case OPTION_NO_COMMANDS:
		o->notes &= ~(uint32_t)KB_NOTE_COMMAND;
		return 0;
	case OPTION_BUNDLE:
	case OPTION_NO_BUNDLE:
		o->bundle = option == OPTION_BUNDLE;
		return 0;
	}
	return cli_usage(false, &usage);
}

static int parse_events(struct record_options *o)
{
	struct kb_error err;
	int nr = kb_events_parse(o->events, KB_EVENTS_MAX, o->events_text ?: DEFAULT_EVENT, NULL,
				 &err);

	if (nr < 0)
		return cli_fail_error(&err);
	o->nr_events = (unsigned int)nr;
	return 0;
}

/* Nobody reads the counters: there are none. */
static int leave_out_counters(struct record_options *o)
{
	if (o->events_text)
		return cli_fail("-F 0 takes no samples of code: give --read-counters too, or leave out -e");
	o->sources &= ~KBARMAN_SOURCE_PMU;
	return 0;
}

/* Neither samples nor chains: mappings and symbols would be of no use. */
static void leave_out_addresses(struct record_options *o)
{
	o->no_addresses = true;
	o->sources &= ~KBARMAN_SOURCE_MAPS;
	o->bundle = false;
}

/* The options that a recording that has begun already can still have. */
static bool is_choice(int option)
{
	switch (option) {
	case 'o':
	case OPTION_BOOT:
	case OPTION_BUNDLE:
	case OPTION_NO_BUNDLE:
	case OPTION_NO_COMMANDS:
	case OPTION_KEEP_SYMBOLS:
	case OPTION_ANNOTATE_SOCKET:
	case OPTION_POLL:
	case OPTION_CHART:
		return false;
	}
	return true;
}

static void note_choice(struct record_options *o, int option)
{
	const struct cli_option *known = options;

	while (known->value && known->value != option)
		known++;
	if (known->value && is_choice(option))
		o->choice = known;
}

/* A recording with triggers has no file of its own. */
static int check_triggers(struct record_options *o)
{
	bool on = record_trigger_is_on(&o->trigger);

	if (!o->output)
		o->output = on ? RECORD_TRIGGER_FOLDER : CLI_CAPTURE;
	if (record_trigger_check(&o->trigger))
		return CLI_IMPOSSIBLE;
	if (!on)
		return 0;
	if (o->stream)
		return cli_fail("--trigger keeps the newest records: leave out --mode stream");
	if (o->extra.socket || o->extra.polls)
		return cli_fail("--annotate-socket, --poll and --chart write into a whole recording: leave "
				"them out, or leave out --trigger");
	if (o->no_objects && kb_triggers_need_objects(o->trigger.triggers))
		return cli_fail("--trigger wait:... needs what tasks wait for: leave out --no-objects");
	o->mode = KBARMAN_MODE_OVERWRITE;
	o->sources |= kb_triggers_sources(o->trigger.triggers);
	return 0;
}

static int check_options(struct record_options *o)
{
	if (check_triggers(o))
		return CLI_IMPOSSIBLE;
	if (!o->ring_bytes && !o->reserved)
		o->ring_bytes = DEFAULT_RING_BYTES;
	if (o->boot && o->choice)
		return cli_fail("--boot takes over a recording as the module's parameters began it: leave "
				"out %s%s", o->choice->name ? "--" : "-", o->choice->name ?: "g");
	if (o->frequency && o->period)
		return cli_fail("give -F (a frequency) or -c (a period), not both");
	if (o->no_samples && (o->frequency || o->period))
		return cli_fail("-F 0 takes no samples of code: leave out the other -F or -c");
	if (o->off_cpu_min && !(o->chain_flags & KBARMAN_CONFIGURE_CHAIN_SWITCH))
		return cli_fail("--off-cpu-min needs the call chains of waits: give --off-cpu as well");
	if (o->chain_flags == KBARMAN_CONFIGURE_CHAIN_SWITCH)
		parse_chain(o, NULL);
	if (o->max_stack && !o->chain_flags)
		return cli_fail("--max-stack needs call chains: give -g as well");
	if (o->pids_text && o->command)
		return cli_fail("give -p or a command, not both");
	if (o->pids_text && o->all)
		return cli_fail("give -p or -a, not both");
	if (o->pids_text && processes_parse(&o->processes, o->pids_text))
		return CLI_IMPOSSIBLE;
	if (o->no_samples && !o->chain_flags)
		leave_out_addresses(o);
	if (o->no_samples && o->chain_flags && !(o->chain_flags & KBARMAN_CONFIGURE_CHAIN_SWITCH))
		return cli_fail("-F 0 takes no samples of code: leave out -g, or give --off-cpu too");
	o->counters_switch |= o->turn_ms > 0;
	if (o->no_samples && !o->counters_switch && !o->counters_hz)
		return leave_out_counters(o);
	return parse_events(o);
}

int record_options_parse(struct record_options *o, int argc, char **argv, bool *done)
{
	int option, ret;

	*done = true;
	*o = (struct record_options){
		.mode = KBARMAN_MODE_STREAM,
		.sources = SOURCES_USUAL,
		.bundle = true,
		.notes = KB_NOTE_CGROUP | KB_NOTE_COMMAND | KB_NOTE_OBJECT,
		.any_method = true,
		.processes = { .fd = -1 },
	};
	record_extra_init(&o->extra);
	record_trigger_init(&o->trigger);
	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		if (option == 'h')
			return cli_usage(true, &usage);
		note_choice(o, option);
		ret = parse_option(o, option);
		if (ret)
			return ret;
	}
	if (optind < argc)
		o->command = argv + optind;
	ret = check_options(o);
	*done = ret != 0;
	return ret;
}

void record_options_close(struct record_options *o)
{
	record_trigger_close(&o->trigger);
	processes_close(&o->processes);
	free(o->events_text);
}
