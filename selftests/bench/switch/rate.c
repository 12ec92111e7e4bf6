// SPDX-License-Identifier: MIT
/*
 * How fast a program that prints a line a record does so:
 *
 *	rate COMMAND...
 *
 * Runs it once to count its lines, then ROUNDS times into nowhere, and prints the lines and
 * the lines per second of processor time, its own start included, of the best run. Then the seconds
 * of that run, and the most MiB that any run had in memory.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS	5

static void __attribute__((noreturn)) die(const char *what)
{
	perror(what);
	exit(1);
}

static pid_t start(char **command, int out)
{
	pid_t pid = fork();

	if (pid < 0)
		die("rate: fork");
	if (!pid) {
		dup2(out, STDOUT_FILENO);
		execvp(command[0], command);
		die(command[0]);
	}
	close(out);
	return pid;
}

static long most_kib;

/* Seconds of processor time that it took. */
static double finish(pid_t pid)
{
	struct rusage usage;
	int status;

	if (wait4(pid, &status, 0, &usage) < 0 || status) {
		fprintf(stderr, "rate: the program failed\n");
		exit(1);
	}
	if (usage.ru_maxrss > most_kib)
		most_kib = usage.ru_maxrss;
	return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static unsigned long long count_lines(int fd)
{
	unsigned long long lines = 0;
	static char text[1 << 16];
	ssize_t got;

	while ((got = read(fd, text, sizeof(text))) > 0)
		for (char *at = text; (at = memchr(at, '\n', text + got - at)); at++)
			lines++;
	return lines;
}

int main(int argc, char **argv)
{
	unsigned long long lines;
	double best = 1e9;
	int ends[2];
	pid_t pid;

	if (argc < 2) {
		fprintf(stderr, "usage: rate COMMAND...\n");
		return 2;
	}
	if (pipe2(ends, O_CLOEXEC))
		die("rate: pipe");
	pid = start(argv + 1, ends[1]);
	lines = count_lines(ends[0]);
	finish(pid);
	for (int i = 0; i < ROUNDS; i++) {
		double took = finish(start(argv + 1, open("/dev/null", O_WRONLY | O_CLOEXEC)));

		best = took < best ? took : best;
	}
	printf("%llu %.0f %.3f %.1f\n", lines, lines / best, best, most_kib / 1024.0);
	return 0;
}
