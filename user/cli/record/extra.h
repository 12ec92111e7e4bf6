/* SPDX-License-Identifier: MIT */
/*
 * Sources of a recording other than the kernel: Annotate clients (annotate.h) and polled
 * numbers (poll.h), with one descriptor for both. Each is off unless the user asks for it.
 */
#ifndef KB_CLI_RECORD_EXTRA_H
#define KB_CLI_RECORD_EXTRA_H

#include "cli/record/annotate.h"
#include "cli/record/poll.h"

struct record_extra {
	bool socket;			/* --annotate-socket */
	struct record_annotate *annotate;
	struct record_polls *polls;
	int epoll;			/* -1: both sources are off */
};

void record_extra_init(struct record_extra *extra);

/* Each of these returns 0, or CLI_IMPOSSIBLE after a message. */
int record_extra_poll(struct record_extra *extra, const char *text);
int record_extra_chart(struct record_extra *extra, const char *text);
int record_extra_open(struct record_extra *extra);
int record_extra_start(struct record_extra *extra, struct kb_device *device,
		       struct kb_recorder *recorder, const char *final);

/* Returns 0, or -errno with @err: the recording must end. */
int record_extra_serve(struct record_extra *extra, struct kb_error *err);
int record_extra_finish(struct record_extra *extra, struct kb_error *err);

int record_extra_commit(struct record_extra *extra);
void record_extra_close(struct record_extra *extra, bool kept);

#endif
