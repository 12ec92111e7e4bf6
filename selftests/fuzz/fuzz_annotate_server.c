// SPDX-License-Identifier: MIT
/*
 * Fuzz target of the listener for Annotate clients: three of them, and one that only asks for
 * the end, send pieces of the input by turns and hang up anywhere. The first byte says which
 * piece is whose and how long the pieces are. In a network namespace of its own, if it may.
 */
#include <net/if.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "record/device/annotate_server.h"

#define CLIENTS	4

int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct annotate_server *server;

/* Every byte that is given out can be read. */
static int on_message(void *context, const struct annotate_client *client,
		      const struct kb_annotate_message *m, const uint8_t *bytes, size_t length)
{
	static volatile uint8_t sum;

	(void)context;
	if (client->setup.version < 1 || client->setup.version > KB_ANNOTATE_VERSION_MAX)
		abort();
	for (size_t i = 0; i < length; i++)
		sum = (uint8_t)(sum + bytes[i]);
	if (m->type == KB_ANNOTATE_VISUAL &&
	    (const uint8_t *)m->visual.image + m->visual.image_bytes != bytes + length)
		abort();
	return 0;
}

static void on_bad(void *context, const struct annotate_client *client, const char *why)
{
	(void)context, (void)client;
	if (!*why)
		abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct annotate_sink sink = { on_message, on_bad, NULL };
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	struct kb_error err;
	int fd;

	(void)argc, (void)argv;
	if (!unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNET : CLONE_NEWNET)) {
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (ioctl(fd, SIOCSIFFLAGS, &lo))
			abort();
		close(fd);
	}
	if (annotate_server_open(&server, &sink, &err)) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	return 0;
}

static int connect_to(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path + 1, name, strlen(name));
	if (fd < 0 || connect(fd, (struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
					  strlen(name))))
		abort();
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fds[CLIENTS];
	size_t piece;
	uint8_t how;

	if (!size)
		return 0;
	how = *data++;
	size--;
	piece = how & 0x80 ? size : 1 + (how & 0x3f) * 3;
	for (int i = 0; i < CLIENTS; i++)
		fds[i] = connect_to(i == CLIENTS - 1 ? "streamline-annotate-parent" :
						       "streamline-annotate");
	for (unsigned int turn = 0; size; turn++) {
		unsigned int who = how & 0x40 ? turn % CLIENTS : 0;
		size_t n = piece < size ? piece : size;

		/* With all of it to each, too: a stream is whole there. */
		for (unsigned int i = 0; i < CLIENTS; i++) {
			if (i == who || how & 0x80)
				(void)!send(fds[i], data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		}
		if (annotate_server_serve(server))
			abort();
		data += n;
		size -= n;
	}
	for (int i = 0; i < CLIENTS; i++)
		close(fds[i]);
	for (int i = 0; i < 3; i++)
		annotate_server_serve(server);
	return 0;
}
