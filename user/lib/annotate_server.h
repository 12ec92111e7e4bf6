/* SPDX-License-Identifier: MIT */
/*
 * The other end of Annotate clients: listens where gatord would, and gives out what they
 * say, message by message.
 *
 * Clients are strangers: each has a bounded buffer, there are at most so many of them, one
 * user has at most half of what there is, and one that breaks the protocol is dropped, alone.
 */
#ifndef KB_LIB_ANNOTATE_SERVER_H
#define KB_LIB_ANNOTATE_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include <kbarman/annotate.h>
#include <kbarman/error.h>

/* The length of a client's setup: before version 3 it ends with the pid. */
static inline size_t annotate_setup_bytes(int32_t version)
{
	return KB_ANNOTATE_SETUP_BYTES - (version < 3);
}

struct annotate_client {
	unsigned int number;		/* counts all that ever came */
	struct kb_annotate_setup setup;
	uint32_t pid;			/* as the kernel says; 0: not known (TCP) */
};

struct annotate_sink {
	/*
	 * @bytes: the message as it came, of @length bytes; @message: decoded, pointing into
	 * them. Non-zero ends annotate_server_serve() with that result.
	 */
	int (*message)(void *context, const struct annotate_client *client,
		       const struct kb_annotate_message *message, const uint8_t *bytes,
		       size_t length);
	/* A client was dropped for @why. */
	void (*bad)(void *context, const struct annotate_client *client, const char *why);
	void *context;
};

struct annotate_server;

/* -EADDRINUSE: somebody, gatord most likely, listens there already. */
int annotate_server_open(struct annotate_server **out, const struct annotate_sink *sink,
			 struct kb_error *err);

/* For poll(): POLLIN when there is something to serve. */
int annotate_server_fd(const struct annotate_server *server);

/*
 * The recording has begun: those who asked to be told are, as gatord does. Arm's client that
 * lost its connection tries again then.
 */
void annotate_server_begin(struct annotate_server *server);

/* Take what there is, without waiting. */
int annotate_server_serve(struct annotate_server *server);

/*
 * The recording is over: take what has been sent up to now, and hang up, so that no client
 * waits for somebody who does not read any more. Then those who asked to be told are, as
 * gatord's agent for captures of one application does.
 */
int annotate_server_finish(struct annotate_server *server);

void annotate_server_close(struct annotate_server *server);

#endif
