/* SPDX-License-Identifier: MIT */
/*
 * What Annotate clients say, into the capture that is recorded: texts, bookmarks, names
 * and values as its records, at the clients' own times. What Barman has no place for
 * goes to a side file, FILE.annotate-side: streams of Annotate one behind the other, of
 * which kbarman-formats(5) tells.
 */
#ifndef KBARMAN_CLI_RECORD_ANNOTATE_H
#define KBARMAN_CLI_RECORD_ANNOTATE_H

#include <stdbool.h>

#include <kbarman/device.h>
#include <kbarman/recorder.h>

struct record_annotate;

/* Listen. 0, or CLI_IMPOSSIBLE after a message. */
int record_annotate_open(struct record_annotate **out);

/*
 * The recording has begun; @final: the name the capture will have, NULL: none. 0, or
 * CLI_IMPOSSIBLE after a message.
 */
int record_annotate_start(struct record_annotate *annotate, struct kb_device *device,
			  struct kb_recorder *recorder, const char *final);

int record_annotate_fd(const struct record_annotate *annotate);

/* 0, or -errno: the capture can't be written. */
int record_annotate_serve(struct record_annotate *annotate, struct kb_error *err);

/* Before the session is stopped: the rest, and tell the clients. */
int record_annotate_finish(struct record_annotate *annotate, struct kb_error *err);

/* The side file gets its name, beside a capture that has got its own; say what came. */
int record_annotate_commit(struct record_annotate *annotate);

/* Without a commit there is no side file, unless a partial capture is @kept. */
void record_annotate_close(struct record_annotate *annotate, bool kept);

#endif
