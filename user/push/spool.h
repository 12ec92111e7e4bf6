/* SPDX-License-Identifier: MIT */
/*
 * Requests that could not be sent, in a folder on disk. A request is one file, which has its name
 * only when it is whole and on the disk, and goes away when a server has taken it. The files are
 * numbered, oldest first. They may take so many bytes together; then the oldest ones make room.
 *
 * One process at a time uses the folder.
 */
#ifndef KBARMAN_PUSH_SPOOL_H
#define KBARMAN_PUSH_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "push/request.h"

/* Where a request is to be sent. A spool may have requests for several places. */
struct push_place {
	const char *kind;	/* a word: "otlp", "pprof" */
	const char *url;
};

struct push_spool {
	const char *path;
	uint64_t limit;			/* bytes of all files */
	int fd;				/* of the folder */
	uint64_t last;			/* number of the newest file */
	uint64_t earlier;		/* the same, when the spool was opened */
	struct push_sum dropped;	/* what made room, which is lost */
	struct push_sum dropped_own;	/* the part of it that is not older than this process */
	uint64_t damaged;		/* files that could not be read, which were left there */
	uint64_t left;			/* requests that push_spool_walk() did not send */
};

/*
 * Makes the folder if it is not there, and waits for its other users. Returns 0, or an exit status
 * after a message.
 */
int push_spool_open(struct push_spool *spool, const char *path, uint64_t limit);
void push_spool_close(struct push_spool *spool);

/*
 * Stores a request, unless the same one is there. Returns 0 or a negative errno; -EFBIG: it is larger
 * than the limit.
 */
int push_spool_add(struct push_spool *spool, const struct push_place *place,
		   const struct push_request *request);

/* Removes a request. False: it was not there, or can't be removed, after a message. */
bool push_spool_forget(struct push_spool *spool, uint64_t number);

enum push_spool_next {
	PUSH_SPOOL_FORGET,	/* the request */
	PUSH_SPOOL_STAY,	/* it stays there; go on with the next one */
	PUSH_SPOOL_NEWEST,	/* it stays there; go on with the newest one only */
	PUSH_SPOOL_END,		/* it stays there, and so do the others */
};

/* @rest: what is to stay instead of the request, if that is a part of it; its data are freed. */
typedef enum push_spool_next (*push_spool_send)(void *context, uint64_t number,
						const struct push_request *request,
						struct push_request *rest);

/*
 * Calls @send for each request for @place, oldest first, and does what it returns. Returns the number
 * of requests for other places.
 */
uint64_t push_spool_walk(struct push_spool *spool, const struct push_place *place, push_spool_send send,
			 void *context);

#endif
