// SPDX-License-Identifier: MIT
/* See counter.h. */
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <kbarman/perf_events.h>

#include "record/perf/counter.h"

bool kb_perf_event_is_hardware(const struct kb_perf_event *event)
{
	return event->type != PERF_TYPE_SOFTWARE && event->type != PERF_TYPE_TRACEPOINT &&
	       event->type != PERF_TYPE_BREAKPOINT;
}

int kb_perf_counter_open(const struct kb_perf_event *event, const struct kb_perf_place *place)
{
	struct perf_event_attr attr = {
		.type = event->type,
		.size = sizeof(attr),
		.config = event->config,
		.config1 = event->config1,
		.config2 = event->config2,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			       (place->leads ? PERF_FORMAT_GROUP : 0),
		.disabled = place->leader < 0,
		.inherit = place->pid != -1,
		.enable_on_exec = place->on_exec && place->leader < 0,
		.exclude_user = !!(event->flags & KB_PERF_NO_USER),
		.exclude_kernel = place->user_only || event->flags & KB_PERF_NO_KERNEL,
		.exclude_hv = place->user_only || event->flags & KB_PERF_NO_HV,
		.precise_ip = event->flags >> KB_PERF_PRECISE_SHIFT & 3,
		.exclude_guest = kb_perf_event_is_hardware(event),
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, place->pid, place->cpu, place->leader,
			      PERF_FLAG_FD_CLOEXEC);

	/* A PMU that can leave out nothing, guests included, refuses to. */
	if (fd < 0 && attr.exclude_guest && (errno == EINVAL || errno == EOPNOTSUPP)) {
		attr.exclude_guest = 0;
		fd = (int)syscall(SYS_perf_event_open, &attr, place->pid, place->cpu,
				  place->leader, PERF_FLAG_FD_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

void kb_perf_counter_start(int fd)
{
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
}

void kb_perf_counter_stop(int fd)
{
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
}

bool kb_perf_counter_read(int fd, struct kb_perf_count *count)
{
	uint64_t words[3];

	if (read(fd, words, sizeof(words)) != sizeof(words))
		return false;
	*count = (struct kb_perf_count){ words[0], words[1], words[2] };
	return true;
}

int kb_perf_group_read(int fd, struct kb_perf_count *counts, unsigned int max)
{
	/* their number, the two times, the values */
	uint64_t words[3 + KB_EVENTS_MAX];
	ssize_t size = read(fd, words, sizeof(words));
	unsigned int nr = 0;

	if (size < 0)
		return -errno;
	if (size < (ssize_t)(3 * sizeof(words[0])))
		return -EIO;
	for (; nr < words[0] && nr < max && (3 + nr + 1) * sizeof(words[0]) <= (size_t)size; nr++)
		counts[nr] = (struct kb_perf_count){ words[3 + nr], words[1], words[2] };
	return (int)nr;
}
