// SPDX-License-Identifier: MIT
/*
 * See metrics_live.h. Each reading is a frozen copy of all rings, which has what was read before
 * as well. A moment is chosen in front of the copy: all records up to it are in the copy, and
 * those behind it are left to the next reading. So each record counts once.
 */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include <kbarman/recorder.h>

#include "base/clock.h"
#include "cli/base/cli.h"
#include "cli/session/absent.h"
#include "cli/session/sessions.h"
#include "cli/session/sources.h"
#include "push/metrics_live.h"

#define SETTLE_MS	2	/* in which a record that has its time is written */
#define SHORTEST_MS	100
#define WANTED		(KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE | KBARMAN_SOURCE_LATENCY)
#define RING_BYTES	(4ULL << 20)

static int configure(struct metrics_live *live, const struct kbarman_query *query)
{
	struct kbarman_configure configure = {
		.mode = KBARMAN_MODE_OVERWRITE,
		/* names of tasks are not shown, so no mappings; frequencies are not either */
		.sources = WANTED & ~KBARMAN_SOURCE_FREQ,
		.ring_bytes = RING_BYTES,
	};
	struct kb_error err;

	if (configure.ring_bytes > query->max_ring_bytes)
		configure.ring_bytes = query->max_ring_bytes;
	if (sources_check(configure.sources, query) || absent_leave_out(&configure, query->absent))
		return CLI_IMPOSSIBLE;
	if (kb_device_configure(live->device, &configure, &err) ||
	    kb_device_start(live->device, &err))
		return cli_fail_error(&err);
	live->ours = true;
	return 0;
}

/* Does somebody record all that this needs, as far as this kernel has it? */
static bool is_enough(const struct kbarman_query *query)
{
	uint32_t wanted = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE | KBARMAN_SOURCE_WAKE |
			  KBARMAN_SOURCE_IRQ | KBARMAN_SOURCE_SOFTIRQ;

	return query->mode == KBARMAN_MODE_OVERWRITE && query->state & KBARMAN_STATE_OWNED &&
	       query->state & KBARMAN_STATE_RUNNING &&
	       !(wanted & ~query->absent & ~query->sources);
}

int metrics_live_open(struct metrics_live *live)
{
	struct kbarman_query query;
	struct kb_error err;

	if (kb_device_open(&live->device, &err))
		return cli_fail_error(&err);
	sessions_choose_overwrite(live->device);
	if (kb_device_query(live->device, &query, &err))
		return cli_fail_error(&err);
	if (is_enough(&query))
		cli_note("reading the session that runs");
	else if (configure(live, &query))
		return CLI_IMPOSSIBLE;
	if (kb_device_query(live->device, &query, &err))
		return cli_fail_error(&err);
	live->session = query.session;
	live->ring_bytes = query.ring_bytes;
	live->read_at = kb_clock_ms();
	return 0;
}

void metrics_live_close(struct metrics_live *live)
{
	kb_device_close(live->device);
}

/* The moment up to which records count. */
static int choose_moment(const struct metrics_live *live, uint64_t *ticks)
{
	const struct timespec settle = { .tv_nsec = SETTLE_MS * KB_NS_PER_MS };
	struct kbarman_clock clock = { 0 };
	struct kb_error err;

	if (kb_device_clock(live->device, &clock, &err))
		return cli_fail_error(&err);
	*ticks = clock.now.timestamp;
	nanosleep(&settle, NULL);
	return 0;
}

/* The bytes that the fullest CPU wrote, and in *@all those of all. */
static uint64_t bytes_written(const struct metrics_live *live, uint64_t *all)
{
	struct kbarman_query query;
	uint64_t most = 0;

	*all = 0;
	if (kb_device_query(live->device, &query, NULL))
		return 0;
	for (unsigned int cpu = 0; cpu < query.nr_cpus; cpu++) {
		struct kbarman_stats stats = { 0 };

		if (kb_device_stats(live->device, cpu, &stats, NULL))
			continue;
		*all += stats.bytes < query.ring_bytes ? stats.bytes : query.ring_bytes;
		if (stats.bytes > most)
			most = stats.bytes;
	}
	return most;
}

/* So that a ring is at most half full until then, if it fills as it did. */
static void choose_wait(struct metrics_live *live, int64_t *wait_ms)
{
	int64_t now = kb_clock_ms(), took = now - live->read_at, wait;
	uint64_t all, written = bytes_written(live, &all), more = written - live->written;

	live->bytes += all;
	wait = more && took > 0 ? (int64_t)(live->ring_bytes / 2 * (uint64_t)took / more) : *wait_ms;
	if (wait < SHORTEST_MS)
		wait = SHORTEST_MS;
	if (wait < *wait_ms)
		*wait_ms = wait;
	live->written = written;
	live->read_at = now;
}

/* Ends with the old session, and begins with another one. */
static int change_session(struct metrics_live *live)
{
	uint64_t bytes = live->bytes;

	cli_note("the session has ended: looking for another one");
	metrics_live_close(live);
	*live = (struct metrics_live){ .bytes = bytes };
	return metrics_live_open(live);
}

static bool is_over(const struct metrics_live *live)
{
	struct kbarman_query query;

	return kb_device_query(live->device, &query, NULL) || query.session != live->session ||
	       !(query.state & KBARMAN_STATE_RUNNING);
}

int metrics_live_read(struct metrics_live *live, struct kb_openmetrics *metrics, int64_t *wait_ms)
{
	struct kb_openmetrics_part part = {
		.size = sizeof(part), .goes_on = live->after != 0, .after = live->after,
	};
	struct kb_error err = { 0 };
	struct kb_trace *trace;
	int ret = choose_moment(live, &part.until);

	if (ret)
		return ret;
	ret = kb_trace_open_device(&trace, live->device, NULL, &err);
	if (ret && is_over(live))
		return change_session(live);
	if (ret == -EAGAIN) {
		cli_warn("%s: trying again", kb_error_text(&err));
		*wait_ms = SHORTEST_MS;
		return 0;
	}
	if (ret)
		return cli_fail_error(&err);
	ret = kb_openmetrics_read(metrics, trace, &part, &err);
	kb_trace_close(trace);
	if (ret < 0)
		return cli_fail_error(&err);
	live->after = part.until;
	choose_wait(live, wait_ms);
	return !live->ours && is_over(live) ? change_session(live) : 0;
}
