/* SPDX-License-Identifier: MIT */
/*
 * trigger/: triggers: expressions (triggers.h), what finds their moments in records (detector.h), a
 * running session as a walk over its records (live.h), and the watch that writes a capture of the
 * time around each.
 *
 * Internals of a watch, shared by its files: watch.c reads and waits, watch_write.c writes.
 */
#ifndef KB_LIB_TRIGGER_WATCH_H
#define KB_LIB_TRIGGER_WATCH_H

#include "trigger/live.h"
#include "trigger/moments.h"

struct kb_watch {
	struct kb_device *device;
	const struct kb_triggers *triggers;
	struct kb_watch_options how;
	struct kb_live *live;
	struct kb_detector *detector;
	struct kb_moments moments;

	int epoll, timer;
	int *pressures;			/* by expression; -1: it is no PSI */
	int signalled;			/* an eventfd: kb_watch_signal() was called */
	uint64_t signals;		/* a bit for each expression that a signal has fired */

	uint32_t *own;			/* the program's threads, in order */
	uint32_t nr_own, room_own;
	int64_t own_read_ms;

	uint64_t now, before;		/* ticks: of this look and of the last one */
	uint64_t hold_back;		/* ticks */
	unsigned int period_ms;		/* between two looks */
	bool only_some;			/* the session records chosen tasks only */
	bool ended;			/* there is nothing more to come */
	uint64_t more;			/* moments that the detector had no room for, so far */
	uint64_t lost_times, lost_records;	/* at the last look */
	struct kb_watch_totals totals;	/* lost_*, records */
};

/* The time of @ticks, ns. */
int64_t kb_watch_ns(const struct kb_watch *watch, uint64_t ticks);

/* The capture that was due is written, or is not. */
void kb_watch_done(struct kb_watch *watch, bool written);

#endif
