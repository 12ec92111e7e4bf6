// SPDX-License-Identifier: MIT
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "analysis/facts/end.h"
#include "base/text/utf8.h"
#include "cli/base/cli.h"
#include "cli/base/fact_lines.h"
#include "cli/session/sessions.h"
#include "cli/session/sources.h"

int sessions_read(struct sessions *sessions, struct kb_device *device, struct kb_error *err)
{
	struct kbarman_sessions call = {
		.count = SESSIONS_MAX,
		.sessions_ptr = (uintptr_t)sessions->list,
	};
	int ret = kb_device_sessions(device, &call, err);

	if (ret)
		return ret;
	sessions->nr = call.count < SESSIONS_MAX ? call.count : SESSIONS_MAX;
	sessions->most = call.most;
	return 0;
}

bool session_records(const struct kbarman_session_info *session)
{
	return session->state & KBARMAN_STATE_OWNED && session->state & KBARMAN_STATE_RUNNING;
}

/* The name comes from another program, and must not control the terminal. */
static void command_of(const struct kbarman_session_info *session, char text[17])
{
	memcpy(text, session->comm, 16);
	text[16] = '\0';
	text[kb_utf8_shown(text, text, strlen(text))] = '\0';
}

void session_who(const struct kbarman_session_info *session, char *text, size_t size)
{
	char command[17];

	command_of(session, command);
	if (session->state & KBARMAN_STATE_HIDDEN)
		snprintf(text, size, "a program of another user");
	else if (session->pid)
		snprintf(text, size, "%s (process %u)", command, session->pid);
	else
		snprintf(text, size, "%s", command);
}

/* ---- the choice ---- */

static const struct kbarman_session_info *find_overwrite(const struct sessions *sessions)
{
	const struct kbarman_session_info *found = NULL;

	for (uint32_t i = 0; i < sessions->nr; i++) {
		const struct kbarman_session_info *session = &sessions->list[i];

		if (session->mode != KBARMAN_MODE_OVERWRITE ||
		    !(session->state & KBARMAN_STATE_CONFIGURED))
			continue;
		if (session_records(session))
			return session;
		if (!found)
			found = session;
	}
	return found;
}

void sessions_choose_overwrite(struct kb_device *device)
{
	const struct kbarman_session_info *session;
	struct sessions sessions = { 0 };

	if (sessions_read(&sessions, device, NULL))
		return;
	session = find_overwrite(&sessions);
	/* If it has just gone, the newest one answers. */
	if (session)
		kb_device_choose(device, session->session, NULL);
}

static const struct kbarman_session_info *find_process(const struct sessions *sessions, pid_t pid)
{
	const struct kbarman_session_info *found = NULL;

	for (uint32_t i = 0; i < sessions->nr; i++) {
		const struct kbarman_session_info *session = &sessions->list[i];

		if (session->state & KBARMAN_STATE_HIDDEN)
			found = found ?: session->mode == KBARMAN_MODE_OVERWRITE ? session : NULL;
		else if (session->pid == (uint32_t)pid)
			return session;
	}
	return found;
}

bool sessions_choose_process(struct kb_device *device, pid_t pid)
{
	const struct kbarman_session_info *session;
	struct sessions sessions = { 0 };

	/* An old module has one session. */
	if (sessions_read(&sessions, device, NULL))
		return true;
	session = find_process(&sessions, pid);
	return session && !kb_device_choose(device, session->session, NULL);
}

/* ---- the list ---- */

static const char *state_of(const struct kbarman_session_info *session)
{
	if (session->state & KBARMAN_STATE_RUNNING)
		return "recording";
	return session->started_ns ? "stopped" : "configured";
}

static const char *mode_of(const struct kbarman_session_info *session)
{
	return session->mode == KBARMAN_MODE_STREAM ? "stream" : "overwrite";
}

/* When recording began, in the local time of this machine. */
static void since_of(uint64_t ns, char *text, size_t size)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;

	if (!ns || !localtime_r(&seconds, &tm) ||
	    !strftime(text, size, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(text, size, "-");
}

static void print_line(struct kb_json *json, const struct kbarman_session_info *session)
{
	char command[17], since[32], process[16] = "-", user[16] = "-", sources[SOURCES_TEXT];

	command_of(session, command);
	since_of(session->started_ns, since, sizeof(since));
	if (session->pid)
		snprintf(process, sizeof(process), "%u", session->pid);
	if (!(session->state & KBARMAN_STATE_HIDDEN))
		snprintf(user, sizeof(user), "%u", session->uid);
	kb_out_printf(json->out, "%7" PRIu64 "  %-10s  %-9s  %-19s  %7s  %7s  %-15s  %6" PRIu64
		      "  %12" PRIu64 "  %8" PRIu64 "  %s\n", (uint64_t)session->session,
		      state_of(session), mode_of(session), since, process, user,
		      *command ? command : "-", (uint64_t)(session->bytes + (1 << 20) - 1) >> 20,
		      (uint64_t)session->written, (uint64_t)session->lost,
		      sources_text(session->sources, ",", sources));
}

static void print_sources(struct kb_json *json, uint32_t sources)
{
	const struct kb_source_word *source;

	kb_json_array(json, "sources");
	for (size_t i = 0; (source = kb_source_word(i)); i++)
		if (sources & source->bit)
			kb_json_string(json, NULL, source->word);
	kb_json_array_end(json);
}

static void print_object(struct kb_json *json, const struct kbarman_session_info *session)
{
	bool hidden = session->state & KBARMAN_STATE_HIDDEN;
	char command[17];

	memcpy(command, session->comm, 16);
	command[16] = '\0';
	kb_json_begin(json, "session");
	kb_json_u64(json, "session", session->session);
	kb_json_string(json, "state", state_of(session));
	kb_json_string(json, "mode", mode_of(session));
	kb_json_bool(json, "owned", session->state & KBARMAN_STATE_OWNED);
	if (session->pid)
		kb_json_u64(json, "pid", session->pid);
	if (!hidden)
		kb_json_u64(json, "uid", session->uid);
	kb_json_string(json, "command", hidden ? NULL : command);
	kb_json_u64(json, "processes", session->nr_pids);
	kb_json_u64(json, "started_ns", session->started_ns);
	kb_json_u64(json, "stopped_ns", session->stopped_ns);
	kb_json_u64(json, "bytes", session->bytes);
	kb_json_u64(json, "ring_bytes", session->ring_bytes);
	kb_json_u64(json, "written", session->written);
	kb_json_u64(json, "overwritten", session->overwritten);
	kb_json_u64(json, "lost", session->lost);
	print_sources(json, session->sources);
	kb_json_end(json);
}

/* What is left of recordings of before this boot. */
static void print_former(struct kb_json *json, const struct kbarman_former *former)
{
	char since[32];

	since_of(former->began_ns, since, sizeof(since));
	if (json->people) {
		kb_out_printf(json->out, "before this boot, number %u: began %s, ended by %s, %" PRIu64 " MiB: "
			      "'kbarman recover --previous=%u'\n", former->number, since,
			      former->end ? kb_end_word(former->end) : "what Linux did not tell",
			      (uint64_t)(former->bytes + (1 << 20) - 1) >> 20, former->number);
		return;
	}
	kb_json_begin(json, "former");
	kb_json_u64(json, "number", former->number);
	kb_json_string(json, "end", kb_end_word(former->end));
	kb_json_u64(json, "began_ns", former->began_ns);
	kb_json_u64(json, "bytes", former->bytes);
	if (former->uid != ~0U)
		kb_json_u64(json, "uid", former->uid);
	kb_json_end(json);
}

static void print_formers(struct kb_json *json, struct kb_device *device)
{
	for (uint32_t number = 0; number < KB_FORMERS; number++) {
		struct kbarman_former former = { .number = number };
		struct kb_error err;
		int ret = kb_device_former(device, &former, &err);

		if (!ret)
			print_former(json, &former);
		else if (ret == -EPERM)
			cli_warn("%s", kb_error_text(&err));
	}
}

static int print_all(const struct sessions *sessions, struct kb_device *device, bool people)
{
	struct kb_json json;

	if (lines_open(&json, people))
		return CLI_IMPOSSIBLE;
	if (people && sessions->nr)
		kb_out_printf(json.out, "%7s  %-10s  %-9s  %-19s  %7s  %7s  %-15s  %6s  %12s  %8s  %s\n",
			      "SESSION", "STATE", "MODE", "SINCE", "PROCESS", "USER", "COMMAND",
			      "MIB", "RECORDS", "LOST", "SOURCES");
	for (uint32_t i = 0; i < sessions->nr; i++)
		(people ? print_line : print_object)(&json, &sessions->list[i]);
	print_formers(&json, device);
	return lines_close(&json, CLI_OK);
}

int sessions_print(bool people)
{
	struct sessions sessions = { 0 };
	struct kb_device *device;
	struct kb_error err;
	int ret;

	if (kb_device_open(&device, &err))
		return cli_fail_error(&err);
	if (sessions_read(&sessions, device, &err))
		ret = cli_fail_error(&err);
	else
		ret = print_all(&sessions, device, people);
	kb_device_close(device);
	if (!ret && !sessions.nr)
		cli_note("nobody records");
	return ret;
}
