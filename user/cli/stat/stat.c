// SPDX-License-Identifier: MIT
/*
 * kbarman stat: counts events while a command runs, in processes, on CPUs or in the whole system.
 * It uses the kernel's counters (perf_event_open) and needs neither the module nor a recording. If
 * there are more events than counters, the kernel counts them in turns. The counts are then
 * extrapolated, and the output says so.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/io/create.h"
#include "cli/session/event_list.h"
#include "cli/stat/stat.h"

#define MS		INT64_C(1000000)
#define TIMEOUT_MS_MAX	(49 * 86400000ULL)
#define RUNS_MAX	100000

enum {
	OPTION_PER_CORE = 256, OPTION_PER_SOCKET, OPTION_NO_AGGR, OPTION_APPEND, OPTION_NO_BIG_NUM,
	OPTION_INTERVAL_COUNT, OPTION_TIMEOUT, OPTION_ROTATE,
};

static const struct cli_option options[] = {
	{ 'e', "event", "EVENTS",
	  "use these events, comma-separated; 'kbarman list' shows them" },
	{ 'M', "metrics", "METRICS",
	  "show metrics, comma-separated, and count what they need;\n"
	  "'kbarman list --metrics' shows them" },
	{ 'd', "detailed", NULL, "also count events of caches; -dd, -ddd: more of them" },
	{ 'a', "all-cpus", NULL, "use the whole system, even if COMMAND is given" },
	CLI_CPU_OPTION,
	{ 'A', "per-cpu", NULL, "print a line for each CPU (with -a or -C)" },
	{ OPTION_NO_AGGR, "no-aggr", NULL, "the same as --per-cpu" },
	{ OPTION_PER_CORE, "per-core", NULL, "print lines for each core (with -a or -C)" },
	{ OPTION_PER_SOCKET, "per-socket", NULL, "print lines for each socket (with -a or -C)" },
	{ 'p', "pid", "PIDS", "use only these processes, comma-separated" },
	{ 'r', "repeat", "N", "run COMMAND N times: print means and how far they may be off" },
	{ 'I', "interval", "TIME", "time between two readings, each of which is shown, as in 500ms" },
	{ OPTION_INTERVAL_COUNT, "interval-count", "N", "end after N of these" },
	{ OPTION_TIMEOUT, "timeout", "TIME", "end after TIME" },
	{ 'D', "delay", "TIME", "begin to count TIME after COMMAND" },
	{ OPTION_ROTATE, "rotate", "TIME",
	  "let groups of events take turns of about TIME, and say how\n"
	  "far off their counts may be" },
	{ 'o', "output", "FILE",
	  "write to FILE ('-' is standard output; default: standard error)" },
	{ OPTION_APPEND, "append", NULL, "add to the end of FILE" },
	{ 'x', "field-separator", "SEP", "print fields with SEP between them, as perf stat does" },
	{ 'j', "json", NULL, "print JSON, one object per line" },
	{ OPTION_NO_BIG_NUM, "no-big-num", NULL, "print numbers without commas" },
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman stat [OPTIONS] [--] [COMMAND [ARGUMENT]...]\n"
	"\n"
	"Count events while COMMAND runs: those of COMMAND and its children, or with -a or -C\n"
	"those of CPUs, with -p those of processes. Without COMMAND, count until Ctrl-C or until\n"
	"the processes of -p end.\n"
	"\n",
	.options = options,
	.column = 30,
	.in_order = true,	/* options behind COMMAND belong to it */
	.tail =
	"\n"
	"Exit status: that of COMMAND; 2 nothing could be counted.\n",
};

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
 * Have the command or the processes ended? A signal is passed on to the command; without a command,
 * or if the command did not end when it was told to, it ends the run.
 */
static bool is_over(struct stat_run *run)
{
	struct signalfd_siginfo info;
	bool over = false;

	while (read(run->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			over |= command_has_ended(&run->command);
			continue;
		}
		run->interrupted = true;
		if (!run->command.pid || run->ending)
			over = true;
		else if (info.ssi_code != SI_KERNEL)
			kill(run->command.pid, (int)info.ssi_signo);
	}
	return over || (run->pids_text && !run->command.pid &&
			processes_have_ended(&run->processes));
}

/* When the next thing is due; ns of CLOCK_MONOTONIC. */
struct due {
	int64_t interval, timeout, delay, turn;
	uint64_t left;			/* intervals until the end */
};

static int64_t earliest(const struct due *due)
{
	const int64_t times[] = { due->interval, due->timeout, due->delay, due->turn };
	int64_t first = INT64_MAX;

	for (unsigned int i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (times[i] < first)
			first = times[i];
	return first;
}

/* The clock of a run begins with its counts. */
static void begin(struct stat_run *run, struct due *due)
{
	const int64_t never = INT64_MAX;

	run->begun = run->ended = kb_clock_ns(CLOCK_MONOTONIC);
	due->delay = never;
	due->interval = run->interval_ms ? run->begun + (int64_t)run->interval_ms * MS : never;
	due->timeout = run->timeout_ms ? run->begun + (int64_t)run->timeout_ms * MS : never;
	due->turn = stat_turns_begin(run, true);
}

/*
 * Tells the command to end. As with perf, the run is over when the command is. Returns whether the
 * run is over now: there is no command.
 */
static bool end_command(struct stat_run *run, struct due *due)
{
	if (!run->command.pid)
		return true;
	kill(run->command.pid, SIGTERM);
	run->ending = true;
	due->interval = due->timeout = INT64_MAX;
	return false;
}

/* Does what is due now. Returns whether the run is over. */
static bool do_due(struct stat_run *run, struct due *due)
{
	int64_t now = kb_clock_ns(CLOCK_MONOTONIC);

	if (now >= due->delay) {
		stat_start(run);
		begin(run, due);
	}
	if (now >= due->turn && now < due->interval) {
		stat_turns_end(run);
		due->turn = stat_turns_begin(run, false);
	}
	if (now >= due->interval) {
		stat_read(run);
		run->since = run->ended;
		run->ended = kb_clock_ns(CLOCK_MONOTONIC);
		stat_put_all(run);
		stat_turns_forget(run);
		due->turn = stat_turns_begin(run, false);
		due->interval += (int64_t)run->interval_ms * MS;
		if (due->interval <= now)	/* too late for some */
			due->interval = now + (int64_t)run->interval_ms * MS;
		if (due->left && !--due->left) {
			run->told = true;
			return end_command(run, due);
		}
	}
	return now >= due->timeout && end_command(run, due);
}

/* Starts the command and waits for the end. Prints the counts of each interval. */
static void follow(struct stat_run *run)
{
	struct pollfd fds[2] = {
		{ .fd = run->signals, .events = POLLIN },
		{ .fd = run->command.pid ? -1 : run->processes.fd, .events = POLLIN },
	};
	struct due due = { .left = run->interval_count };

	begin(run, &due);
	if (run->delay_ms)
		due = (struct due){ .left = due.left, .interval = INT64_MAX, .timeout = INT64_MAX,
				    .delay = run->begun + (int64_t)run->delay_ms * MS,
				    .turn = INT64_MAX };
	if (run->command.pid)
		command_release(&run->command);
	do {
		int64_t now = kb_clock_ns(CLOCK_MONOTONIC), next = earliest(&due);
		int64_t left = next == INT64_MAX ? 3600000 :
			       next <= now ? 0 : (next - now + MS - 1) / MS;

		poll(fds, 2, left > 3600000 ? 3600000 : (int)left);
	} while (!is_over(run) && !do_due(run, &due));
	if (due.delay != INT64_MAX)
		begin(run, &due);	/* nothing was counted */
}

/* The command has standard output, so counts go to standard error. */
static int open_output(struct stat_run *run)
{
	int fd = STDERR_FILENO;

	if (run->append) {
		fd = run->appended = kb_create(AT_FDCWD, run->path, KB_CREATE_APPEND, 0666);
		if (fd < 0)
			return cli_fail("can't write %s: %s", run->path, strerror(-fd));
	} else if (run->path) {
		if (cli_output_open(&run->output, run->path))
			return CLI_IMPOSSIBLE;
		fd = run->output.fd;
	}
	if (kb_out_fd(&run->json.out, fd))
		return cli_fail("out of memory");
	run->json.people = run->form != STAT_JSON;
	return 0;
}

/* Is it the command that is counted? Its counters begin when it is executed. */
static bool counts_command(const struct stat_run *run)
{
	return run->argv && !run->pids_text && !run->all && !run->cpus_text;
}

/* Counts once. Returns 0 or an exit status after a message. */
static int count_once(struct stat_run *run)
{
	int ret, error;

	if (run->argv) {
		ret = command_prepare(&run->command, run->argv, &run->old_mask, false);
		if (ret)
			return cli_fail("can't fork: %s", strerror(-ret));
	}
	if (stat_places(run) || stat_open(run))
		return CLI_IMPOSSIBLE;
	run->ending = false;
	if (!run->delay_ms && !counts_command(run))
		stat_start(run);
	follow(run);
	stat_stop(run);
	if (run->command.ended) {
		error = command_exec_error(&run->command);
		if (error) {
			cli_warn("can't run '%s': %s", run->argv[0], strerror(error));
			return error == ENOENT ? 127 : 126;
		}
	}
	stat_read(run);
	run->since = run->ended;
	run->ended = kb_clock_ns(CLOCK_MONOTONIC);
	return 0;
}

/* Makes room for what several runs count. A run may have CPUs that the runs before it did not. */
static int make_totals(struct stat_run *run)
{
	for (unsigned int i = 0; i < run->nr_events; i++) {
		struct stat_event *event = &run->events[i];

		if (!KB_ARRAY_ROOM(event->totals, event->max_totals, run->nr_shares))
			return cli_fail("out of memory");
		while (event->nr_totals < run->nr_shares)
			event->totals[event->nr_totals++] = (struct stat_total){ 0 };
	}
	return 0;
}

/* That the command ended when it was told to is no failure. */
static int status_of(const struct stat_run *run)
{
	int status = run->command.ended ? command_exit_status(&run->command) : CLI_OK;

	return run->ending && status == 128 + SIGTERM ? CLI_OK : status;
}

/* Counts as often as asked for, and prints all. Returns an exit status. */
static int count(struct stat_run *run)
{
	int ret, status = CLI_OK;

	if (stat_choose_events(run) || stat_turns_choose(run) || prepare_signals(run) || open_output(run))
		return CLI_IMPOSSIBLE;
	while (run->nr_done < run->runs && !run->interrupted) {
		if (run->nr_done) {
			stat_close(run);
			command_close(&run->command);
		}
		ret = count_once(run);
		if (ret)
			return ret;
		status = status_of(run);
		run->nr_done++;
		if (run->runs == 1)
			break;
		if (make_totals(run))
			return CLI_IMPOSSIBLE;
		stat_keep(run);
		stat_mean_add(&run->elapsed, (double)(run->ended - run->begun) / 1e9);
	}
	stat_put_title(run);
	if (!run->told)
		stat_put_all(run);
	stat_put_end(run);
	ret = kb_out_flush(run->json.out);
	if (ret)
		return cli_fail("can't write %s: %s", run->path ?: "standard error", strerror(-ret));
	return cli_output_commit(&run->output) ?: status;
}

/* ---- options ---- */

/* A number of an option: @what, from @least to @most. */
static int take_number(const char *option, const char *what, uint64_t least, uint64_t most,
		       uint64_t *number)
{
	char *end;

	*number = strtoull(optarg, &end, 10);
	return *optarg >= '0' && *optarg <= '9' && !*end && *number >= least && *number <= most ? 0 :
	       cli_fail("%s %s: give %s, from %" PRIu64 " to %" PRIu64, option, optarg, what, least,
			most);
}

static int take_shares(struct stat_run *run, enum stat_shares by)
{
	if (run->by != STAT_ALL && run->by != by)
		return cli_fail("give one of -A, --per-core and --per-socket");
	run->by = by;
	return 0;
}

static int take_separator(struct stat_run *run)
{
	run->form = STAT_CSV;
	/* as perf does, for shells in which a tab is hard to write */
	run->separator = strcmp(optarg, "\\t") ? optarg : "\t";
	return *optarg ? 0 : cli_fail("-x: give what stands between fields, as in -x,");
}

static int take_limit(struct stat_run *run, int option)
{
	uint64_t runs;
	int ret;

	switch (option) {
	case 'r':
		ret = take_number("-r", "a number of runs", 1, RUNS_MAX, &runs);
		run->runs = (unsigned int)runs;
		return ret;
	case 'I':
		return cli_take_ms("-I", optarg, 10, 3600000, &run->interval_ms);
	case 'D':
		return cli_take_ms("-D", optarg, 1, 3600000, &run->delay_ms);
	case OPTION_ROTATE:
		return cli_take_ms("--rotate", optarg, 1, 10000, &run->turn_ms);
	case OPTION_TIMEOUT:
		return cli_take_ms("--timeout", optarg, 10, TIMEOUT_MS_MAX, &run->timeout_ms);
	default:
		return take_number("--interval-count", "a number of intervals", 1, UINT32_MAX,
				   &run->interval_count);
	}
}

static int take_option(struct stat_run *run, int option)
{
	switch (option) {
	case 'e':
		return event_list_add(&run->events_text, optarg);
	case 'M':
		run->metrics_text = optarg;
		return 0;
	case 'd':
		run->detail++;
		return 0;
	case 'a':
		run->all = true;
		return 0;
	case 'C':
		run->cpus_text = optarg;
		return 0;
	case 'A':
	case OPTION_NO_AGGR:
		return take_shares(run, STAT_BY_CPU);
	case OPTION_PER_CORE:
		return take_shares(run, STAT_BY_CORE);
	case OPTION_PER_SOCKET:
		return take_shares(run, STAT_BY_SOCKET);
	case 'p':
		run->pids_text = optarg;
		processes_close(&run->processes);
		return processes_parse(&run->processes, optarg);
	case 'r':
	case 'I':
	case 'D':
	case OPTION_TIMEOUT:
	case OPTION_INTERVAL_COUNT:
	case OPTION_ROTATE:
		return take_limit(run, option);
	case 'o':
		run->path = optarg;
		return 0;
	case OPTION_APPEND:
		run->append = true;
		return 0;
	case 'x':
		return take_separator(run);
	case 'j':
		run->form = STAT_JSON;
		return 0;
	case OPTION_NO_BIG_NUM:
		run->plain_numbers = true;
		return 0;
	}
	return cli_usage(option == 'h', &usage);
}

static int check_options(const struct stat_run *run)
{
	if (run->pids_text && (run->all || run->cpus_text))
		return cli_fail("-p takes no -a and no -C");
	if (run->by != STAT_ALL && !run->all && !run->cpus_text)
		return cli_fail("%s needs -a or -C", run->by == STAT_BY_CPU ? "-A" :
				run->by == STAT_BY_CORE ? "--per-core" : "--per-socket");
	if (run->runs > 1 && (!run->argv || run->interval_ms))
		return cli_fail("-r needs a command, and takes no -I");
	if (run->interval_count && !run->interval_ms)
		return cli_fail("--interval-count needs -I");
	if (run->append && (!run->path || !strcmp(run->path, "-")))
		return cli_fail("--append needs the file of -o");
	if (!run->argv && !run->pids_text && !run->all && !run->cpus_text) {
		cli_warn("give a command, -p, -C or -a");
		return cli_usage(false, &usage);
	}
	return 0;
}

static void release(struct stat_run *run)
{
	stat_close(run);
	for (unsigned int i = 0; i < run->nr_events; i++)
		free(run->events[i].totals);
	command_close(&run->command);
	kb_out_destroy(run->json.out);
	cli_output_abandon(&run->output);
	processes_close(&run->processes);
	free(run->places);
	free(run->shares);
	free(run->events_text);
	if (run->signals >= 0)
		close(run->signals);
	if (run->appended >= 0)
		close(run->appended);
	free(run);
}

int cmd_stat(int argc, char **argv)
{
	struct stat_run *run = calloc(1, sizeof(*run));
	int option, ret = 0;
	bool done = false;

	if (!run)
		return cli_fail("out of memory");
	run->runs = 1;
	processes_init(&run->processes);
	run->signals = run->output.fd = run->appended = -1;
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
