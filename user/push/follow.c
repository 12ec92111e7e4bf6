// SPDX-License-Identifier: MIT
/*
 * See follow.h. A capture is done when its requests have a fate: sent, in the spool, or lost, which the
 * process that had it has said. It is noted then; if the note is lost with the machine, the capture is sent
 * again. A capture that can't be read, or whose process is killed, is left until the next start.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bisect.h"
#include "base/clock.h"
#include "base/io/create.h"
#include "cli/base/cli.h"
#include "push/follow.h"
#include "push/request.h"

#define NOTES		"followed"
#define SUFFIX		".cap"
#define KILLED		-1
#define LINES_MORE	32	/* of notes, beside twice those that are needed */
#define PAUSE_S		60	/* after which the folder is looked at, and the spool sent, in any case */

struct done {
	char *name;
	bool noted;			/* false: it can't be read */
};

struct state {
	const struct push_follow *follow;
	char notes[PATH_MAX];
	FILE *file;			/* of them; NULL: can't be written, which was said */
	size_t nr_lines, most_lines;	/* in it; after which it is written anew */
	struct done *done;		/* captures that were sent, or can't be read, by name */
	size_t nr_done, room;
	int events;			/* inotify */
	bool kept;			/* the server did not take what was sent last */
	sigset_t others;		/* blocked signals but those that end the process */
};

static volatile sig_atomic_t stop;
static volatile pid_t child;

/* The process that sends keeps what it has not sent; a second signal ends it at once. */
static void on_signal(int number)
{
	stop = number;
	if (child > 0)
		kill(child, number);
}

/* From here on a signal comes in wait_for_events(), or while a process sends. */
static void catch_signals(struct state *state)
{
	const struct sigaction action = { .sa_handler = on_signal };
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, &state->others);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* Returns the exit status of the process, or KILLED. */
static int send_in_process(const struct state *state, const char *file, bool patient)
{
	const struct push_follow *follow = state->follow;
	sigset_t blocked;
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return cli_fail("can't start a process: %s", strerror(errno));
	if (!pid) {
		/* a terminal's signal comes by on_signal() alone: the second one ends this process at once */
		setpgid(0, 0);
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		sigprocmask(SIG_SETMASK, &state->others, NULL);
		status = follow->send(follow->context, file, patient);
		fflush(NULL);
		_exit(status);
	}
	child = pid;
	sigprocmask(SIG_SETMASK, &state->others, &blocked);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	child = 0;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (!stop)
		cli_warn("%s: signal %d ended the process that sent it: the next start sends it again",
			 file ?: follow->spool, WTERMSIG(status));
	return KILLED;
}

/* ---- what was sent */

/* The number of the first name that is not before @name. */
static size_t place_of(const struct state *state, const char *name)
{
	return KB_BISECT(i, (size_t)0, state->nr_done, strcmp(state->done[i].name, name) < 0);
}

static bool is_done(const struct state *state, const char *name)
{
	size_t at = place_of(state, name);

	return at < state->nr_done && !strcmp(state->done[at].name, name);
}

static void set_done(struct state *state, const char *name, bool noted)
{
	size_t at = place_of(state, name);
	struct done done = { .noted = noted };

	if (is_done(state, name) || !KB_ARRAY_ROOM(state->done, state->room, state->nr_done + 1))
		return;
	done.name = strdup(name);
	if (!done.name)
		return;
	memmove(state->done + at + 1, state->done + at, (state->nr_done++ - at) * sizeof(*state->done));
	state->done[at] = done;
}

/* Forgets captures that are gone. */
static void forget(struct state *state)
{
	size_t left = 0;

	for (size_t i = 0; i < state->nr_done; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", state->follow->folder, state->done[i].name);
		if (access(path, F_OK) && errno == ENOENT)
			free(state->done[i].name);
		else
			state->done[left++] = state->done[i];
	}
	state->nr_done = left;
}

/* Writes the notes anew, without captures that are gone. Returns 0, or a negative errno: the old ones stay. */
static int write_notes(struct state *state)
{
	char path[PATH_MAX + sizeof(".part")];
	FILE *file;
	int fd, error;

	forget(state);
	snprintf(path, sizeof(path), "%s.part", state->notes);
	fd = kb_create(AT_FDCWD, path, KB_CREATE_NEW, 0600);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file) {
		if (fd >= 0)
			close(fd);
		return fd < 0 ? fd : -ENOMEM;
	}
	state->nr_lines = 0;
	for (size_t i = 0; i < state->nr_done; i++)
		if (state->done[i].noted)
			state->nr_lines += fprintf(file, "%s\n", state->done[i].name) > 0;
	state->most_lines = 2 * state->nr_lines + LINES_MORE;
	/* else a crash could leave an empty file, and everything is sent again */
	error = fflush(file) || fsync(fd) || rename(path, state->notes) ? -errno : 0;
	if (error) {
		fclose(file);
		return error;
	}
	if (state->file)
		fclose(state->file);
	state->file = file;
	return 0;
}

static void note(struct state *state, const char *name)
{
	if (state->file && fprintf(state->file, "%s\n", name) > 0 && !fflush(state->file)) {
		if (++state->nr_lines > state->most_lines)
			write_notes(state);
		return;
	}
	if (!state->file)
		return;
	cli_warn("%s: %s: captures may be sent again after the next start", state->notes, strerror(errno));
	fclose(state->file);
	state->file = NULL;
}

/* Returns an exit status. */
static int begin_notes(struct state *state)
{
	const char *spool = state->follow->spool;
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	FILE *old;
	int error;

	if (snprintf(state->notes, sizeof(state->notes), "%s/" NOTES, spool) >= (int)sizeof(state->notes))
		return cli_fail("%s: %s", spool, strerror(ENAMETOOLONG));
	old = fopen(state->notes, "re");
	while (old && (length = getline(&line, &room, old)) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (*line)
			set_done(state, line, true);
	}
	free(line);
	if (old)
		fclose(old);
	error = write_notes(state);
	return error ? cli_fail("%s: %s", state->notes, strerror(-error)) : 0;
}

/* ---- the folder */

static bool is_file(const struct state *state, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", state->follow->folder, name);
	return !stat(path, &st) && S_ISREG(st.st_mode);
}

static int is_capture(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name), end = strlen(SUFFIX);

	return entry->d_name[0] != '.' && length > end && !strcmp(entry->d_name + length - end, SUFFIX) &&
	       !strchr(entry->d_name, '\n');
}

static void send_capture(struct state *state, const char *name)
{
	char path[PATH_MAX];
	bool is_known;
	int status;

	snprintf(path, sizeof(path), "%s/%s", state->follow->folder, name);
	status = send_in_process(state, path, !state->kept);
	state->kept = status == PUSH_STATUS_KEPT;
	if (stop && (status == CLI_IMPOSSIBLE || status == KILLED))
		return;
	/* what can't be read may be readable another time */
	is_known = status != CLI_IMPOSSIBLE && status != KILLED;
	set_done(state, name, is_known);
	if (is_known)
		note(state, name);
}

static void send_folder(struct state *state)
{
	struct dirent **names = NULL;
	int nr = scandir(state->follow->folder, &names, is_capture, alphasort);

	if (nr < 0)
		cli_warn("%s: %s: it is looked at again in %d s", state->follow->folder, strerror(errno), PAUSE_S);
	for (int i = 0; i < nr; i++) {
		if (!stop && !is_done(state, names[i]->d_name) && is_file(state, names[i]->d_name))
			send_capture(state, names[i]->d_name);
		free(names[i]);
	}
	free(names);
}

/* Until something has come into the folder, or was written there, or a while is over. */
static void wait_for_events(const struct state *state)
{
	struct pollfd fd = { .fd = state->events, .events = POLLIN };
	const struct timespec pause = { .tv_sec = PAUSE_S };
	char buffer[4096];

	if (ppoll(&fd, 1, &pause, &state->others) > 0)
		while (read(state->events, buffer, sizeof(buffer)) > 0)
			;
}

/* Before it is looked at: what comes afterwards makes an event. A folder that was made anew has another watch. */
static void watch(const struct state *state)
{
	inotify_add_watch(state->events, state->follow->folder, IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR);
}

static void go_on(struct state *state)
{
	int64_t next = kb_clock_ms() + PAUSE_S * 1000;

	while (!stop) {
		watch(state);
		if (state->kept && kb_clock_ms() >= next) {
			state->kept = send_in_process(state, NULL, false) == PUSH_STATUS_KEPT;
			next = kb_clock_ms() + PAUSE_S * 1000;
		}
		send_folder(state);
		if (!stop)
			wait_for_events(state);
	}
}

int push_follow(const struct push_follow *follow)
{
	struct state state = { .follow = follow };
	int status;

	if (access(follow->folder, R_OK | X_OK))
		return cli_fail("%s: %s", follow->folder, strerror(errno));
	state.events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (state.events < 0)
		return cli_fail("inotify: %s: raise fs.inotify.max_user_instances", strerror(errno));
	catch_signals(&state);
	/* this makes the folder of the spool, and shows that all is there to send */
	status = send_in_process(&state, NULL, false);
	state.kept = status == PUSH_STATUS_KEPT;
	status = status == CLI_IMPOSSIBLE ? status : begin_notes(&state);
	if (!status)
		go_on(&state);
	if (state.file)
		fclose(state.file);
	for (size_t i = 0; i < state.nr_done; i++)
		free(state.done[i].name);
	free(state.done);
	close(state.events);
	return status;
}
