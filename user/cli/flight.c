// SPDX-License-Identifier: MIT
/*
 * kbarman flight: a recorder in the background that keeps the last seconds, which `kbarman
 * snapshot' writes. The recorder is `record --mode overwrite' in a session of its own. A file holds
 * its process number, by which other verbs find the recorder.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kbarman/device.h>

#include "base/array.h"
#include "base/io/create.h"
#include "cli/base/cli.h"
#include "cli/base/fact_lines.h"
#include "cli/session/sessions.h"

#define WORDS_MAX	256
#define BEGIN_MS	20000		/* limit from the start to the first record */
#define END_MS		60000		/* limit for writing the last capture */

static const struct cli_option options[] = {
	{ 'o', "output", "FILE", "write to FILE when it stops (default flight.cap)" },
	{ 'j', "json", NULL, "print JSON: the status, as one object" },
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman flight start [-o FILE] [RECORD OPTIONS]\n"
	"       kbarman flight status [-j]\n"
	"       kbarman flight stop\n"
	"       kbarman flight run [-o FILE] [RECORD OPTIONS]\n"
	"       kbarman flight [run|start] --trigger EXPRESSION [-o DIR] [RECORD OPTIONS]\n"
	"\n"
	"A flight recorder records the whole system in the background. Its buffers keep the\n"
	"newest records. 'kbarman snapshot' writes these records to a file at any time.\n"
	"\n"
	"  start    start the recorder. It takes the options of record (-e, -F, -m, -C, ...).\n"
	"           SIGUSR1 writes a snapshot beside FILE with the time in its name.\n"
	"  status   print whether the recorder runs, since when, and how much it keeps.\n"
	"           Exit status 1: no recorder runs.\n"
	"  stop     stop the recorder and write FILE\n"
	"  run      the same as start, but in the foreground, for a service manager\n"
	"\n"
	"With --trigger the recorder writes a capture into DIR (default flight.triggers) each time\n"
	"that something happens, as in --trigger 'latency>5ms'; see 'kbarman record --help'.\n"
	"\n",
	.options = options,
	.column = 22,
};

/* ---- the file that names the process ---- */

/* The folders of the packaged service and of a recorder that root has started. */
#define SERVICE_DIR	"/run/kbarman"
#define ROOT_DIR	"/run"

/*
 * The folder for the files of this user's recorder. Everybody can make names in /tmp, so there it is
 * a folder of his own: NULL if there is none, or somebody else has made it.
 */
static const char *own_dir(bool make)
{
	static char path[64];
	const char *dir = getenv("KBARMAN_RUNTIME_DIR");
	struct stat st;

	if (!dir)
		dir = geteuid() ? getenv("XDG_RUNTIME_DIR") : ROOT_DIR;
	if (dir)
		return dir;
	snprintf(path, sizeof(path), "/tmp/kbarman-%u", geteuid());
	if (make)
		mkdir(path, 0700);
	return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() ? path : NULL;
}

/* Returns false after a message. */
static bool has_own_dir(void)
{
	if (own_dir(true))
		return true;
	cli_warn("/tmp/kbarman-%u is not a folder of this user: set XDG_RUNTIME_DIR or KBARMAN_RUNTIME_DIR "
		 "to one", geteuid());
	return false;
}

static const char *path_in(const char *dir, const char *name)
{
	static char path[2][PATH_MAX];
	static unsigned int turn;

	turn = !turn;
	snprintf(path[turn], PATH_MAX, "%s/kbarman-%s", dir, name);
	return path[turn];
}

static const char *run_path(const char *name)
{
	return path_in(own_dir(false), name);
}

/*
 * Does the process belong to @user? A user who may write the file with its number must not make
 * root's `stop' end the process of somebody else.
 */
static bool is_of(pid_t pid, uid_t user)
{
	unsigned long effective = (unsigned long)-1;
	char path[64], line[256];
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	status = fopen(path, "re");
	if (!status)
		return false;
	while (fgets(line, sizeof(line), status))
		if (sscanf(line, "Uid: %*u %lu", &effective) == 1)
			break;
	fclose(status);
	return effective == user;
}

/*
 * The recorder holds a lock on the file while it runs, so neither the file of a crashed recorder
 * nor a later process with the same number is mistaken for a recorder. This function only queries
 * the lock and never takes it: a recorder that starts at the same moment must get the lock. Returns
 * the process number, 0: no recorder runs.
 */
static pid_t recorder_in(const char *dir)
{
	struct flock lock = { .l_type = F_WRLCK };
	int fd = open(path_in(dir, "flight.pid"), O_RDONLY | O_CLOEXEC);
	char text[32] = "";
	struct stat st;
	pid_t pid = 0;

	if (fd < 0)
		return 0;
	if (!fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK &&
	    read(fd, text, sizeof(text) - 1) > 0)
		pid = (pid_t)strtol(text, NULL, 10);
	if (pid <= 0 || fstat(fd, &st) || !is_of(pid, st.st_uid))
		pid = 0;
	close(fd);
	return pid;
}

/*
 * Finds this user's recorder, the packaged service's or root's: there is only one device. *@dir is
 * the folder of its files.
 */
static pid_t find_recorder_dir(const char **dir)
{
	const char *const dirs[] = { own_dir(false), SERVICE_DIR, ROOT_DIR };
	/* If the user names a folder, only this one counts. */
	size_t nr = getenv("KBARMAN_RUNTIME_DIR") ? 1 : ARRAY_SIZE(dirs);

	for (size_t i = 0; i < nr; i++) {
		pid_t pid = dirs[i] ? recorder_in(dirs[i]) : 0;

		*dir = dirs[i];
		if (pid)
			return pid;
	}
	return 0;
}

static pid_t find_recorder(void)
{
	const char *dir;

	return find_recorder_dir(&dir);
}

/*
 * As soon as the file has the number, anybody may end the recorder or ask it for a snapshot. Until
 * record reads these signals, they wait.
 */
static void hold_signals(void)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGUSR1);
	sigprocmask(SIG_BLOCK, &mask, NULL);
}

/*
 * Runs in the recorder itself. The descriptor stays open until the recorder ends. The lock is that of the
 * process: children that have not closed the descriptor yet when the recorder ends do not hold the lock.
 */
static int hold_pid_file(void)
{
	struct flock lock = { .l_type = F_WRLCK };
	static int fd;
	char text[32];
	int length;

	hold_signals();
	if (!has_own_dir())
		return CLI_IMPOSSIBLE;
	fd = kb_create(AT_FDCWD, run_path("flight.pid"), KB_CREATE_SAME, 0644);
	if (fd < 0)
		return cli_fail("can't write %s: %s", run_path("flight.pid"), strerror(-fd));
	if (fcntl(fd, F_SETLK, &lock))
		return cli_fail("a flight recorder runs already: stop it with 'kbarman flight "
				"stop'");
	length = snprintf(text, sizeof(text), "%d\n", getpid());
	/* Independent of the umask: other users may see that the recorder runs. */
	if (fchmod(fd, 0644) || ftruncate(fd, 0) || write(fd, text, (size_t)length) != length)
		return cli_fail("can't write %s: %s", run_path("flight.pid"), strerror(errno));
	return 0;
}

/* ---- start ---- */

/* With triggers the recorder writes into a folder. */
static bool has_trigger(int argc, char **argv)
{
	static const char option[] = "--trigger";

	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], option, strlen(option)))
			return true;
	return false;
}

static int run_recorder(int argc, char **argv)
{
	static char *words[WORDS_MAX] = { "record", "--mode=overwrite", "--output=flight.cap" };
	int nr = 3;

	if (has_trigger(argc, argv))
		words[2] = "--output=flight.triggers";

	if (argc > WORDS_MAX - nr - 1)
		return cli_fail("too many options");
	for (int i = 0; i < argc; i++)
		words[nr++] = argv[i];
	words[nr] = NULL;
	cli_verb_name = "record";
	optind = 0;	/* restart getopt */
	return cmd_record(nr, words);
}

/* The log gets the recorder's messages. `start' prints the log if the recorder fails. */
static int open_log(void)
{
	int fd = kb_create(AT_FDCWD, run_path("flight.log"), KB_CREATE_SAME, 0644), error;

	if (fd < 0 || !ftruncate(fd, 0))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

static void become_daemon(int log)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	signal(SIGHUP, SIG_IGN);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
}

static void show_log(int log)
{
	char text[4096];
	ssize_t length = pread(log, text, sizeof(text), 0);

	if (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0)
		return;
}

static bool is_recording(pid_t pid)
{
	struct kbarman_query query;
	struct kb_device *device;
	bool yes;

	if (kb_device_open(&device, NULL))
		return false;
	yes = sessions_choose_process(device, pid) && !kb_device_query(device, &query, NULL) &&
	      query.state & KBARMAN_STATE_RUNNING;
	kb_device_close(device);
	return yes;
}

static void nap(void)
{
	struct timespec moment = { .tv_nsec = 20000000 };

	nanosleep(&moment, NULL);
}

static int start(int argc, char **argv)
{
	struct kb_device *device;
	struct kb_error err;
	int log;
	pid_t pid;

	if (!has_own_dir())
		return CLI_IMPOSSIBLE;
	if (find_recorder())
		return cli_fail("a flight recorder runs already (process %d): stop it with "
				"'kbarman flight stop'", find_recorder());
	/* Errors of the device are reported here, before the fork. */
	if (kb_device_open(&device, &err))
		return cli_fail_error(&err);
	kb_device_close(device);
	log = open_log();
	if (log < 0)
		return cli_fail("can't write %s: %s", run_path("flight.log"), strerror(-log));
	pid = fork();
	if (pid < 0)
		return cli_fail("can't fork: %s", strerror(errno));
	if (!pid) {
		become_daemon(log);
		exit(hold_pid_file() ?: run_recorder(argc, argv));
	}
	for (int waited = 0; waited < BEGIN_MS; waited += 20) {
		int status;

		if (waitpid(pid, &status, WNOHANG) == pid) {
			show_log(log);
			return CLI_IMPOSSIBLE;
		}
		if (find_recorder() == pid && is_recording(pid)) {
			cli_note("recording (process %d); 'kbarman snapshot' writes what it keeps",
				 pid);
			return CLI_OK;
		}
		nap();
	}
	kill(pid, SIGTERM);
	show_log(log);
	return cli_fail("the recorder did not start within %d s", BEGIN_MS / 1000);
}

/* ---- status and stop ---- */

struct status {
	pid_t pid;
	struct kbarman_query query;
	struct kbarman_stats stats;
	double seconds;			/* since the start */
};

static int get_status(struct status *status)
{
	struct kb_device *device;
	struct kbarman_clock clock;
	struct kb_error err;
	int ret;

	if (kb_device_open(&device, &err))
		return cli_fail("a flight recorder runs (process %d), but its state can't be read: "
				"%s", status->pid, kb_error_text(&err));
	/* If the recorder ends just now, the answer is about whoever records. */
	sessions_choose_process(device, status->pid);
	ret = kb_device_query(device, &status->query, &err) ?:
	      kb_device_stats(device, KBARMAN_CPU_ALL, &status->stats, &err) ?:
	      kb_device_clock(device, &clock, &err);
	kb_device_close(device);
	if (ret)
		return cli_fail_error(&err);
	status->seconds = (clock.now.raw_ns - clock.start.raw_ns) / 1e9;
	return CLI_OK;
}

static void print_status(struct kb_json *json, const struct status *status)
{
	const struct kbarman_stats *stats = &status->stats;
	uint64_t kept = stats->written - stats->overwritten;
	/* An estimate from the average rate so far. */
	double reach = stats->written ? status->seconds * kept / stats->written : status->seconds;

	if (json->people) {
		kb_out_printf(json->out, "recording for %.1f s (process %d) on %u CPUs, %" PRIu64
			      " KiB each; keeps %" PRIu64 " records, about the last %.1f s; %" PRIu64
			      " lost\n", status->seconds, status->pid, stats->online,
			      (uint64_t)status->query.ring_bytes >> 10, kept, reach,
			      kb_stats_lost(stats));
		return;
	}
	kb_json_begin(json, "flight");
	kb_json_i64(json, "pid", status->pid);
	kb_json_double(json, "seconds", status->seconds);
	kb_json_u64(json, "cpus", stats->online);
	kb_json_u64(json, "ring_bytes", status->query.ring_bytes);
	kb_json_u64(json, "written", stats->written);
	kb_json_u64(json, "kept", kept);
	kb_json_u64(json, "lost", kb_stats_lost(stats));
	kb_json_double(json, "kept_seconds", reach);
	kb_json_end(json);
}

static int show_status(bool people)
{
	struct status status = { .pid = find_recorder() };
	struct kb_json json;

	if (!status.pid) {
		cli_warn("no flight recorder runs");
		return CLI_DAMAGED;
	}
	if (get_status(&status) || lines_open(&json, people))
		return CLI_IMPOSSIBLE;
	print_status(&json, &status);
	return lines_close(&json, CLI_OK);
}

static int stop(void)
{
	const char *dir;
	pid_t pid = find_recorder_dir(&dir);
	bool is_service = !strcmp(dir, SERVICE_DIR);
	int log;

	if (!pid)
		return cli_fail("no flight recorder runs");
	if (kill(pid, SIGTERM))
		return errno == EPERM ?
		       cli_fail("the flight recorder (process %d) is another user's: stop it as root%s",
				pid, is_service ? ", or by 'systemctl stop kbarman-flight'" : "") :
		       cli_fail("can't stop process %d: %s", pid, strerror(errno));
	for (int waited = 0; find_recorder() == pid; waited += 20) {
		if (waited > END_MS)
			return cli_fail("process %d does not end; see %s", pid,
					path_in(dir, "flight.log"));
		nap();
	}
	log = open(path_in(dir, "flight.log"), O_RDONLY | O_CLOEXEC);
	if (log >= 0 && cli_verbosity() >= 0)
		show_log(log);
	unlink(path_in(dir, "flight.pid"));
	if (is_service)
		cli_note("the recorder was the service kbarman-flight: its capture is in the "
			 "folder of the service (/var/lib/kbarman in the package)");
	return CLI_OK;
}

int cmd_flight(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	bool people = true;
	int option;

	if (!strcmp(what, "start"))
		return start(argc - 2, argv + 2);
	if (!strcmp(what, "run"))
		return hold_pid_file() ?: run_recorder(argc - 2, argv + 2);
	if (*what == '-' && has_trigger(argc - 1, argv + 1))
		return hold_pid_file() ?: run_recorder(argc - 1, argv + 1);
	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		if (option == 'o')
			cli_warn("-o is an option of start and run");
		if (option != 'j')
			return cli_usage(option == 'h', &usage);
		people = false;
	}
	what = optind == argc - 1 ? argv[optind] : "";
	if (!strcmp(what, "status"))
		return show_status(people);
	if (!strcmp(what, "stop"))
		return stop();
	cli_warn("give one of start, status, stop and run");
	return cli_usage(false, &usage);
}
