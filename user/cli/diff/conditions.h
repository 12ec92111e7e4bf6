/* SPDX-License-Identifier: MIT */
/* Conditions of --fail-if: what must not differ. */
#ifndef KB_CLI_DIFF_CONDITIONS_H
#define KB_CLI_DIFF_CONDITIONS_H

#include <kbarman/diff.h>

/* "cpu/xz:+2%@95": parts of the text that was given. */
struct diff_condition {
	const char *text;
	char *subject;		/* a measure or the name of a counter; with '/' and the name of a task, a
				 * function and so on behind it, if not the total is meant; owned */
	bool falls;
	double limit;		/* 0.02: more than 2 % above */
	double level;		/* 0.95; 0: that of the differences */
};

/* Returns CLI_OK, or CLI_IMPOSSIBLE after a message. */
int diff_condition_parse(struct diff_condition *condition, const char *text);
void diff_condition_release(struct diff_condition *condition);

/*
 * Whether @condition holds, with @level unless it has its own: then *@row is of what. Returns
 * CLI_IMPOSSIBLE after a message if @diff can't say.
 */
int diff_condition_check(const struct diff_condition *condition, const struct kb_diff *diff,
			 double level, bool *holds, const struct kb_diff_row **row);

#endif
