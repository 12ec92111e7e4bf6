// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "say.h"
#include "trigger_list.h"
#include "watched.h"

int agent_moments_create(struct agent_moments *moments, const struct agent_wanted *wanted,
			 struct agent_folder *folder, struct kb_error *err)
{
	moments->session = wanted->name;
	moments->folder = folder;
	return agent_triggers(&moments->triggers, wanted->triggers, err);
}

void agent_moments_release(struct agent_moments *moments)
{
	kb_watch_destroy(moments->watch);
	kb_triggers_destroy(moments->triggers);
	*moments = (struct agent_moments){ 0 };
}

int agent_moments_watch(struct agent_moments *moments, const struct agent_wanted *wanted,
			struct kb_device *device, struct kb_error *err)
{
	const struct kb_watch_options how = {
		.size = sizeof(how), .before_ns = wanted->before_seconds * (uint64_t)KB_NS_PER_S,
		.after_ns = KB_WATCH_AFTER_NS,
		.every_ns = wanted->every_seconds * (uint64_t)KB_NS_PER_S,
	};

	return kb_watch_create(&moments->watch, device, moments->triggers, &how, err);
}

static void write_moment(struct agent_moments *moments, const struct kb_fired *fired)
{
	struct kb_watch_written written;
	char name[NAME_MAX + 1];
	struct kb_error err;
	int fd = agent_folder_create(moments->folder, moments->session, name);

	if (fd < 0) {
		agent_say(AGENT_ERROR, "session %s: %s: no file can be made: %s", moments->session,
			  fired->reason, strerror(-fd));
		kb_watch_drop(moments->watch);
		return;
	}
	if (kb_watch_write(moments->watch, fd, &written, &err)) {
		agent_say(AGENT_ERROR, "session %s: %s is not kept: %s", moments->session, fired->reason,
			  kb_error_text(&err));
		close(fd);
		agent_folder_remove(moments->folder, name);
		return;
	}
	agent_folder_finish(moments->folder, fd, name);
}

static void write_due(struct agent_moments *moments)
{
	const struct kb_fired *fired;
	uint32_t nr;

	while ((fired = kb_watch_due(moments->watch, &nr))) {
		agent_say(AGENT_INFO, "session %s: %s: %s", moments->session, fired->trigger->text,
			  fired->reason);
		write_moment(moments, fired);
	}
}

/* Moments in records that were overwritten before they were read were not seen. */
static void say_unseen(struct agent_moments *moments)
{
	struct kb_watch_totals totals;

	kb_watch_totals(moments->watch, &totals);
	if (totals.lost_times > moments->lost_times)
		agent_say(AGENT_WARNING, "session %s: %" PRIu64 " bytes were overwritten before its triggers "
			  "saw them: raise 'buffer'", moments->session, totals.lost_bytes);
	moments->lost_times = totals.lost_times;
}

int agent_moments_serve(struct agent_moments *moments, struct kb_error *err)
{
	int ret = kb_watch_serve(moments->watch, err);

	if (ret)
		return ret;
	write_due(moments);
	say_unseen(moments);
	return 0;
}

void agent_moments_end(struct agent_moments *moments)
{
	struct kb_error err;

	if (kb_watch_finish(moments->watch, &err))
		agent_say(AGENT_ERROR, "session %s: its last moments are not kept: %s", moments->session,
			  kb_error_text(&err));
	else
		write_due(moments);
}
