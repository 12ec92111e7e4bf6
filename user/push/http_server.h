/* SPDX-License-Identifier: MIT */
/*
 * A small server of HTTP that shows texts to whoever asks: one request a connection, GET and HEAD.
 * Clients are hostile: each has little memory and little time, there are few at once, and when one
 * more comes, the oldest one that has not asked yet makes room.
 */
#ifndef KBARMAN_PUSH_HTTP_SERVER_H
#define KBARMAN_PUSH_HTTP_SERVER_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_CLIENTS	32
#define HTTP_FDS	(HTTP_CLIENTS + 1)

struct http_server;

struct http_request {
	const char *path;		/* without a query */
	const char *accept;		/* the header; "": there is none */
};

/* To be filled: a status of HTTP, and the text, which is copied. */
struct http_answer {
	int status;
	const char *type;		/* of the content */
	const void *data;
	size_t size;
};

struct http_server_options {
	int listener;			/* a listening socket, which the server closes */
	int64_t patience_ms;		/* for a request, and then for its answer to be taken */
	void (*answer)(void *context, const struct http_request *request,
		       struct http_answer *answer);
	void *context;
};

struct http_server_sums {
	uint64_t requests;		/* that were whole, */
	uint64_t refused;		/* requests that are none, or for something that is not there */
	uint64_t dropped;		/* connections without a request, or without an end of it */
};

/* Returns 0 or a negative errno; then the listener is the caller's. */
int http_server_open(struct http_server **out, const struct http_server_options *options);
void http_server_close(struct http_server *server);

/*
 * For poll(2): fills @fds and returns their number. *@timeout_ms becomes less if something is to be
 * done earlier. Then call http_server_serve() with the same @fds.
 */
unsigned int http_server_fds(const struct http_server *server, struct pollfd fds[HTTP_FDS],
			     int64_t *timeout_ms);
void http_server_serve(struct http_server *server, const struct pollfd *fds, unsigned int nr);

struct http_server_sums http_server_sums(const struct http_server *server);

/* Does an Accept header name @type ("application/openmetrics-text") without refusing it by "q=0"? */
bool http_accepts(const char *accept, const char *type);

#endif
