/* SPDX-License-Identifier: MIT */
/* Sends a request until a server has taken or refused it, or until it has taken too long. */
#ifndef KBARMAN_PUSH_SEND_H
#define KBARMAN_PUSH_SEND_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "push/http.h"
#include "push/request.h"

enum push_fate {
	PUSH_TAKEN,
	PUSH_LATER,	/* the server can't be reached or does not take anything now */
	PUSH_TOO_LARGE,	/* it takes smaller ones; this one when its limit is a higher one */
	PUSH_REFUSED,	/* the server says that this request is wrong */
	PUSH_UNCLEAR,	/* there was an answer that does not say whether it was taken */
};

#define PUSH_WHY	232	/* bytes of why a request was not taken, with the NUL */

struct push_sender {
	struct push_http *http;
	bool otlp;			/* the answers are those of OTLP, */
	bool grpc;			/* by gRPC */
	const char *shown;		/* the server in messages, without a password */
	int64_t patience_ms;		/* for which a request is sent again and again */
	volatile sig_atomic_t *stop;	/* not 0: wait for nothing any more */
	/* results */
	bool given_up;			/* it takes nothing now, so nothing more is tried */
	char refused[PUSH_WHY];		/* why the last one was refused; "": none was */
	uint64_t rejected;		/* profiles of taken requests that it did not want */
};

/* Prints a message unless the request was taken at last, or is too large, or refused as the one before. */
enum push_fate push_send(struct push_sender *sender, const char *url,
			 const struct push_request *request);

#endif
