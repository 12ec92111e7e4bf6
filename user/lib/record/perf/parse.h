/* SPDX-License-Identifier: MIT */
/* kb_events_parse() with all that it depends on, for tests. */
#ifndef KB_LIB_RECORD_PERF_PARSE_H
#define KB_LIB_RECORD_PERF_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/perf_events.h>

struct kb_events_how {
	const char *sysfs;
	bool each_pmu;		/* as in kb_events_parse_each_pmu() */
	/* kb_perf_takes_type() or another answer; NULL: the kernel takes it. */
	bool (*takes_type)(uint32_t pmu);
};

int kb_events_parse_how(struct kb_perf_event *events, unsigned int max, const char *list,
			const struct kb_events_how *how, struct kb_error *err);

#endif
