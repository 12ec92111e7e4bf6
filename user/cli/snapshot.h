/* SPDX-License-Identifier: MIT */
/* The moment of a recording that goes on: for `snapshot`, and `record` on SIGUSR1. */
#ifndef KBARMAN_CLI_SNAPSHOT_H
#define KBARMAN_CLI_SNAPSHOT_H

#include <kbarman/device.h>

/*
 * Write what the buffers of the session hold now, in overwrite mode, to @path, with the
 * kernel's symbols beside it, and say so. An exit status, after a message if not CLI_OK.
 */
int snapshot_save(struct kb_device *device, const char *path);

#endif
