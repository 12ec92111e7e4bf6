// SPDX-License-Identifier: MIT
/* What this machine can count: asked of the kernel by trying. */
#include <errno.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include <kbarman/perf_events.h>

#include "base/array.h"
#include "record/perf_counter.h"
#include "record/perf_probe.h"

int kb_event_probe(const struct kbarman_event *event)
{
	/* An event that can't count a process may still count a CPU. */
	static const struct { pid_t pid; int cpu; } where[] = { { 0, -1 }, { -1, 0 } };
	int error = -ENODEV;

	for (size_t i = 0; i < ARRAY_SIZE(where); i++) {
		for (int user_only = 0; user_only < 2; user_only++) {
			int fd = kb_perf_counter_open(event, &(struct kb_perf_place) {
				.pid = where[i].pid, .cpu = where[i].cpu, .leader = -1,
				.user_only = user_only });

			if (fd >= 0) {
				close(fd);
				return 0;
			}
			if (error == -ENODEV || fd == -EACCES || fd == -EPERM)
				error = fd;
		}
	}
	return error;
}

bool kb_perf_takes_type(uint32_t pmu)
{
	const struct kbarman_event event = {
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES | (uint64_t)pmu << PERF_PMU_TYPE_SHIFT,
	};
	int error = kb_event_probe(&event);

	return !error || error == -EACCES || error == -EPERM;
}
