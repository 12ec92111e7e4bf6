/* SPDX-License-Identifier: MIT */
/*
 * cli/query/: kbarman query: a shell for questions in SQL, and answers as text.
 *
 * Questions and commands of a user, as in SQLite's shell.
 */
#ifndef KB_CLI_QUERY_SHELL_H
#define KB_CLI_QUERY_SHELL_H

#include "cli/base/cli.h"
#include "cli/query/print.h"
#include "query/query.h"

struct query_shell {
	struct kb_query *query;
	struct query_format format;
	bool headers_set, mode_set;	/* by the user */
	char *separator, *nothing;	/* those of `format`, if they were set; NULL: not */
	FILE *out;			/* stdout, or the file of .output: */
	struct cli_output file;		/* ... path NULL: none */
	bool may_write;			/* .output may make files */
	bool timer;
	bool quit;
	unsigned int depth;		/* of .read */
};

/* Run @text: statements, or one command that begins with a dot. Returns an exit status. */
int query_shell_run(struct query_shell *shell, const char *text);

/* Run all of @in; with @prompt, ask for each line. Returns the exit status of the last one. */
int query_shell_loop(struct query_shell *shell, FILE *in, bool prompt);

/* Ends the output. Returns an exit status. */
int query_shell_close(struct query_shell *shell);

#endif
