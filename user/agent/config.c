// SPDX-License-Identifier: MIT
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/cpulist.h>
#include <kbarman/perf_events.h>
#include <kbarman/recorder.h>

#include "agent/config.h"
#include "agent/trigger_list.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/hash.h"
#include "base/io/disk.h"
#include "base/text/size.h"
#include "record/device/source_words.h"

#define USUAL_SOURCES	(KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE | KBARMAN_SOURCE_MARKS)
#define RING_BYTES	(UINT64_C(1) << 20)
#define RING_MIN	(UINT64_C(64) << 10)
#define RING_MAX	(UINT64_C(1) << 30)
#define FILE_BYTES	(UINT64_C(64) << 20)
#define FILE_SECONDS	60
#define BEFORE_SECONDS	2
#define EVERY_SECONDS	60
#define FOLDER_BYTES	(UINT64_C(1) << 30)
#define SAMPLE_MAX	100000
#define TASKS_MAX	(1U << 18)
#define CPUS_MAX	(KB_CPU_WORDS * 64)
#define TEXT_MAX	256
#define BOM		"\xef\xbb\xbf"	/* what some editors begin a text with */
#define SAID_MAX	20		/* errors that are said one by one */

struct reader {
	struct agent_config *config;
	struct agent_wanted *session;	/* NULL: in [agent], or in no section */
	const char *path;
	unsigned int line, errors;
	bool in_section;		/* false: nothing but sections and comments may come */
	bool skip;			/* in a section that is wrong: its lines are not looked at */
	uint64_t seen;			/* keys of this section, by their place in the table */
	bool seen_agent;
	void (*say)(void *context, const char *sentence);
	void *context;
};

static void wrong_at(struct reader *r, unsigned int line, const char *format, va_list args)
{
	char sentence[1024];
	int used = snprintf(sentence, sizeof(sentence), line ? "%s:%u: " : "%s: ", r->path, line);

	if (used > 0 && (size_t)used < sizeof(sentence))
		vsnprintf(sentence + used, sizeof(sentence) - (size_t)used, format, args);
	if (r->errors++ < SAID_MAX)
		r->say(r->context, sentence);
}

__attribute__((format(printf, 2, 3)))
static void wrong(struct reader *r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	wrong_at(r, r->line, format, args);
	va_end(args);
}

__attribute__((format(printf, 3, 4)))
static void wrong_in(struct reader *r, unsigned int line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	wrong_at(r, line, format, args);
	va_end(args);
}

/* ---- values ---- */

static void take_text(struct reader *r, char **to, const char *value)
{
	free(*to);
	*to = strdup(value);
	if (!*to)
		wrong(r, "out of memory");
}

static void take_path(struct reader *r, char **to, const char *key, const char *value)
{
	if (value[0] != '/')
		wrong(r, "%s = %s: give a path that begins with '/'", key, value);
	else
		take_text(r, to, value);
}

static void take_size(struct reader *r, uint64_t *to, const char *key, const char *value, uint64_t least,
		      uint64_t most)
{
	unsigned long long size;

	if (!kb_size_parse(value, &size))
		wrong(r, "%s = %s: not a size, as in 512K, 64M, 2G", key, value);
	else if (size < least || size > most)
		wrong(r, "%s = %s: give a size from %" PRIu64 "K to %" PRIu64 "M", key, value,
		      least >> 10, most >> 20);
	else
		*to = size;
}

static void take_number(struct reader *r, uint32_t *to, const char *key, const char *value,
			uint32_t most)
{
	char *end;
	unsigned long number;

	errno = 0;
	number = strtoul(value, &end, 10);
	if (!isdigit((unsigned char)value[0]) || errno || *end || number > most)
		wrong(r, "%s = %s: not a number from 0 to %" PRIu32, key, value, most);
	else
		*to = (uint32_t)number;
}

static void take_bool(struct reader *r, bool *to, const char *key, const char *value)
{
	bool yes = !strcmp(value, "yes");

	if (!yes && strcmp(value, "no") != 0)
		wrong(r, "%s = %s: give yes or no", key, value);
	else
		*to = yes;
}

static void take_sources(struct reader *r, const char *value)
{
	uint32_t sources = 0;

	for (const char *word = value; *word; ) {
		size_t length = strcspn(word, " ,\t");
		const struct kb_source_word *found = kb_source_find(word, length);

		if (found && found->bit != KBARMAN_SOURCE_PMU && found->bit != KBARMAN_SOURCE_MAPS)
			sources |= found->bit;
		else if (length)
			wrong(r, "sources: no '%.*s': there are sched, idle, marks, wake, migrate, irq, "
			      "softirq, freq, syscalls, faults and block; samples are taken by 'sample = HZ'", (int)length, word);
		word += length;
		word += strspn(word, " ,\t");
	}
	if (sources)
		r->session->sources = sources;
	else if (!*value)
		wrong(r, "sources: nothing to record: give some of sched, idle, marks, wake, migrate, irq, "
		      "softirq, freq, syscalls, faults and block");
}

static void take_cpus(struct reader *r, const char *value)
{
	uint64_t words[KB_CPU_WORDS];
	struct kb_error err;

	if (kb_cpulist_parse(words, value, CPUS_MAX, &err) < 0)
		wrong(r, "cpus = %s: %s", value, kb_error_text(&err));
	else
		take_text(r, &r->session->cpus, value);
}

static void take_chains(struct reader *r, const char *value)
{
	static const struct {
		const char *word;
		uint32_t flags;
	} chains[] = {
		{ "no", 0 },
		{ "user", KBARMAN_CONFIGURE_CHAIN_USER },
		{ "kernel", KBARMAN_CONFIGURE_CHAIN_KERNEL },
		{ "both", KBARMAN_CONFIGURE_CHAIN_USER | KBARMAN_CONFIGURE_CHAIN_KERNEL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(chains); i++) {
		if (strcmp(value, chains[i].word) != 0)
			continue;
		r->session->chains = chains[i].flags;
		return;
	}
	wrong(r, "chains = %s: give no, user, kernel or both", value);
}

static void take_triggers(struct reader *r, const char *value)
{
	struct kb_triggers *triggers = NULL;
	struct kb_error err;

	if (agent_triggers(&triggers, value, &err))
		wrong(r, "trigger = %s: %s", value, kb_error_text(&err));
	else
		take_text(r, &r->session->triggers, value);
	kb_triggers_destroy(triggers);
}

static void take_duration(struct reader *r, uint64_t *to, const char *key, const char *value)
{
	uint64_t ns;

	if (!kb_duration_parse(value, KB_NS_PER_S, &ns) || ns % KB_NS_PER_S)
		wrong(r, "%s = %s: not a time in whole seconds, as in 30s, 5m, 1h", key, value);
	else if (ns < KB_NS_PER_S || ns > 86400 * KB_NS_PER_S)
		wrong(r, "%s = %s: give a time from 1s to 1d", key, value);
	else
		*to = ns / KB_NS_PER_S;
}

/* ---- keys ---- */

static void take_agent(struct reader *r, const char *key, const char *value)
{
	struct agent_config *config = r->config;

	if (!strcmp(key, "folder"))
		take_path(r, &config->folder, key, value);
	else if (!strcmp(key, "folder_max"))
		take_size(r, &config->folder_bytes, key, value, 1 << 20, UINT64_MAX >> 1);
	else if (!strcmp(key, "keep_free"))
		take_size(r, &config->keep_free, key, value, 0, UINT64_MAX >> 1);
	else if (!strcmp(key, "state"))
		take_path(r, &config->state, key, value);
	else if (!strcmp(key, "labels"))
		take_bool(r, &config->labels, key, value);
	else if (!strcmp(key, "commands"))
		take_bool(r, &config->commands, key, value);
}

static void take_session(struct reader *r, const char *key, const char *value)
{
	struct agent_wanted *session = r->session;

	if (!strcmp(key, "sources"))
		take_sources(r, value);
	else if (!strcmp(key, "cpus"))
		take_cpus(r, value);
	else if (!strcmp(key, "buffer"))
		take_size(r, &session->ring_bytes, key, value, RING_MIN, RING_MAX);
	else if (!strcmp(key, "max_tasks"))
		take_number(r, &session->max_tasks, key, value, TASKS_MAX);
	else if (!strcmp(key, "sample"))
		take_number(r, &session->sample, key, value, SAMPLE_MAX);
	else if (!strcmp(key, "events"))
		take_text(r, &session->events, value);
	else if (!strcmp(key, "chains"))
		take_chains(r, value);
	else if (!strcmp(key, "reserved"))
		take_bool(r, &session->reserved, key, value);
	else if (!strcmp(key, "trigger"))
		take_triggers(r, value);
	else if (!strcmp(key, "before"))
		take_duration(r, &session->before_seconds, key, value);
	else if (!strcmp(key, "every"))
		take_duration(r, &session->every_seconds, key, value);
	else if (!strcmp(key, "file_max"))
		take_size(r, &session->file_bytes, key, value, 1 << 20, UINT64_C(1) << 40);
	else if (!strcmp(key, "file_time"))
		take_duration(r, &session->file_seconds, key, value);
}

struct kind {
	const char *name;		/* as in messages */
	const char *keys[16];		/* all of them, as take() knows them */
	void (*take)(struct reader *r, const char *key, const char *value);
};

static const struct kind agent_keys = {
	"[agent]", { "folder", "folder_max", "keep_free", "state", "labels", "commands" }, take_agent,
};

static const struct kind session_keys = {
	"a session", { "sources", "cpus", "buffer", "max_tasks", "sample", "events", "chains", "reserved",
		       "file_max", "file_time", "trigger", "before", "every" }, take_session,
};

static void say_keys(struct reader *r, const struct kind *kind, const char *key)
{
	char keys[TEXT_MAX] = "";
	size_t used = 0;

	for (size_t i = 0; kind->keys[i]; i++)
		used += (size_t)snprintf(keys + used, sizeof(keys) - used, "%s%s", used ? ", " : "",
					 kind->keys[i]);
	wrong(r, "%s has no '%s': there are %s", kind->name, key, keys);
}

static void take_key(struct reader *r, const char *key, const char *value)
{
	const struct kind *kind = r->session ? &session_keys : &agent_keys;

	if (r->session && !strcmp(key, "record"))
		key = "sources";	/* the older name, until 1.0 */
	for (size_t i = 0; kind->keys[i]; i++) {
		if (strcmp(key, kind->keys[i]) != 0)
			continue;
		if (r->seen & UINT64_C(1) << i)
			wrong(r, "'%s' stands here for the second time: leave one of them out", key);
		r->seen |= UINT64_C(1) << i;
		kind->take(r, key, value);
		return;
	}
	say_keys(r, kind, key);
}

/* ---- lines ---- */

static bool name_is_good(const char *name)
{
	size_t length = strlen(name);

	return length && length < AGENT_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == length;
}

static void begin_session(struct reader *r, const char *name)
{
	struct agent_config *config = r->config;
	const struct agent_wanted *same = agent_config_find(config, name);

	r->skip = true;
	if (!name_is_good(name)) {
		wrong(r, "[session %s]: a name has letters, digits and '_', at most %d of them", name,
		      AGENT_NAME_MAX - 1);
	} else if (same) {
		wrong(r, "[session %s]: this name has the section of line %u: give another one", name,
		      same->line);
	} else if (config->nr_sessions == AGENT_SESSIONS_MAX) {
		wrong(r, "[session %s]: there are at most %d sessions: leave one out", name,
		      AGENT_SESSIONS_MAX);
	} else {
		r->skip = false;
		r->session = &config->sessions[config->nr_sessions++];
		*r->session = (struct agent_wanted){
			.line = r->line, .sources = USUAL_SOURCES, .ring_bytes = RING_BYTES,
			.file_bytes = FILE_BYTES, .file_seconds = FILE_SECONDS,
		};
		snprintf(r->session->name, sizeof(r->session->name), "%s", name);
	}
}

/* @text: what stands between the brackets. */
static void begin_section(struct reader *r, char *text)
{
	r->in_section = true;
	r->skip = false;
	r->session = NULL;
	r->seen = 0;
	if (!strcmp(text, "agent")) {
		if (r->seen_agent)
			wrong(r, "[agent] stands here for the second time: join the two sections");
		r->seen_agent = true;
	} else if (!strncmp(text, "session", 7) && (!text[7] || isspace((unsigned char)text[7]))) {
		begin_session(r, text + 7 + strspn(text + 7, " \t"));
	} else {
		r->skip = true;
		wrong(r, "no section [%s]: there are [agent] and [session NAME]", text);
	}
}

/* Without white space around it. */
static char *trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return text + strspn(text, " \t\r");
}

static void take_line(struct reader *r, char *line)
{
	char *equals, *end;

	line = trim(line);
	if (!*line || *line == '#' || *line == ';')
		return;
	if (*line == '[') {
		end = strchr(line, ']');
		if (end && !end[1]) {
			*end = '\0';
			begin_section(r, trim(line + 1));
			return;
		}
		wrong(r, "a section is '[agent]' or '[session NAME]', and nothing else is in its line");
		r->in_section = r->skip = true;
		return;
	}
	equals = strchr(line, '=');
	if (!equals) {
		wrong(r, "'%.40s' is no section and has no '=': give KEY = VALUE, or begin a comment with "
		      "'#'", line);
		return;
	}
	*equals = '\0';
	line = trim(line);
	if (!r->in_section)
		wrong(r, "'%s' stands in front of the first section: begin with [agent] or [session "
		      "NAME]", line);
	else if (!r->skip)
		take_key(r, line, trim(equals + 1));
}

/* ---- the whole ---- */

static void check_session(struct reader *r, struct agent_wanted *session)
{
	struct kb_perf_event events[KB_EVENTS_MAX];
	struct kb_error err;

	if (!session->triggers && (session->before_seconds || session->every_seconds))
		wrong_in(r, session->line, "[session %s]: 'before' and 'every' are about the captures of "
			 "moments: give 'trigger' as well, or leave them out", session->name);
	session->before_seconds = session->before_seconds ?: BEFORE_SECONDS;
	session->every_seconds = session->every_seconds ?: EVERY_SECONDS;
	if (session->events && !session->sample)
		wrong_in(r, session->line, "[session %s]: events are counted by samples: give 'sample = HZ', "
			 "or leave out 'events'", session->name);
	else if (session->events && kb_events_parse(events, KB_EVENTS_MAX, session->events, NULL, &err) < 0)
		wrong_in(r, session->line, "[session %s]: events = %s: %s", session->name,
			 session->events, kb_error_text(&err));
	if (session->chains && !session->sample)
		wrong_in(r, session->line, "[session %s]: chains are those of samples: give 'sample = HZ', "
			 "or leave out 'chains'", session->name);
}

static void check(struct reader *r)
{
	struct agent_config *config = r->config;
	uint64_t least = 0;

	for (unsigned int i = 0; i < config->nr_sessions; i++) {
		check_session(r, &config->sessions[i]);
		least += AGENT_FILES_AT_LEAST * config->sessions[i].file_bytes;
	}
	if (!config->nr_sessions)
		wrong_in(r, 0, "nothing is to be recorded: add a section [session NAME]");
	if (config->folder_bytes < least)
		wrong_in(r, 0, "folder_max is less than two files of each session: give %" PRIu64
			 "M or more, or a smaller file_max", (least + (1 << 20) - 1) >> 20);
}

unsigned int agent_config_read(struct agent_config *config, FILE *file, const char *path,
			       void (*say)(void *context, const char *sentence), void *context)
{
	struct reader r = {
		.config = config, .path = path, .say = say, .context = context,
	};
	char *line = NULL;
	size_t room = 0;
	ssize_t length;

	*config = (struct agent_config){
		.folder = strdup(AGENT_FOLDER), .folder_bytes = FOLDER_BYTES,
		.keep_free = KB_KEEP_FREE_USUAL,
		.state = strdup(AGENT_STATE), .labels = true,
	};
	if (!config->folder || !config->state)
		wrong(&r, "out of memory");
	while ((length = getline(&line, &room, file)) >= 0) {
		r.line++;
		if (strlen(line) != (size_t)length)
			wrong(&r, "this line has a NUL: the file is no text");
		else
			take_line(&r, r.line == 1 && !strncmp(line, BOM, strlen(BOM)) ?
				      line + strlen(BOM) : line);
	}
	if (ferror(file))
		wrong_in(&r, 0, "can't be read: %s", strerror(errno));
	free(line);
	if (r.errors > SAID_MAX) {
		char sentence[1024];

		snprintf(sentence, sizeof(sentence), "%s: %u more lines are wrong: is this the right file?",
			 path, r.errors - SAID_MAX);
		say(context, sentence);
	}
	/* What the lines say in the first place. */
	if (!r.errors)
		check(&r);
	for (unsigned int i = 0; i < config->nr_sessions; i++)
		config->sessions[i].notes = (config->labels ? KB_NOTE_CGROUP : 0) |
					    (config->commands ? KB_NOTE_COMMAND : 0);
	return r.errors;
}

void agent_wanted_free(struct agent_wanted *wanted)
{
	free(wanted->cpus);
	free(wanted->events);
	free(wanted->triggers);
	wanted->cpus = wanted->events = wanted->triggers = NULL;
}

void agent_config_free(struct agent_config *config)
{
	free(config->folder);
	free(config->state);
	for (unsigned int i = 0; i < config->nr_sessions; i++)
		agent_wanted_free(&config->sessions[i]);
	*config = (struct agent_config){ 0 };
}

const struct agent_wanted *agent_config_find(const struct agent_config *config, const char *name)
{
	for (unsigned int i = 0; i < config->nr_sessions; i++)
		if (!strcmp(config->sessions[i].name, name))
			return &config->sessions[i];
	return NULL;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return kb_hash_word(text ? kb_hash_bytes(hash, text, strlen(text)) : hash, text != NULL);
}

uint64_t agent_wanted_hash(const struct agent_wanted *wanted)
{
	uint64_t hash = kb_hash_word(0, wanted->sources);

	hash = kb_hash_word(hash, wanted->ring_bytes);
	hash = kb_hash_word(hash, (uint64_t)wanted->max_tasks << 32 | wanted->sample);
	hash = kb_hash_word(hash, wanted->chains | (uint64_t)wanted->reserved << 32);
	hash = hash_text(hash_text(hash, wanted->cpus), wanted->events);
	if (!wanted->triggers)
		return hash;
	hash = kb_hash_word(hash, wanted->before_seconds);
	return hash_text(kb_hash_word(hash, wanted->every_seconds), wanted->triggers);
}

bool agent_wanted_copy(struct agent_wanted *to, const struct agent_wanted *from)
{
	*to = *from;
	to->cpus = from->cpus ? strdup(from->cpus) : NULL;
	to->events = from->events ? strdup(from->events) : NULL;
	to->triggers = from->triggers ? strdup(from->triggers) : NULL;
	if ((from->cpus && !to->cpus) || (from->events && !to->events) ||
	    (from->triggers && !to->triggers)) {
		agent_wanted_free(to);
		return false;
	}
	return true;
}
