// SPDX-License-Identifier: MIT
/* A capture of the time around a moment: a frozen copy of the rings, without what is older. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <kbarman/recorder.h>

#include "analysis/facts/triggered.h"
#include "base/bisect.h"
#include "base/clock.h"
#include "trigger/triggers.h"
#include "trigger/watch.h"

/* The wall clock at @fired, ns since 1970. */
static int64_t wall_clock(const struct kb_watch *watch, const struct kb_fired *fired)
{
	struct kbarman_clock clock;

	if (kb_device_clock(watch->device, &clock, NULL))
		return kb_clock_ns(CLOCK_REALTIME);
	return (int64_t)clock.now.realtime_ns -
	       (kb_watch_ns(watch, clock.now.timestamp) - fired->ns);
}

char *kb_watch_name(const struct kb_watch *watch, char *name, size_t size)
{
	const struct kb_fired *fired = &watch->moments.rows[0];
	int64_t ns = watch->moments.nr ? wall_clock(watch, fired) : 0;
	time_t seconds = (time_t)(ns / KB_NS_PER_S);
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y%m%dT%H%M%S", &tm);
	snprintf(name, size, "%s.%03d-%s.cap", text, (int)(ns % KB_NS_PER_S / KB_NS_PER_MS),
		 watch->moments.nr ? kb_trigger_word(fired->trigger->kind) : "none");
	return name;
}

/* Ticks that are @ns before @at. */
static uint64_t ticks_before(const struct kb_watch *watch, uint64_t at, uint64_t ns)
{
	int64_t wanted = kb_watch_ns(watch, at);

	wanted = ns > (uint64_t)wanted - (uint64_t)INT64_MIN ? INT64_MIN : wanted - (int64_t)ns;
	/* Times of ticks do not fall. */
	return KB_BISECT(ticks, 0, at, kb_watch_ns(watch, ticks) < wanted);
}

static int number_fact(struct kb_recorder *r, const char *key, uint64_t value, struct kb_error *err)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return kb_recorder_fact(r, key, text, err);
}

static int write_moment(struct kb_recorder *r, uint32_t i, const struct kb_fired *fired,
			struct kb_error *err)
{
	char key[32], text[KB_FIRED_REASON + 128], core[16] = "";

	if (fired->core != KB_CORE_NONE)
		snprintf(core, sizeof(core), "%" PRIu32, fired->core);
	snprintf(key, sizeof(key), KB_TRIGGERED_FACT ".%" PRIu32, i);
	snprintf(text, sizeof(text), "%" PRIu64 ",%s,%" PRIu32 ",%" PRIu64 ",%s", fired->ticks, core,
		 fired->task_id, fired->measured, fired->trigger->text);
	if (kb_recorder_fact(r, key, text, err))
		return err->code;
	snprintf(key, sizeof(key), KB_TRIGGERED_FACT ".%" PRIu32 ".reason", i);
	if (kb_recorder_fact(r, key, fired->reason, err))
		return err->code;
	snprintf(text, sizeof(text), "trigger %.100s: %s", fired->trigger->text, fired->reason);
	return kb_recorder_bookmark(r, fired->ticks, fired->core, fired->task_id, text, err);
}

static int write_facts(const struct kb_watch *watch, struct kb_recorder *r, struct kb_error *err)
{
	char name[128];
	int ret = kb_recorder_fact(r, "snapshot", "1", err) ?:
		  kb_recorder_fact(r, "name", kb_watch_name(watch, name, sizeof(name)), err) ?:
		  kb_recorder_fact(r, "filter", watch->only_some ? "some" : "none", err) ?:
		  number_fact(r, KB_TRIGGERED_FACT, watch->moments.nr + watch->moments.further,
			      err) ?:
		  number_fact(r, KB_TRIGGERED_FACT ".suppressed", watch->moments.suppressed_since,
			      err);

	if (!ret && watch->totals.lost_bytes)
		ret = number_fact(r, KB_TRIGGERED_FACT ".unwatched", watch->totals.lost_bytes, err);
	for (uint32_t i = 0; i < watch->moments.nr && !ret; i++)
		ret = write_moment(r, i, &watch->moments.rows[i], err);
	return ret;
}

/* The first moment, by time. */
static const struct kb_fired *earliest(const struct kb_watch *watch)
{
	const struct kb_fired *first = &watch->moments.rows[0];

	for (uint32_t i = 1; i < watch->moments.nr; i++)
		if (watch->moments.rows[i].ticks < first->ticks)
			first = &watch->moments.rows[i];
	return first;
}

static int write_capture(struct kb_watch *watch, struct kb_recorder *r,
			 struct kb_watch_written *written, struct kb_error *err)
{
	const struct kb_fired *first = earliest(watch);
	struct kb_recorder_totals totals;
	struct kbarman_clock clock;
	uint64_t since = 0;
	int ret = kb_device_clock(watch->device, &clock, err);

	if (ret)
		return ret;
	if (watch->how.before_ns) {
		since = ticks_before(watch, first->ticks, watch->how.before_ns);
		ret = kb_recorder_since(r, since, err);
	}
	if (!ret && watch->how.off_cpu_min_ns)
		ret = kb_recorder_off_cpu_min(r, watch->how.off_cpu_min_ns, err);
	ret = ret ?: kb_recorder_note(r, watch->how.notes, err) ?: write_facts(watch, r, err) ?: kb_recorder_finish(r, true, err);
	if (ret)
		return ret;
	kb_recorder_totals(r, &totals);
	written->records = totals.records;
	written->damaged = totals.damaged;
	written->has_moment = totals.whole_since <= first->ticks;
	written->cut = totals.whole_since > since;
	if (written->has_moment && totals.whole_since)
		written->before_ns = (uint64_t)(first->ns - kb_watch_ns(watch, totals.whole_since));
	if (clock.now.timestamp > first->ticks)
		written->after_ns = (uint64_t)(kb_watch_ns(watch, clock.now.timestamp) - first->ns);
	return 0;
}

int kb_watch_write(struct kb_watch *watch, int fd, struct kb_watch_written *written,
		   struct kb_error *err)
{
	struct kb_error why = { 0 };
	struct kb_recorder *recorder;
	int ret;

	*written = (struct kb_watch_written){ 0 };
	if (!watch->moments.nr)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "no capture is due");
	ret = kb_recorder_freeze(&recorder, watch->device, fd, &why);
	if (!ret) {
		ret = write_capture(watch, recorder, written, &why);
		kb_recorder_destroy(recorder);
	}
	kb_watch_done(watch, !ret);
	if (ret && err)
		*err = why;
	return ret;
}
