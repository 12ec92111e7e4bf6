// SPDX-License-Identifier: MIT
/*
 * kbarman stat: counts events while a command runs, in processes, on CPUs or in the whole system.
 * It uses the kernel's counters (perf_event_open) and needs neither the module nor a recording. If
 * there are more events than counters, the kernel counts them in turns. The counts are then
 * extrapolated, and the output says so.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kbarman/cpulist.h>
#include <kbarman/perf_events.h>

#include "base/array.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli.h"
#include "base/clock.h"
#include "command.h"
#include "base/percent.h"
#include "processes.h"
#include "record/perf_counter.h"

#define TASK_EVENTS \
	"task-clock,context-switches,cpu-migrations,page-faults,cycles,instructions,branches," \
	"branch-misses"
#define SYSTEM_EVENTS \
	"cpu-clock,context-switches,cpu-migrations,page-faults,cycles,instructions,branches," \
	"branch-misses"

static const struct cli_option options[] = {
	{ 'e', "event", "EVENTS",
	  "count these events, comma-separated; 'kbarman list' shows them" },
	{ 'a', "all-cpus", NULL, "count in the whole system" },
	{ 'C', "cpu", "CPUS", "count on these CPUs, as in 0-3,8" },
	{ 'A', "per-cpu", NULL, "print a line for each CPU (with -a or -C)" },
	{ 'p', "pid", "PIDS", "count in these processes, comma-separated" },
	{ 'I', "interval", "MS", "print the counts of every MS milliseconds" },
	{ 'o', "output", "FILE",
	  "write to FILE ('-' is standard output; default: standard error)" },
	{ 'j', "json", NULL, "one JSON object per line" },
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman stat [OPTIONS] [--] [COMMAND [ARGUMENT]...]\n"
	"\n"
	"Count events while COMMAND runs: those of COMMAND and its children, or with -a or -C\n"
	"those of CPUs. Without COMMAND, count until Ctrl-C or until the processes of -p end.\n"
	"\n",
	.options = options,
	.column = 23,
	.in_order = true,	/* options behind COMMAND belong to it */
	.tail =
	"\n"
	"Exit status: that of COMMAND; 2 nothing could be counted.\n",
};

/* An event at one place: a task and its children, or a CPU. */
struct counter {
	int fd;				/* negative: refused, or its task has ended */
	int cpu;			/* -1: any */
	struct kb_perf_count now, before;
};

struct event {
	struct kbarman_event event;
	struct counter *counters;	/* nr_places */
	int error;			/* why no counter was opened; 0: at least one was */
	bool user_only;
};

struct stat_run {
	const char *events_text, *cpus_text, *pids_text;
	const char *path;		/* NULL: standard error */
	bool all, per_cpu, people;
	uint64_t interval_ms;
	char **argv;			/* NULL: no command */

	struct event events[KB_EVENTS_MAX];
	unsigned int nr_events;
	struct { pid_t pid; int cpu; } *places;
	size_t nr_places, max_places;
	struct command command;
	struct processes processes;
	sigset_t old_mask;
	int signals;
	int64_t begun, since, ended;	/* ns: start of the run; start and end of this reading */
	struct cli_output output;
	struct kb_json json;
};

/* ---- where to count ---- */

static int add_place(struct stat_run *run, pid_t pid, int cpu)
{
	if (!KB_ARRAY_ROOM(run->places, run->max_places, run->nr_places + 1))
		return cli_fail("out of memory");
	run->places[run->nr_places].pid = pid;
	run->places[run->nr_places++].cpu = cpu;
	return 0;
}

static int add_cpus(struct stat_run *run)
{
	uint64_t words[KB_CPU_WORDS] = { 0 };
	char online[4096];
	struct kb_error err;
	FILE *file;
	int nr;

	file = fopen("/sys/devices/system/cpu/online", "re");
	if (!file || !fgets(online, sizeof(online), file))
		snprintf(online, sizeof(online), "0-%ld", sysconf(_SC_NPROCESSORS_CONF) - 1);
	if (file)
		fclose(file);
	online[strcspn(online, "\n")] = '\0';
	nr = kb_cpulist_parse(words, run->cpus_text ? run->cpus_text : online, KB_CPUS_MAX, &err);
	if (nr < 0)
		return cli_fail("-C %s", kb_error_text(&err));
	for (int cpu = 0; cpu < nr * 64; cpu++)
		if (words[cpu / 64] >> cpu % 64 & 1 && add_place(run, -1, cpu))
			return CLI_IMPOSSIBLE;
	return 0;
}

/* Adds all threads: new children inherit the counters, existing threads do not. */
static int add_process(struct stat_run *run, uint32_t pid)
{
	char path[64];
	struct dirent *entry;
	DIR *threads;
	int ret = 0;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	threads = opendir(path);
	if (!threads)
		return cli_fail("-p: there is no process %u", pid);
	while (!ret && (entry = readdir(threads)))
		if (*entry->d_name != '.')
			ret = add_place(run, atoi(entry->d_name), -1);
	closedir(threads);
	return ret;
}

static int add_processes(struct stat_run *run)
{
	int ret = processes_watch(&run->processes);

	for (uint32_t i = 0; i < run->processes.nr && !ret; i++)
		ret = add_process(run, run->processes.pids[i]);
	return ret;
}

/* ---- counting ---- */

/* Returns a descriptor or a negative errno. */
static int open_counter(const struct stat_run *run, const struct event *event, size_t i)
{
	struct kb_perf_place place = {
		.pid = run->places[i].pid,
		.cpu = run->places[i].cpu,
		.on_exec = run->command.pid && run->places[i].pid != -1,
		.leader = -1,
		.user_only = event->user_only,
	};

	return kb_perf_counter_open(&event->event, &place);
}

/* Opens the event at all places. Leaves out the kernel if the user may not count it. */
static int open_event(struct stat_run *run, struct event *event)
{
	bool opened = false;

	event->counters = calloc(run->nr_places, sizeof(*event->counters));
	if (!event->counters)
		return cli_fail("out of memory");
	for (size_t i = 0; i < run->nr_places; i++) {
		struct counter *counter = &event->counters[i];

		counter->cpu = run->places[i].cpu;
		counter->fd = open_counter(run, event, i);
		if ((counter->fd == -EACCES || counter->fd == -EPERM) && !opened &&
		    !event->user_only) {
			event->user_only = true;
			counter->fd = open_counter(run, event, i);
		}
		if (counter->fd == -EMFILE)
			return cli_fail("too many open files: %zu counters are needed; "
					"raise 'ulimit -n'", run->nr_places * run->nr_events);
		if (counter->fd < 0 && !event->error)
			event->error = -counter->fd;
		opened |= counter->fd >= 0;
	}
	if (opened)
		event->error = 0;
	return 0;
}

static void for_all_counters(const struct stat_run *run, void (*what)(int fd))
{
	for (unsigned int i = 0; i < run->nr_events; i++)
		for (size_t j = 0; j < run->nr_places; j++)
			if (run->events[i].counters[j].fd >= 0)
				what(run->events[i].counters[j].fd);
}

static void read_counters(struct stat_run *run)
{
	for (unsigned int i = 0; i < run->nr_events; i++) {
		for (size_t j = 0; j < run->nr_places; j++) {
			struct counter *counter = &run->events[i].counters[j];

			counter->before = counter->now;
			if (counter->fd >= 0)
				kb_perf_counter_read(counter->fd, &counter->now);
		}
	}
}

/* ---- results ---- */

struct result {
	double value;			/* extrapolated, if need be */
	uint64_t enabled, running;	/* ns */
	bool known;			/* counted at some place at some time */
};

/* The count of an event since the last reading, at all places or on one CPU. */
static struct result sum_up(const struct stat_run *run, const struct event *event, int cpu)
{
	struct result result = { 0 };

	for (size_t i = 0; i < run->nr_places; i++) {
		const struct counter *counter = &event->counters[i];
		uint64_t value = counter->now.value - counter->before.value;
		uint64_t enabled = counter->now.enabled - counter->before.enabled;
		uint64_t running = counter->now.running - counter->before.running;

		if (counter->fd < 0 || (cpu >= 0 && counter->cpu != cpu))
			continue;
		result.enabled += enabled;
		result.running += running;
		/* A counter that was never enabled has a true 0: the task did not run. */
		if (running || !enabled)
			result.known = true;
		result.value += running && running < enabled ?
				(double)value * enabled / running : (double)value;
	}
	return result;
}

static const struct event *find_event(const struct stat_run *run, uint32_t type, uint64_t config)
{
	for (unsigned int i = 0; i < run->nr_events; i++)
		if (run->events[i].event.type == type && run->events[i].event.config == config)
			return &run->events[i];
	return NULL;
}

static double value_of(const struct stat_run *run, uint32_t type, uint64_t config, int cpu)
{
	const struct event *event = find_event(run, type, config);

	return event && !event->error ? sum_up(run, event, cpu).value : 0;
}

static bool is_time(const struct event *event)
{
	return event->event.type == PERF_TYPE_SOFTWARE &&
	       (event->event.config == PERF_COUNT_SW_TASK_CLOCK ||
		event->event.config == PERF_COUNT_SW_CPU_CLOCK);
}

/* Relates the count to another one, as in "2.000 GHz"; "": there is no relation. */
static void put_metric(const struct stat_run *run, const struct event *event, double value,
		       int cpu, char *text, size_t size)
{
	double time = value_of(run, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, cpu) ?:
		      value_of(run, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, cpu);
	double other = 0;

	*text = '\0';
	if (is_time(event)) {
		snprintf(text, size, "%.3f CPUs used", value / (double)(run->ended - run->since));
		return;
	}
	if (event->event.type == PERF_TYPE_HARDWARE) {
		switch (event->event.config) {
		case PERF_COUNT_HW_CPU_CYCLES:
			if (time > 0)
				snprintf(text, size, "%.3f GHz", value / time);
			return;
		case PERF_COUNT_HW_INSTRUCTIONS:
			other = value_of(run, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, cpu);
			if (other > 0)
				snprintf(text, size, "%.2f a cycle", value / other);
			return;
		case PERF_COUNT_HW_BRANCH_MISSES:
			other = value_of(run, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, cpu);
			if (other > 0)
				snprintf(text, size, "%.2f%% of branches", 100 * value / other);
			return;
		case PERF_COUNT_HW_CACHE_MISSES:
			other = value_of(run, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, cpu);
			if (other > 0)
				snprintf(text, size, "%.2f%% of references", 100 * value / other);
			return;
		}
	}
	if (time > 0)
		snprintf(text, size, "%.3f K a second", value / time * 1e6);
}

static const char *why_not(const struct event *event)
{
	switch (event->error) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		return "not on this machine";
	case EACCES:
	case EPERM:
		return "not allowed: run as root";
	case ESRCH:
		return "no such task";
	default:
		return strerror(event->error);
	}
}

static void put_json(struct stat_run *run, const struct event *event, const struct result *result,
		     int cpu)
{
	struct kb_json *json = &run->json;

	kb_json_begin(json, "counter");
	kb_json_string(json, "event", event->event.name);
	if (cpu >= 0)
		kb_json_i64(json, "cpu", cpu);
	if (run->interval_ms)
		kb_json_double(json, "at_s", (run->ended - run->begun) / 1e9);
	if (event->error || !result->known) {
		kb_json_string(json, "value", NULL);
		kb_json_string(json, "why", event->error ? why_not(event) : "never got a counter");
	} else {
		kb_json_u64(json, "value", (uint64_t)(result->value + 0.5));
		kb_json_u64(json, "enabled_ns", result->enabled);
		kb_json_u64(json, "running_ns", result->running);
	}
	kb_json_bool(json, "user_only", event->user_only);
	kb_json_end(json);
}

/* 1234567 as 1,234,567 */
static const char *grouped(double value, char text[40])
{
	char digits[32];
	int length = snprintf(digits, sizeof(digits), "%.0f", value);
	char *to = text;

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	/* cppcheck-suppress uninitvar ; the loop fills it */
	return text;
}

static void put_line(struct stat_run *run, const struct event *event, int cpu)
{
	struct result result = sum_up(run, event, cpu);
	char number[40], metric[64], name[72];
	struct kb_out *out = run->json.out;

	if (!run->people) {
		put_json(run, event, &result, cpu);
		return;
	}
	if (run->interval_ms)
		kb_out_printf(out, "%12.6f  ", (run->ended - run->begun) / 1e9);
	if (cpu >= 0)
		kb_out_printf(out, "CPU%-4d", cpu);
	snprintf(name, sizeof(name), "%s%s", event->event.name, event->user_only ? ":u" : "");
	if (event->error || !result.known) {
		kb_out_printf(out, "%20s  %-28s # %s\n", "-", name,
			      event->error ? why_not(event) : "never got a counter");
		return;
	}
	put_metric(run, event, result.value, cpu, metric, sizeof(metric));
	if (is_time(event))
		kb_out_printf(out, "%17.3f ms  ", result.value / 1e6);
	else
		kb_out_printf(out, "%20s  ", grouped(result.value, number));
	if (*metric)
		kb_out_printf(out, "%-28s # %s", name, metric);
	else
		kb_out_printf(out, "%s", name);
	if (result.running < result.enabled)
		kb_out_printf(out, " (counted %.0f%% of the time, extrapolated)",
			      kb_percent(result.running, result.enabled));
	kb_out_printf(out, "\n");
}

/* Prints the counts since the last reading. */
static void put_results(struct stat_run *run)
{
	read_counters(run);
	run->since = run->ended;
	run->ended = kb_clock_ns(CLOCK_MONOTONIC);
	for (unsigned int i = 0; i < run->nr_events; i++) {
		if (!run->per_cpu) {
			put_line(run, &run->events[i], -1);
			continue;
		}
		for (size_t j = 0; j < run->nr_places; j++)
			put_line(run, &run->events[i], run->places[j].cpu);
	}
	if (run->interval_ms)
		kb_out_flush(run->json.out);
}

static void put_end(struct stat_run *run)
{
	double seconds = (run->ended - run->begun) / 1e9;
	struct rusage used = { 0 };

	if (run->argv)
		getrusage(RUSAGE_CHILDREN, &used);
	if (!run->people) {
		kb_json_begin(&run->json, "elapsed");
		kb_json_double(&run->json, "seconds", seconds);
		kb_json_double(&run->json, "user_s", used.ru_utime.tv_sec + used.ru_utime.tv_usec / 1e6);
		kb_json_double(&run->json, "system_s",
			       used.ru_stime.tv_sec + used.ru_stime.tv_usec / 1e6);
		kb_json_end(&run->json);
		return;
	}
	kb_out_printf(run->json.out, "\n%20.6f  seconds elapsed\n", seconds);
	if (run->argv)
		kb_out_printf(run->json.out, "%20.6f  seconds of CPU time in user space\n"
			      "%20.6f  seconds of CPU time in the kernel\n",
			      used.ru_utime.tv_sec + used.ru_utime.tv_usec / 1e6,
			      used.ru_stime.tv_sec + used.ru_stime.tv_usec / 1e6);
}

/* ---- a run ---- */

static int prepare_signals(struct stat_run *run)
{
	sigset_t mask;

	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigprocmask(SIG_BLOCK, &mask, &run->old_mask);
	run->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	return run->signals < 0 ? cli_fail("signalfd: %s", strerror(errno)) : 0;
}

/*
 * Have the command or the processes ended? A signal is passed on to the command; without a command
 * it ends the run.
 */
static bool is_over(struct stat_run *run)
{
	struct signalfd_siginfo info;
	bool over = false;

	while (read(run->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			over |= command_has_ended(&run->command);
		else if (!run->command.pid)
			over = true;
		else if (info.ssi_code != SI_KERNEL)
			kill(run->command.pid, (int)info.ssi_signo);
	}
	return over || (run->pids_text && processes_have_ended(&run->processes));
}

/* Waits for the end, and prints the counts of each interval. */
static void follow(struct stat_run *run)
{
	struct pollfd fds[2] = {
		{ .fd = run->signals, .events = POLLIN },
		{ .fd = run->processes.fd, .events = POLLIN },
	};
	int64_t step = run->interval_ms ? (int64_t)run->interval_ms * 1000000 : INT64_MAX / 4;
	int64_t next = run->begun + step;

	for (;;) {
		int64_t left = (next - kb_clock_ns(CLOCK_MONOTONIC) + 999999) / 1000000;

		poll(fds, 2, left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left);
		if (is_over(run))
			return;
		if (kb_clock_ns(CLOCK_MONOTONIC) >= next) {
			put_results(run);
			next += step;
		}
	}
}

static int parse_events(struct stat_run *run)
{
	struct kbarman_event events[KB_EVENTS_MAX];
	struct kb_error err;
	int nr;

	nr = kb_events_parse(events, KB_EVENTS_MAX, run->events_text ?: run->all || run->cpus_text ?
			     SYSTEM_EVENTS : TASK_EVENTS, NULL, &err);
	if (nr < 0)
		return cli_fail_error(&err);
	run->nr_events = (unsigned int)nr;
	for (int i = 0; i < nr; i++)
		run->events[i].event = events[i];
	return 0;
}

static int open_all(struct stat_run *run)
{
	bool any = false;
	int ret;

	if (run->pids_text)
		ret = add_processes(run);
	else if (run->all || run->cpus_text)
		ret = add_cpus(run);
	else
		ret = add_place(run, run->command.pid, -1);
	for (unsigned int i = 0; i < run->nr_events && !ret; i++) {
		ret = open_event(run, &run->events[i]);
		any |= !run->events[i].error;
	}
	if (!ret && !any)
		ret = cli_fail("%s: %s", run->events[0].event.name, why_not(&run->events[0]));
	return ret;
}

static void put_command(struct kb_out *out, const char *name)
{
	char shown[256];
	size_t length = kb_utf8_shown(shown, name, strnlen(name, sizeof(shown)));

	kb_out_printf(out, "in '%.*s'", (int)length, shown);
}

static void say_title(struct stat_run *run)
{
	struct kb_out *out = run->json.out;

	if (!run->people || run->interval_ms)
		return;
	kb_out_printf(out, "\nCounted ");
	if (run->pids_text)
		kb_out_printf(out, "in process %s", run->pids_text);
	else if (run->cpus_text)
		kb_out_printf(out, "on CPU %s", run->cpus_text);
	else if (run->all)
		kb_out_printf(out, "in the whole system");
	else
		put_command(out, run->argv[0]);
	kb_out_printf(out, ":\n\n");
}

/* Runs the command and prints the counts. Returns an exit status. */
static int count(struct stat_run *run)
{
	int ret, error;

	if (parse_events(run) || prepare_signals(run))
		return CLI_IMPOSSIBLE;
	if (run->argv) {
		ret = command_prepare(&run->command, run->argv, &run->old_mask, false);
		if (ret)
			return cli_fail("can't fork: %s", strerror(-ret));
	}
	/* The command has standard output, so counts go to standard error. */
	if (open_all(run) || (run->path && cli_output_open(&run->output, run->path)))
		return CLI_IMPOSSIBLE;
	if (kb_out_fd(&run->json.out, run->path ? run->output.fd : STDERR_FILENO))
		return cli_fail("out of memory");
	run->json.people = run->people;
	run->begun = run->ended = kb_clock_ns(CLOCK_MONOTONIC);
	if (!run->command.pid || run->places[0].pid == -1)
		for_all_counters(run, kb_perf_counter_start);
	if (run->command.pid)
		command_release(&run->command);
	follow(run);
	for_all_counters(run, kb_perf_counter_stop);
	if (run->command.ended) {
		error = command_exec_error(&run->command);
		if (error) {
			cli_warn("can't run '%s': %s", run->argv[0], strerror(error));
			return error == ENOENT ? 127 : 126;
		}
	}
	say_title(run);
	put_results(run);
	put_end(run);
	ret = kb_out_flush(run->json.out);
	if (ret)
		return cli_fail("can't write %s: %s", run->path ? run->output.path : "standard error",
				strerror(-ret));
	ret = cli_output_commit(&run->output);
	return ret ? ret : run->command.pid ? command_exit_status(&run->command) : CLI_OK;
}

static int take_option(struct stat_run *run, int option)
{
	char *end;

	switch (option) {
	case 'e':
		run->events_text = optarg;
		return 0;
	case 'a':
		run->all = true;
		return 0;
	case 'C':
		run->cpus_text = optarg;
		return 0;
	case 'A':
		run->per_cpu = true;
		return 0;
	case 'p':
		run->pids_text = optarg;
		processes_close(&run->processes);
		return processes_parse(&run->processes, optarg);
	case 'I':
		run->interval_ms = strtoull(optarg, &end, 10);
		return *optarg >= '0' && *optarg <= '9' && !*end && run->interval_ms >= 10 &&
		       run->interval_ms <= 3600000 ? 0 :
			cli_fail("-I %s: give milliseconds, from 10 to 3600000", optarg);
	case 'o':
		run->path = optarg;
		return 0;
	case 'j':
		run->people = false;
		return 0;
	}
	return cli_usage(option == 'h', &usage);
}

static int check_options(const struct stat_run *run)
{
	if (run->pids_text && (run->all || run->cpus_text || run->argv))
		return cli_fail("-p takes no -a, no -C and no command");
	if (run->per_cpu && !run->all && !run->cpus_text)
		return cli_fail("-A needs -a or -C");
	if (!run->argv && !run->pids_text && !run->all && !run->cpus_text) {
		cli_warn("give a command, -p, -C or -a");
		return cli_usage(false, &usage);
	}
	return 0;
}

static void release(struct stat_run *run)
{
	for (unsigned int i = 0; i < run->nr_events; i++) {
		for (size_t j = 0; run->events[i].counters && j < run->nr_places; j++)
			if (run->events[i].counters[j].fd >= 0)
				close(run->events[i].counters[j].fd);
		free(run->events[i].counters);
	}
	command_close(&run->command);
	kb_out_destroy(run->json.out);
	cli_output_abandon(&run->output);
	processes_close(&run->processes);
	free(run->places);
	if (run->signals >= 0)
		close(run->signals);
	free(run);
}

int cmd_stat(int argc, char **argv)
{
	struct stat_run *run = calloc(1, sizeof(*run));
	int option, ret = 0;
	bool done = false;

	if (!run)
		return cli_fail("out of memory");
	run->people = true;
	processes_init(&run->processes);
	run->signals = run->output.fd = -1;
	while (!done && (option = cli_getopt(argc, argv, &usage)) != -1) {
		ret = take_option(run, option);
		done = ret || option == 'h';
	}
	if (!done && optind < argc)
		run->argv = argv + optind;
	if (!done)
		ret = check_options(run) ?: count(run);
	release(run);
	return ret;
}
