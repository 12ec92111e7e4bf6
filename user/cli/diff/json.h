/* SPDX-License-Identifier: MIT */
/*
 * cli/diff/: kbarman diff: its options, conditions of --fail-if, and JSON.
 *
 * What `kbarman diff --json` prints.
 */
#ifndef KB_CLI_DIFF_JSON_H
#define KB_CLI_DIFF_JSON_H

#include <kbarman/diff.h>

#include "cli/diff/conditions.h"

/*
 * Prints @diff to standard output; @only: what was chosen of the captures, NULL: all. Returns 0, or
 * the negative errno of a write error.
 */
int diff_print_json(const struct kb_diff *diff, double level, const char *only);

/* The same of one of the conditions, behind that. */
int diff_print_condition(const struct diff_condition *condition, bool holds,
			 const struct kb_diff_row *row);

#endif
