/* SPDX-License-Identifier: MIT */
/* The sessions of all programs: which of them a verb looks at, and the list for people. */
#ifndef KB_CLI_SESSION_SESSIONS_H
#define KB_CLI_SESSION_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <kbarman/device.h>

#define SESSIONS_MAX	64	/* more than a module allows */

struct sessions {
	struct kbarman_session_info list[SESSIONS_MAX];	/* the newest first */
	uint32_t nr, most;	/* that there are, and that there may be */
};

/* -ENOTTY: the module can't tell. */
int sessions_read(struct sessions *sessions, struct kb_device *device, struct kb_error *err);

/* Is that session being recorded by a program? */
bool session_records(const struct kbarman_session_info *session);

/* Writes who records it, such as "kbarman (process 17)" or "a program of another user". */
void session_who(const struct kbarman_session_info *session, char *text, size_t size);

/*
 * Lets @device look at the newest session in overwrite mode, if possible one that is recorded now,
 * instead of the newest session. Without such a session, or with an old module, nothing changes.
 */
void sessions_choose_overwrite(struct kb_device *device);

/*
 * Lets @device look at the session of process @pid. A session whose owner is hidden may be the one.
 * False: it has none.
 */
bool sessions_choose_process(struct kb_device *device, pid_t pid);

/* Prints all of them. Returns an exit status, after a message if they can't be listed. */
int sessions_print(bool people);

#endif
