// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>

#include "agent/boot.h"
#include "agent/say.h"
#include "agent/session.h"

#define SESSIONS	32	/* the module has no more */

/* The stream that runs and has no owner; false: there is none. */
static bool find(struct kb_device *device, uint64_t *session)
{
	struct kbarman_session_info infos[SESSIONS] = { 0 };
	struct kbarman_sessions sessions = {
		.count = SESSIONS, .sessions_ptr = (uintptr_t)infos,
	};
	uint32_t i;

	if (kb_device_sessions(device, &sessions, NULL))
		return false;
	for (i = 0; i < sessions.count && i < SESSIONS; i++) {
		*session = infos[i].session;
		if (infos[i].state & KBARMAN_STATE_RUNNING && !(infos[i].state & KBARMAN_STATE_OWNED) &&
		    infos[i].mode == KBARMAN_MODE_STREAM)
			return true;
	}
	return false;
}

/* Takes @device. */
static void save(struct kb_device *device, struct agent_folder *folder)
{
	struct agent_wanted wanted = {
		.name = "since_boot", .file_bytes = UINT64_MAX, .file_seconds = 86400,
	};
	struct agent_session *session;
	struct kb_error err;

	if (agent_session_adopt(&session, &wanted, device, folder, &err)) {
		agent_say(AGENT_ERROR, "what was recorded since the boot is lost: %s", kb_error_text(&err));
		kb_device_close(device);
		return;
	}
	agent_session_add_kernel(session);
	agent_say(AGENT_NOTICE, "the recording since the boot is taken over and ends");
	agent_session_end(session);
}

void agent_boot_take(struct agent_folder *folder)
{
	struct kb_device *device;
	struct kb_error err;
	uint64_t session;
	int ret;

	if (kb_device_open(&device, NULL))
		return;
	ret = find(device, &session) ? kb_device_adopt(device, session, &err) : -ENOENT;
	if (!ret) {
		save(device, folder);
		return;
	}
	if (ret != -ENOENT)
		agent_say(AGENT_WARNING, "the recording since the boot is left alone: %s",
			  kb_error_text(&err));
	kb_device_close(device);
}
