/* SPDX-License-Identifier: MIT */
/*
 * What a machine does while a test is at work: processes that wake each other through pipes,
 * hackbench's load, and processes that are made, map things and end.
 */
#ifndef KBARMAN_NOISE_H
#define KBARMAN_NOISE_H

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "lib.h"

#define NOISE_MAX	256
#define NOISE_FAN	10	/* senders of a group, and receivers */

struct noise {
	pid_t processes[NOISE_MAX];
	unsigned int nr;
	int nice;	/* whatever that of the test */
};

static inline pid_t noise_process(struct noise *noise)
{
	pid_t pid;

	if (noise->nr == NOISE_MAX)
		lost("no more than %d processes of noise", NOISE_MAX);
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		lost("no process");
	if (pid) {
		noise->processes[noise->nr++] = pid;
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpriority(PRIO_PROCESS, 0, noise->nice);
	return 0;
}

/* Waits for a byte, passes it on, for good. */
static inline void noise_pass(int from, int to)
{
	char byte;

	while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1)
		;
	_exit(0);
}

/* @groups rings of three processes each, two of whose bytes are always under way. */
static inline void noise_pipes(struct noise *noise, unsigned int groups)
{
	while (groups--) {
		int pipes[3][2], i;

		for (i = 0; i < 3; i++)
			if (pipe2(pipes[i], O_CLOEXEC))
				lost("no pipe");
		for (i = 0; i < 3; i++)
			if (!noise_process(noise))
				noise_pass(pipes[i][0], pipes[(i + 1) % 3][1]);
		if (write(pipes[0][1], "ab", 2) != 2)
			lost("a pipe that is full at once");
		for (i = 0; i < 3; i++) {
			close(pipes[i][0]);
			close(pipes[i][1]);
		}
	}
}

/*
 * What `hackbench -g GROUPS -f 10` does, for good: each sender of a group gives each of its receivers
 * a hundred bytes in turn, through sockets. Nearly all of them want to run at any time.
 */
static inline void noise_hackbench(struct noise *noise, unsigned int groups)
{
	char message[100] = "";

	while (groups--) {
		int sockets[NOISE_FAN][2], i, to;

		for (i = 0; i < NOISE_FAN; i++) {
			if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets[i]))
				lost("no sockets");
			if (noise_process(noise))
				continue;
			while (read(sockets[i][0], message, sizeof(message)) > 0)
				;
			_exit(1);
		}
		for (i = 0; i < NOISE_FAN; i++)
			if (!noise_process(noise))
				for (to = 0;; to = (to + 1) % NOISE_FAN)
					if (write(sockets[to][1], message, sizeof(message)) < 0)
						_exit(1);
		for (i = 0; i < NOISE_FAN; i++) {
			close(sockets[i][0]);
			close(sockets[i][1]);
		}
	}
}

/* A process whose children map and unmap code, change their names and end, one by one. */
static inline void noise_forks(struct noise *noise)
{
	char name[16];
	unsigned int i;

	if (noise_process(noise))
		return;
	for (i = 0;; i++) {
		pid_t child = fork();
		int fd;

		if (child > 0) {
			waitpid(child, NULL, 0);
			continue;
		}
		snprintf(name, sizeof(name), "noise-%u", i % 1000);
		prctl(PR_SET_NAME, name);
		fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		munmap(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0), 4096);
		_exit(0);
	}
}

/* All of it was there until now. */
static inline void noise_end(struct noise *noise)
{
	unsigned int i;
	int status;

	for (i = 0; i < noise->nr; i++)
		kill(noise->processes[i], SIGKILL);
	for (i = 0; i < noise->nr; i++)
		if (waitpid(noise->processes[i], &status, 0) < 0 || status != SIGKILL)
			lost("noise that ended before its time: status %#x", status);
	noise->nr = 0;
}

#endif
