/* SPDX-License-Identifier: MIT */
/*
 * Captures become requests in a process of their own, which gives up all rights but to read files:
 * a file that takes over its decoder can't reach the network.
 */
#ifndef KBARMAN_PUSH_ENCODE_H
#define KBARMAN_PUSH_ENCODE_H

#include <stdbool.h>
#include <sys/types.h>

#include <kbarman/symbol.h>

#include "export/otlp/otlp.h"
#include "push/request.h"

struct push_encoder {
	const char *const *inputs;
	int nr_inputs;
	bool pprof;			/* one profile of a capture instead of OTLP, */
	bool parca;			/* in the form of Parca */
	const struct kb_symbol_options *symbols;
	const struct kb_otlp_attribute *attributes;
	size_t nr_attributes;
	/* the process */
	pid_t pid;
	int fd;				/* where its requests come from */
};

/* Starts the process. Returns 0, or an exit status after a message. */
int push_encode_start(struct push_encoder *encoder);

/*
 * The next request. Returns 1, or 0 behind the last one: then *@status is the exit status of the
 * process, which has printed its messages.
 */
int push_encode_next(struct push_encoder *encoder, struct push_request *request, int *status);

/* Ends the process, of which nothing more is wanted. */
void push_encode_abandon(struct push_encoder *encoder);

#endif
