/* SPDX-License-Identifier: MIT */
/*
 * cli/: the tool: main.c has the table of verbs. A verb of up to three files is here, a larger one
 * in a folder of its own, and what all share in cli/base/.
 *
 * kbarman merge --machines: captures of several machines become one trace on one clock.
 */
#ifndef KBARMAN_CLI_MERGE_MACHINES_H
#define KBARMAN_CLI_MERGE_MACHINES_H

#include <stdbool.h>

#include <kbarman/symbol.h>

struct merge_machines {
	const char *const *paths;
	unsigned int count;
	const char *output;
	const char *to;			/* the format; NULL: by the name of the output */
	bool json;			/* say in JSON how exact the clocks are */
	struct kb_symbol_options symbols;
};

/* Returns an exit status. */
int merge_machines(const struct merge_machines *how);

#endif
