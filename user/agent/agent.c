// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <kbarman/barman.h>
#include <kbarman/cpulist.h>

#include "agent/agent.h"
#include "agent/boot.h"
#include "agent/config.h"
#include "agent/folder.h"
#include "agent/former.h"
#include "agent/notify.h"
#include "agent/say.h"
#include "agent/session.h"
#include "agent/state.h"
#include "agent/trigger_list.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/io/disk.h"

#define CONFIG_MAX	(1 << 20)	/* bytes */
#define AGENT_NICE	(-10)
#define STATE_MS	5000		/* between two writings of the state */
#define PSI_WINDOW_US	2000000		/* and multiples of it are for everybody */
#define START_AGAIN_MS	10000		/* between two tries to start a session */

struct agent {
	const char *path;		/* of the configuration */
	bool keep;
	struct agent_config config;
	struct agent_folder *folder;
	struct agent_former former;
	struct agent_session *sessions[AGENT_SESSIONS_MAX];
	unsigned int nr_sessions;
	int signals;			/* signalfd */
	int64_t started_ns;		/* CLOCK_REALTIME */
	int64_t state_ms, start_ms, watchdog_ms;	/* when to do this next */
	uint64_t watchdog;		/* ms between two; 0: none is wanted */
	char trouble[256];
	char start_trouble[AGENT_SESSIONS_MAX][256];	/* of each section, that was said; "": none */
	uint64_t config_hash;		/* of the text of the configuration that is in use */
	int64_t config_ns;		/* when it was read, CLOCK_REALTIME */
	char config_trouble[256];	/* why a later one is not in use; "": there is none */
	bool state_failed;		/* the state could not be written */
	bool end;
};

/* ---- configuration ---- */

/* @context: NULL, or where the first sentence is kept. */
static void say_wrong(void *context, const char *sentence)
{
	char *first = context;

	agent_say(AGENT_ERROR, "%s", sentence);
	if (first && !first[0])
		snprintf(first, sizeof(((struct agent *)0)->config_trouble), "%.255s", sentence);
}

static uint64_t hash_of(FILE *file)
{
	uint64_t hash = 0;
	int c;

	rewind(file);
	while ((c = getc(file)) != EOF)
		hash = kb_hash_word(hash, (uint64_t)c);
	return hash;
}

/* NULL and errno. What is no regular file, such as a FIFO that nobody writes to, is not waited for. */
static FILE *open_config(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	FILE *file;
	struct stat st = { 0 };

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > CONFIG_MAX) {
		close(fd);
		errno = S_ISREG(st.st_mode) ? EFBIG : ESPIPE;
		return NULL;
	}
	file = fdopen(fd, "r");
	if (!file)
		close(fd);
	return file;
}

/* Returns 0, or 2 after messages, the first of which is kept in @first, if it is not NULL. */
static int read_config(struct agent_config *config, const char *path, char *first, uint64_t *hash)
{
	FILE *file = open_config(path);
	struct stat st;
	unsigned int wrong;

	if (!file) {
		char sentence[PATH_MAX + 128];

		snprintf(sentence, sizeof(sentence), "%s: %s: kbarmand.conf(5) describes this file",
			 path, errno == ESPIPE ? "no regular file" : strerror(errno));
		say_wrong(first, sentence);
		*config = (struct agent_config){ 0 };
		return 2;
	}
	wrong = agent_config_read(config, file, path, say_wrong, first);
	*hash = hash_of(file);
	fclose(file);
	if (!wrong && !stat(config->state, &st) && S_ISDIR(st.st_mode)) {
		char sentence[PATH_MAX + 128];

		snprintf(sentence, sizeof(sentence), "%s: state = %s: this is a folder: give the path of "
			 "a file", path, config->state);
		say_wrong(first, sentence);
		wrong = 1;
	}
	return wrong ? 2 : 0;
}

static void set_bound(struct agent *agent)
{
	uint64_t growing = 0;

	for (unsigned int i = 0; i < agent->config.nr_sessions; i++)
		growing += agent->config.sessions[i].file_bytes;
	agent_folder_bound(agent->folder, agent->config.folder_bytes, growing,
			   agent->config.keep_free);
}

static struct agent_session *find(struct agent *agent, const char *name)
{
	for (unsigned int i = 0; i < agent->nr_sessions; i++)
		if (!strcmp(agent->sessions[i]->wanted.name, name))
			return agent->sessions[i];
	return NULL;
}

/* ---- what a former agent left ---- */

/* A descriptor that the service manager kept: its session goes on. */
static void take_kept(void *context, int fd, const char *name)
{
	struct agent *agent = context;
	struct agent_wanted wanted = { .file_bytes = UINT64_MAX, .file_seconds = 86400 };
	const struct agent_wanted *configured;
	struct agent_session *session;
	struct kbarman_query query;
	struct kb_device *device;
	struct kb_error err;
	size_t length = strcspn(name, ".");

	if (!length || length >= sizeof(wanted.name) || agent->nr_sessions == AGENT_SESSIONS_MAX ||
	    kb_device_take(&device, fd, &err)) {
		close(fd);
		return;
	}
	memcpy(wanted.name, name, length);
	configured = agent_config_find(&agent->config, wanted.name);
	if (find(agent, wanted.name) || kb_device_query(device, &query, &err) ||
	    !(query.state & KBARMAN_STATE_MINE) ||
	    (query.mode == KBARMAN_MODE_OVERWRITE) != (configured && configured->triggers) ||
	    agent_session_adopt(&session, configured ?: &wanted, device, agent->folder, &err)) {
		agent_notify_forget(name);
		kb_device_close(device);
		return;
	}
	/* As it was configured then: apply() ends it if that is not what is wanted now. */
	snprintf(session->kept_name, sizeof(session->kept_name), "%s", name);
	agent->sessions[agent->nr_sessions++] = session;
}

/* Gives the file of a former agent its name, with what its header tells of. */
static void save_part(struct agent *agent, const struct agent_file *file)
{
	struct agent_session *session = find(agent, file->session);
	struct kb_salvage salvage;
	struct timespec times[2];
	char path[PATH_MAX];
	struct kb_error err;
	bool goes_on;
	int fd;

	agent_folder_path(agent->folder, file->name, path);
	/* What is behind the end of the file that the header tells of is still in the buffers. */
	goes_on = session && session->parts && kb_parts_note(session->parts, path, true, &err) == 1;
	if (kb_barman_cut(path, !goes_on, &salvage, &err)) {
		agent_say(AGENT_WARNING, "%s had no records yet, and is removed: %s", file->name,
			  kb_error_text(&err));
		agent_folder_remove(agent->folder, file->name);
		return;
	}
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		agent_say(AGENT_ERROR, "%s: %s", path, strerror(errno));
		return;
	}
	/* The file's time says when the last record was written: say_gap(). */
	times[0] = (struct timespec){ .tv_sec = file->changed_ns / KB_NS_PER_S,
				      .tv_nsec = file->changed_ns % KB_NS_PER_S };
	times[1] = times[0];
	futimens(fd, times);
	agent_say(AGENT_NOTICE, "%s was not ended by the agent that wrote it: it has what was written until "
		  "then%s", file->name, goes_on ? ", and the next file has the rest" : "");
	agent_folder_finish(agent->folder, fd, file->name);
}

static void save_what_was_left(struct agent *agent)
{
	struct agent_file *files;
	int nr = agent_folder_list(agent->folder, &files);

	for (unsigned int i = 0; i < agent->nr_sessions; i++) {
		struct agent_session *session = agent->sessions[i];
		const struct agent_file *newest = agent_folder_newest(files, nr,
								      session->wanted.name);
		char path[PATH_MAX];

		if (!session->parts)
			continue;
		kb_parts_note(session->parts,
			      agent_folder_last(agent->folder, session->wanted.name, path), false,
			      NULL);
		if (newest)
			kb_parts_note(session->parts,
				      agent_folder_path(agent->folder, newest->name, path), false,
				      NULL);
	}
	for (int i = 0; i < nr; i++)
		if (files[i].part)
			save_part(agent, &files[i]);
	free(files);
	agent_folder_drain(agent->folder);
}

/* When the capture ended, in ns since 1970; 0: there is none. */
static uint64_t end_of(const char *path)
{
	struct kb_barman *barman;
	struct stat st;
	uint64_t until;
	const char *fact;

	if (stat(path, &st))
		return 0;
	/* A file that was cut off ends with the last record that was written into it. */
	until = (uint64_t)st.st_mtim.tv_sec * KB_NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
	if (kb_barman_open(&barman, path, NULL))
		return until;
	fact = kb_barman_fact(barman, "part_end");
	fact = fact ? strchr(fact, ',') : NULL;
	if (fact)
		until = strtoull(fact + 1, NULL, 10);
	kb_barman_close(barman);
	return until;
}

/* When the newest file of the session ended, also if it was taken away. */
static uint64_t end_of_newest(struct agent *agent, const char *name)
{
	struct agent_file *files;
	int nr = agent_folder_list(agent->folder, &files);
	const struct agent_file *newest = agent_folder_newest(files, nr, name);
	char path[PATH_MAX];
	uint64_t last = end_of(agent_folder_last(agent->folder, name, path)), until = 0;

	if (newest)
		until = end_of(agent_folder_path(agent->folder, newest->name, path));
	free(files);
	return until > last ? until : last;
}

static void say_gap(struct agent *agent, struct agent_session *session)
{
	uint64_t from = end_of_newest(agent, session->wanted.name);
	uint64_t now = (uint64_t)kb_clock_ns(CLOCK_REALTIME);

	if (!from || !session->parts)
		return;
	agent_session_gap(session, from, now);
	if (now >= from)
		agent_say(AGENT_NOTICE, "session %s: nothing was recorded in the last %.3f s: its session "
			  "was not kept", session->wanted.name, (double)(now - from) / 1e9);
	else
		agent_say(AGENT_NOTICE, "session %s: nothing was recorded since its last file, from whose end "
			  "the clock was set back %.3f s", session->wanted.name,
			  (double)(from - now) / 1e9);
}

/* ---- sessions ---- */

static bool start_session(struct agent *agent, const struct agent_wanted *wanted, char said[256])
{
	struct agent_session *session;
	struct kb_error err;

	if (agent_session_start(&session, wanted, agent->folder, &err)) {
		if (strcmp(said, kb_error_text(&err)) != 0)
			agent_say(AGENT_ERROR, "session %s can't start: %s", wanted->name,
				  kb_error_text(&err));
		snprintf(said, sizeof(agent->start_trouble[0]), "%s", kb_error_text(&err));
		snprintf(agent->trouble, sizeof(agent->trouble), "%s", kb_error_text(&err));
		agent->start_ms = kb_clock_ms() + START_AGAIN_MS;
		return false;
	}
	said[0] = '\0';
	say_gap(agent, session);
	if (agent->keep)
		agent_session_keep(session);
	agent->sessions[agent->nr_sessions++] = session;
	return true;
}

/* It may take the memory of what was recorded before this boot, which is to be written first. */
static bool waits_for_former(const struct agent *agent, unsigned int i)
{
	return agent->config.sessions[i].reserved && (!agent->former.folder || agent->former.device);
}

/* Starts the sessions that are wanted and do not run. */
static void start_sessions(struct agent *agent)
{
	bool all = true;

	for (unsigned int i = 0; i < agent->config.nr_sessions; i++)
		if (!find(agent, agent->config.sessions[i].name) && !waits_for_former(agent, i))
			all = start_session(agent, &agent->config.sessions[i],
					    agent->start_trouble[i]) && all;
	if (all)
		agent->trouble[0] = '\0';
}

static void end_session(struct agent *agent, unsigned int i)
{
	agent_session_end(agent->sessions[i]);
	agent->sessions[i] = agent->sessions[--agent->nr_sessions];
}

/* Whether @session records what @wanted says. */
static bool is_as(const struct agent_session *session, const struct agent_wanted *wanted)
{
	char name[sizeof(session->kept_name)];

	snprintf(name, sizeof(name), "%s.%016" PRIx64, wanted->name, agent_wanted_hash(wanted));
	return !strcmp(name, session->kept_name);
}

/* Makes the sessions those of the configuration. What did not change is not touched. */
static void apply(struct agent *agent)
{
	for (unsigned int i = 0; i < agent->nr_sessions; ) {
		struct agent_session *session = agent->sessions[i];
		const struct agent_wanted *wanted = agent_config_find(&agent->config,
								      session->wanted.name);

		if (!wanted || !is_as(session, wanted)) {
			agent_say(AGENT_NOTICE, "session %s ends: the configuration %s",
				  session->wanted.name, wanted ? "has another one" : "does not have it");
			end_session(agent, i);
			continue;
		}
		session->wanted.file_bytes = wanted->file_bytes;
		session->wanted.file_seconds = wanted->file_seconds;
		session->wanted.notes = wanted->notes;
		i++;
	}
	agent_folder_drain(agent->folder);
	set_bound(agent);
	start_sessions(agent);
}

/* ---- signals ---- */

static int open_signals(struct agent *agent)
{
	sigset_t mask;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGHUP);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	agent->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	return agent->signals < 0 ? -1 : 0;
}

static void reload(struct agent *agent)
{
	struct agent_config config;
	uint64_t hash;

	agent_notify("RELOADING=1\nMONOTONIC_USEC=%" PRId64, kb_clock_ns(CLOCK_MONOTONIC) / 1000);
	agent->config_trouble[0] = '\0';
	agent->state_ms = 0;		/* to be written at once */
	if (read_config(&config, agent->path, agent->config_trouble, &hash)) {
		agent_say(AGENT_ERROR, "the configuration stays as it was");
		agent_config_free(&config);
	} else {
		if (strcmp(config.folder, agent->config.folder) || strcmp(config.state, agent->config.state))
			agent_say(AGENT_WARNING, "another folder or state file is used from the next start "
				  "on");
		/* What can't change stays in use. */
		free(config.folder);
		free(config.state);
		config.folder = agent->config.folder;
		config.state = agent->config.state;
		agent->config.folder = agent->config.state = NULL;
		agent_config_free(&agent->config);
		agent->config = config;
		agent->config_hash = hash;
		agent->config_ns = kb_clock_ns(CLOCK_REALTIME);
		memset(agent->start_trouble, 0, sizeof(agent->start_trouble));
		apply(agent);
	}
	agent_notify("READY=1");
}

/* The process that recovers what was recorded before this boot. */
static void take_child(struct agent *agent)
{
	struct agent_session *session;

	if (!agent_former_ended(&agent->former))
		return;
	session = find(agent, agent->former.crashes);
	if (session)
		session->moments.before_boot++;
}

static void take_signals(struct agent *agent)
{
	struct signalfd_siginfo info;

	while (read(agent->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP) {
			reload(agent);
		} else if (info.ssi_signo == SIGUSR1) {
			for (unsigned int i = 0; i < agent->nr_sessions; i++)
				agent_session_rotate(agent->sessions[i]);
		} else if (info.ssi_signo == SIGCHLD) {
			take_child(agent);
		} else {
			agent->end = true;
		}
	}
}

/* ---- the loop ---- */

static void write_state(struct agent *agent)
{
	struct agent_state state = {
		.started_ns = agent->started_ns,
		.sessions = (const struct agent_session *const *)agent->sessions,
		.nr_sessions = agent->nr_sessions,
		.wanted = agent->config.nr_sessions,
		.trouble = agent->trouble[0] ? agent->trouble : agent->former.trouble,
		.config_hash = agent->config_hash, .config_ns = agent->config_ns,
		.config_trouble = agent->config_trouble,
	};
	int ret;

	agent_folder_counts(agent->folder, &state.folder);
	for (unsigned int i = 0; i < agent->nr_sessions; i++)
		agent_session_lost(agent->sessions[i]);
	ret = agent_state_write(agent->config.state, &state);
	/* It is old then, which its readers see. */
	if (ret && !agent->state_failed)
		agent_say(AGENT_WARNING, "%s can't be written: %s", agent->config.state, strerror(-ret));
	agent->state_failed = ret;
	agent->state_ms = kb_clock_ms() + STATE_MS;
}

/* What comes by itself. */
static void serve(struct agent *agent)
{
	for (unsigned int i = 0; i < agent->nr_sessions; ) {
		if (!agent_session_runs(agent->sessions[i])) {
			agent_say(AGENT_ERROR, "session %s has ended by itself, and is started again",
				  agent->sessions[i]->wanted.name);
			end_session(agent, i);
			agent_folder_drain(agent->folder);
			agent->start_ms = 0;
			continue;
		}
		agent_session_serve(agent->sessions[i]);
		i++;
	}
	if (agent->nr_sessions < agent->config.nr_sessions && kb_clock_ms() >= agent->start_ms)
		start_sessions(agent);
	if (kb_clock_ms() >= agent->state_ms)
		write_state(agent);
	if (agent->watchdog && kb_clock_ms() >= agent->watchdog_ms) {
		agent_notify("WATCHDOG=1");
		agent->watchdog_ms = kb_clock_ms() + (int64_t)agent->watchdog / 2;
	}
}

static int wait_ms(const struct agent *agent)
{
	int64_t due = agent->state_ms, now = kb_clock_ms();

	for (unsigned int i = 0; i < agent->nr_sessions; i++)
		if (agent_session_due(agent->sessions[i]) < due)
			due = agent_session_due(agent->sessions[i]);
	if (agent->watchdog && agent->watchdog_ms < due)
		due = agent->watchdog_ms;
	if (agent->nr_sessions < agent->config.nr_sessions && agent->start_ms < due)
		due = agent->start_ms;
	return due > now ? (int)(due - now) : 0;
}

static void loop(struct agent *agent)
{
	struct pollfd fds[AGENT_SESSIONS_MAX + 1];

	while (!agent->end) {
		serve(agent);
		fds[0] = (struct pollfd){ .fd = agent->signals, .events = POLLIN };
		for (unsigned int i = 0; i < agent->nr_sessions; i++)
			fds[i + 1] = (struct pollfd){
				.fd = agent_session_fd(agent->sessions[i]), .events = POLLIN,
			};
		if (poll(fds, agent->nr_sessions + 1, wait_ms(agent)) > 0 && fds[0].revents)
			take_signals(agent);
	}
}

/* A folder may be there later, so the service manager tries again: not once a second. */
static void wait_to_be_started_again(const struct agent *agent)
{
	struct pollfd fd = { .fd = agent->signals, .events = POLLIN };

	if (getenv("NOTIFY_SOCKET"))
		poll(&fd, 1, START_AGAIN_MS);
}

static void begin_former(struct agent *agent)
{
	for (unsigned int i = agent->config.nr_sessions; i--;)
		if (agent_triggers_have(agent->config.sessions[i].triggers, KB_TRIGGER_BOOT))
			snprintf(agent->former.crashes, sizeof(agent->former.crashes), "%s",
				 agent->config.sessions[i].name);
	agent_former_begin(&agent->former, agent->folder);
}

static int begin(struct agent *agent)
{
	struct kb_error err;

	if (read_config(&agent->config, agent->path, NULL, &agent->config_hash))
		return 2;
	agent->config_ns = kb_clock_ns(CLOCK_REALTIME);
	if (open_signals(agent) || agent_folder_open(&agent->folder, agent->config.folder, &err)) {
		agent_say(AGENT_ERROR, "%s", agent->signals < 0 ? strerror(errno) : kb_error_text(&err));
		wait_to_be_started_again(agent);
		return 1;
	}
	/* On a busy machine the agent must run before the buffers are full. Ignores errors. */
	setpriority(PRIO_PROCESS, 0, AGENT_NICE);
	agent->started_ns = kb_clock_ns(CLOCK_REALTIME);
	agent->watchdog = agent_watchdog_ms();
	agent->watchdog_ms = kb_clock_ms() + (int64_t)agent->watchdog / 2;
	agent_kept(take_kept, agent);
	save_what_was_left(agent);
	apply(agent);
	serve(agent);
	agent_boot_take(agent->folder);
	begin_former(agent);
	agent_notify("READY=1");
	return 0;
}

static void end(struct agent *agent)
{
	agent_notify("STOPPING=1");
	agent_former_end(&agent->former);
	while (agent->nr_sessions) {
		struct agent_session *session = agent->sessions[--agent->nr_sessions];

		if (agent->keep)
			agent_session_leave(session);
		else
			agent_session_end(session);
	}
	if (agent->folder)
		agent_folder_drain(agent->folder);
	if (agent->config.state)
		unlink(agent->config.state);
}

int agent_run(const char *config, bool keep)
{
	struct agent agent = { .path = config, .keep = keep, .signals = -1 };
	int status = begin(&agent);

	if (!status) {
		loop(&agent);
		end(&agent);
	}
	agent_folder_close(agent.folder);
	agent_config_free(&agent.config);
	if (agent.signals >= 0)
		close(agent.signals);
	return status;
}

/*
 * What a file can't be blamed for, because it depends on who runs the agent: a process without
 * CAP_SYS_RESOURCE, as that of the unit, has PSI in windows of 2 s or a multiple of them, and from
 * Linux 6.5 on.
 */
static void note_pressure(const struct agent_wanted *session, const char *path)
{
	struct kb_triggers *triggers = NULL;
	struct kb_error err;

	if (session->triggers && !agent_triggers(&triggers, session->triggers, &err)) {
		for (uint32_t i = 0; i < kb_triggers_nr(triggers); i++) {
			const struct kb_trigger *trigger = kb_triggers_get(triggers, i);

			if (trigger->kind == KB_TRIGGER_PSI)
				agent_say(AGENT_NOTICE, "%s: [session %s]: %s: without CAP_SYS_RESOURCE, which "
					  "the unit does not give, PSI needs Linux 6.5 or later%s", path,
					  session->name, trigger->text, trigger->window_us % PSI_WINDOW_US ?
					  " and a time that is a multiple of 2s, as in >10%/2s" : "");
		}
	}
	kb_triggers_destroy(triggers);
}

/* A session can't record CPUs that this machine does not have. */
static void note_cpus(const struct agent_wanted *session, const char *path)
{
	uint64_t words[KB_CPU_WORDS];
	struct kb_error err;
	long nr = sysconf(_SC_NPROCESSORS_CONF);

	if (session->cpus && nr > 0 && kb_cpulist_parse(words, session->cpus, (unsigned int)nr, &err) < 0)
		agent_say(AGENT_NOTICE, "%s: [session %s]: cpus = %s: it can't start on this machine: %s", path,
			  session->name, session->cpus, kb_error_text(&err));
}

/* How many bytes a moment's capture may have: all that the buffers keep. */
static uint64_t bytes_of_moment(const struct agent_wanted *session)
{
	uint64_t words[KB_CPU_WORDS] = { 0 }, nr = 0;
	long all = sysconf(_SC_NPROCESSORS_CONF);

	if (!session->cpus || kb_cpulist_parse(words, session->cpus, (unsigned int)all, NULL) < 0)
		return (all > 0 ? (uint64_t)all : 1) * session->ring_bytes;
	for (size_t i = 0; i < KB_CPU_WORDS; i++)
		nr += (uint64_t)__builtin_popcountll(words[i]);
	return nr * session->ring_bytes;
}

/* Bounds that can't hold together: what the folder leaves for the captures of moments, and the disk. */
static void note_bounds(const struct agent_config *config, const char *path)
{
	uint64_t left = config->folder_bytes;
	struct statvfs fs;

	for (unsigned int i = 0; i < config->nr_sessions; i++)
		if (!config->sessions[i].triggers)
			left -= AGENT_FILES_AT_LEAST * config->sessions[i].file_bytes;
	for (unsigned int i = 0; i < config->nr_sessions; i++) {
		const struct agent_wanted *session = &config->sessions[i];
		uint64_t bytes = session->triggers ? bytes_of_moment(session) : 0;

		if (2 * bytes > left)
			agent_say(AGENT_NOTICE, "%s: [session %s]: a capture of a moment may have %" PRIu64
				  "M here, and the folder leaves %" PRIu64 "M: only the newest one stays: "
				  "raise folder_max, or give a smaller buffer", path, session->name,
				  bytes >> 20, left >> 20);
	}
	if (config->keep_free != KB_KEEP_FREE_USUAL && !statvfs(config->folder, &fs) &&
	    config->keep_free >= (uint64_t)fs.f_blocks * fs.f_frsize)
		agent_say(AGENT_NOTICE, "%s: keep_free is more than the disk of %s has: only the newest capture "
			  "of each session stays", path, config->folder);
}

int agent_check(const char *path)
{
	struct agent_config config;
	uint64_t hash;
	int status = read_config(&config, path, NULL, &hash);

	for (unsigned int i = 0; !status && i < config.nr_sessions; i++) {
		note_pressure(&config.sessions[i], path);
		note_cpus(&config.sessions[i], path);
	}
	if (!status)
		note_bounds(&config, path);
	agent_config_free(&config);
	return status;
}

int agent_status(const char *path, bool json)
{
	struct agent_config config;
	uint64_t hash;
	int status;

	/* An agent may run although its configuration is wrong now. */
	read_config(&config, path, NULL, &hash);
	status = agent_state_show(config.state ?: AGENT_STATE, json);

	agent_config_free(&config);
	return status;
}
