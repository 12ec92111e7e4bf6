// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/notify.h"

#define KEPT_FIRST	3		/* the first descriptor that a manager passes */
#define KEPT_MAX	64

/* The address of the manager's socket; its length, 0: there is no manager. */
static socklen_t manager(struct sockaddr_un *address)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t length = path ? strlen(path) : 0;

	if (!length || length >= sizeof(address->sun_path) || (path[0] != '/' && path[0] != '@'))
		return 0;
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(address->sun_path, path, length);
	if (path[0] != '@')
		length++;		/* with the NUL, which an abstract name does not have */
	else
		address->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

/* Sends @text, and @fd if it is one. */
static void send_text(const char *text, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec piece = { .iov_base = (void *)text, .iov_len = strlen(text) };
	struct sockaddr_un address;
	struct msghdr message = {
		.msg_name = &address, .msg_namelen = manager(&address),
		.msg_iov = &piece, .msg_iovlen = 1,
	};
	int to;

	if (!message.msg_namelen)
		return;
	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control.bytes);
		control.header = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
		};
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	to = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (to < 0)
		return;
	/* A manager that does not listen loses what it would have heard. */
	(void)sendmsg(to, &message, MSG_NOSIGNAL);
	close(to);
}

void agent_notify(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	send_text(text, -1);
}

void agent_notify_store(int fd, const char *name)
{
	char text[300];

	snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s", name);
	send_text(text, fd);
}

void agent_notify_forget(const char *name)
{
	agent_notify("FDSTOREREMOVE=1\nFDNAME=%s", name);
}

static unsigned long number(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) : 0;
}

void agent_kept(void (*take)(void *context, int fd, const char *name), void *context)
{
	const char *names = getenv("LISTEN_FDNAMES") ?: "";
	unsigned long nr = number("LISTEN_FDS");

	if (number("LISTEN_PID") == (unsigned long)getpid() && nr <= KEPT_MAX) {
		for (int fd = KEPT_FIRST; fd < KEPT_FIRST + (int)nr; fd++) {
			size_t length = strcspn(names, ":");
			char *name = strndup(names, length);

			fcntl(fd, F_SETFD, FD_CLOEXEC);
			take(context, fd, name ?: "");
			free(name);
			names += length + (names[length] == ':');
		}
	}
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
}

uint64_t agent_watchdog_ms(void)
{
	unsigned long pid = number("WATCHDOG_PID");

	return pid && pid != (unsigned long)getpid() ? 0 : number("WATCHDOG_USEC") / 1000;
}
