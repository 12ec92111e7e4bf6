// SPDX-License-Identifier: MIT
/*
 * Connections to an address that names the transport. If a connection fails, the message says
 * to which address, why, and which program must run there.
 */
#include <errno.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <kbarman/annotate.h>

#include "cli/base/cli.h"
#include "cli/net/connect.h"

/* Returns what follows @scheme in @where, or NULL if @where does not start with @scheme. */
static const char *after(const char *where, const char *scheme)
{
	size_t length = strlen(scheme);

	if (strncmp(where, scheme, length) != 0)
		return NULL;
	where += length;
	return strncmp(where, "//", 2) == 0 ? where + 2 : where;
}

bool cli_is_connection(const char *where)
{
	return after(where, "tcp:") || after(where, "udp:") || after(where, "unix:");
}

/* Returns the socket or a negative errno. @name: a path, or '@' and an abstract name. */
static int connect_unix(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(name);
	int fd, error;

	if (!length || length >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, name, length);
	if (name[0] == '@')
		address.sun_path[0] = 0;
	else
		length++;	/* a path has its NUL, an abstract name has none */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) == 0)
		return fd;
	error = -errno;
	close(fd);
	return error;
}

/* Returns the socket or a negative errno. Sets *@why for errors that have no errno. */
static int connect_inet(const char *host, const char *port, int type, const char **why)
{
	struct addrinfo hints = { .ai_socktype = type }, *list, *at;
	int fd = -1, error = getaddrinfo(host, port, &hints, &list);

	if (error) {
		*why = gai_strerror(error);
		return -EINVAL;
	}
	error = -ECONNREFUSED;
	for (at = list; at; at = at->ai_next) {
		fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
		if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0)
			break;
		error = -errno;
		if (fd >= 0)
			close(fd);
	}
	freeaddrinfo(list);
	return at ? fd : error;
}

/* Splits "HOST:PORT" or "[HOST]:PORT" in place. False: it is neither. */
static bool split(char *name, char **host, char **port)
{
	char *colon = strrchr(name, ':');

	if (!colon || colon == name || !colon[1])
		return false;
	*colon = 0;
	*host = name;
	*port = colon + 1;
	if (name[0] == '[' && colon[-1] == ']') {
		colon[-1] = 0;
		*host = name + 1;
	}
	return true;
}

int cli_connect(const char *where)
{
	const char *udp = after(where, "udp:"), *tcp = after(where, "tcp:");
	const char *local = after(where, "unix:"), *why = NULL;
	char *name, *host, *port;
	int fd;

	if (local) {
		fd = connect_unix(local);
	} else {
		name = strdup(udp ? udp : tcp ? tcp : where);
		if (!name) {
			cli_fail("out of memory");
			return -1;
		}
		if (!split(name, &host, &port)) {
			free(name);
			cli_fail("%s: not an address: give tcp:HOST:PORT, udp:HOST:PORT or "
				 "unix:PATH",
				 where);
			return -1;
		}
		fd = connect_inet(host, port, udp ? SOCK_DGRAM : SOCK_STREAM, &why);
		free(name);
	}
	if (fd >= 0)
		return fd;
	if (fd == -ECONNREFUSED || (local && fd == -ENOENT))
		cli_fail("%s: nobody listens there: start the receiver first", where);
	else
		cli_fail("%s: can't connect: %s", where, why ? why : strerror(-fd));
	return -1;
}

int cli_connect_annotate(void)
{
	const char *why = NULL;
	int fd = connect_unix("@" KB_ANNOTATE_SOCKET);

	if (fd < 0)
		fd = connect_inet("localhost", KB_ANNOTATE_PORT, SOCK_STREAM, &why);
	if (fd >= 0)
		return fd;
	cli_fail("nobody listens on the abstract socket " KB_ANNOTATE_SOCKET
		 " or on TCP port " KB_ANNOTATE_PORT ": start gatord, or give --connect=WHERE");
	return -1;
}
