/* SPDX-License-Identifier: MIT */
/*
 * The agent's configuration: a file of sections and lines "KEY = VALUE", which kbarmand.conf(5)
 * describes. Everything that is wrong in it is said with its line, not only the first thing.
 */
#ifndef KB_AGENT_CONFIG_H
#define KB_AGENT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define AGENT_CONFIG		"/etc/kbarman/kbarmand.conf"
#define AGENT_FOLDER		"/var/lib/kbarmand"
#define AGENT_STATE		"/run/kbarmand/state"
#define AGENT_SESSIONS_MAX	8
#define AGENT_FILES_AT_LEAST	2	/* of each session have room in the folder */
#define AGENT_NAME_MAX		32	/* bytes of a session's name, with the NUL */

/* A session: what it records, and how its files are. */
struct agent_wanted {
	char name[AGENT_NAME_MAX];
	unsigned int line;		/* of its section */
	uint32_t sources;		/* KBARMAN_SOURCE_* */
	char *cpus;			/* NULL: all */
	char *events;			/* NULL: none is named */
	uint64_t ring_bytes;		/* of a CPU */
	uint32_t max_tasks;		/* 0: the module's default */
	uint32_t sample;		/* Hz; 0: no samples */
	uint32_t chains;		/* KBARMAN_CONFIGURE_CHAIN_* */
	bool reserved;			/* record into memory that survives a reset */
	char *triggers;			/* only what is around these moments is kept; NULL: all */
	uint64_t before_seconds;	/* so long before each moment */
	uint64_t every_seconds;		/* no file begins sooner after the last one */
	uint64_t file_bytes;		/* a file ends when it has so many, */
	uint64_t file_seconds;		/* or is so old */
	uint32_t notes;			/* KB_NOTE_* of processes, as for all sessions */
};

struct agent_config {
	char *folder;			/* of the captures */
	uint64_t folder_bytes;		/* which they may take together */
	uint64_t keep_free;		/* bytes that the disk keeps for others, or KB_KEEP_FREE_USUAL */
	char *state;			/* the file for `kbarmand --status' */
	bool labels, commands;		/* note the cgroups and the command lines of processes */
	struct agent_wanted sessions[AGENT_SESSIONS_MAX];
	unsigned int nr_sessions;
};

/*
 * Reads @file, which messages call @path. @say gets a sentence for each error. Returns the number of
 * errors; @config is complete if there are none. agent_config_free() in any case.
 */
unsigned int agent_config_read(struct agent_config *config, FILE *file, const char *path,
			       void (*say)(void *context, const char *sentence), void *context);
void agent_config_free(struct agent_config *config);

/* The section of that name; NULL: there is none. */
const struct agent_wanted *agent_config_find(const struct agent_config *config, const char *name);

/* A number that differs if what the session records or its buffers differ. */
uint64_t agent_wanted_hash(const struct agent_wanted *wanted);

/* A copy, which agent_wanted_free() frees. False: no memory. */
bool agent_wanted_copy(struct agent_wanted *to, const struct agent_wanted *from);
void agent_wanted_free(struct agent_wanted *wanted);

#endif
