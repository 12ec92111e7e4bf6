/* SPDX-License-Identifier: MIT */
/*
 * Numbers that are read again and again while a recording runs, and become values of
 * custom series, with the time at which they were read: any file that holds one
 * (--poll), and what the kernel tells about the machine (--chart).
 */
#ifndef KBARMAN_CLI_RECORD_POLL_H
#define KBARMAN_CLI_RECORD_POLL_H

#include <kbarman/device.h>
#include <kbarman/recorder.h>

struct record_polls;

struct record_polls *record_polls_create(void);

/* [CHART:]NAME=FILE[@HZ], and NAME[@HZ],…; 0, or CLI_IMPOSSIBLE after a message. */
int record_polls_add_file(struct record_polls *polls, const char *text);
int record_polls_add_charts(struct record_polls *polls, const char *text);

/* Before anything is recorded: can all be read? The same results. */
int record_polls_open(struct record_polls *polls);

/* The recording has begun: make the series, begin to read. The same results. */
int record_polls_start(struct record_polls *polls, struct kb_device *device,
		       struct kb_recorder *recorder);

/* POLLIN when it is time to read something. */
int record_polls_fd(const struct record_polls *polls);

/* Read what is due; 0 or -errno with @err. */
int record_polls_serve(struct record_polls *polls, struct kb_error *err);

/* Before the session is stopped: read everything once more, say what could not be read. */
int record_polls_finish(struct record_polls *polls, struct kb_error *err);

void record_polls_close(struct record_polls *polls);

#endif
