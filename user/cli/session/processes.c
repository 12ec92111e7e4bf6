// SPDX-License-Identifier: MIT
/*
 * Watches processes that are not children of this one. Each has a pidfd, which also reports the end
 * of a process that stays as a zombie. All pidfds are in one epoll.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/session/processes.h"

#define PIDS_MAX	4096

void processes_init(struct processes *processes)
{
	*processes = (struct processes){ .fd = -1 };
}

int processes_parse(struct processes *processes, const char *text)
{
	const char *at = text;
	char *end;

	processes->pids = calloc(PIDS_MAX, sizeof(*processes->pids));
	if (!processes->pids)
		return cli_fail("out of memory");
	for (;; at = end + 1) {
		unsigned long pid = *at >= '0' && *at <= '9' ? strtoul(at, &end, 10) : 0;

		if (!pid || pid > INT32_MAX || (*end && *end != ','))
			return cli_fail("-p %s: not a list of process numbers, as in 12,34", text);
		if (processes->nr == PIDS_MAX)
			return cli_fail("-p: at most %d processes", PIDS_MAX);
		processes->pids[processes->nr++] = (uint32_t)pid;
		if (!*end)
			return 0;
	}
}

int processes_watch(struct processes *processes)
{
	processes->fd = epoll_create1(EPOLL_CLOEXEC);
	if (processes->fd < 0)
		return cli_fail("epoll: %s", strerror(errno));
	for (uint32_t i = 0; i < processes->nr; i++) {
		struct epoll_event event = { .events = EPOLLIN };
		int fd = (int)syscall(SYS_pidfd_open, processes->pids[i], 0);

		if (fd < 0 && errno == ESRCH)
			return cli_fail("-p: there is no process %u", processes->pids[i]);
		if (fd < 0)
			return cli_fail("-p: process %u can't be watched (is it a thread?): %s",
					processes->pids[i], strerror(errno));
		event.data.fd = fd;
		if (epoll_ctl(processes->fd, EPOLL_CTL_ADD, fd, &event)) {
			close(fd);
			return cli_fail("epoll: %s", strerror(errno));
		}
		processes->nr_alive++;
	}
	return 0;
}

bool processes_have_ended(struct processes *processes)
{
	struct epoll_event event;

	while (epoll_wait(processes->fd, &event, 1, 0) == 1) {
		close(event.data.fd);
		processes->nr_alive--;
	}
	return !processes->nr_alive;
}

void processes_close(struct processes *processes)
{
	if (processes->fd >= 0)
		close(processes->fd);
	free(processes->pids);
	processes_init(processes);
}
