// SPDX-License-Identifier: MIT
/* See mark_device.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "record/device/mark_device.h"

int kb_mark_device_open(void)
{
	int fd = open(KBARMAN_DEVICE, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return fd;
}

int kb_mark_device_recording(int device)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = ioctl(device, KBARMAN_MARK_STATE, 0), error = errno;
	const struct kbarman_mark_state *state;
	uint32_t recording;

	if (fd < 0)
		return -error;
	state = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	error = errno;
	close(fd);
	if (state == MAP_FAILED)
		return -error;
	recording = __atomic_load_n(&state->recording, __ATOMIC_RELAXED);
	munmap((void *)state, page);
	return recording != 0;
}

int kb_mark_device_write(int fd, struct kbarman_mark *mark, const char *text)
{
	struct iovec pieces[2] = { { mark, sizeof(*mark) } };

	mark->size = sizeof(*mark);
	mark->text_bytes = (uint32_t)strlen(text);
	pieces[1] = (struct iovec){ (char *)text, mark->text_bytes };
	return writev(fd, pieces, 2) < 0 ? -errno : 0;
}

int kb_mark_device_series(int fd, struct kbarman_mark_series *series)
{
	series->size = sizeof(*series);
	return ioctl(fd, KBARMAN_MARK_SERIES, series) ? -errno : 0;
}
