/* SPDX-License-Identifier: MIT */
/*
 * Reads numbers repeatedly while a recording runs: from any file that holds a number (--poll), and
 * from the kernel's files about the machine (--chart). The numbers become values of custom series,
 * with the time at which they were read.
 */
#ifndef KB_CLI_RECORD_POLL_H
#define KB_CLI_RECORD_POLL_H

#include <kbarman/device.h>
#include <kbarman/recorder.h>

struct record_polls;

struct record_polls *record_polls_create(void);

/* Parse [CHART:]NAME=FILE[@HZ] and NAME[@HZ],…; 0, or CLI_IMPOSSIBLE after a message. */
int record_polls_add_file(struct record_polls *polls, const char *text);
int record_polls_add_charts(struct record_polls *polls, const char *text);

/* Opens all files before the recording begins. The same results. */
int record_polls_open(struct record_polls *polls);

/* Call this when the recording has begun: makes the series, starts to read. The same results. */
int record_polls_start(struct record_polls *polls, struct kb_device *device,
		       struct kb_recorder *recorder);

/* A descriptor with POLLIN when a reading is due. */
int record_polls_fd(const struct record_polls *polls);

/* Makes the readings that are due. Returns 0, or -errno with @err. */
int record_polls_serve(struct record_polls *polls, struct kb_error *err);

/* Call this before the session is stopped: reads all once more, says what could not be read. */
int record_polls_finish(struct record_polls *polls, struct kb_error *err);

void record_polls_close(struct record_polls *polls);

#endif
