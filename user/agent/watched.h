/* SPDX-License-Identifier: MIT */
/*
 * A session whose buffers keep the newest records, of which only the time around moments gets into
 * files: those that its triggers describe (kbarman/trigger.h).
 */
#ifndef KB_AGENT_WATCHED_H
#define KB_AGENT_WATCHED_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/trigger.h>

#include "agent/config.h"
#include "agent/folder.h"

struct agent_moments {			/* zeroed: none */
	const char *session;		/* its name */
	struct agent_folder *folder;
	struct kb_triggers *triggers;
	struct kb_watch *watch;		/* NULL: the session does not run yet */
	uint64_t before_boot;		/* moments that a former boot recorded: its crashes */
	uint64_t overwritten;		/* captures whose moment was overwritten before it was written */
	uint64_t lost_times;		/* that were noticed, */
	uint64_t told_times;		/* ... and told, with captures without their moment */
	int64_t unseen_ms;		/* when to tell of more, by kb_clock_ms() */
	int64_t missed_ms;		/* when something was not seen or overwritten last; 0: never */
	uint64_t lost_at_trouble;	/* moments without a capture when the trouble began */
	char trouble[256];		/* why the last moment has no capture; "": it has one */
	char absent[256];		/* why triggers of PSI are not watched; "": they are */
};

/* Takes the triggers of @wanted. agent_moments_release() in any case. */
int agent_moments_create(struct agent_moments *moments, const struct agent_wanted *wanted,
			 struct agent_folder *folder, struct kb_error *err);
void agent_moments_release(struct agent_moments *moments);

/* Begins to watch the session of @device, which runs. */
int agent_moments_watch(struct agent_moments *moments, const struct agent_wanted *wanted,
			struct kb_device *device, struct kb_error *err);

/* Reads what is new, and writes the captures that are due. Returns 0 or a negative errno and @err. */
int agent_moments_serve(struct agent_moments *moments, struct kb_error *err);

/* Moments with and without a capture, and those that came too soon after one. */
void agent_moments_totals(const struct agent_moments *moments, struct kb_watch_totals *totals);

/* The session has stopped: writes all that is due. */
void agent_moments_end(struct agent_moments *moments);

#endif
