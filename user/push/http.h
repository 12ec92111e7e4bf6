/* SPDX-License-Identifier: MIT */
/* One POST over HTTP or HTTPS, by libcurl, which is opened when the verb begins. */
#ifndef KBARMAN_PUSH_HTTP_H
#define KBARMAN_PUSH_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct push_http;

struct push_http_options {
	const char *const *headers;	/* "NAME: VALUE", of every POST */
	size_t nr_headers;
	const char *authorities;	/* file with certificates; NULL: those of the system */
	const char *certificate, *key;	/* files that say who asks; NULL: nothing does */
	const char *proxy;		/* URL; NULL: what the environment says */
	long timeout_ms;		/* of one POST */
	bool grpc;			/* HTTP/2 alone, and the status behind the answer is wanted */
};

#define PUSH_GRPC_UNKNOWN	2	/* a status of gRPC, which says nothing */

struct push_reply {
	long status;			/* of HTTP; 0: there was no answer, `why` says why not */
	char why[256];
	const char *location;		/* where it sends to (3xx), until the next POST; or NULL */
	int64_t retry_after;		/* s; 0: the server does not say */
	int grpc_status;		/* -1: none */
	char *grpc_message;		/* with %XX, until the next POST; not NULL if there is a status */
	const void *body;		/* holds until the next POST; at most 64 KiB of it */
	size_t size;
};

/* Returns 0, or an exit status after a message, for example because there is no libcurl. */
int push_http_open(struct push_http **out, const struct push_http_options *options);
void push_http_close(struct push_http *http);

void push_http_post(struct push_http *http, const char *url, const void *data, size_t size,
		    struct push_reply *reply);

#endif
