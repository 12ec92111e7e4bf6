// SPDX-License-Identifier: MIT
/*
 * What a program does that a session sees, many times between two marks for the plugin that counts
 * instructions, with all that runs beside it. Prints how often it did so.
 *
 *	neighbour map TIMES		maps a page of code and unmaps it
 *	neighbour thread TIMES		starts a thread, which ends
 *	neighbour fork TIMES		starts a process, which ends
 *	neighbour exec TIMES		the same, with this program
 *	neighbour rename TIMES		gives itself a name that it had not before
 *	neighbour umount TIMES		mounts a file system, maps code of it, unmaps and unmounts it
 *	neighbour exited		is what the program of `exec` is
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hold.h"
#include "mark.h"

#define PLACE	"neighbour.mount"

static int exe = -1;

static void map(int file)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);

	if (code == MAP_FAILED || munmap(code, 4096))
		die("map");
}

static void map_exe(unsigned long unused)
{
	(void)unused;
	map(exe);
}

static void *end(void *unused)
{
	return unused;
}

static void start_thread(unsigned long unused)
{
	pthread_t thread;

	(void)unused;
	if (pthread_create(&thread, NULL, end, NULL) || pthread_join(thread, NULL))
		die("thread");
}

static void start_process(unsigned long exec)
{
	pid_t child = fork();
	int status;

	if (!child && !exec)
		_exit(0);
	if (!child) {
		execl("/proc/self/exe", "neighbour", "exited", NULL);
		_exit(1);
	}
	if (waitpid(child, &status, 0) != child || status)
		die("process");
}

static void fork_it(unsigned long unused)
{
	(void)unused;
	start_process(0);
}

static void exec_it(unsigned long unused)
{
	(void)unused;
	start_process(1);
}

static void rename_it(unsigned long time)
{
	char name[16];

	snprintf(name, sizeof(name), "name%lu", time);
	prctl(PR_SET_NAME, name);
}

static void mount_it(unsigned long unused)
{
	int file;

	(void)unused;
	if (mount("none", PLACE, "tmpfs", 0, NULL))
		die("mount");
	file = open(PLACE "/code", O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	if (file < 0 || ftruncate(file, 4096))
		die(PLACE);
	map(file);
	close(file);
	if (umount(PLACE))
		die("umount");
}

static const struct deed {
	const char *name;
	void (*once)(unsigned long time);
} deeds[] = {
	{ "map", map_exe }, { "thread", start_thread }, { "fork", fork_it },
	{ "exec", exec_it }, { "rename", rename_it }, { "umount", mount_it },
};

static const struct deed *find(const char *name)
{
	const struct deed *deed = deeds;

	while (strcmp(deed->name, name))
		if (++deed == deeds + sizeof(deeds) / sizeof(*deeds))
			exit(2);
	return deed;
}

int main(int argc, char **argv)
{
	/* Whoever works for the module later does so before the end mark. */
	const struct timespec later = { .tv_nsec = 200000000 };
	const struct deed *deed;
	unsigned long times;

	if (argc == 2 && !strcmp(argv[1], "exited"))
		return 0;
	if (argc != 3)
		return 2;
	deed = find(argv[1]);
	times = strtoul(argv[2], NULL, 0);
	exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (exe < 0 || (mkdir(PLACE, 0700) && access(PLACE, F_OK)))
		die(PLACE);
	deed->once(times);	/* what is made at the first time is not counted */
	nanosleep(&later, NULL);
	MARK(MARK_BEGIN);
	for (unsigned long time = 0; time < times; time++)
		deed->once(time);
	nanosleep(&later, NULL);
	MARK(MARK_END);
	printf("%lu\n", times);
	return 0;
}
