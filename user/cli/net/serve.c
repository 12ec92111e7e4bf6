// SPDX-License-Identifier: MIT
/*
 * Waits for a program that connects to get the data, where connect.c connects to a program. There
 * is one listener, by default on the loopback interface, and one client.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/net/serve.h"

#define DRAIN_MS	5000	/* for a client that does not close its side */

/* Splits [HOST:]PORT; @host stays NULL if there is no HOST. */
static bool split(char *where, char **host, char **port)
{
	char *colon = strrchr(where, ':');

	*host = NULL;
	*port = where;
	if (colon) {
		*colon = 0;
		*host = where;
		*port = colon + 1;
		if (where[0] == '[' && colon > where && colon[-1] == ']') {
			colon[-1] = 0;
			*host = where + 1;
		}
	}
	return **port && (!*host || **host);
}

static int listen_on(const struct addrinfo *list, int backlog, int *error)
{
	const struct addrinfo *at;
	int fd, on = 1;

	*error = EADDRNOTAVAIL;
	for (at = list; at; at = at->ai_next) {
		fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
		if (fd >= 0) {
			setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
			if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, backlog) == 0)
				return fd;
		}
		*error = errno;
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

int cli_listen(const char *option, const char *where, int backlog)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
	char *name = strdup(where), *host, *port;
	int listener, error;

	if (!name) {
		cli_fail("out of memory");
		return -1;
	}
	if (!split(name, &host, &port)) {
		cli_fail("%s=%s: not an address: give [HOST:]PORT", option, where);
		free(name);
		return -1;
	}
	/* a larger number would be taken without its upper bits */
	if (port[strspn(port, "0123456789")] == 0 && strtoul(port, NULL, 10) > UINT16_MAX) {
		cli_fail("%s=%s: a port is at most 65535", option, where);
		free(name);
		return -1;
	}
	/* Any program that connects gets the data: no other machine, unless the user gives HOST. */
	error = getaddrinfo(host ? host : "127.0.0.1", port, &hints, &list);
	free(name);
	if (error) {
		cli_fail("%s=%s: %s", option, where, gai_strerror(error));
		return -1;
	}
	listener = listen_on(list, backlog, &error);
	freeaddrinfo(list);
	if (listener < 0)
		cli_fail("%s=%s: can't listen: %s", option, where, strerror(error));
	return listener;
}

bool cli_listens_on(int listener, char *host, char *port)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);

	return getsockname(listener, (struct sockaddr *)&address, &length) == 0 &&
	       getnameinfo((struct sockaddr *)&address, length, host, NI_MAXHOST, port, NI_MAXSERV,
			   NI_NUMERICHOST | NI_NUMERICSERV) == 0;
}

int cli_serve(const char *where)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];
	int listener = cli_listen("--serve", where, 1), fd;

	if (listener < 0)
		return -1;
	if (cli_listens_on(listener, host, port))
		cli_warn("waiting for a client on %s port %s", host, port);
	do {
		/* cppcheck-suppress nullPointer ; the client's address is not needed */
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	} while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	if (fd < 0)
		cli_fail("--serve=%s: no client: %s", where, strerror(errno));
	close(listener);
	return fd;
}

void cli_hang_up(int fd)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	char unread[4096];

	/*
	 * Reads all input before closing: closing a socket with unread input resets the connection,
	 * and data on its way to the client is lost.
	 */
	shutdown(fd, SHUT_WR);
	while (poll(&wait, 1, DRAIN_MS) == 1 && recv(fd, unread, sizeof(unread), 0) > 0)
		;
	close(fd);
}
