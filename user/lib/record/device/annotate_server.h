/* SPDX-License-Identifier: MIT */
/*
 * The server side of Annotate: listens where gatord would, and delivers the clients' messages
 * one by one.
 *
 * Clients are not trusted. Each has a buffer of limited size, their number is limited, one user
 * gets at most half of all resources, and a client that breaks the protocol is dropped without
 * effect on the others.
 */
#ifndef KB_LIB_RECORD_DEVICE_ANNOTATE_SERVER_H
#define KB_LIB_RECORD_DEVICE_ANNOTATE_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include <kbarman/annotate.h>
#include <kbarman/error.h>

struct annotate_client {
	unsigned int number;		/* counts all clients that ever connected */
	struct kb_annotate_setup setup;
	uint32_t pid;			/* from the kernel; 0: not known (TCP) */
};

/* Write the setup of @client to @setup, as it came. Returns its length. */
size_t annotate_client_setup(const struct annotate_client *client,
			     uint8_t setup[KB_ANNOTATE_SETUP_BYTES]);

struct annotate_sink {
	/*
	 * @bytes: the message as received, @length bytes. @message: the decoded message, with
	 * pointers into @bytes. A result other than 0 ends annotate_server_serve() with that
	 * result.
	 */
	int (*message)(void *context, const struct annotate_client *client,
		       const struct kb_annotate_message *message, const uint8_t *bytes,
		       size_t length);
	/* A client was dropped; @why is a sentence. */
	void (*bad)(void *context, const struct annotate_client *client, const char *why);
	void *context;
};

struct annotate_server;

/* -EADDRINUSE: another program listens there already, most likely gatord. */
int annotate_server_open(struct annotate_server **out, const struct annotate_sink *sink,
			 struct kb_error *err);

/* The descriptor for poll(): POLLIN when annotate_server_serve() has something to do. */
int annotate_server_fd(const struct annotate_server *server);

/*
 * The recording has begun: tell the clients that asked for it, as gatord does. Arm's client
 * then connects again if it has lost its connection.
 */
void annotate_server_begin(struct annotate_server *server);

/* Handle everything that has arrived, without waiting. */
int annotate_server_serve(struct annotate_server *server);

/*
 * The recording is over: read what has arrived and close the connections, so that no client
 * waits for a reader. Then tell the clients that asked for it, as gatord's agent for captures
 * of one application does.
 */
int annotate_server_finish(struct annotate_server *server);

void annotate_server_close(struct annotate_server *server);

#endif
