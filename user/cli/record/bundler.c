// SPDX-License-Identifier: MIT
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/record/bundler.h"
#include "sym/symbolizer/bundle.h"

#define NOT_STARTED	127

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
	_exit(NOT_STARTED);
}

/* The job has ended. One that could not say why is spoken for here, and leaves nothing behind. */
static void end(struct bundler_job *job, int status)
{
	char *temporary;

	if (WIFSIGNALED(status))
		cli_warn("%s has no symbols: signal %d ended the process that saves them; run 'kbarman "
			 "bundle' on it", job->path, WTERMSIG(status));
	else if (WEXITSTATUS(status) == NOT_STARTED)
		cli_warn("%s has no symbols: no process could be started; run 'kbarman bundle' on it",
			 job->path);
	if (WIFSIGNALED(status) && asprintf(&temporary, "%s" KB_BUNDLE_TEMPORARY, job->path) >= 0) {
		unlink(temporary);
		free(temporary);
	}
	*job = (struct bundler_job){ 0 };
}

static struct bundler_job *free_job(struct bundler *bundler)
{
	struct bundler_job *found = NULL;
	int status;

	for (struct bundler_job *job = bundler->jobs; job < bundler->jobs + BUNDLER_JOBS; job++) {
		if (job->pid && waitpid(job->pid, &status, WNOHANG) == job->pid)
			end(job, status);
		if (!job->pid)
			found = job;
	}
	return found;
}

void bundler_begin(struct bundler *bundler, const char *path)
{
	struct bundler_job *job = free_job(bundler);
	pid_t pid;
	struct stat st;

	if (!strcmp(path, "-") || stat(path, &st) || !S_ISREG(st.st_mode))
		return;
	if (!job) {
		cli_warn("%s has no symbols, too many captures came at once: run 'kbarman bundle' on it",
			 path);
		return;
	}
	pid = fork();
	if (!pid)
		child(bundler, path);
	if (pid < 0) {
		cli_warn("%s has no symbols: %s; run 'kbarman bundle' on it", path, strerror(errno));
		return;
	}
	snprintf(job->path, sizeof(job->path), "%s", path);
	job->pid = pid;
}

void bundler_wait(struct bundler *bundler)
{
	for (struct bundler_job *job = bundler->jobs; job < bundler->jobs + BUNDLER_JOBS; job++) {
		pid_t ended = 0;
		int status;

		while (job->pid && (ended = waitpid(job->pid, &status, 0)) < 0 && errno == EINTR)
			;
		if (ended > 0)
			end(job, status);
	}
}
