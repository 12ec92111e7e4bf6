// SPDX-License-Identifier: MIT
/*
 * PMUs without hardware, to be preloaded: so that what `kbarman stat` makes of events of several
 * kinds of cores, of groups and of multiplexing can be tested on any machine.
 *
 *	FAKE_SYSFS	files below it stand for those of /sys
 *	FAKE_EVENTS	this file has a line for each event that there is:
 *			TYPE CONFIG FIRST_CPU LAST_CPU VALUE PERCENT
 *			PERCENT is the part of the time in which it is counted. Events of a
 *			group are counted for as long as its first one
 *	FAKE_GROUP	most events of a group (100)
 *	FAKE_GROUP_CPU	only this CPU has so small groups
 *	FAKE_TOPDOWN	Intel's parts of the slots need a group that the slots lead
 *	FAKE_PARANOID	2: only root may count the kernel and CPUs; 3: or anything with a PMU
 *
 * All other events are those of the kernel.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FDS_MAX		1024
#define ENABLED		1000000000

static struct counter {
	bool open;
	int leader;
	uint64_t config, format, value, running;
} counters[FDS_MAX];

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* ---- files of sysfs ---- */

static const char *find(const char *path, char other[PATH_MAX])
{
	const char *root = getenv("FAKE_SYSFS");

	if (!root || strncmp(path, "/sys/", 5))
		return path;
	snprintf(other, PATH_MAX, "%s%s", root, path + 4);
	if (!access(other, F_OK) || !strncmp(path, "/sys/bus/event_source", 21))
		return other;
	return path;
}

int open64(const char *path, int flags, ...)
{
	int (*real)(const char *, int, int) = next("open64");
	char other[PATH_MAX];
	va_list arguments;
	int mode = 0;

	if (flags & O_CREAT) {
		va_start(arguments, flags);
		mode = va_arg(arguments, int);
		va_end(arguments);
	}
	return real(find(path, other), flags, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
	FILE *(*real)(const char *, const char *) = next("fopen64");
	char other[PATH_MAX];

	return real(find(path, other), mode);
}

int scandir64(const char *path, struct dirent64 ***names, int (*filter)(const struct dirent64 *),
	      int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
	__typeof__(scandir64) *real = next("scandir64");
	char other[PATH_MAX];

	return real(find(path, other), names, filter, compare);
}

/* ---- counters ---- */

static bool is_ours(int fd)
{
	return fd >= 0 && fd < FDS_MAX && counters[fd].open;
}

static int group_size(int leader)
{
	int nr = 0;

	for (int fd = 0; fd < FDS_MAX; fd++)
		nr += counters[fd].open && counters[fd].leader == leader;
	return nr;
}

static bool find_event(const struct perf_event_attr *attr, int cpu, uint64_t *value,
		       unsigned int *percent)
{
	const char *path = getenv("FAKE_EVENTS");
	FILE *file = path ? fopen(path, "r") : NULL;
	unsigned int type;
	uint64_t config;
	bool found = false;
	int first, last;

	while (file && !found &&
	       fscanf(file, "%u %" SCNi64 " %d %d %" SCNu64 " %u", &type, (int64_t *)&config, &first,
		      &last, value, percent) == 6)
		found = type == attr->type && config == attr->config &&
			(cpu < 0 || (cpu >= first && cpu <= last));
	if (file)
		fclose(file);
	return found;
}

static int setting(const char *name, int none)
{
	const char *text = getenv(name);

	return text ? atoi(text) : none;
}

static bool is_valid(const struct perf_event_attr *attr, int cpu, int leader)
{
	if (leader >= 0 && setting("FAKE_GROUP_CPU", cpu) == cpu &&
	    group_size(leader) >= setting("FAKE_GROUP", 100))
		return false;
	return !getenv("FAKE_TOPDOWN") || attr->type != PERF_TYPE_RAW || attr->config < 0x8000 ||
	       (leader >= 0 && counters[leader].config == 0x400);
}

/* The kernel checks in this order. */
static int why_not(const struct perf_event_attr *attr, int cpu, int leader, uint64_t *value,
		   unsigned int *percent)
{
	int paranoid = setting("FAKE_PARANOID", 0);

	if (paranoid >= 2 && !attr->exclude_kernel)
		return EACCES;
	if (!find_event(attr, cpu, value, percent))
		return ENOENT;
	if (!is_valid(attr, cpu, leader))
		return EINVAL;
	return (paranoid >= 2 && cpu >= 0) || (paranoid >= 3 && attr->type != PERF_TYPE_SOFTWARE) ?
	       EACCES : 0;
}

static long open_event(const struct perf_event_attr *attr, int cpu, int leader)
{
	unsigned int percent = 100;
	uint64_t value;
	int fd;

	errno = why_not(attr, cpu, leader, &value, &percent);
	if (errno)
		return -1;
	fd = eventfd(0, EFD_CLOEXEC);
	counters[fd] = (struct counter) {
		true, leader < 0 ? fd : leader, attr->config, attr->read_format, value * percent / 100,
		leader < 0 ? (uint64_t)ENABLED / 100 * percent : counters[leader].running };
	if (leader >= 0)
		counters[fd].value = value * counters[leader].running / ENABLED;
	return fd;
}

long syscall(long number, ...)
{
	long (*real)(long, ...) = next("syscall");
	long a[6];
	va_list arguments;

	va_start(arguments, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(arguments, long);
	va_end(arguments);
	if (number != SYS_perf_event_open || !getenv("FAKE_EVENTS"))
		return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	/* an int may have anything in the other half of its register */
	return open_event((void *)a[0], (int)a[2], (int)a[3]);
}

ssize_t read(int fd, void *data, size_t size)
{
	ssize_t (*real)(int, void *, size_t) = next("read");
	uint64_t words[64];
	size_t nr = 3;

	if (!is_ours(fd))
		return real(fd, data, size);
	if (!(counters[fd].format & PERF_FORMAT_GROUP)) {
		memcpy(words, (uint64_t[]){ counters[fd].value, ENABLED, counters[fd].running },
		       3 * sizeof(words[0]));
	} else {
		words[1] = ENABLED;
		words[2] = counters[fd].running;
		for (int member = fd; member < FDS_MAX && nr < 64; member++)
			if (counters[member].open && counters[member].leader == fd)
				words[nr++] = counters[member].value;
		words[0] = nr - 3;
	}
	if (size < nr * sizeof(words[0])) {
		errno = ENOSPC;
		return -1;
	}
	memcpy(data, words, nr * sizeof(words[0]));
	return (ssize_t)(nr * sizeof(words[0]));
}

int ioctl(int fd, unsigned long request, ...)
{
	int (*real)(int, unsigned long, void *) = next("ioctl");
	va_list arguments;
	void *argument;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	return is_ours(fd) ? 0 : real(fd, request, argument);
}

int close(int fd)
{
	int (*real)(int) = next("close");

	if (is_ours(fd))
		counters[fd].open = false;
	return real(fd);
}
