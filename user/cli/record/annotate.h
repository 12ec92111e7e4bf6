/* SPDX-License-Identifier: MIT */
/*
 * Records the messages of Annotate clients: texts, bookmarks, names and values become records of
 * the capture, with the clients' timestamps. Messages for which Barman has no place go to a side
 * file, FILE.annotate-side. It contains Annotate streams one after the other; kbarman-formats(5)
 * describes it.
 */
#ifndef KB_CLI_RECORD_ANNOTATE_H
#define KB_CLI_RECORD_ANNOTATE_H

#include <stdbool.h>

#include <kbarman/device.h>
#include <kbarman/recorder.h>

struct record_annotate;

/* Starts to listen. Returns 0, or CLI_IMPOSSIBLE after a message. */
int record_annotate_open(struct record_annotate **out);

/*
 * Call this when the recording has begun. @final: the final name of the capture, NULL: it has none.
 * Returns 0, or CLI_IMPOSSIBLE after a message.
 */
int record_annotate_start(struct record_annotate *annotate, struct kb_device *device,
			  struct kb_recorder *recorder, const char *final);

int record_annotate_fd(const struct record_annotate *annotate);

/* Returns 0, or -errno: the capture can't be written. */
int record_annotate_serve(struct record_annotate *annotate, struct kb_error *err);

/* Call this before the session is stopped: reads the rest, and tells the clients of the end. */
int record_annotate_finish(struct record_annotate *annotate, struct kb_error *err);

/*
 * Call this when the capture has its final name: renames the side file, and prints how many
 * messages are in it or were dropped.
 */
int record_annotate_commit(struct record_annotate *annotate);

/* Without a commit this removes the side file, unless a partial capture is @kept. */
void record_annotate_close(struct record_annotate *annotate, bool kept);

#endif
