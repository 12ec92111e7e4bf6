// SPDX-License-Identifier: MIT
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kbarman/out.h>
#include <kbarman/version.h>

#include "agent/say.h"
#include "agent/state.h"
#include "base/clock.h"
#include "base/io/create.h"
#include "base/text/json.h"

#define OLD_NS		(60 * KB_NS_PER_S)	/* who has not written for so long hangs */
#define RECENT_MS	15000			/* for so long a loss is trouble */
#define STUCK_MS	20000			/* a disk that takes longer for a file hangs */
#define MODULE_VERSION	"/sys/module/kbarman/version"

static bool is_recent(int64_t ms)
{
	return ms && kb_clock_ms() - ms < RECENT_MS;
}

/* Why the session is not well; "": it is. */
static const char *trouble_of(const struct agent_session *session)
{
	if (session->trouble[0])
		return session->trouble;
	if (is_recent(session->lost_ms))
		return "records were lost just now: raise 'buffer'";
	if (is_recent(session->moments.missed_ms))
		return "moments were overwritten just now: raise 'buffer'";
	return session->moments.absent;
}

/* The version of the module that is loaded; "": there is none. */
static const char *module_version(char text[64])
{
	FILE *file = fopen(MODULE_VERSION, "re");

	if (!file || !fgets(text, 64, file))
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (file)
		fclose(file);
	return text;
}

static void put_session(FILE *file, const struct agent_session *session)
{
	const char *name = session->wanted.name;

	fprintf(file, "session.%s.file=%s\n", name, session->recorder ? session->name : "");
	fprintf(file, "session.%s.records=%" PRIu64 "\n", name, session->records);
	fprintf(file, "session.%s.lost=%" PRIu64 "\n", name, session->lost);
	if (session->wanted.triggers) {
		struct kb_watch_totals totals;

		agent_moments_totals(&session->moments, &totals);
		fprintf(file, "session.%s.moments=%" PRIu64 "\n", name, totals.fired);
		fprintf(file, "session.%s.moments_too_soon=%" PRIu64 "\n", name, totals.suppressed);
		fprintf(file, "session.%s.moments_lost=%" PRIu64 "\n", name, totals.failed);
		fprintf(file, "session.%s.moments_overwritten=%" PRIu64 "\n", name,
			session->moments.overwritten);
		fprintf(file, "session.%s.unseen_bytes=%" PRIu64 "\n", name, totals.lost_bytes);
	}
	fprintf(file, "session.%s.trouble=%s\n", name, trouble_of(session));
}

static const char *trouble_of_folder(const struct agent_folder_counts *folder)
{
	return folder->waits_ms > STUCK_MS ? "the disk does not answer: captures wait for it" : folder->trouble;
}

int agent_state_write(const char *path, const struct agent_state *state)
{
	bool well = !state->trouble[0] && !state->config_trouble[0] && !trouble_of_folder(&state->folder)[0] &&
		    state->nr_sessions == state->wanted;
	char temporary[PATH_MAX], module[64];
	FILE *file;
	int fd, ret;

	snprintf(temporary, sizeof(temporary), "%s.new", path);
	fd = kb_create(AT_FDCWD, temporary, KB_CREATE_NEW, 0644);
	if (fd < 0)
		return fd;
	file = fdopen(fd, "w");
	if (!file) {
		ret = -errno;
		close(fd);
		return ret;
	}
	for (unsigned int i = 0; i < state->nr_sessions; i++)
		well = well && !trouble_of(state->sessions[i])[0];
	fprintf(file, "pid=%d\nstarted_ns=%" PRId64 "\nwritten_ns=%" PRId64 "\n", getpid(),
		state->started_ns, kb_clock_ns(CLOCK_REALTIME));
	fprintf(file, "health=%s\ntrouble=%s\n", well ? "well" : "trouble", state->trouble);
	fprintf(file, "version=%s\nmodule=%s\n", kb_version(), module_version(module));
	fprintf(file, "config.hash=%016" PRIx64 "\nconfig.read_ns=%" PRId64 "\nconfig.trouble=%s\n",
		state->config_hash, state->config_ns, state->config_trouble);
	fprintf(file, "sessions=%u\nsessions_wanted=%u\n", state->nr_sessions, state->wanted);
	fprintf(file, "folder.files=%" PRIu64 "\nfolder.bytes=%" PRIu64 "\nfolder.trouble=%s\n",
		state->folder.files, state->folder.bytes, trouble_of_folder(&state->folder));
	fprintf(file, "written.files=%" PRIu64 "\nwritten.bytes=%" PRIu64 "\n", state->folder.written,
		state->folder.written_bytes);
	fprintf(file, "removed.files=%" PRIu64 "\nremoved.bytes=%" PRIu64 "\n", state->folder.removed,
		state->folder.removed_bytes);
	fprintf(file, "failed.files=%" PRIu64 "\n", state->folder.failed);
	for (unsigned int i = 0; i < state->nr_sessions; i++)
		put_session(file, state->sessions[i]);
	ret = fclose(file) || rename(temporary, path) ? -errno : 0;
	return ret;
}

/* ---- reading it ---- */

static void put(struct kb_json *json, const char *key, const char *value)
{
	char *end;
	unsigned long long number = strtoull(value, &end, 10);

	if (*value && !*end && value[0] != '-')
		kb_json_u64(json, key, number);
	else
		kb_json_string(json, key, value);
}

static bool is_old(int64_t written)
{
	/* A step of the clock looks as if it hung, until it writes again. */
	return llabs(kb_clock_ns(CLOCK_REALTIME) - written) >= OLD_NS;
}

static void show(FILE *file, struct kb_json *json, bool *runs, bool *well)
{
	const char *value;
	char *line = NULL, *equals;
	size_t room = 0;
	bool old = false;
	pid_t pid = 0;

	if (!json->people)
		kb_json_begin(json, "agent");
	while (getline(&line, &room, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		equals = strchr(line, '=');
		if (!equals)
			continue;
		*equals = '\0';
		value = equals + 1;
		if (!strcmp(line, "pid"))
			pid = (pid_t)strtol(value, NULL, 10);
		if (!strcmp(line, "written_ns"))
			old = is_old(strtoll(value, NULL, 10));
		/* what it says of itself was long ago */
		if (!strcmp(line, "health"))
			*well = !old && !strcmp(value, "well");
		if (old && !strcmp(line, "health"))
			value = "trouble";
		if (old && !strcmp(line, "trouble"))
			value = "the agent has written no state for a minute: it hangs, or can't write "
				"it, or the clock was set";
		if (json->people)
			kb_out_printf(json->out, "%-24s %s\n", line, value);
		else
			put(json, line, value);
	}
	free(line);
	*runs = pid > 0 && (!kill(pid, 0) || errno == EPERM);
	if (json->people)
		return;
	kb_json_bool(json, "runs", *runs);
	kb_json_end(json);
}

int agent_state_show(const char *path, bool as_json)
{
	struct kb_json json = { .people = !as_json };
	bool runs = false, well = false;
	FILE *file = fopen(path, "re");

	if (!file) {
		agent_say(AGENT_ERROR, "%s: %s: no agent runs, or its 'state' is another file", path,
			  strerror(errno));
		return 2;
	}
	if (kb_out_fd(&json.out, STDOUT_FILENO)) {
		fclose(file);
		agent_say(AGENT_ERROR, "out of memory");
		return 2;
	}
	show(file, &json, &runs, &well);
	fclose(file);
	kb_out_flush(json.out);
	kb_out_destroy(json.out);
	if (!runs) {
		agent_say(AGENT_ERROR, "no agent runs: this is what the last one wrote");
		return 2;
	}
	return well ? 0 : 1;
}
