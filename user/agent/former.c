// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kbarman/barman.h>

#include "agent/former.h"
#include "agent/say.h"
#include "base/program.h"

#define SESSION		"before_boot"	/* in the names of files */

/* ---- what the folder has ---- */

static bool is_of(const char *path, uint64_t capture)
{
	struct kb_barman *barman;
	const char *fact;
	bool is = false;

	if (kb_barman_open(&barman, path, NULL))
		return false;
	fact = kb_barman_fact(barman, "stamp");
	is = fact && strtoull(fact, NULL, 16) == capture;
	kb_barman_close(barman);
	return is;
}

/* Also what a former agent wrote and did not release any more, and what was taken away since. */
static bool is_written(const struct agent_former *former)
{
	struct agent_file *files;
	int nr = agent_folder_list(former->folder, &files);
	char path[PATH_MAX];
	bool is = is_of(agent_folder_last(former->folder, former->session, path), former->its.capture);

	for (int i = 0; i < nr && !is; i++)
		is = !files[i].part && !strcmp(files[i].session, former->session) &&
		     is_of(agent_folder_path(former->folder, files[i].name, path), former->its.capture);
	free(files);
	return is;
}

/* ---- one recording ---- */

__attribute__((format(printf, 2, 3)))
static void stays(struct agent_former *former, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(former->trouble, sizeof(former->trouble), format, args);
	va_end(args);
	agent_say(AGENT_ERROR, "what was recorded before this boot stays in its memory: %s", former->trouble);
	agent_folder_make_room(former->folder);
}

static void release(struct agent_former *former)
{
	struct kb_error err;

	former->its.flags = KBARMAN_FORMER_RELEASE;
	if (kb_device_former(former->device, &former->its, &err))
		stays(former, "%s", kb_error_text(&err));
	else
		agent_say(AGENT_NOTICE, "session %s: %swhat was recorded before this boot is written, and its memory "
			  "is free", former->session, former->session == former->crashes ? "boot:crash: " : "");
}

__attribute__((noreturn))
static void recover(const struct agent_former *former)
{
	char previous[32], path[PATH_MAX];
	char *words[] = { "kbarman", "recover", previous, "-o", path, NULL };
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setpriority(PRIO_PROCESS, 0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	snprintf(previous, sizeof(previous), "--previous=%" PRIu32, former->its.number);
	agent_folder_path(former->folder, former->name, path);
	kb_program_become(words[0], words);
	agent_say(AGENT_ERROR, "can't start '%s': %s", words[0], strerror(errno));
	_exit(2);
}

/* False: it stays. */
static bool begin(struct agent_former *former)
{
	/* It is written by another process, under another name until it is whole. */
	int fd = agent_folder_create(former->folder, former->session, former->name);

	if (fd < 0) {
		stays(former, "no file can be made: %s", strerror(-fd));
		return false;
	}
	close(fd);
	former->pid = fork();
	if (!former->pid)
		recover(former);
	if (former->pid > 0)
		return true;
	former->pid = 0;
	agent_folder_remove(former->folder, former->name);
	stays(former, "no process can be started: %s", strerror(errno));
	return false;
}

/* Goes on with the next one. Backwards: those behind one that is released may get its number. */
static void go_on(struct agent_former *former)
{
	while (former->its.number--) {
		former->its.flags = 0;
		if (kb_device_former(former->device, &former->its, NULL))
			continue;
		former->session = *former->crashes && former->its.end != KBARMAN_END_REBOOT ? former->crashes : SESSION;
		if (is_written(former))
			release(former);
		else if (begin(former))
			return;
	}
	kb_device_close(former->device);
	former->device = NULL;
}

/* ---- all ---- */

void agent_former_begin(struct agent_former *former, struct agent_folder *folder)
{
	former->folder = folder;
	if (kb_device_open(&former->device, NULL))
		return;
	former->its.number = KB_FORMERS;
	go_on(former);
}

/* The file is there, with torn records left out (status 1): nothing mends them later. */
static bool take(struct agent_former *former, int status)
{
	struct agent_folder_counts counts;
	char path[PATH_MAX];
	int fd = -1;

	if (WIFEXITED(status) && WEXITSTATUS(status) < 2)
		fd = open(agent_folder_path(former->folder, former->name, path), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		agent_folder_remove(former->folder, former->name);
		stays(former, "'kbarman recover' made no capture of it");
		return false;
	}
	agent_folder_finish(former->folder, fd, former->name);
	agent_folder_drain(former->folder);
	agent_folder_counts(former->folder, &counts);
	if (!counts.trouble[0] && is_written(former)) {
		release(former);
		return true;
	}
	stays(former, "%s", counts.trouble[0] ? counts.trouble : "its capture is that of another one");
	return false;
}

bool agent_former_ended(struct agent_former *former)
{
	bool written;
	int status;

	if (!former->pid || waitpid(former->pid, &status, WNOHANG) != former->pid)
		return false;
	former->pid = 0;
	written = take(former, status) && former->session == former->crashes;
	go_on(former);
	return written;
}

void agent_former_end(struct agent_former *former)
{
	if (former->pid) {
		kill(former->pid, SIGTERM);
		waitpid(former->pid, NULL, 0);
		agent_folder_remove(former->folder, former->name);
	}
	kb_device_close(former->device);
}
