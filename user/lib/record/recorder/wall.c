// SPDX-License-Identifier: MIT
/*
 * What a capture says of the wall clock, beside the reading in its header: analysis/facts/wall.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/timex.h>

#include "record/recorder/inside.h"

#define NS_PER_US	1000U

int recorder_wall_error(struct kb_recorder *recorder, const char *key)
{
	struct timex now = { .modes = 0 };
	int state = adjtimex(&now);
	char text[64];

	if (state < 0 || now.maxerror < 0 || now.esterror < 0)
		return 0;
	snprintf(text, sizeof(text), "%d,%" PRIu64 ",%" PRIu64,
		 state != TIME_ERROR && !(now.status & STA_UNSYNC),
		 (uint64_t)now.maxerror * NS_PER_US, (uint64_t)now.esterror * NS_PER_US);
	return recorder_text_fact(recorder, key, text);
}

int recorder_wall_facts(struct kb_recorder *recorder, struct kb_error *err)
{
	const struct kbarman_clock_pair *end;
	struct kbarman_clock clock;
	char text[64];
	int ret = kb_device_clock(recorder->device, &clock, err);

	if (ret)
		return ret;
	end = recorder->is_frozen ? &clock.now : &clock.stop;
	if (!end->realtime_ns)
		return 0;
	snprintf(text, sizeof(text), "%" PRIu64 ",%" PRIu64, (uint64_t)end->timestamp,
		 (uint64_t)end->realtime_ns);
	ret = recorder_text_fact(recorder, "realtime_end", text) ?:
	      recorder_wall_error(recorder, "realtime_error_end");
	return ret ? recorder_write_failed(err, ret) : 0;
}
