// SPDX-License-Identifier: MIT
/*
 * A service manager in small, as a program of /dev/kbarman sees it: it runs a program, keeps the
 * descriptors that the program stores (FDSTORE of sd_notify(3)), and starts the program again when it
 * ends, with these descriptors.
 *
 *	keeper [-k KILLS] [-s SEED] [-l LEAST] [-m MOST] [-f] [-t] COMMAND [ARGUMENT...]
 *
 * It kills the program KILLS times (SIGKILL), or ends it (-t: SIGTERM), LEAST to MOST milliseconds after
 * it was started. With -f it keeps nothing. After that, SIGTERM ends the program and the keeper. It
 * prints what the program tells it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEPT_MAX	16
#define FIRST		3	/* LISTEN_FDS begin there */

static struct {
	int fd;
	char name[256];
} kept[KEPT_MAX];
static int nr_kept;
static bool forget;
static pid_t child;
static int notified, signals;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static void take_text(char *text, int fd)
{
	char name[256] = "stored";
	bool store = false, remove = false;

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (!strcmp(line, "FDSTORE=1"))
			store = true;
		else if (!strcmp(line, "FDSTOREREMOVE=1"))
			remove = true;
		else if (!strncmp(line, "FDNAME=", 7))
			snprintf(name, sizeof(name), "%s", line + 7);
		if (strcmp(line, "WATCHDOG=1") != 0)
			printf("said %s\n", line);
	}
	for (int i = 0; remove && i < nr_kept; i++) {
		if (strcmp(kept[i].name, name) != 0)
			continue;
		close(kept[i].fd);
		kept[i--] = kept[--nr_kept];
	}
	if (fd >= 0 && store && !forget && nr_kept < KEPT_MAX) {
		kept[nr_kept].fd = fd;
		strcpy(kept[nr_kept++].name, name);
	} else if (fd >= 0) {
		close(fd);
	}
	fflush(stdout);
}

static void take_message(void)
{
	char text[4096], control[CMSG_SPACE(sizeof(int))];
	struct iovec piece = { text, sizeof(text) - 1 };
	struct msghdr message = {
		.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t length = recvmsg(notified, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	struct cmsghdr *header = length < 0 ? NULL : CMSG_FIRSTHDR(&message);
	int fd = -1;

	if (length < 0)
		return;
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	text[length] = '\0';
	take_text(text, fd);
}

/* In the child: the kept descriptors from 3 on, and what tells of them. */
static void become(char **command)
{
	char number[32], names[KEPT_MAX * 256] = "";
	int high[KEPT_MAX];
	sigset_t none;

	for (int i = 0; i < nr_kept; i++) {
		high[i] = dup(kept[i].fd);
		for (int next; high[i] >= 0 && high[i] < FIRST + KEPT_MAX; high[i] = next)
			next = dup(high[i]);
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ":" : "",
			 kept[i].name);
	}
	for (int i = 0; i < nr_kept; i++)
		dup2(high[i], FIRST + i);
	for (int fd = FIRST + nr_kept; fd < 1024; fd++)
		close(fd);
	snprintf(number, sizeof(number), "%d", nr_kept);
	setenv("LISTEN_FDS", number, 1);
	setenv("LISTEN_FDNAMES", names, 1);
	snprintf(number, sizeof(number), "%d", getpid());
	setenv("LISTEN_PID", number, 1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(command[0], command);
	_exit(127);
}

static void listen_here(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "keeper.%d", getpid());
	unlink(address.sun_path);
	notified = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (notified < 0 || bind(notified, (struct sockaddr *)&address, sizeof(address)))
		fail("socket");
	/* The path has to begin with '/'. */
	char *here = realpath(address.sun_path, NULL);

	if (!here)
		fail("realpath");
	setenv("NOTIFY_SOCKET", here, 1);
	free(here);
}

static void start(char **command)
{
	child = fork();
	if (child < 0)
		fail("fork");
	if (!child)
		become(command);
}

/* Waits until the child has ended, or until @end (ms). False: it is time. */
static bool follow(long long end, bool *asked)
{
	for (;;) {
		struct pollfd fds[2] = { { notified, POLLIN, 0 }, { signals, POLLIN, 0 } };
		struct signalfd_siginfo info;
		long long left = end < 0 ? 1000 : end - now_ms();

		if (waitpid(child, NULL, WNOHANG) == child) {
			while (poll(fds, 1, 0) > 0)
				take_message();
			return true;
		}
		if (end >= 0 && left <= 0)
			return false;
		poll(fds, 2, (int)(left < 1000 ? left : 1000));
		if (fds[0].revents)
			take_message();
		while (read(signals, &info, sizeof(info)) == sizeof(info)) {
			if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
				*asked = true;
			if (info.ssi_signo != SIGCHLD)
				kill(child, (int)info.ssi_signo);
		}
	}
}

int main(int argc, char **argv)
{
	int kills = 0, least = 1, most = 1000, option, how = SIGKILL;
	unsigned int seed = 1;
	bool asked = false;
	sigset_t mask;

	while ((option = getopt(argc, argv, "+k:s:l:m:ft")) != -1) {
		if (option == 'k')
			kills = atoi(optarg);
		else if (option == 's')
			seed = (unsigned int)atoi(optarg);
		else if (option == 'l')
			least = atoi(optarg);
		else if (option == 'm')
			most = atoi(optarg);
		else if (option == 'f')
			forget = true;
		else if (option == 't')
			how = SIGTERM;
		else
			return 2;
	}
	if (optind == argc)
		return 2;
	srand(seed);
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGHUP);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	listen_here();
	while (!asked) {
		long long end = kills ? now_ms() + least + rand() % (most - least + 1) : -1;

		start(argv + optind);
		if (!follow(end, &asked)) {
			kill(child, how);
			follow(-1, &asked);
			kills--;
			if (!kills) {
				printf("killed enough\n");
				fflush(stdout);
			}
		} else if (!asked) {
			printf("it ended by itself\n");
			fflush(stdout);
			usleep(100000);
		}
	}
	unlink(getenv("NOTIFY_SOCKET"));
	return 0;
}
