// SPDX-License-Identifier: MIT
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bundler.h"
#include "cli.h"

__attribute__((noreturn))
static void child(const struct bundler *bundler, const char *path)
{
	sigset_t none;

	/* not before others, as the recorder is, but as it was begun */
	setpriority(PRIO_PROCESS, 0, bundler->nice);
	/* What ends the recorder is for the recorder, which waits for this process. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execl("/proc/self/exe", "kbarman", "bundle", "--quiet", "--", path, NULL);
	_exit(127);
}

static pid_t *free_job(struct bundler *bundler)
{
	pid_t *found = NULL;

	for (pid_t *job = bundler->jobs; job < bundler->jobs + BUNDLER_JOBS; job++) {
		if (*job && waitpid(*job, NULL, WNOHANG))
			*job = 0;
		if (!*job)
			found = job;
	}
	return found;
}

void bundler_begin(struct bundler *bundler, const char *path)
{
	pid_t *job = free_job(bundler);
	struct stat st;

	if (!strcmp(path, "-") || stat(path, &st) || !S_ISREG(st.st_mode))
		return;
	if (!job) {
		cli_warn("%s has no symbols, too many captures came at once: run 'kbarman bundle' on it",
			 path);
		return;
	}
	*job = fork();
	if (!*job)
		child(bundler, path);
	if (*job < 0) {
		cli_warn("%s has no symbols: %s; run 'kbarman bundle' on it", path, strerror(errno));
		*job = 0;
	}
}

void bundler_wait(struct bundler *bundler)
{
	for (pid_t *job = bundler->jobs; job < bundler->jobs + BUNDLER_JOBS; job++) {
		while (*job && waitpid(*job, NULL, 0) < 0 && errno == EINTR)
			;
		*job = 0;
	}
}
