/* SPDX-License-Identifier: MIT */
/*
 * A session of the agent: the device's session, and the file that its records go to now. When the
 * disk takes no more, the session goes on without a file: its buffers fill, the kernel counts
 * what is lost, and the next file tells of it.
 */
#ifndef KB_AGENT_SESSION_H
#define KB_AGENT_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/device.h>
#include <kbarman/recorder.h>

#include "agent/config.h"
#include "agent/folder.h"
#include "agent/watched.h"

struct agent_session {
	struct agent_wanted wanted;
	char kept_name[64];		/* of the descriptor, for the service manager */
	struct agent_folder *folder;
	struct kb_device *device;
	struct kb_parts *parts;		/* NULL: only moments are kept */
	struct agent_moments moments;

	/* The file; NULL and -1: none now. */
	struct kb_recorder *recorder;
	int fd;
	char name[NAME_MAX + 1];
	int64_t begun_ms;
	bool has_records;		/* it is a capture already */

	int64_t retry_ms;		/* when to try again without a file */
	int64_t wait_ms;		/* how long to wait then */
	uint64_t records;		/* in files, of this agent */
	uint64_t lost;			/* as the kernel counts since the session's start */
	int64_t lost_ms;		/* when it counted more, by kb_clock_ms(); 0: not yet */
	uint64_t lost_at_trouble;
	uint64_t gap_from, gap_until;	/* ns since 1970: a time for which there is no record */
	char trouble[256];		/* why there is no file; "": there is one */
};

/*
 * Starts a new session for @wanted; or goes on with the one of @device, which is the session's then. Returns
 * 0; or a negative errno and @err.
 */
int agent_session_start(struct agent_session **out, const struct agent_wanted *wanted,
			struct agent_folder *folder, struct kb_error *err);
int agent_session_adopt(struct agent_session **out, const struct agent_wanted *wanted,
			struct kb_device *device, struct agent_folder *folder, struct kb_error *err);

/* Adds the rows of the kernel's code, if the session takes samples. */
void agent_session_add_kernel(struct agent_session *session);

/* Lets the service manager keep the descriptor. */
void agent_session_keep(struct agent_session *session);

/* Tells of a time in which nothing was recorded in the next file. ns since 1970. */
void agent_session_gap(struct agent_session *session, uint64_t from, uint64_t until);

/* Writes what the buffers have; begins and ends files as it is time. */
void agent_session_serve(struct agent_session *session);

/* Ends the file: the next one begins there. False: there was none, or it could not be ended. */
bool agent_session_rotate(struct agent_session *session);

/* When to call agent_session_serve() at the latest, by kb_clock_ms(). */
int64_t agent_session_due(const struct agent_session *session);

/* For poll(): -1 if nothing can be done with what the buffers have. */
int agent_session_fd(const struct agent_session *session);

/* How many records the kernel counts as lost, which is kept in `lost`. */
uint64_t agent_session_lost(struct agent_session *session);

/* Whether the kernel still records. */
bool agent_session_runs(struct agent_session *session);

/* Stops the session and writes all that it has. Frees it. */
void agent_session_end(struct agent_session *session);

/* Leaves it to the next agent. Frees it. */
void agent_session_leave(struct agent_session *session);

#endif
