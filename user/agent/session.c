// SPDX-License-Identifier: MIT
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kbarman/barman.h>
#include <kbarman/cpulist.h>
#include <kbarman/kernel_maps.h>
#include <kbarman/perf_events.h>

#include "agent/notify.h"
#include "agent/say.h"
#include "agent/session.h"
#include "base/clock.h"
#include "record/device/source_words.h"
#include "record/perf/event_plan.h"

#define ROUND_MS	1000		/* between two looks at the buffers, if nobody wakes the agent */
#define WAIT_MS		500		/* before the first try to go on, doubled up to */
#define WAIT_MS_MAX	8000
#define MAPS_A_TASK	4
#define SERIES		64

/* ---- the device's session ---- */

/* Leaves out what this kernel can't give, and says so. */
static void leave_out(const struct agent_wanted *wanted, struct kbarman_configure *configure,
		      uint32_t absent)
{
	const struct kb_source_word *source;

	for (size_t i = 0; (source = kb_source_word(i)); i++)
		if (configure->sources & absent & source->bit)
			agent_say(AGENT_WARNING, "session %s: this kernel can't give %s", wanted->name,
				  source->what);
	configure->sources &= ~absent;
}

/* Stream mode; or, if only moments are kept, overwrite mode with what they need. */
static void choose_mode(const struct agent_session *session, const struct kbarman_query *query,
			struct kbarman_configure *configure)
{
	const struct kb_triggers *triggers = session->moments.triggers;

	if (!triggers) {
		configure->mode = KBARMAN_MODE_STREAM;
		configure->flags |= KBARMAN_CONFIGURE_REUSE;
		return;
	}
	configure->mode = KBARMAN_MODE_OVERWRITE;
	configure->sources |= kb_triggers_sources(triggers);
	if (!kb_triggers_need_objects(triggers))
		return;
	if (query->features & KBARMAN_FEATURE_OBJECTS)
		configure->flags |= KBARMAN_CONFIGURE_OBJECTS;
	else
		agent_say(AGENT_WARNING, "session %s: the module does not tell what tasks wait for, so no trigger "
			  "wait:... fires", session->wanted.name);
}

static int configure(struct agent_session *session, struct kb_error *err)
{
	const struct agent_wanted *wanted = &session->wanted;
	struct kb_device *device = session->device;
	const struct kb_sampling sampling = {
		.period = wanted->sample, .freq = true, .clock = !wanted->events };
	struct kb_perf_event events[KB_EVENTS_MAX];
	struct kb_event_plan plan = { 0 };
	uint64_t cpus[KB_CPU_WORDS];
	struct kbarman_configure configure = {
		.sources = wanted->sources,
		.flags = wanted->chains | (wanted->reserved ? KBARMAN_CONFIGURE_RESERVED : 0),
		.ring_bytes = wanted->ring_bytes,
		.max_tasks = wanted->max_tasks,
		.max_maps = wanted->max_tasks * MAPS_A_TASK,
		.max_series = wanted->sources & KBARMAN_SOURCE_MARKS ? SERIES : 0,
	};
	struct kbarman_query query;
	int ret = kb_device_query(device, &query, err);

	if (ret)
		return ret;
	if (!(query.features & KBARMAN_FEATURE_REUSE))
		return kb_error_set(err, -EPROTO, KB_NO_OFFSET, "the module that is loaded is too old to "
				    "record all the time: build and load the one of this version");
	if (wanted->sample) {
		int nr = kb_events_parse(events, KB_EVENTS_MAX, wanted->events ?: "cycles", NULL, err);

		if (nr < 0)
			return nr;
		configure.sources |= KBARMAN_SOURCE_PMU | KBARMAN_SOURCE_MAPS;
		ret = kb_event_plan_make(&plan, events, (unsigned int)nr, &sampling, NULL, err);
		if (ret)
			goto out;
		kb_event_plan_use(&plan, &configure);
	} else {
		configure.max_maps = 1;
	}
	if (wanted->cpus) {
		int words = kb_cpulist_parse(cpus, wanted->cpus, query.nr_cpus, err);

		ret = words;
		if (words < 0)
			goto out;
		configure.cpus_ptr = (uintptr_t)cpus;
		configure.nr_cpu_words = (uint32_t)words;
	}
	choose_mode(session, &query, &configure);
	leave_out(wanted, &configure, query.absent);
	ret = kb_device_configure(device, &configure, err);
out:
	kb_event_plan_free(&plan);
	return ret;
}

void agent_session_add_kernel(struct agent_session *session)
{
	struct kb_kernel_maps maps = { 0 };
	struct kbarman_query query;
	struct kb_error err;
	uint32_t added;

	if (kb_device_query(session->device, &query, NULL) || !(query.sources & KBARMAN_SOURCE_PMU))
		return;
	if (kb_kernel_maps_read(&maps, NULL, NULL, &err) ||
	    (maps.nr && kb_kernel_maps_add(&maps, session->device, &added, &err)))
		agent_say(AGENT_WARNING, "session %s: kernel code will have no image: %s",
			  session->wanted.name, kb_error_text(&err));
	kb_kernel_maps_free(&maps);
}

/* For the capture that is made after a crash. */
static void keep_symbols(const struct agent_session *session)
{
	struct kb_error err;

	if (session->wanted.reserved && kb_kernel_symbols_keep(session->device, NULL, &err))
		agent_say(AGENT_WARNING, "session %s: kernel symbols will be missing after a crash: %s",
			  session->wanted.name, kb_error_text(&err));
}

static int start(struct agent_session *session, struct kb_error *err)
{
	int ret = kb_device_open(&session->device, err) ?:
		  configure(session, err) ?:
		  kb_device_start(session->device, err);

	if (!ret) {
		agent_session_add_kernel(session);
		keep_symbols(session);
	}
	return ret;
}

/* ---- files ---- */

uint64_t agent_session_lost(struct agent_session *session)
{
	struct kbarman_stats stats;

	if (kb_device_stats(session->device, KBARMAN_CPU_ALL, &stats, NULL))
		return session->lost;
	if (kb_stats_lost(&stats) > session->lost)
		session->lost_ms = kb_clock_ms();
	session->lost = kb_stats_lost(&stats);
	return session->lost;
}

static void release_file(struct agent_session *session)
{
	kb_recorder_destroy(session->recorder);
	session->recorder = NULL;
	session->fd = -1;
	session->has_records = false;
}

/*
 * The file takes no more. What its header tells of stays, and what does not stays in the buffers: the
 * next file begins there.
 */
static void break_file(struct agent_session *session, const struct kb_error *err)
{
	struct kb_salvage salvage;
	char path[PATH_MAX];
	bool had_records = session->has_records;
	int fd = session->fd;

	if (!session->trouble[0]) {
		agent_say(AGENT_ERROR, "session %s: %s: the buffers are kept, and what does not fit into "
			  "them is counted, until there is room", session->wanted.name,
			  kb_error_text(err));
		session->lost_at_trouble = agent_session_lost(session);
		session->wait_ms = WAIT_MS;
	}
	snprintf(session->trouble, sizeof(session->trouble), "%s", kb_error_text(err));
	session->retry_ms = kb_clock_ms() + session->wait_ms;
	session->wait_ms = session->wait_ms * 2 < WAIT_MS_MAX ? session->wait_ms * 2 : WAIT_MS_MAX;
	release_file(session);
	agent_folder_make_room(session->folder);
	if (fd < 0)
		return;
	if (had_records && !kb_barman_cut(agent_folder_path(session->folder, session->name, path), false,
					  &salvage, NULL)) {
		agent_folder_finish(session->folder, fd, session->name);
		return;
	}
	close(fd);
	agent_folder_remove(session->folder, session->name);
}

/* What the file says of the agent. */
static int begin_facts(struct agent_session *session, struct kb_error *err)
{
	char text[64];
	int ret = kb_recorder_fact(session->recorder, "agent", session->wanted.name, err);

	if (ret || !session->gap_from)
		return ret;
	snprintf(text, sizeof(text), "%" PRIu64 ",%" PRIu64, session->gap_from, session->gap_until);
	return kb_recorder_fact(session->recorder, "agent_gap", text, err);
}

static void say_recovered(struct agent_session *session)
{
	if (!session->trouble[0])
		return;
	agent_say(AGENT_NOTICE, "session %s: there is room again; %" PRIu64 " records were lost meanwhile",
		  session->wanted.name, agent_session_lost(session) - session->lost_at_trouble);
	session->trouble[0] = '\0';
}

/* Begins a file. False: it is tried again later. */
static bool begin_file(struct agent_session *session)
{
	struct kb_error err;
	int ret;

	session->fd = agent_folder_create(session->folder, session->wanted.name, session->name);
	if (session->fd < 0) {
		int error = -session->fd;

		session->fd = -1;
		kb_error_set(&err, -error, KB_NO_OFFSET, "no file can be made: %s", strerror(error));
		break_file(session, &err);
		return false;
	}
	ret = kb_recorder_create_part(&session->recorder, session->device, session->fd, session->parts,
				      &err) ?:
	      kb_recorder_note(session->recorder, session->wanted.notes, &err) ?:
	      begin_facts(session, &err) ?: kb_recorder_pump(session->recorder, &err);
	if (ret) {
		break_file(session, &err);
		return false;
	}
	session->has_records = true;
	session->gap_from = 0;
	session->begun_ms = kb_clock_ms();
	say_recovered(session);
	return true;
}

bool agent_session_rotate(struct agent_session *session)
{
	struct kb_recorder_totals totals;
	struct kb_error err;

	if (!session->recorder)
		return false;
	if (kb_recorder_end_part(session->recorder, &err)) {
		break_file(session, &err);
		return false;
	}
	kb_recorder_totals(session->recorder, &totals);
	session->records += totals.records;
	agent_folder_finish(session->folder, session->fd, session->name);
	release_file(session);
	return true;
}

static bool is_time_to_rotate(const struct agent_session *session)
{
	return kb_recorder_bytes(session->recorder) >= session->wanted.file_bytes ||
	       kb_clock_ms() - session->begun_ms >= (int64_t)session->wanted.file_seconds * 1000 ||
	       kb_recorder_part_is_full(session->recorder);
}

static void serve_moments(struct agent_session *session)
{
	struct kb_error err;

	if (!agent_moments_serve(&session->moments, &err)) {
		snprintf(session->trouble, sizeof(session->trouble), "%s",
			 session->moments.trouble);
		return;
	}
	if (strcmp(session->trouble, kb_error_text(&err)) != 0)
		agent_say(AGENT_ERROR, "session %s: %s", session->wanted.name, kb_error_text(&err));
	snprintf(session->trouble, sizeof(session->trouble), "%s", kb_error_text(&err));
}

void agent_session_serve(struct agent_session *session)
{
	struct kb_error err;

	if (session->moments.watch) {
		serve_moments(session);
		return;
	}
	if (!session->recorder) {
		if (kb_clock_ms() >= session->retry_ms)
			begin_file(session);
		return;
	}
	if (is_time_to_rotate(session)) {
		if (agent_session_rotate(session))
			begin_file(session);
	} else if (kb_recorder_pump(session->recorder, &err)) {
		break_file(session, &err);
	}
}

int64_t agent_session_due(const struct agent_session *session)
{
	return session->recorder || session->moments.watch ? kb_clock_ms() + ROUND_MS :
							     session->retry_ms;
}

int agent_session_fd(const struct agent_session *session)
{
	if (session->moments.watch)
		return kb_watch_fd(session->moments.watch);
	return session->recorder ? kb_device_fd(session->device) : -1;
}

bool agent_session_runs(struct agent_session *session)
{
	struct kbarman_query query;

	return !kb_device_query(session->device, &query, NULL) && query.state & KBARMAN_STATE_RUNNING;
}

/* ---- begin and end ---- */

static void free_session(struct agent_session *session)
{
	release_file(session);
	agent_moments_release(&session->moments);
	kb_parts_destroy(session->parts);
	kb_device_close(session->device);
	agent_wanted_free(&session->wanted);
	free(session);
}

static struct agent_session *new_session(const struct agent_wanted *wanted, struct agent_folder *folder,
					 struct kb_error *err)
{
	struct agent_session *session = calloc(1, sizeof(*session));

	if (session && agent_wanted_copy(&session->wanted, wanted)) {
		session->folder = folder;
		session->fd = -1;
		snprintf(session->kept_name, sizeof(session->kept_name), "%s.%016" PRIx64, wanted->name,
			 agent_wanted_hash(wanted));
		if (!wanted->triggers ||
		    !agent_moments_create(&session->moments, &session->wanted, folder, err))
			return session;
		free_session(session);
		return NULL;
	}
	free(session);
	kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	return NULL;
}

/* Begins to take what the running session of @device records. */
static int follow(struct agent_session *session, struct kb_device *device, struct kb_error *err)
{
	return session->moments.triggers ?
	       agent_moments_watch(&session->moments, &session->wanted, device, err) :
	       kb_parts_create(&session->parts, device, err);
}

int agent_session_start(struct agent_session **out, const struct agent_wanted *wanted,
			struct agent_folder *folder, struct kb_error *err)
{
	struct agent_session *session = new_session(wanted, folder, err);
	int ret;

	*out = NULL;
	if (!session)
		return err->code;
	ret = start(session, err) ?: follow(session, session->device, err);
	if (ret) {
		free_session(session);
		return ret;
	}
	*out = session;
	return 0;
}

int agent_session_adopt(struct agent_session **out, const struct agent_wanted *wanted,
			struct kb_device *device, struct agent_folder *folder, struct kb_error *err)
{
	struct agent_session *session = new_session(wanted, folder, err);
	int ret;

	*out = NULL;
	if (!session)
		return err->code;
	ret = follow(session, device, err);
	if (ret) {
		free_session(session);
		return ret;
	}
	session->device = device;
	/* what was lost before is in the files of the former agent */
	agent_session_lost(session);
	session->lost_ms = 0;
	*out = session;
	return 0;
}

void agent_session_keep(struct agent_session *session)
{
	agent_notify_store(kb_device_fd(session->device), session->kept_name);
}

void agent_session_gap(struct agent_session *session, uint64_t from, uint64_t until)
{
	session->gap_from = from;
	session->gap_until = until;
}

void agent_session_end(struct agent_session *session)
{
	struct kb_error err;

	if (kb_device_stop(session->device, &err))
		agent_say(AGENT_ERROR, "session %s: %s", session->wanted.name, kb_error_text(&err));
	if (session->moments.watch)
		agent_moments_end(&session->moments);
	else if (!session->recorder)
		begin_file(session);
	if (session->parts && (!session->recorder || !agent_session_rotate(session)))
		agent_say(AGENT_ERROR, "session %s: the records of its buffers are lost: %s",
			  session->wanted.name, session->trouble);
	agent_notify_forget(session->kept_name);
	free_session(session);
}

void agent_session_leave(struct agent_session *session)
{
	agent_session_rotate(session);
	free_session(session);
}
