/* SPDX-License-Identifier: MIT */
/*
 * An output that is a directory of files. It has a temporary name until cli_directory_commit()
 * renames it; cli_directory_abandon() removes it.
 */
#ifndef KB_CLI_BASE_DIRECTORY_H
#define KB_CLI_BASE_DIRECTORY_H

struct cli_directory {
	char *path;
	char *temporary;	/* where to write */
};

/* Returns 0, or an exit status after a message, also if @path exists already. */
int cli_directory_open(struct cli_directory *directory, const char *path);
int cli_directory_commit(struct cli_directory *directory);
void cli_directory_abandon(struct cli_directory *directory);

#endif
