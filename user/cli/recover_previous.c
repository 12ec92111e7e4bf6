// SPDX-License-Identifier: MIT
/*
 * The memory is read by a process that has neither the device nor other rights: anybody may have recorded it, and what
 * ended it may have damaged it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kbarman/device.h>

#include "cli/base/cli.h"
#include "cli/recover_memory.h"

/* Both halves of the memory. */
struct formers {
	struct kb_device *device;
	struct kbarman_former list[KB_FORMERS];
	unsigned int nr;
};

/* When it began, for people and names of files. */
static void began(const struct kbarman_former *former, char text[32])
{
	time_t seconds = (time_t)(former->began_ns / 1000000000);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || !strftime(text, 32, "%Y%m%dT%H%M%SZ", &tm))
		snprintf(text, 32, "%" PRIu64, (uint64_t)former->began_ns);
}

/* Opens those that are wanted. Returns an exit status, after a message about each that can't be read. */
static int open_formers(struct formers *formers, int wanted)
{
	int status = CLI_OK, ret;
	struct kb_error err;

	if (kb_device_open(&formers->device, &err))
		return cli_fail_error(&err);
	for (unsigned int number = 0; number < KB_FORMERS; number++) {
		struct kbarman_former *former = &formers->list[formers->nr];

		if (wanted >= 0 && number != (unsigned int)wanted)
			continue;
		*former = (struct kbarman_former){ .flags = KBARMAN_FORMER_OPEN, .number = number };
		ret = kb_device_former(formers->device, former, &err);
		formers->nr += !ret;
		if (ret && ret != -ENOENT)
			status = cli_fail_error(&err);
		if (ret && ret != -ENOENT && ret != -EPERM)
			break;
	}
	if (!status && !formers->nr)
		status = cli_fail("the memory that survives a reset has no recording of before this boot%s",
				  wanted >= 0 ? " with that number: 'kbarman list --sessions' shows them" : "");
	return status;
}

static int recover_here(const struct kbarman_former *former, const char *output)
{
	struct recover_memory how = { .former = former, .output = output };
	char name[80], when[32];

	began(former, when);
	snprintf(name, sizeof(name), "the memory of the recording that began %s", when);
	how.file = name;
	return recover_memory(&how);
}

/* The same in another process. */
static int recover_elsewhere(struct formers *formers, unsigned int i, const char *output)
{
	pid_t parent = getpid(), pid = fork();
	int status;

	if (pid < 0)
		return cli_fail("can't start a process: %s", strerror(errno));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(CLI_IMPOSSIBLE);
		kb_device_close(formers->device);
		exit(recover_here(&formers->list[i], output));
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return cli_fail("waitpid: %s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : CLI_IMPOSSIBLE;
}

/* Frees the memory, as soon as the disk has what was in it. */
static int release(struct formers *formers, unsigned int i, const char *output)
{
	struct kbarman_former *former = &formers->list[i];
	int fd = open(output, O_RDONLY | O_CLOEXEC), failed = fd < 0 || syncfs(fd) ? errno : 0;
	struct kb_error err;

	if (fd >= 0)
		close(fd);
	if (failed)
		return cli_fail("can't sync %s: %s: the memory is kept", output, strerror(failed));
	former->flags = KBARMAN_FORMER_RELEASE;
	return kb_device_former(formers->device, former, &err) ? cli_fail_error(&err) : CLI_OK;
}

static int recover_former(struct formers *formers, unsigned int i, const struct recover_previous *how)
{
	char when[32], *name = NULL;
	const char *output = how->output;
	int status = CLI_IMPOSSIBLE;

	began(&formers->list[i], when);
	if (!output && asprintf(&name, "previous-%s.cap", when) < 0)
		name = NULL;
	if (output || (output = name = cli_output_new(name)))
		status = recover_elsewhere(formers, i, output);
	close(formers->list[i].fd);
	/* A crash may well leave records that are torn, and nothing mends them later. */
	if (how->release && status != CLI_IMPOSSIBLE && release(formers, i, output))
		status = CLI_DAMAGED;
	free(name);
	return status;
}

/* Returns the worst of @status and of all. */
static int recover_all(struct formers *formers, const struct recover_previous *how, int status, bool *any)
{
	/* Backwards: those behind one that is released may get its number. */
	for (unsigned int i = formers->nr; i--;) {
		int its = recover_former(formers, i, how);

		*any |= its != CLI_IMPOSSIBLE;
		status = its > status ? its : status;
	}
	return status;
}

int recover_previous(const struct recover_previous *how)
{
	struct formers formers = { 0 };
	bool any = false;
	int status;

	if (how->release && how->output && !strcmp(how->output, "-"))
		return cli_fail("--release needs a capture on a disk: give a file with -o, or leave -o away");
	status = open_formers(&formers, how->number);
	if (formers.nr > 1 && how->output)
		status = cli_fail("there are %u recordings of before this boot: choose one with --previous=0 or "
				  "--previous=1 ('kbarman list --sessions' shows them), or leave -o away", formers.nr);
	else
		status = recover_all(&formers, how, status, &any);
	kb_device_close(formers.device);
	return status == CLI_IMPOSSIBLE && any ? CLI_DAMAGED : status;
}
