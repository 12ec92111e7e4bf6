// SPDX-License-Identifier: MIT
/*
 * What Linux says of all tasks, again and again: `sampler OUTPUT STOP`, until the file STOP is there.
 * A line is a task that waits: from when to when it was asked (ns of CLOCK_MONOTONIC_RAW), its number,
 * and that of its system call (-1: none). It did not run meanwhile.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Returns the number of bytes, or 0. */
static size_t read_of(const char *task, const char *name, char *text, size_t size)
{
	char path[600];
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/%s", task, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	length = read(fd, text, size - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	return length > 0 ? (size_t)length : 0;
}

/* How often the task gave up its CPU; -1: it is gone. */
static long switches(const char *task)
{
	static const char key[] = "\nvoluntary_ctxt_switches:";
	char text[8192];
	const char *found = read_of(task, "status", text, sizeof(text)) ? strstr(text, key) : NULL;

	return found ? strtol(found + strlen(key), NULL, 10) : -1;
}

static void sample(const char *task, FILE *output)
{
	long before = switches(task);
	long long from = now(), until;
	char text[256];

	if (before < 0 || !read_of(task, "syscall", text, sizeof(text)))
		return;
	until = now();
	if (strncmp(text, "running", strlen("running")) != 0 && switches(task) == before)
		fprintf(output, "%lld %lld %s %ld\n", from, until, task, strtol(text, NULL, 10));
}

static void sample_threads(const char *process, FILE *output)
{
	const struct dirent *entry;
	char path[300];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%s/task", process);
	folder = opendir(path);
	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			sample(entry->d_name, output);
	if (folder)
		closedir(folder);
}

int main(int argc, char **argv)
{
	FILE *output = argc == 3 ? fopen(argv[1], "we") : NULL;
	const struct dirent *entry;
	DIR *folder;

	if (!output)
		return 2;
	while (access(argv[2], F_OK)) {
		folder = opendir("/proc");
		while (folder && (entry = readdir(folder)))
			if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
				sample_threads(entry->d_name, output);
		if (folder)
			closedir(folder);
		usleep(30000);
	}
	return fclose(output) ? 1 : 0;
}
