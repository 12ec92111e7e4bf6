// SPDX-License-Identifier: MIT
/*
 * kbarman record: options, one recording from configure to the last byte, summary.
 *
 * One poll() waits for the device, for a signalfd, which reports Ctrl-C and the end of the command,
 * and for the processes of -p. There are no signal handlers.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kbarman/cpulist.h>
#include <kbarman/device.h>
#include <kbarman/kernel_maps.h>
#include <kbarman/perf_events.h>
#include <kbarman/recorder.h>

#include "absent.h"
#include "cli.h"
#include "base/clock.h"
#include "base/size.h"
#include "command.h"
#include "decoder.h"
#include "event_list.h"
#include "per_core.h"
#include "processes.h"
#include "record_extra.h"
#include "record_output.h"
#include "record_trigger.h"
#include "sample_rate.h"
#include "snapshot.h"
#include "sources.h"

#define DEFAULT_EVENT		"cycles"
#define DEFAULT_HZ		1000
#define COUNTERS_HZ_MAX		(1000000000 / KBARMAN_COUNT_NS_MIN)
#define SERIES			64	/* custom series that programs may make */
#define DEFAULT_RING_BYTES	(4U << 20)
#define STACKS_RING_BYTES	(256U << 10)	/* in less the longest stack has no room */
#define TASKS_MAX		(1U << 18)	/* readers take no more mappings than these have */
#define MAPS_A_TASK		4
#define STRINGS_A_TASK		64		/* bytes */
#define STRINGS_MIN		(4U << 20)
#define OFF_CPU_MIN_MAX	3600		/* seconds */
#define RECORDER_NICE		(-10)
#define SYNC_MS			1000
#define PATIENCE_MS		1000	/* before the message that a command does not end */

enum {
	OPTION_COUNTERS = 256, OPTION_MODE, OPTION_CALL_GRAPH, OPTION_MAX_STACK, OPTION_MAX_TASKS,
	OPTION_OFF_CPU, OPTION_OFF_CPU_MIN, OPTION_BUNDLE, OPTION_NO_BUNDLE, OPTION_ANNOTATE_SOCKET,
	OPTION_POLL, OPTION_CHART, OPTION_ROTATE, OPTION_BOOT,
};

static const struct cli_option options[] = {
	{ 'o', "output", "FILE", "write to FILE (default kbarman.cap; '-' is standard output)" },
	{ 'e', "event", "EVENTS",
	  "count these events, comma-separated; the first one samples\n"
	  "(default cycles, or cpu-clock where there is no PMU)" },
	{ 'F', "freq", "HZ",
	  "take HZ samples per second and CPU (default 1000; 0: no samples\n"
	  "of code)" },
	{ 'c', "count", "PERIOD", "take a sample every PERIOD events instead" },
	{ OPTION_COUNTERS, "counters", "WHEN",
	  "read all counters at each task switch (switch), HZ times per\n"
	  "second and CPU (a number), or both (switch,HZ)" },
	{ OPTION_ROTATE, "rotate", "MS",
	  "let groups of events behind the first one take turns of about MS\n"
	  "milliseconds, and say how far off the counts may be; implies\n"
	  "--counters switch" },
	{ 'm', "buffer", "SIZE", "size of each CPU's buffer, with suffix K, M or G (default 4M)" },
	{ OPTION_MODE, "mode", "MODE",
	  "stream: write while recording (default)\n"
	  "overwrite: keep the newest records, write them at the end" },
	{ 'C', "cpu", "CPUS", "record only these CPUs, as in 0-3,8" },
	{ 'a', "all-cpus", NULL, "record the whole system even if COMMAND is given" },
	{ 'p', "pid", "PIDS",
	  "record these processes, comma-separated, and their children,\n"
	  "until the processes end" },
	{ OPTION_BOOT, "boot", NULL,
	  "take over the recording that began when the module was loaded with\n"
	  "its parameter boot, and go on with it" },
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
	  "-g, and how the callers in user code are found: stack (by the unwind\n"
	  "tables of the programs; default where the machine can) or fp (by\n"
	  "frame pointers)" },
	{ OPTION_MAX_STACK, "max-stack", "N", "cut call chains to N addresses (default 127)" },
	{ OPTION_MAX_TASKS, "max-tasks", "N",
	  "make room for N tasks and four times as many mappings\n"
	  "(default 16384)" },
	{ OPTION_OFF_CPU, "off-cpu", NULL,
	  "also record the call chain with which a task leaves its CPU" },
	{ OPTION_OFF_CPU_MIN, "off-cpu-min", "SECONDS",
	  "with --off-cpu: keep the call chains of waits that take SECONDS or\n"
	  "longer, as in 0.001; task switches are all kept" },
	SOURCES_OPTIONS,
	RECORD_TRIGGER_OPTIONS,
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

#define CHAIN_PARTS	(KBARMAN_CONFIGURE_CHAIN_USER | KBARMAN_CONFIGURE_CHAIN_KERNEL)

struct options {
	const char *output;		/* NULL: the default */
	char *events_text;		/* NULL: the default */
	const char *cpus_text;
	const char *pids_text;
	unsigned long long frequency, period, ring_bytes;
	bool no_samples;		/* of code: -F 0 */
	bool no_addresses;		/* in any record: nothing is to be named */
	bool counters_switch;		/* when counters are read: at task switches; */
	unsigned long long counters_hz;	/* so many times a second, 0: not that */
	unsigned long long turn_ms;	/* 0: all counters count all the time */
	enum kbarman_mode mode;
	bool stream;			/* --mode stream was given */
	uint32_t chain_flags;		/* KBARMAN_CONFIGURE_CHAIN_* */
	uint32_t sources;		/* KBARMAN_SOURCE_* */
	struct record_extra extra;
	struct record_trigger trigger;
	bool any_chain;			/* take the parts that this machine can give */
	bool any_method;		/* of finding callers: take stacks where this machine can */
	unsigned long long max_stack;	/* 0: the default */
	uint64_t off_cpu_min;		/* ns; 0: chains of all waits */
	unsigned long long max_tasks;	/* 0: the default */
	bool all, bundle;
	bool boot;			/* take over a session that runs already */
	const struct cli_option *choice;	/* one that says what to record; NULL: none */
	char **command;			/* NULL: none */

	struct kbarman_event events[KB_EVENTS_MAX];
	unsigned int nr_events;
	struct processes processes;
};

/* ---- options ---- */

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
static int parse_chain(struct options *o, const char *parts)
{
	o->any_chain = !parts;
	o->chain_flags &= ~CHAIN_PARTS;
	if (!parts || !strcmp(parts, "both"))
		o->chain_flags |= CHAIN_PARTS;
	else if (!strcmp(parts, "user"))
		o->chain_flags |= KBARMAN_CONFIGURE_CHAIN_USER;
	else if (!strcmp(parts, "kernel"))
		o->chain_flags |= KBARMAN_CONFIGURE_CHAIN_KERNEL;
	else
		return cli_fail("-g%s: give -g, -guser, -gkernel or -gboth", parts);
	return 0;
}

/* How callers in user code are found. */
static int parse_call_graph(struct options *o, const char *how)
{
	bool stack = !strcmp(how, "stack");

	if (!stack && strcmp(how, "fp") != 0)
		return cli_fail("--call-graph %s: give fp (frame pointers) or stack (unwind tables)",
				how);
	o->any_method = false;
	o->chain_flags &= ~KBARMAN_CONFIGURE_CHAIN_STACK;
	if (stack)
		o->chain_flags |= KBARMAN_CONFIGURE_CHAIN_STACK;
	return o->chain_flags & CHAIN_PARTS ? 0 : parse_chain(o, NULL);
}

/* What --counters says: "switch", a number, or both. */
static int parse_counters(struct options *o, const char *when)
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
		cli_fail("--counters %s: there are switch, a number from 1 to %llu (times a second), "
			 "and switch,NUMBER", optarg, COUNTERS_HZ_MAX);
}

/* How long a wait is at least whose chain is kept: 1 ns to an hour, in seconds. */
static int parse_off_cpu_min(struct options *o, const char *text)
{
	char *rest;
	double seconds = strtod(text, &rest);

	if (rest == text || *rest || !(seconds >= 1e-9 && seconds <= OFF_CPU_MIN_MAX))
		return cli_fail("--off-cpu-min %s: not a number of seconds above 0, up to %d", text,
				OFF_CPU_MIN_MAX);
	o->off_cpu_min = (uint64_t)(seconds * 1e9 + 0.5);
	return 0;
}

static int parse_option(struct options *o, int option)
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
	case OPTION_COUNTERS:
		return parse_counters(o, optarg);
	case OPTION_ROTATE:
		return parse_positive(optarg, &o->turn_ms) && o->turn_ms >= KBARMAN_TURN_MS_MIN &&
			       o->turn_ms <= KBARMAN_TURN_MS_MAX ? 0 :
			cli_fail("--rotate %s: not a number of milliseconds from %d to %d", optarg,
				 KBARMAN_TURN_MS_MIN, KBARMAN_TURN_MS_MAX);
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
	case OPTION_OFF_CPU_MIN:
		return parse_off_cpu_min(o, optarg);
	case OPTION_BOOT:
		o->boot = true;
		return 0;
	case OPTION_ANNOTATE_SOCKET:
		o->extra.socket = true;
		return 0;
	case OPTION_POLL:
		return record_extra_poll(&o->extra, optarg);
	case OPTION_CHART:
		return record_extra_chart(&o->extra, optarg);
	case OPTION_BUNDLE:
	case OPTION_NO_BUNDLE:
		o->bundle = option == OPTION_BUNDLE;
		return 0;
	}
	return cli_usage(false, &usage);
}

static int parse_events(struct options *o)
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
static int leave_out_counters(struct options *o)
{
	if (o->events_text)
		return cli_fail("-F 0 takes no samples of code: give --counters too, or leave out -e");
	if (o->chain_flags & CHAIN_PARTS && !(o->chain_flags & KBARMAN_CONFIGURE_CHAIN_SWITCH))
		return cli_fail("-F 0 takes no samples of code: leave out -g, or give --off-cpu too");
	o->sources &= ~KBARMAN_SOURCE_PMU;
	return 0;
}

/* Neither samples nor chains: mappings and symbols would be of no use. */
static void leave_out_addresses(struct options *o)
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
	case OPTION_ANNOTATE_SOCKET:
	case OPTION_POLL:
	case OPTION_CHART:
		return false;
	}
	return true;
}

static void note_choice(struct options *o, int option)
{
	const struct cli_option *known = options;

	while (known->value && known->value != option)
		known++;
	if (known->value && is_choice(option))
		o->choice = known;
}

/* A recording with triggers has no file of its own. */
static int check_triggers(struct options *o)
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
	o->mode = KBARMAN_MODE_OVERWRITE;
	o->sources |= kb_triggers_sources(o->trigger.triggers);
	o->bundle = false;
	return 0;
}

static int check_options(struct options *o)
{
	if (check_triggers(o))
		return CLI_IMPOSSIBLE;
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
	o->counters_switch |= o->turn_ms > 0;
	if (o->no_samples && !o->counters_switch && !o->counters_hz)
		return leave_out_counters(o);
	return parse_events(o);
}

/* Returns 0. With @done set, the result is the exit status. */
static int parse_options(struct options *o, int argc, char **argv, bool *done)
{
	int option, ret;

	*done = true;
	*o = (struct options){
		.ring_bytes = DEFAULT_RING_BYTES,
		.mode = KBARMAN_MODE_STREAM,
		.sources = SOURCES_USUAL,
		.bundle = true,
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

/* ---- a recording ---- */

struct recording {
	struct options options;
	struct kb_device *device;
	struct kb_recorder *recorder;
	struct record_output output;
	struct command command;
	struct kb_kernel_maps kernel_maps;
	sigset_t old_mask;
	int signals;			/* signalfd */
	bool per_core;			/* CPUs may count different events */
	bool started;
	bool interrupted;
	uint64_t cpus[KB_CPU_WORDS];
};

static int prepare_signals(struct recording *rec)
{
	struct sigaction hangup;
	sigset_t mask;

	/* If SIGCHLD were ignored, the end of the command would not be reported. */
	signal(SIGCHLD, SIG_DFL);
	/* write() reports these errors. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	/* nohup ignores SIGHUP. The mask leaves it out then: a blocked signal is not ignored. */
	if (!sigaction(SIGHUP, NULL, &hangup) && hangup.sa_handler != SIG_IGN)
		sigaddset(&mask, SIGHUP);
	if (rec->options.mode == KBARMAN_MODE_OVERWRITE)
		sigaddset(&mask, SIGUSR1);
	record_trigger_mask(&rec->options.trigger, &mask);
	sigprocmask(SIG_BLOCK, &mask, &rec->old_mask);
	/* flight has blocked these already; the command gets them. */
	sigdelset(&rec->old_mask, SIGTERM);
	sigdelset(&rec->old_mask, SIGUSR1);
	rec->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	return rec->signals < 0 ? cli_fail("signalfd: %s", strerror(errno)) : 0;
}

/* Says why chains have no part of user or kernel code, and what would give it. */
static void say_missing_part(const struct options *o, const struct kbarman_query *query,
			     uint32_t possible)
{
	if (possible & KBARMAN_CONFIGURE_CHAIN_USER)
		cli_warn("call chains will have no kernel part on this architecture");
	else if (!(query->features & KBARMAN_FEATURE_CHAIN_STACK))
		cli_warn("call chains will have no user part on this architecture");
	else
		cli_warn("call chains will have no user part: this architecture finds it only in "
			 "stacks; give %s", o->any_method ? "-m 256K" : "--call-graph stack");
}

/* Reduces the requested parts of call chains to those that the machine can give. */
static int choose_chains(struct options *o, const struct kbarman_query *query)
{
	uint32_t possible = 0;

	if (o->any_method && o->chain_flags & KBARMAN_CONFIGURE_CHAIN_USER &&
	    query->features & KBARMAN_FEATURE_CHAIN_STACK && o->ring_bytes >= STACKS_RING_BYTES)
		o->chain_flags |= KBARMAN_CONFIGURE_CHAIN_STACK;
	if (o->chain_flags & KBARMAN_CONFIGURE_CHAIN_STACK &&
	    !(query->features & KBARMAN_FEATURE_CHAIN_STACK))
		return cli_fail("--call-graph stack: this machine or module can't take stacks: give "
				"--call-graph fp");
	if (query->features & KBARMAN_FEATURE_CHAIN_USER ||
	    o->chain_flags & KBARMAN_CONFIGURE_CHAIN_STACK)
		possible |= KBARMAN_CONFIGURE_CHAIN_USER;
	if (query->features & KBARMAN_FEATURE_CHAIN_KERNEL)
		possible |= KBARMAN_CONFIGURE_CHAIN_KERNEL;
	if (!(o->chain_flags & CHAIN_PARTS & ~possible))
		return 0;
	if (!possible)
		return cli_fail("-g: this architecture has no call chains: leave out -g");
	if (!o->any_chain && !(possible & KBARMAN_CONFIGURE_CHAIN_USER) &&
	    query->features & KBARMAN_FEATURE_CHAIN_STACK)
		return cli_fail("-g: this architecture finds callers in user code only in stacks: give "
				"%s, or -gkernel", o->any_method ? "-m 256K" : "--call-graph stack");
	if (!o->any_chain)
		return cli_fail("-g: this architecture has call chains of %s code only: give -g%s",
				possible & KBARMAN_CONFIGURE_CHAIN_USER ? "user" : "kernel",
				possible & KBARMAN_CONFIGURE_CHAIN_USER ? "user" : "kernel");
	o->chain_flags &= ~CHAIN_PARTS | possible;
	say_missing_part(o, query, possible);
	return 0;
}

/*
 * Lets all groups behind the first one take turns, and each other event that needs a counter of the
 * hardware. Returns whether there are two that can.
 */
static bool choose_turns(struct options *o)
{
	unsigned int turns = 0;

	for (unsigned int i = 1; i < o->nr_events; i++) {
		struct kbarman_event *event = &o->events[i];
		bool leads = i + 1 < o->nr_events && event[1].flags & KBARMAN_EVENT_GROUP;

		if (event->flags & KBARMAN_EVENT_GROUP) {
			event->flags |= event[-1].flags & KBARMAN_EVENT_TURN;
		} else if (leads || event_is_hardware(event)) {
			event->flags |= KBARMAN_EVENT_TURN;
			turns++;
		}
	}
	if (turns > 1)
		return true;
	cli_warn("--rotate: there are no two groups behind the first one that could take turns, so "
		 "all is counted all the time");
	for (unsigned int i = 0; i < o->nr_events; i++)
		o->events[i].flags &= ~KBARMAN_EVENT_TURN;
	return false;
}

static int configure(struct recording *rec)
{
	struct options *o = &rec->options;
	struct kbarman_configure configure = {
		.mode = o->mode,
		.sources = o->sources,
		.ring_bytes = o->ring_bytes,
		.max_tasks = (uint32_t)o->max_tasks,
		.max_maps = (uint32_t)o->max_tasks * MAPS_A_TASK,
		.max_series = SERIES,
		.nr_events = o->nr_events,
		.events_ptr = (uintptr_t)o->events,
		.sample = o->no_samples ? 0 : o->period ?: o->frequency ?: DEFAULT_HZ,
		.count_ns = o->counters_hz ? 1000000000 / o->counters_hz : 0,
	};
	struct kbarman_query query;
	struct kb_error err;
	uint32_t child;
	int words;

	if (kb_device_query(rec->device, &query, &err))
		return cli_fail_error(&err);
	if (o->ring_bytes < query.min_ring_bytes || o->ring_bytes > query.max_ring_bytes)
		return cli_fail("-m: give a size from %" PRIu64 "K to %" PRIu64 "M",
				(uint64_t)query.min_ring_bytes >> 10,
				(uint64_t)query.max_ring_bytes >> 20);
	if (o->max_tasks > STRINGS_MIN / STRINGS_A_TASK)
		configure.max_strings = (uint32_t)o->max_tasks * STRINGS_A_TASK;
	if (o->cpus_text) {
		words = kb_cpulist_parse(rec->cpus, o->cpus_text, query.nr_cpus, &err);
		if (words < 0)
			return cli_fail("-C %s", kb_error_text(&err));
		configure.cpus_ptr = (uintptr_t)rec->cpus;
		configure.nr_cpu_words = (uint32_t)words;
	}
	if ((o->counters_switch || o->counters_hz) && !(query.features & KBARMAN_FEATURE_COUNTS))
		return cli_fail("--counters: the module that is loaded is too old to read counters at "
				"task switches; build and load the one of this version");
	if (o->counters_switch)
		configure.flags |= KBARMAN_CONFIGURE_COUNT_SWITCH;
	if (o->turn_ms && !(query.features & KBARMAN_FEATURE_TURNS))
		return cli_fail("--rotate: the module that is loaded is too old for turns; build and "
				"load the one of this version");
	if (o->turn_ms && choose_turns(o))
		configure.turn_ms = (uint32_t)o->turn_ms;
	if (choose_chains(o, &query) || sources_check(o->sources, &query))
		return CLI_IMPOSSIBLE;
	configure.flags |= o->chain_flags;
	configure.max_stack = (uint32_t)o->max_stack;
	if (!o->period)
		configure.flags |= KBARMAN_CONFIGURE_FREQ;
	if (!o->events_text)
		configure.flags |= KBARMAN_CONFIGURE_FALLBACK;
	limit_sample_rate(&configure);
	if (o->processes.nr) {
		configure.pids_ptr = (uintptr_t)o->processes.pids;
		configure.nr_pids = o->processes.nr;
	} else if (rec->command.pid && !o->all) {
		child = (uint32_t)rec->command.pid;
		configure.pids_ptr = (uintptr_t)&child;
		configure.nr_pids = 1;
	}
	if (configure.nr_pids)
		configure.flags |= KBARMAN_CONFIGURE_INHERIT;
	if (absent_leave_out(&configure, query.absent))
		return CLI_IMPOSSIBLE;
	if (configure.nr_events && per_core_prepare(&configure, o->events, o->nr_events,
						    KB_EVENTS_MAX, NULL))
		return CLI_IMPOSSIBLE;
	rec->per_core = configure.flags & KBARMAN_CONFIGURE_PER_CORE;
	return kb_device_configure(rec->device, &configure, &err) ? cli_fail_error(&err) : 0;
}

/* The recording that began with the module is this one from now on. */
static int adopt(struct recording *rec)
{
	struct kbarman_query query;
	struct kb_error err;

	if (kb_device_adopt(rec->device, 0, &err) || kb_device_query(rec->device, &query, &err))
		return cli_fail_error(&err);
	rec->options.mode = query.mode;
	return 0;
}

/* Writes the settings of the recording as facts of the capture. */
static int write_request(struct recording *rec, struct kb_error *err)
{
	const struct options *o = &rec->options;
	const char *name = record_output_name(&rec->output);
	char text[4096];
	size_t used = 0;
	int ret = name ? kb_recorder_fact(rec->recorder, "name", name, err) : 0;

	if (ret)
		return ret;
	if (o->processes.nr)
		snprintf(text, sizeof(text), "pid:%s", o->pids_text);
	ret = kb_recorder_fact(rec->recorder, "filter",
			       o->processes.nr ? text :
			       o->command && !o->all && !o->boot ? "command" : "none", err);
	if (ret || !o->command)
		return ret;
	for (char **word = o->command; *word && used < sizeof(text); word++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "",
					 *word);
	return kb_recorder_fact(rec->recorder, "command", text, err);
}

/* Reads kernel symbols and text. A capture without them is valid, so errors are warnings. */
static void read_kernel_maps(struct recording *rec)
{
	struct record_trigger *trigger = &rec->options.trigger;
	bool on = record_trigger_is_on(trigger);
	struct kb_error err;
	FILE *side = on ? record_trigger_symbols(trigger) : record_output_side(&rec->output);

	if (kb_kernel_maps_read(&rec->kernel_maps, NULL, side, &err))
		cli_warn("kernel symbols will be missing: %s", kb_error_text(&err));
	else if (rec->kernel_maps.hidden)
		cli_warn("kernel symbols will be missing: the kernel hides its addresses; record as "
			 "root, or 'sysctl kernel.kptr_restrict=0'");
	if (on)
		record_trigger_symbols_done(trigger, side, rec->kernel_maps.nr > 0);
	else
		record_output_side_done(&rec->output, rec->kernel_maps.nr > 0);
}

/* Adds symbols of kernel modules that were loaded meanwhile. kbarman.ko adds their rows. */
static void add_kernel_symbols(struct recording *rec)
{
	FILE *side = record_output_side_again(&rec->output);

	if (!side)
		return;
	kb_kernel_maps_append_new(&rec->kernel_maps, NULL, side, NULL);
	record_output_side_done(&rec->output, true);
}

static void add_kernel_maps(struct recording *rec)
{
	struct kb_error err;
	uint32_t added;

	if (rec->kernel_maps.nr &&
	    kb_kernel_maps_add(&rec->kernel_maps, rec->device, &added, &err))
		cli_warn("kernel code will have no image: %s", kb_error_text(&err));
}

/*
 * At the first mremap(2) of a session the module finds out whether it understands those of this
 * kernel. So there is one before it is asked.
 */
static void move_a_mapping(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *from = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *to = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (from != MAP_FAILED && to != MAP_FAILED &&
	    mremap(from, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to)
		from = MAP_FAILED;
	if (from != MAP_FAILED)
		munmap(from, page);
	if (to != MAP_FAILED)
		munmap(to, page);
}

static void say_what_is_missing(struct recording *rec)
{
	struct kbarman_query query;

	move_a_mapping();
	if (kb_device_query(rec->device, &query, NULL))
		return;
	if (query.state & KBARMAN_STATE_FALLBACK)
		cli_warn("there is no PMU: sampling by cpu-clock instead of cycles");
	if (!(query.features & (KBARMAN_FEATURE_MAPS | KBARMAN_FEATURE_MAPS_MADE)))
		cli_warn("this kernel has no kprobes, or others than the module knows: code that is loaded from now on has no image");
	else if (!(query.features & KBARMAN_FEATURE_MAPS))
		cli_warn("the module can't follow mremap(2): code that a program moves has no image");
}

/* Makes the file, and what writes it; with triggers there is a folder. */
static int open_output(struct recording *rec)
{
	struct options *o = &rec->options;
	struct kb_error err;

	if (record_trigger_is_on(&o->trigger))
		return record_trigger_open(&o->trigger, o->output);
	if (record_output_open(&rec->output, o->output))
		return CLI_IMPOSSIBLE;
	if (kb_recorder_create(&rec->recorder, rec->device, rec->output.fd, &err))
		return cli_fail_error(&err);
	if (o->off_cpu_min && kb_recorder_off_cpu_min(rec->recorder, o->off_cpu_min, &err))
		return cli_fail_error(&err);
	return 0;
}

/* The session has been started: what writes begins. */
static int start_output(struct recording *rec)
{
	struct options *o = &rec->options;
	struct kb_error err;

	if (record_trigger_is_on(&o->trigger))
		return record_trigger_start(&o->trigger, rec->device, o->off_cpu_min);
	if (record_extra_start(&o->extra, rec->device, rec->recorder, rec->output.final))
		return CLI_IMPOSSIBLE;
	if (write_request(rec, &err) || kb_recorder_sync(rec->recorder, &err))
		return cli_fail("%s: %s%s", rec->output.name, kb_error_text(&err),
				rec->output.spooled ?
				"; set TMPDIR to a folder with enough space" : "");
	return 0;
}

/* Sets everything up and starts the recording and the command. */
static int begin(struct recording *rec)
{
	const struct options *o = &rec->options;
	bool to_stdout = !strcmp(o->output, "-");
	struct kb_error err;
	int ret;

	if (prepare_signals(rec) ||
	    (o->pids_text && processes_watch(&rec->options.processes)))
		return CLI_IMPOSSIBLE;
	if (kb_device_open(&rec->device, &err))
		return cli_fail_error(&err);
	if (record_extra_open(&rec->options.extra))
		return CLI_IMPOSSIBLE;
	if (o->command) {
		ret = command_prepare(&rec->command, o->command, &rec->old_mask, to_stdout);
		if (ret)
			return cli_fail("can't fork: %s", strerror(-ret));
	}
	/* On a busy machine the recorder must run before the buffers are full. Ignores errors. */
	setpriority(PRIO_PROCESS, 0, RECORDER_NICE);
	if ((o->boot ? adopt(rec) : configure(rec)) || open_output(rec))
		return CLI_IMPOSSIBLE;
	if (!rec->options.no_addresses)
		read_kernel_maps(rec);
	if (!o->boot && kb_device_start(rec->device, &err))
		return cli_fail_error(&err);
	add_kernel_maps(rec);
	say_what_is_missing(rec);
	if (rec->per_core && per_core_say(rec->device))
		return CLI_IMPOSSIBLE;
	if (start_output(rec))
		return CLI_IMPOSSIBLE;
	rec->started = true;
	if (rec->command.pid)
		command_release(&rec->command);
	return 0;
}

static void pass_signal_on(struct recording *rec, const struct signalfd_siginfo *info)
{
	/* The terminal has already sent its signals to the whole foreground group. */
	if (rec->command.pid && !rec->command.ended && info->ssi_code != SI_KERNEL)
		kill(rec->command.pid, (int)info->ssi_signo);
}

/* SIGUSR1: writes a snapshot to the output's name with the time before its extension. */
static void take_snapshot(struct recording *rec)
{
	bool on = record_trigger_is_on(&rec->options.trigger);
	const char *name = on ? "snapshot.cap" : rec->options.output, *slash = strrchr(name, '/');
	const char *dot = strrchr(slash ? slash : name, '.');
	int stem = (int)(dot ? dot - name : (ptrdiff_t)strlen(name));
	time_t now = time(NULL);
	char path[4096], text[32];
	struct tm tm;

	if (rec->output.spooled) {
		cli_warn("no snapshot was written: the output is not a file; use 'kbarman "
			 "snapshot'");
		return;
	}
	localtime_r(&now, &tm);
	strftime(text, sizeof(text), "%Y%m%dT%H%M%S", &tm);
	for (unsigned int i = 1; i < 100; i++) {
		char again[8] = "";

		if (i > 1)
			snprintf(again, sizeof(again), "-%u", i);
		snprintf(path, sizeof(path), "%s%s%.*s-%s%s%s", on ? rec->options.output : "",
			 on ? "/" : "", stem, name, text, again, name + stem);
		if (access(path, F_OK))
			break;
	}
	snapshot_save(rec->device, path, rec->options.off_cpu_min);
}

/* Handles the signals that have come. Does one of them end the recording? */
static bool signals_say_stop(struct recording *rec)
{
	struct signalfd_siginfo info;

	while (read(rec->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			if (command_has_ended(&rec->command))
				return true;
			continue;
		}
		if (record_trigger_signal(&rec->options.trigger, (int)info.ssi_signo))
			continue;
		if (info.ssi_signo == SIGUSR1) {
			take_snapshot(rec);
			continue;
		}
		rec->interrupted = true;
		pass_signal_on(rec, &info);
		return true;
	}
	return false;
}

/* Records until there is a reason to end. */
static int follow(struct recording *rec, struct kb_error *err)
{
	bool stream = rec->options.mode == KBARMAN_MODE_STREAM;
	int64_t next_sync = kb_clock_ms() + SYNC_MS;
	struct pollfd fds[4] = {
		{ .fd = rec->signals, .events = POLLIN },
		{ .fd = rec->options.processes.fd, .events = POLLIN },
		/* In overwrite mode rings are full most of the time, so poll() would not wait. */
		{ .fd = stream ? kb_device_fd(rec->device) : record_trigger_fd(&rec->options.trigger),
		  .events = POLLIN },
		{ .fd = rec->options.extra.epoll, .events = POLLIN },
	};
	int ret = 0;

	while (!ret) {
		int64_t left = next_sync - kb_clock_ms();

		if (poll(fds, 4, !stream ? -1 : left < 0 ? 0 : (int)left) < 0 && errno != EINTR)
			return kb_error_set(err, -errno, KB_NO_OFFSET, "poll: %s", strerror(errno));
		if (fds[0].revents && signals_say_stop(rec))
			return 0;
		if (fds[1].revents && processes_have_ended(&rec->options.processes))
			return 0;
		if (fds[3].revents) {
			ret = record_extra_serve(&rec->options.extra, err);
			if (ret)
				return ret;
		}
		if (fds[2].revents & (POLLHUP | POLLERR | POLLNVAL))
			return kb_error_set(err, -EPIPE, KB_NO_OFFSET,
					    "the recording session has ended by itself");
		if (!stream && fds[2].revents)
			ret = record_trigger_serve(&rec->options.trigger, err);
		if (!stream)
			continue;
		ret = kb_recorder_pump(rec->recorder, err);
		if (!ret && kb_clock_ms() >= next_sync) {
			ret = kb_recorder_sync(rec->recorder, err);
			next_sync = kb_clock_ms() + SYNC_MS;
		}
	}
	return ret;
}

/* Does the signal ask for the end? */
static bool is_end(const struct signalfd_siginfo *info)
{
	return info->ssi_signo == SIGINT || info->ssi_signo == SIGTERM || info->ssi_signo == SIGHUP;
}

/*
 * Waits for the command, which may run longer than the recording. A further signal ends or kills
 * the command.
 */
static void wait_for_command(struct recording *rec)
{
	struct pollfd fd = { .fd = rec->signals, .events = POLLIN };
	int patience = PATIENCE_MS;

	while (rec->command.pid && !command_has_ended(&rec->command)) {
		struct signalfd_siginfo info;

		if (poll(&fd, 1, patience) == 0) {
			cli_warn("waiting for '%s' to end; Ctrl-C %s it", rec->options.command[0],
				 rec->interrupted ? "kills" : "ends");
			patience = -1;
		}
		while (read(rec->signals, &info, sizeof(info)) == sizeof(info)) {
			if (!is_end(&info))
				continue;
			kill(rec->command.pid, rec->interrupted ? SIGKILL : SIGTERM);
			rec->interrupted = true;
		}
	}
}

/* ---- the whole recording ---- */

/* After a failure: keeps the partial file and says how to recover it. */
static int fail_partly(struct recording *rec, const struct kb_error *err)
{
	cli_fail_error(err);
	if (record_trigger_is_on(&rec->options.trigger))
		return CLI_DAMAGED;
	if (!record_output_keep(&rec->output)) {
		cli_warn("the recording is lost: a capture for %s is kept in TMPDIR until it is "
			 "complete; set TMPDIR to a folder with enough space", rec->output.name);
		return CLI_IMPOSSIBLE;
	}
	cli_warn("the records up to then are in %s: 'kbarman recover %s' makes a capture of them",
		 rec->output.partial, rec->output.partial);
	return CLI_DAMAGED;
}

static int end(struct recording *rec)
{
	struct kb_recorder_totals totals;
	struct kb_error err;
	sigset_t ours;
	uint64_t bytes;
	int ret, fd;

	if (record_extra_finish(&rec->options.extra, &err))
		return fail_partly(rec, &err);
	if (kb_device_stop(rec->device, &err))
		return fail_partly(rec, &err);
	if (record_trigger_is_on(&rec->options.trigger)) {
		ret = record_trigger_finish(&rec->options.trigger);
		cli_decoder_report();
		return ret;
	}
	add_kernel_symbols(rec);
	/* A file with a name must be complete at any moment, so only a copy of it is compacted. */
	if (kb_recorder_finish(rec->recorder, rec->output.spooled, &err))
		return fail_partly(rec, &err);
	fd = record_output_compact(&rec->output);
	record_output_compact_done(&rec->output, fd,
				   fd >= 0 && !kb_recorder_compact(rec->recorder, fd, NULL));
	bytes = record_output_size(&rec->output);
	/* Ctrl-C must work while a reader of the pipe does not read. */
	if (rec->output.spooled)
		sigprocmask(SIG_SETMASK, &rec->old_mask, &ours);
	ret = record_output_commit(&rec->output);
	if (rec->output.spooled)
		sigprocmask(SIG_SETMASK, &ours, NULL);
	ret = ret ?: record_extra_commit(&rec->options.extra);
	if (ret)
		return ret;
	if (rec->options.bundle) {
		cli_progress("saving symbols", false);
		record_output_symbols(&rec->output);
		cli_progress_end();
	}
	cli_decoder_report();
	record_summary(rec->device, rec->recorder, rec->output.name, bytes);
	kb_recorder_totals(rec->recorder, &totals);
	return totals.damaged ? CLI_DAMAGED : CLI_OK;
}

static int record(struct recording *rec)
{
	struct kb_error err;
	int ret, error, status;

	ret = begin(rec);
	if (ret)
		return ret;
	if (follow(rec, &err)) {
		kb_device_stop(rec->device, NULL);
		ret = fail_partly(rec, &err);
	} else if (rec->command.ended && (error = command_exec_error(&rec->command))) {
		cli_warn("can't run '%s': %s", rec->options.command[0], strerror(error));
		return error == ENOENT ? 127 : 126;
	} else {
		ret = end(rec);
	}
	wait_for_command(rec);
	if (!rec->command.pid)
		return ret;
	status = command_exit_status(&rec->command);
	return ret ?: status;
}

int cmd_record(int argc, char **argv)
{
	struct recording *rec = calloc(1, sizeof(*rec));
	bool done;
	int ret;

	if (!rec)
		return cli_fail("out of memory");
	rec->signals = -1;
	record_output_init(&rec->output);
	ret = parse_options(&rec->options, argc, argv, &done);
	if (!done && (rec->options.bundle || rec->options.chain_flags & CHAIN_PARTS))
		cli_decoder_start();
	if (!done)
		ret = record(rec);

	record_trigger_close(&rec->options.trigger);
	record_extra_close(&rec->options.extra, rec->output.kept);
	kb_recorder_destroy(rec->recorder);
	kb_device_close(rec->device);
	command_close(&rec->command);
	record_output_close(&rec->output);
	kb_kernel_maps_free(&rec->kernel_maps);
	if (rec->signals >= 0)
		close(rec->signals);
	processes_close(&rec->options.processes);
	free(rec->options.events_text);
	free(rec);
	return ret;
}
