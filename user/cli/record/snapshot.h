/* SPDX-License-Identifier: MIT */
/* A snapshot of a running recording: for `snapshot`, and for `record` on SIGUSR1. */
#ifndef KB_CLI_RECORD_SNAPSHOT_H
#define KB_CLI_RECORD_SNAPSHOT_H

#include <kbarman/device.h>

/*
 * Writes the records in the buffers of a session in overwrite mode to @path, and the kernel's
 * symbols beside it, and prints a summary. Call chains of waits of less than @off_cpu_min ns are
 * left out; 0: none. @notes: KB_NOTE_*. Returns an exit status, after a message if not CLI_OK.
 */
int snapshot_save(struct kb_device *device, const char *path, uint64_t off_cpu_min, uint32_t notes);

#endif
