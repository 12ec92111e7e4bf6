/* SPDX-License-Identifier: MIT */
/*
 * What goes into a recording beside what the kernel records: Annotate clients
 * (record_annotate.h) and numbers that are polled (record_poll.h), behind one
 * descriptor. Nothing of it is there unless asked for.
 */
#ifndef KBARMAN_CLI_RECORD_EXTRA_H
#define KBARMAN_CLI_RECORD_EXTRA_H

#include "record_annotate.h"
#include "record_poll.h"

struct record_extra {
	bool socket;			/* --annotate-socket */
	struct record_annotate *annotate;
	struct record_polls *polls;
	int epoll;			/* -1: nothing was asked for */
};

void record_extra_init(struct record_extra *extra);

/* Each 0, or CLI_IMPOSSIBLE after a message. */
int record_extra_poll(struct record_extra *extra, const char *text);
int record_extra_chart(struct record_extra *extra, const char *text);
int record_extra_open(struct record_extra *extra);
int record_extra_start(struct record_extra *extra, struct kb_device *device,
		       struct kb_recorder *recorder, const char *final);

/* 0, or -errno with @err: the recording can't go on. */
int record_extra_serve(struct record_extra *extra, struct kb_error *err);
int record_extra_finish(struct record_extra *extra, struct kb_error *err);

int record_extra_commit(struct record_extra *extra);
void record_extra_close(struct record_extra *extra, bool kept);

#endif
