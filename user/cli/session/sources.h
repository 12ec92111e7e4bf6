/* SPDX-License-Identifier: MIT */
/*
 * cli/session/: options and parts of verbs that begin or look at a session: what is recorded, of
 * which processes, how often, and which sessions there are.
 *
 * Options that choose what a session records (KBARMAN_SOURCE_*).
 */
#ifndef KB_CLI_SESSION_SOURCES_H
#define KB_CLI_SESSION_SOURCES_H

#include <stdbool.h>

#include <kbarman/device.h>

#include "cli/base/cli.h"
#include "record/device/source_words.h"

#define SOURCES_USUAL	(KBARMAN_SOURCE_ALL & ~KBARMAN_SOURCE_DETAILS)	/* what every session records */
#define SOURCES_TEXT	128	/* room for all words */

enum {
	OPTION_SOURCES = 0x1100, OPTION_LATENCY, OPTION_NO_OBJECTS,
};

/* For a table of options. */
#define SOURCES_OPTIONS \
	{ OPTION_SOURCES, "sources", "LIST", \
	  "also record these, comma-separated: wake, migrate, irq, softirq,\n" \
	  "freq, syscalls, faults, block" }, \
	{ OPTION_SOURCES, "trace", "LIST", NULL }, \
	{ OPTION_LATENCY, "latency", NULL, \
	  "why tasks ran late: also record wake to freq of these sources, as\n" \
	  "far as this kernel has them" }

/* The same; the verb takes it. */
#define NO_OBJECTS_OPTION \
	{ OPTION_NO_OBJECTS, "no-objects", NULL, \
	  "don't record what tasks wait for: the call, the file, the lock" }

/*
 * Takes @option with its value, and adds what it asks for to @sources. Returns 0, -1: it is none of
 * these options; or CLI_IMPOSSIBLE after a message.
 */
int sources_take(uint32_t *sources, int option, const char *value);

/* Returns 0, or CLI_IMPOSSIBLE after a message: the loaded module does not know @sources. */
int sources_check(uint32_t sources, const struct kbarman_query *query);

/* The words of @sources with @between between them. Returns @text. */
const char *sources_text(uint32_t sources, const char *between, char text[SOURCES_TEXT]);

#endif
