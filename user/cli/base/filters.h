/* SPDX-License-Identifier: MIT */
/*
 * The options that choose a part of a capture. All verbs that print or convert records have the same
 * ones, and the rules are those of kbarman/filter.h.
 */
#ifndef KB_CLI_BASE_FILTERS_H
#define KB_CLI_BASE_FILTERS_H

#include <stdbool.h>

#include <kbarman/cpulist.h>
#include <kbarman/filter.h>

#include "cli/base/cli.h"

enum {
	OPTION_FILTER_TASK = 0x2000, OPTION_FILTER_TID, OPTION_FILTER_TIME,
};

/* For a table of options. */
#define FILTERS_OPTIONS \
	CLI_CPU_OPTION, \
	{ OPTION_FILTER_TASK, "task", "NAME", "use only tasks with this name" }, \
	{ OPTION_FILTER_TID, "tid", "ID", "use only this task, or the tasks of this process" }, \
	{ OPTION_FILTER_TIME, "time", "FROM,TO", \
	  "use only the time from FROM to TO since the start of the capture, as\n" \
	  "in 1.5,1600ms, or by the clock: 14:03:07.2,14:03:09 (local), with a\n" \
	  "date and a zone, or @SECONDS since 1970; either may be left out" }

struct filters {
	struct kb_filter how;		/* its members are set as options come */
	char *text;			/* "task xz, cpu 0-3"; NULL: no option was given */
	uint64_t cpus[KB_CPU_WORDS];
};

enum filters_taken {
	FILTERS_OTHER,		/* it is none of these options */
	FILTERS_TAKEN,
	FILTERS_WRONG,		/* its value is wrong, a message says why */
};

/* Takes @option with its value, which must live as long as @filters. */
enum filters_taken filters_take(struct filters *filters, int option, const char *value);

/* The filter; NULL: no option was given. */
const struct kb_filter *filters_get(const struct filters *filters);

#define FILTERS_WHY	1024

/*
 * Whether each option chooses something of @trace, whose first record is next, before and after. Returns
 * 1; 0 with a sentence in @why; a negative errno with one. A capture that is damaged or that comes from a
 * pipe may have more than its tables say: it counts as one that has something.
 */
int filters_choose(const struct filters *filters, struct kb_trace *trace, const char *path,
		   char why[FILTERS_WHY]);

/* The same, for a verb that reads one capture: returns CLI_OK, or CLI_IMPOSSIBLE after a message. */
int filters_check(const struct filters *filters, struct kb_trace *trace, const char *path);

/*
 * Adds what was chosen to a line of JSON, and of which keys and kinds it was not asked: @whole are of
 * the whole capture, @all_tasks of all tasks. Both end with NULL. Nothing if no option was given.
 */
struct kb_json;
void filters_put_json(const struct filters *filters, struct kb_json *json, const char *const *whole,
		      const char *const *all_tasks);

/* A zeroed struct may be released. */
void filters_release(struct filters *filters);

#endif
