// SPDX-License-Identifier: MIT
/*
 * kbarman record: one recording from configure to the last byte, summary.
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

#include "base/clock.h"
#include "base/pid_namespace.h"
#include "cli/base/cli.h"
#include "cli/base/decoder.h"
#include "cli/record/bundler.h"
#include "cli/record/options.h"
#include "cli/record/output.h"
#include "cli/record/snapshot.h"
#include "cli/session/absent.h"
#include "cli/session/command.h"
#include "cli/session/event_list.h"
#include "cli/session/per_core.h"
#include "cli/session/sample_rate.h"
#include "cli/session/sources.h"
#include "record/perf/counter.h"
#include "record/perf/event_plan.h"
#include "record/perf/turn_draw.h"

#define DEFAULT_HZ		1000
#define SERIES			64	/* custom series that programs may make */
#define STACKS_RING_BYTES	(256U << 10)	/* in less the longest stack has no room */
#define MAPS_A_TASK		4
#define STRINGS_A_TASK		64		/* bytes */
#define STRINGS_MIN		(4U << 20)
#define RECORDER_NICE		(-10)
#define SYNC_MS			1000
#define PATIENCE_MS		1000	/* before the message that a command does not end */

struct recording {
	struct record_options options;
	struct kb_device *device;
	struct kb_recorder *recorder;
	struct record_output output;
	struct command command;
	struct bundler bundler;		/* of snapshots and of captures of triggers */
	struct kb_kernel_maps kernel_maps;
	sigset_t old_mask;
	int signals;			/* signalfd */
	struct kb_event_plan plan;
	struct kb_turn_draw turns;
	int64_t turn_ends;		/* ns of CLOCK_MONOTONIC */
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
static void say_missing_part(const struct record_options *o, const struct kbarman_query *query,
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
static int choose_chains(struct record_options *o, const struct kbarman_query *query)
{
	uint32_t possible = 0;

	if (o->any_method && o->chain_flags & KBARMAN_CONFIGURE_CHAIN_USER &&
	    query->features & KBARMAN_FEATURE_CHAIN_STACK && (!o->ring_bytes || o->ring_bytes >= STACKS_RING_BYTES))
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
	if (!(o->chain_flags & RECORD_CHAIN_PARTS & ~possible))
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
	o->chain_flags &= ~RECORD_CHAIN_PARTS | possible;
	say_missing_part(o, query, possible);
	return 0;
}

/*
 * Lets all groups behind the first one take turns, and each other event that needs a counter of the
 * hardware, if there are two that can.
 */
static void choose_turns(struct record_options *o)
{
	unsigned int turns = 0;

	for (unsigned int i = 1; i < o->nr_events; i++) {
		struct kb_perf_event *event = &o->events[i];
		bool leads = i + 1 < o->nr_events && event[1].flags & KB_PERF_GROUP;

		if (event->flags & KB_PERF_GROUP) {
			event->flags |= event[-1].flags & KB_PERF_TURN;
		} else if (leads || kb_perf_event_is_hardware(event)) {
			event->flags |= KB_PERF_TURN;
			turns++;
		}
	}
	if (turns > 1)
		return;
	cli_warn("--rotate: there are no two groups behind the first one that could take turns, so "
		 "nothing takes turns");
	for (unsigned int i = 0; i < o->nr_events; i++)
		o->events[i].flags &= ~KB_PERF_TURN;
}

/* Gives the next group of events its turn. */
static int next_turn(struct recording *rec, struct kb_error *err)
{
	if (!rec->turns.nr)
		return 0;
	rec->turn_ends = kb_clock_ns(CLOCK_MONOTONIC) +
			 kb_turn_draw_length(&rec->turns, rec->options.turn_ms);
	return kb_device_turn(rec->device, kb_turn_draw_next(&rec->turns), err);
}

static int configure(struct recording *rec)
{
	struct record_options *o = &rec->options;
	struct kbarman_configure configure = {
		.mode = o->mode,
		.sources = o->sources,
		.ring_bytes = o->ring_bytes,
		.max_tasks = (uint32_t)o->max_tasks,
		.max_maps = (uint32_t)o->max_tasks * MAPS_A_TASK,
		.max_series = SERIES,
		.count_ns = o->counters_hz ? 1000000000 / o->counters_hz : 0,
	};
	struct kb_sampling sampling = {
		.period = o->no_samples || !o->nr_events ? 0 : o->period ?: o->frequency ?: DEFAULT_HZ,
		.freq = !o->period,
		.clock = !o->events_text,
	};
	struct kbarman_query query;
	struct kb_error err;
	uint32_t child;
	int words;

	if (kb_device_query(rec->device, &query, &err))
		return cli_fail_error(&err);
	if (o->reserved)
		configure.flags |= KBARMAN_CONFIGURE_RESERVED;
	if (o->ring_bytes && (o->ring_bytes < query.min_ring_bytes || o->ring_bytes > query.max_ring_bytes))
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
		return cli_fail("--read-counters: the module that is loaded is too old to read counters at "
				"task switches; build and load the one of this version");
	if (o->counters_switch)
		configure.flags |= KBARMAN_CONFIGURE_COUNT_SWITCH;
	if (o->turn_ms && !(query.features & KBARMAN_FEATURE_TURNS))
		return cli_fail("--rotate: the module that is loaded is too old for turns; build and "
				"load the one of this version");
	if (o->turn_ms)
		choose_turns(o);
	if (choose_chains(o, &query) || sources_check(o->sources, &query))
		return CLI_IMPOSSIBLE;
	configure.flags |= o->chain_flags;
	if (o->trigger.triggers && kb_triggers_need_objects(o->trigger.triggers) &&
	    !(query.features & KBARMAN_FEATURE_OBJECTS))
		return cli_fail("--trigger wait:...: the module that is loaded does not tell what tasks wait for: "
				"it is too old, or this architecture has no way to know");
	if (!o->no_objects && query.features & KBARMAN_FEATURE_OBJECTS)
		configure.flags |= KBARMAN_CONFIGURE_OBJECTS;
	configure.max_stack = (uint32_t)o->max_stack;
	limit_sample_rate(&sampling, o->events);
	limit_stack_time(&configure, &sampling, o->events);
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
	if (kb_event_plan_make(&rec->plan, o->events, o->nr_events, &sampling, NULL, &err))
		return cli_fail("-e: %s", kb_error_text(&err));
	kb_event_plan_use(&rec->plan, &configure);
	kb_turn_draw_begin(&rec->turns, rec->plan.nr_turns);
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
	const struct record_options *o = &rec->options;
	const char *name = record_output_name(&rec->output);
	char text[4096];
	size_t used = 0;
	int ret = name ? kb_recorder_fact(rec->recorder, "name", name, err) : 0;

	if (ret)
		return ret;
	if (o->processes.nr)
		snprintf(text, sizeof(text), "pid:%s%s", o->pids_text,
			 kb_is_in_pid_namespace() ? " in a PID namespace" : "");
	ret = kb_recorder_fact(rec->recorder, "filter",
			       o->processes.nr ? text :
			       o->command && !o->all && !o->boot ? "command" : "none", err);
	if (!ret && rec->turns.nr) {
		snprintf(text, sizeof(text), "%" PRIu64, o->turn_ms);
		ret = kb_recorder_fact(rec->recorder, "rotate", text, err);
	}
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

/* For who finds the buffers after a crash. */
static void keep_symbols(struct recording *rec)
{
	struct kb_error err;

	if (rec->options.keep_symbols && kb_kernel_symbols_keep(rec->device, NULL, &err))
		cli_warn("kernel symbols will be missing after a crash: %s", kb_error_text(&err));
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
		cli_warn("this kernel has no kprobes, others than the module knows, or they are switched off (kernel.ftrace_enabled, /sys/kernel/debug/kprobes/enabled): code that is loaded from now on has no image");
	else if (!(query.features & KBARMAN_FEATURE_MAPS))
		cli_warn("the module can't follow mremap(2): code that a program moves has no image");
}

/* Makes the file, and what writes it; with triggers there is a folder. */
static int open_output(struct recording *rec)
{
	struct record_options *o = &rec->options;
	struct kb_error err;

	if (record_trigger_is_on(&o->trigger))
		return record_trigger_open(&o->trigger, o->output);
	if (record_output_open(&rec->output, o->output))
		return CLI_IMPOSSIBLE;
	if (kb_recorder_create(&rec->recorder, rec->device, rec->output.fd, &err))
		return cli_fail_error(&err);
	if ((o->off_cpu_min && kb_recorder_off_cpu_min(rec->recorder, o->off_cpu_min, &err)) ||
	    kb_recorder_note(rec->recorder, o->notes, &err))
		return cli_fail_error(&err);
	return 0;
}

/* The session has been started: what writes begins. */
static int start_output(struct recording *rec)
{
	struct record_options *o = &rec->options;
	struct kb_error err;

	if (record_trigger_is_on(&o->trigger)) {
		o->trigger.bundler = o->bundle ? &rec->bundler : NULL;
		return record_trigger_start(&o->trigger, rec->device, o->off_cpu_min,
					    o->notes);
	}
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
	const struct record_options *o = &rec->options;
	bool to_stdout = !strcmp(o->output, "-");
	struct kb_error err;
	int ret;

	if (prepare_signals(rec) ||
	    (o->pids_text && processes_watch(&rec->options.processes)))
		return CLI_IMPOSSIBLE;
	if (o->pids_text && kb_is_in_pid_namespace())
		cli_warn("-p: these are numbers of this PID namespace; the capture has those of the "
			 "machine, which are others");
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
	rec->bundler.nice = getpriority(PRIO_PROCESS, 0);
	setpriority(PRIO_PROCESS, 0, RECORDER_NICE);
	if ((o->boot ? adopt(rec) : configure(rec)) || open_output(rec))
		return CLI_IMPOSSIBLE;
	keep_symbols(rec);
	if (!rec->options.no_addresses)
		read_kernel_maps(rec);
	if (!o->boot && (kb_device_start(rec->device, &err) || next_turn(rec, &err)))
		return cli_fail_error(&err);
	add_kernel_maps(rec);
	say_what_is_missing(rec);
	if (rec->plan.per_core && per_core_say(rec->device))
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
	if (snapshot_save(rec->device, path, rec->options.off_cpu_min,
			  rec->options.notes) <= CLI_DAMAGED &&
	    rec->options.bundle)
		bundler_begin(&rec->bundler, path);
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

/* The ms for which there is nothing to do; -1: nothing is due at any time. */
static int patience(const struct recording *rec, bool stream, int64_t next_sync)
{
	int64_t now = kb_clock_ns(CLOCK_MONOTONIC), due = stream ? next_sync * KB_NS_PER_MS : INT64_MAX;

	if (rec->turns.nr && rec->turn_ends < due)
		due = rec->turn_ends;
	if (due == INT64_MAX)
		return -1;
	return due <= now ? 0 : (int)((due - now + KB_NS_PER_MS - 1) / KB_NS_PER_MS);
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
	bool syncs;
	int ret = 0;

	while (!ret) {
		if (poll(fds, 4, patience(rec, stream, next_sync)) < 0 && errno != EINTR)
			return kb_error_set(err, -errno, KB_NO_OFFSET, "poll: %s", strerror(errno));
		if (rec->turns.nr && kb_clock_ns(CLOCK_MONOTONIC) >= rec->turn_ends) {
			ret = next_turn(rec, err);
			if (ret)
				return ret;
		}
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
		/* The end of a turn alone is no reason to look at the rings. */
		syncs = kb_clock_ms() >= next_sync;
		if (!stream || ret || !(fds[2].revents || syncs))
			continue;
		ret = kb_recorder_pump(rec->recorder, err);
		if (!ret && syncs) {
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
	int wait_ms = PATIENCE_MS;

	while (rec->command.pid && !command_has_ended(&rec->command)) {
		struct signalfd_siginfo info;

		if (poll(&fd, 1, wait_ms) == 0) {
			cli_warn("waiting for '%s' to end; Ctrl-C %s it", rec->options.command[0],
				 rec->interrupted ? "kills" : "ends");
			wait_ms = -1;
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
	ret = record_options_parse(&rec->options, argc, argv, &done);
	if (!done && (rec->options.bundle || rec->options.chain_flags & RECORD_CHAIN_PARTS))
		cli_decoder_start();
	if (!done)
		ret = record(rec);

	bundler_wait(&rec->bundler);
	record_options_close(&rec->options);
	record_extra_close(&rec->options.extra, rec->output.kept);
	kb_recorder_destroy(rec->recorder);
	kb_device_close(rec->device);
	kb_event_plan_free(&rec->plan);
	command_close(&rec->command);
	record_output_close(&rec->output);
	kb_kernel_maps_free(&rec->kernel_maps);
	if (rec->signals >= 0)
		close(rec->signals);
	free(rec);
	return ret;
}
