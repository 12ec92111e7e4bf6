// SPDX-License-Identifier: MIT
/* What this machine can count: asked of the kernel by trying. */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <unistd.h>

#include <kbarman/perf_events.h>

#include "base/array.h"
#include "record/perf/counter.h"
#include "record/perf/probe.h"

/* Returns a negative errno or 0. */
static int open_once(const struct kb_perf_event *event, const struct kb_perf_event *leader,
		     struct kb_perf_place place)
{
	int fd, leads = -1;

	if (leader) {
		leads = kb_perf_counter_open(leader, &place);
		if (leads < 0)
			return leads;
	}
	place.leader = leads;
	fd = kb_perf_counter_open(event, &place);
	if (leads >= 0)
		close(leads);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

int kb_event_probe_beside(const struct kb_perf_event *event, const struct kb_perf_event *leader)
{
	/* An event that can't count a process may still count a CPU. */
	static const struct { pid_t pid; int cpu; } where[] = { { 0, -1 }, { -1, 0 } };
	int error = -ENODEV;

	for (size_t i = 0; i < ARRAY_SIZE(where); i++) {
		for (int user_only = 0; user_only < 2; user_only++) {
			int ret = open_once(event, leader, (struct kb_perf_place) {
				.pid = where[i].pid, .cpu = where[i].cpu, .leader = -1,
				.user_only = user_only });

			if (!ret)
				return 0;
			if (error == -ENODEV || ret == -EACCES || ret == -EPERM)
				error = ret;
		}
	}
	return error;
}

int kb_event_probe(const struct kb_perf_event *event)
{
	return kb_event_probe_beside(event, NULL);
}

/* Their numbers are 0x8000 to 0x8700. Source: Linux 6.12, arch/x86/include/asm/perf_event.h */
bool kb_event_needs_slots(const struct kb_perf_event *event)
{
	return event->type != PERF_TYPE_HARDWARE && event->type != PERF_TYPE_HW_CACHE &&
	       (event->config & ~UINT64_C(0x700)) == 0x8000 && strstr(event->name, "topdown-");
}

bool kb_perf_takes_type(uint32_t pmu)
{
	const struct kb_perf_event event = {
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES | (uint64_t)pmu << PERF_PMU_TYPE_SHIFT,
	};
	int error = kb_event_probe(&event);

	return !error || error == -EACCES || error == -EPERM;
}
