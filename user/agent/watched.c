// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "agent/say.h"
#include "agent/trigger_list.h"
#include "agent/watched.h"
#include "base/clock.h"

#define UNSEEN_MS	60000		/* between two messages that moments may have been missed */

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

/* The triggers but those of PSI. NULL: none is left, or there is no memory. */
static struct kb_triggers *without_pressure(const struct kb_triggers *triggers)
{
	struct kb_triggers *others;
	struct kb_error err;
	int ret = kb_triggers_create(&others, &err);

	for (uint32_t i = 0; !ret && i < kb_triggers_nr(triggers); i++)
		if (kb_triggers_get(triggers, i)->kind != KB_TRIGGER_PSI)
			ret = kb_triggers_add(others, kb_triggers_get(triggers, i)->text, &err);
	if (!ret && kb_triggers_nr(others))
		return others;
	kb_triggers_destroy(others);
	return NULL;
}

int agent_moments_watch(struct agent_moments *moments, const struct agent_wanted *wanted,
			struct kb_device *device, struct kb_error *err)
{
	const struct kb_watch_options how = {
		.size = sizeof(how), .before_ns = wanted->before_seconds * (uint64_t)KB_NS_PER_S,
		.after_ns = KB_WATCH_AFTER_NS,
		.every_ns = wanted->every_seconds * (uint64_t)KB_NS_PER_S,
		.notes = wanted->notes,
	};

	int ret = kb_watch_create(&moments->watch, device, moments->triggers, &how, err);
	struct kb_triggers *others = ret ? without_pressure(moments->triggers) : NULL;

	/* The kernel may not give PSI: that takes no other trigger away. */
	if (!others || kb_triggers_nr(others) == kb_triggers_nr(moments->triggers) ||
	    kb_watch_create(&moments->watch, device, others, &how, NULL)) {
		kb_triggers_destroy(others);
		return ret;
	}
	kb_triggers_destroy(moments->triggers);
	moments->triggers = others;
	snprintf(moments->absent, sizeof(moments->absent), "%s", kb_error_text(err));
	agent_say(AGENT_ERROR, "session %s: only its other triggers are watched: %s", moments->session,
		  moments->absent);
	return 0;
}

void agent_moments_totals(const struct agent_moments *moments, struct kb_watch_totals *totals)
{
	*totals = (struct kb_watch_totals){ 0 };
	if (moments->watch)
		kb_watch_totals(moments->watch, totals);
	totals->fired += moments->before_boot;
	totals->kept += moments->before_boot;
	totals->captures += moments->before_boot;
}

/* A moment has no capture: its number is in the state, and the reason is said when it is another one. */
static void fail(struct agent_moments *moments, const char *reason, uint64_t lost, const char *why)
{
	agent_folder_fail(moments->folder);
	agent_folder_make_room(moments->folder);
	if (!strcmp(moments->trouble, why))
		return;
	if (!moments->trouble[0])
		moments->lost_at_trouble = lost;
	agent_say(AGENT_ERROR, "session %s: %s: this moment has no capture, and the next ones are "
		  "counted until there is room: %s", moments->session, reason, why);
	snprintf(moments->trouble, sizeof(moments->trouble), "%s", why);
}

static void recover(struct agent_moments *moments)
{
	struct kb_watch_totals totals;

	if (!moments->trouble[0])
		return;
	agent_moments_totals(moments, &totals);
	agent_say(AGENT_NOTICE, "session %s: there is room again; %" PRIu64 " moments have no capture",
		  moments->session, totals.failed - moments->lost_at_trouble);
	moments->trouble[0] = '\0';
}

static void write_moment(struct agent_moments *moments, const char *reason)
{
	struct kb_watch_totals before;
	struct kb_watch_written written;
	char name[NAME_MAX + 1];
	struct kb_error err;
	int fd = agent_folder_create(moments->folder, moments->session, name);

	agent_moments_totals(moments, &before);
	if (fd < 0) {
		kb_watch_drop(moments->watch);
		fail(moments, reason, before.failed, strerror(-fd));
		return;
	}
	if (kb_watch_write(moments->watch, fd, &written, &err)) {
		close(fd);
		agent_folder_remove(moments->folder, name);
		fail(moments, reason, before.failed, kb_error_text(&err));
		return;
	}
	agent_folder_finish(moments->folder, fd, name);
	if (!written.has_moment) {
		moments->overwritten++;
		moments->missed_ms = kb_clock_ms();
	}
	recover(moments);
}

static void write_due(struct agent_moments *moments)
{
	const struct kb_fired *fired;
	char reason[KB_FIRED_REASON];
	uint32_t nr;

	while ((fired = kb_watch_due(moments->watch, &nr))) {
		/* The next one takes its place when this one is written. */
		memcpy(reason, fired->reason, sizeof(reason));
		if (!moments->trouble[0])
			agent_say(AGENT_INFO, "session %s: %s: %s", moments->session,
				  fired->trigger->text, reason);
		write_moment(moments, reason);
	}
}

/* Moments in records that were overwritten before they were read were not seen. */
static void say_unseen(struct agent_moments *moments)
{
	struct kb_watch_totals totals;

	kb_watch_totals(moments->watch, &totals);
	if (totals.lost_times != moments->lost_times)
		moments->missed_ms = kb_clock_ms();
	moments->lost_times = totals.lost_times;
	if (totals.lost_times + moments->overwritten == moments->told_times || kb_clock_ms() < moments->unseen_ms)
		return;
	agent_say(AGENT_WARNING, "session %s: %" PRIu64 " bytes were overwritten before its triggers saw them, "
		  "and %" PRIu64 " moments before they were written: raise 'buffer'", moments->session,
		  totals.lost_bytes, moments->overwritten);
	moments->unseen_ms = kb_clock_ms() + UNSEEN_MS;
	moments->told_times = totals.lost_times + moments->overwritten;
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
