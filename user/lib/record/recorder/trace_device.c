// SPDX-License-Identifier: MIT
/* A frozen copy of the rings is a capture, in memory that has no name. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kbarman/recorder.h>

#include "analysis/trace/parts.h"

/* Write a frozen copy of the rings of @device to @fd. */
static int freeze(struct kb_device *device, int fd, struct kb_error *err)
{
	struct kb_recorder *recorder;
	int ret = kb_recorder_freeze(&recorder, device, fd, err);

	if (ret)
		return ret;
	ret = kb_recorder_finish(recorder, true, err);
	kb_recorder_destroy(recorder);
	return ret;
}

int kb_trace_open_device(struct kb_trace **out, struct kb_device *device,
			 const struct kb_trace_options *options, struct kb_error *err)
{
	int fd = memfd_create("kbarman", MFD_CLOEXEC), ret;
	struct kb_barman *barman = NULL;
	char path[32];

	if (fd < 0)
		return kb_error_set(err, -errno, KB_NO_OFFSET, "memfd_create: %s", strerror(errno));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = freeze(device, fd, err) ?: kb_barman_open(&barman, path, err);
	close(fd);
	return ret ? ret : kb_trace_adopt(out, barman, NULL, options, err);
}
