// SPDX-License-Identifier: MIT
/*
 * A timer wakes the watch, more often the faster the rings fill. It reads what is new, up to a little
 * before now: a CPU may have stamped a record and not published it yet. A capture is written when the
 * time after its moment is over, or when half of a ring is new since then: what a ring holds must not
 * be overwritten while it is waited for.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/options.h"
#include "trigger/pressure.h"
#include "trigger/reason.h"
#include "trigger/triggers.h"
#include "trigger/watch.h"

#define HOLD_BACK_NS	50000000	/* as of a recorder in stream mode */
#define PERIOD_MIN_MS	5U
#define PERIOD_MAX_MS	100U
#define FILL_FAST	12U		/* percent of a ring that were new: look more often, */
#define FILL_SLOW	3U		/* less often */
#define FILL_DUE	50U		/* percent since the moment: write */
#define OWN_MS		1000		/* between two looks for new threads of the program */
#define SIGNALS_MAX	64U		/* expressions about signals that are told apart */

int64_t kb_watch_ns(const struct kb_watch *watch, uint64_t ticks)
{
	return kb_barman_ns(kb_trace_barman(kb_live_trace(watch->live)), ticks);
}

/* ---- the program's own threads ---- */

static int compare_ids(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static void find_own(struct kb_watch *watch)
{
	int64_t now = kb_clock_ms();
	struct dirent *entry;
	DIR *dir;

	if (watch->nr_own && now - watch->own_read_ms < OWN_MS)
		return;
	dir = opendir("/proc/self/task");
	if (!dir)
		return;
	watch->own_read_ms = now;
	watch->nr_own = 0;
	while ((entry = readdir(dir)) != NULL) {
		uint32_t id = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (id && KB_ARRAY_ROOM(watch->own, watch->room_own, (size_t)watch->nr_own + 1))
			watch->own[watch->nr_own++] = id;
	}
	closedir(dir);
	if (watch->nr_own)
		qsort(watch->own, watch->nr_own, sizeof(*watch->own), compare_ids);
}

static bool is_own(void *context, uint32_t task_id)
{
	const struct kb_watch *watch = context;

	return watch->nr_own &&
	       bsearch(&task_id, watch->own, watch->nr_own, sizeof(*watch->own), compare_ids);
}

/* ---- moments that no record tells ---- */

static void add(struct kb_watch *watch, const struct kb_fired *fired)
{
	if (kb_moments_add(&watch->moments, fired) > 0)
		kb_follow_note(kb_live_follow(watch->live));
}

static struct kb_fired fired_now(const struct kb_watch *watch, uint32_t i)
{
	return (struct kb_fired){
		.trigger = kb_triggers_get(watch->triggers, i),
		.ns = kb_watch_ns(watch, watch->now),
		.ticks = watch->now,
		.core = KB_CORE_NONE,
	};
}

bool kb_watch_signal(struct kb_watch *watch, int signal)
{
	const uint64_t one = 1;
	bool found = false;

	for (uint32_t i = 0; i < kb_triggers_nr(watch->triggers) && i < SIGNALS_MAX; i++) {
		const struct kb_trigger *trigger = kb_triggers_get(watch->triggers, i);

		if (trigger->kind != KB_TRIGGER_SIGNAL || trigger->signal != signal)
			continue;
		watch->signals |= UINT64_C(1) << i;
		found = true;
	}
	/* It can't be full. */
	return found && write(watch->signalled, &one, sizeof(one)) == sizeof(one);
}

static void take_signals(struct kb_watch *watch)
{
	for (uint32_t i = 0; watch->signals && i < SIGNALS_MAX; i++) {
		struct kb_fired fired;

		if (!(watch->signals >> i & 1))
			continue;
		watch->signals &= ~(UINT64_C(1) << i);
		fired = fired_now(watch, i);
		kb_reason_signal(&fired, fired.trigger->name);
		add(watch, &fired);
	}
}

static void take_pressure(struct kb_watch *watch, uint32_t i)
{
	struct kb_fired fired = fired_now(watch, i);

	kb_reason_psi(&fired);
	add(watch, &fired);
}

/* ---- descriptors ---- */

static int epoll_add(struct kb_watch *watch, int fd, uint32_t events, uint64_t what)
{
	struct epoll_event event = { .events = events, .data.u64 = what };

	return epoll_ctl(watch->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int open_descriptors(struct kb_watch *watch, struct kb_error *err)
{
	uint32_t nr = kb_triggers_nr(watch->triggers);
	int ret = 0;

	watch->pressures = calloc((size_t)nr + 1, sizeof(*watch->pressures));
	if (!watch->pressures)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	for (uint32_t i = 0; i < nr; i++)
		watch->pressures[i] = -1;
	watch->epoll = epoll_create1(EPOLL_CLOEXEC);
	watch->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	watch->signalled = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (watch->epoll < 0 || watch->timer < 0 || watch->signalled < 0 ||
	    epoll_add(watch, watch->timer, EPOLLIN, nr) ||
	    epoll_add(watch, watch->signalled, EPOLLIN, nr))
		return kb_error_set(err, -errno, KB_NO_OFFSET, "can't wait for triggers: %s",
				    strerror(errno));
	for (uint32_t i = 0; i < nr && !ret; i++) {
		const struct kb_trigger *trigger = kb_triggers_get(watch->triggers, i);

		if (trigger->kind != KB_TRIGGER_PSI)
			continue;
		watch->pressures[i] = kb_pressure_open(trigger, NULL, err);
		ret = watch->pressures[i] < 0 ? watch->pressures[i] : 0;
		if (!ret && epoll_add(watch, watch->pressures[i], EPOLLPRI, i))
			ret = kb_error_set(err, -errno, KB_NO_OFFSET, "%s: %s", trigger->text,
					   strerror(errno));
	}
	return ret;
}

static void set_timer(struct kb_watch *watch)
{
	struct itimerspec when = { 0 };
	uint64_t wait = watch->period_ms * (uint64_t)KB_NS_PER_MS;
	int64_t due, left;

	if (kb_moments_due(&watch->moments, &due)) {
		left = due - kb_watch_ns(watch, watch->now);
		if (left < (int64_t)wait)
			wait = left > 0 ? (uint64_t)left : 1;
	}
	when.it_value.tv_sec = (time_t)(wait / KB_NS_PER_S);
	when.it_value.tv_nsec = (long)(wait % KB_NS_PER_S);
	timerfd_settime(watch->timer, 0, &when, NULL);
}

/* What the descriptors say. Those that stay readable otherwise are read. */
static void take_descriptors(struct kb_watch *watch)
{
	struct epoll_event events[16];
	uint32_t nr = kb_triggers_nr(watch->triggers);
	uint64_t count;
	int n = epoll_wait(watch->epoll, events, ARRAY_SIZE(events), 0);

	for (int i = 0; i < n; i++) {
		uint64_t what = events[i].data.u64;

		if (what >= nr)
			continue;
		if (events[i].events & EPOLLERR)	/* the kernel has given it up */
			epoll_ctl(watch->epoll, EPOLL_CTL_DEL, watch->pressures[what], NULL);
		else if (events[i].events & EPOLLPRI)
			take_pressure(watch, (uint32_t)what);
	}
	if (read(watch->timer, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return;
	if (read(watch->signalled, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return;
}

/* ---- records ---- */

/* What is lost since the last look was lost then: waits that overlap that are not known. */
static int take_losses(struct kb_watch *watch)
{
	struct kb_follow_stats follow;
	struct kbarman_stats stats;
	uint64_t lost = watch->lost_records;
	bool new;

	kb_follow_stats(kb_live_follow(watch->live), &follow);
	if (!kb_device_stats(watch->device, KBARMAN_CPU_ALL, &stats, NULL))
		lost = kb_stats_lost(&stats);
	new = lost != watch->lost_records || follow.lost_times != watch->lost_times;
	watch->totals.lost_records += lost - watch->lost_records;
	watch->totals.lost_bytes = follow.lost_bytes;
	watch->totals.lost_times = follow.lost_times;
	watch->lost_records = lost;
	watch->lost_times = follow.lost_times;
	return new ? kb_detector_gap(watch->detector, kb_watch_ns(watch, watch->before),
				     kb_watch_ns(watch, watch->now)) : 0;
}

static int read_records(struct kb_watch *watch, uint64_t horizon)
{
	const struct kb_walk *walk;
	int ret;

	while ((ret = kb_live_next(watch->live, horizon, &walk)) > 0) {
		watch->totals.records++;
		if (kb_detector_feed(watch->detector, walk))
			return -ENOMEM;
	}
	return ret;
}

static void take_fired(struct kb_watch *watch, int64_t until)
{
	uint64_t more = kb_detector_more(watch->detector);
	struct kb_fired fired;

	while (kb_detector_fired(watch->detector, until, &fired))
		add(watch, &fired);
	kb_moments_add_unknown(&watch->moments, more - watch->more);
	watch->more = more;
}

static void choose_period(struct kb_watch *watch)
{
	struct kb_follow_stats stats;

	kb_follow_stats(kb_live_follow(watch->live), &stats);
	if (stats.fill > FILL_FAST)
		watch->period_ms /= 2;
	else if (stats.fill < FILL_SLOW)
		watch->period_ms *= 2;
	if (watch->period_ms < PERIOD_MIN_MS)
		watch->period_ms = PERIOD_MIN_MS;
	if (watch->period_ms > PERIOD_MAX_MS)
		watch->period_ms = PERIOD_MAX_MS;
}

static int look(struct kb_watch *watch, struct kb_error *err)
{
	uint64_t horizon = UINT64_MAX;
	uint32_t core, as;
	int ret;

	watch->before = watch->now;
	find_own(watch);
	ret = kb_live_look(watch->live, &watch->now, err);
	if (ret)
		return ret;
	while ((core = kb_live_new_counters(watch->live, &as)) != UINT32_MAX)
		if (as != UINT32_MAX)
			kb_detector_same_counters(watch->detector, core, as);
	if (!watch->ended)
		horizon = watch->now > watch->hold_back ? watch->now - watch->hold_back : 0;
	ret = read_records(watch, horizon) ?: take_losses(watch);
	if (!ret && !watch->ended)
		ret = kb_detector_time(watch->detector, kb_watch_ns(watch, horizon));
	if (ret)
		return kb_error_set(err, ret, KB_NO_OFFSET, "out of memory");
	take_fired(watch, INT64_MAX);
	choose_period(watch);
	return 0;
}

/* Programs may make a series at any time. */
static bool any_unknown(const struct kb_watch *watch)
{
	for (uint32_t i = 0; i < kb_triggers_nr(watch->triggers); i++)
		if (!kb_detector_knows(watch->detector, i))
			return true;
	return false;
}

int kb_watch_serve(struct kb_watch *watch, struct kb_error *err)
{
	struct kbarman_query query;
	int ret = kb_device_query(watch->device, &query, err);

	if (ret)
		return ret;
	if (!(query.state & KBARMAN_STATE_RUNNING) || query.mode != KBARMAN_MODE_OVERWRITE)
		return kb_error_set(err, -EPIPE, KB_NO_OFFSET,
				    "the recording that is watched has ended");
	if (any_unknown(watch) && kb_detector_resolve(watch->detector))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	ret = look(watch, err);
	if (ret)
		return ret;
	take_descriptors(watch);
	take_signals(watch);
	set_timer(watch);
	return 0;
}

int kb_watch_finish(struct kb_watch *watch, struct kb_error *err)
{
	int ret;

	watch->ended = true;
	ret = look(watch, err);
	if (!ret)
		take_signals(watch);
	return ret;
}

/* ---- captures ---- */

const struct kb_fired *kb_watch_due(const struct kb_watch *watch, uint32_t *nr)
{
	int64_t due;

	*nr = 0;
	if (!kb_moments_due(&watch->moments, &due) ||
	    (!watch->ended && kb_watch_ns(watch, watch->now) < due &&
	     kb_follow_since_note(kb_live_follow(watch->live)) < FILL_DUE))
		return NULL;
	*nr = watch->moments.nr;
	return watch->moments.rows;
}

void kb_watch_done(struct kb_watch *watch, bool written)
{
	if (kb_moments_done(&watch->moments, written))
		kb_follow_note(kb_live_follow(watch->live));
	set_timer(watch);
}

void kb_watch_drop(struct kb_watch *watch)
{
	kb_watch_done(watch, false);
}

void kb_watch_totals(const struct kb_watch *watch, struct kb_watch_totals *totals)
{
	*totals = watch->totals;
	totals->fired = watch->moments.totals.fired;
	totals->kept = watch->moments.totals.kept;
	totals->captures = watch->moments.totals.captures;
	totals->suppressed = watch->moments.totals.suppressed;
	totals->failed = watch->moments.totals.failed;
}

int kb_watch_fd(const struct kb_watch *watch)
{
	return watch->epoll;
}

bool kb_watch_knows(const struct kb_watch *watch, uint32_t i)
{
	return kb_detector_knows(watch->detector, i);
}

/* ---- create and destroy ---- */

static int check_session(const struct kb_watch *watch, const struct kbarman_query *query,
			 struct kb_error *err)
{
	uint32_t missing = kb_triggers_sources(watch->triggers) & ~query->sources;

	if (query->mode != KBARMAN_MODE_OVERWRITE || !(query->state & KBARMAN_STATE_RUNNING))
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "triggers need a running recording in "
				    "overwrite mode");
	if (missing & (KBARMAN_SOURCE_WAKE | KBARMAN_SOURCE_IRQ | KBARMAN_SOURCE_SOFTIRQ))
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "the recording lacks what the triggers "
				    "look at: begin it with --latency");
	if (missing)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "the recording lacks sources that the "
				    "triggers look at");
	return 0;
}

/* Whether the session records chosen tasks only. */
static bool has_chosen_tasks(struct kb_device *device, uint64_t session)
{
	struct kbarman_session_info infos[32] = { 0 };
	struct kbarman_sessions sessions = {
		.count = ARRAY_SIZE(infos), .sessions_ptr = (uintptr_t)infos,
	};

	if (kb_device_sessions(device, &sessions, NULL))
		return false;
	for (uint32_t i = 0; i < sessions.count && i < ARRAY_SIZE(infos); i++)
		if (infos[i].session == session)
			return infos[i].nr_pids;
	return false;
}

static int begin(struct kb_watch *watch, struct kb_error *err)
{
	struct kb_detector_options options = {
		.size = sizeof(options), .is_own = is_own, .context = watch,
	};
	struct kbarman_query query;
	struct kbarman_stats stats;
	int ret = kb_device_query(watch->device, &query, err) ?:
		  check_session(watch, &query, err) ?:
		  open_descriptors(watch, err) ?: kb_live_create(&watch->live, watch->device, err);

	if (ret)
		return ret;
	options.only_some = watch->only_some = has_chosen_tasks(watch->device, query.session);
	watch->hold_back = (uint64_t)((double)query.clock_hz * HOLD_BACK_NS / 1e9);
	watch->period_ms = PERIOD_MIN_MS;
	ret = kb_detector_create(&watch->detector, watch->triggers, kb_live_trace(watch->live),
				 &options, err);
	if (ret)
		return ret;
	kb_detector_use_names(watch->detector, kb_live_names(watch->live));
	if (kb_detector_resolve(watch->detector))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	if (!kb_device_stats(watch->device, KBARMAN_CPU_ALL, &stats, NULL))
		watch->lost_records = kb_stats_lost(&stats);
	ret = kb_live_look(watch->live, &watch->now, err);
	set_timer(watch);
	return ret;
}

int kb_watch_create(struct kb_watch **out, struct kb_device *device,
		    const struct kb_triggers *triggers, const struct kb_watch_options *options,
		    struct kb_error *err)
{
	struct kb_watch *watch = calloc(1, sizeof(*watch));
	int ret;

	*out = NULL;
	if (!watch)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	watch->device = device;
	watch->triggers = triggers;
	watch->epoll = watch->timer = watch->signalled = -1;
	ret = KB_OPTIONS(&watch->how, options, err);
	if (!ret) {
		kb_moments_init(&watch->moments, watch->how.after_ns, watch->how.every_ns);
		ret = begin(watch, err);
	}
	if (ret)
		kb_watch_destroy(watch);
	else
		*out = watch;
	return ret;
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

void kb_watch_destroy(struct kb_watch *watch)
{
	if (!watch)
		return;
	kb_detector_destroy(watch->detector);
	kb_live_destroy(watch->live);
	kb_moments_release(&watch->moments);
	for (uint32_t i = 0; watch->pressures && i < kb_triggers_nr(watch->triggers); i++)
		close_if_open(watch->pressures[i]);
	free(watch->pressures);
	close_if_open(watch->signalled);
	close_if_open(watch->timer);
	close_if_open(watch->epoll);
	free(watch->own);
	free(watch);
}
