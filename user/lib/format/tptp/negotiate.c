// SPDX-License-Identifier: MIT
/*
 * Chooses the form of a live trace. The text requires XML unless the client said that it can
 * read the binary form, even if binary was requested. So the server waits a short time for the
 * client's line. No line, or another line, means XML.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <kbarman/tptp.h>

#include "base/clock.h"

int kb_tptp_negotiate(int fd, bool want_binary, int timeout_ms)
{
	static const char accept[] = KB_TPTP_ACCEPT_BINARY;
	int64_t deadline = kb_clock_ms() + timeout_ms;
	char line[64];
	size_t used = 0;

	if (!want_binary)	/* XML needs no answer from the client */
		return 0;
	for (;;) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		int64_t left = deadline - kb_clock_ms();
		ssize_t got;
		int ret;

		ret = poll(&wait, 1, left > 0 ? left : 0);
		if (ret < 0 && errno == EINTR)
			continue;
		if (ret < 0)
			return -errno;
		if (!ret)
			return 0;
		got = recv(fd, line + used, 1, MSG_DONTWAIT);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got < 0)
			return -errno;
		if (!got)	/* the client may have closed only its sending side */
			return 0;
		if (line[used++] == '\n') {
			if (used >= 2 && line[used - 2] == '\r') {
				line[used - 2] = '\n';
				used--;
			}
			return used == strlen(accept) && !memcmp(line, accept, used);
		}
		if (used == sizeof(line))
			return 0;
	}
}
