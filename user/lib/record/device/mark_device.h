/* SPDX-License-Identifier: MIT */
/*
 * Marks into the running recording, with errors. <kbarman/mark.h>, which programs use, ignores
 * them and needs no library.
 */
#ifndef KB_LIB_RECORD_DEVICE_MARK_DEVICE_H
#define KB_LIB_RECORD_DEVICE_MARK_DEVICE_H

#include <uapi/kbarman.h>

/* Open the device for marks and nothing else. Returns a descriptor or a negative errno. */
int kb_mark_device_open(void);

/* Whether a recording runs, without which the module drops marks silently: 1, 0 or -errno. */
int kb_mark_device_recording(int device);

/* Write @mark with @text; sets the mark's sizes. Returns 0 or a negative errno. */
int kb_mark_device_write(int fd, struct kbarman_mark *mark, const char *text);

/*
 * Find or make the series for a counter, and set its number. -ENOSPC: the recording has no room
 * for another one. Sets the size of @series. Returns 0 or a negative errno.
 */
int kb_mark_device_series(int fd, struct kbarman_mark_series *series);

#endif
