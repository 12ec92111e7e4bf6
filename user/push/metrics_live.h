/* SPDX-License-Identifier: MIT */
/*
 * A session that runs, read in pieces: a flight recorder that records what the metrics need, or else
 * a session of our own in overwrite mode.
 */
#ifndef KBARMAN_PUSH_METRICS_LIVE_H
#define KBARMAN_PUSH_METRICS_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/device.h>
#include <kbarman/openmetrics.h>

struct metrics_live {
	struct kb_device *device;
	bool ours;			/* the session */
	uint64_t session;		/* its number; 0: none yet */
	uint64_t ring_bytes;
	uint64_t after;			/* ticks: records up to then were counted */
	uint64_t written;		/* bytes, by the fullest CPU */
	int64_t read_at;		/* ms */
	uint64_t bytes;			/* read over the life of the process */
};

/* Returns 0, or an exit status after a message. */
int metrics_live_open(struct metrics_live *live);
void metrics_live_close(struct metrics_live *live);

/*
 * Reads what is new. *@wait_ms, the time until the next call, becomes less if the rings would be
 * full earlier. The same results.
 */
int metrics_live_read(struct metrics_live *live, struct kb_openmetrics *metrics, int64_t *wait_ms);

#endif
