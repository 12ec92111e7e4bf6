// SPDX-License-Identifier: MIT
/* Source of the file's format: Documentation/accounting/psi.rst of Linux. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trigger/pressure.h"

static int refused(const struct kb_trigger *trigger, int error, struct kb_error *err)
{
	if (error == ENOENT || error == EOPNOTSUPP)
		return kb_error_set(err, -ENOTSUP, KB_NO_OFFSET, "%s: this kernel has no PSI for it: "
				    "boot with psi=1 on a kernel with CONFIG_PSI, or leave this "
				    "trigger out", trigger->text);
	if (error == EACCES || error == EPERM)
		return kb_error_set(err, -error, KB_NO_OFFSET, "%s: only root may watch the pressure "
				    "here: run as root, or leave this trigger out", trigger->text);
	if (error == EINVAL)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "%s: the kernel refuses this trigger: "
				    "without the right CAP_SYS_RESOURCE the time behind '/' has to be "
				    "a multiple of 2s, as in psi:cpu>10%%/2s", trigger->text);
	return kb_error_set(err, -error, KB_NO_OFFSET, "%s: %s", trigger->text, strerror(error));
}

int kb_pressure_open(const struct kb_trigger *trigger, const char *root, struct kb_error *err)
{
	char path[256], text[64];
	int fd, length;

	snprintf(path, sizeof(path), "%s/%s", root ? root : "/proc/pressure", trigger->name);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return refused(trigger, errno, err);
	length = snprintf(text, sizeof(text), "%s %" PRIu64 " %" PRIu64,
			  trigger->is_full ? "full" : "some", trigger->limit, trigger->window_us);
	if (write(fd, text, (size_t)length + 1) < 0) {
		int ret = refused(trigger, errno, err);

		close(fd);
		return ret;
	}
	return fd;
}
