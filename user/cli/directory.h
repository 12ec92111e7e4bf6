/* SPDX-License-Identifier: MIT */
/*
 * An output that is a directory of files: it has a temporary name until
 * cli_directory_commit() gives it its own, and is gone after cli_directory_abandon().
 */
#ifndef KB_CLI_DIRECTORY_H
#define KB_CLI_DIRECTORY_H

struct cli_directory {
	char *path;
	char *temporary;	/* where to write */
};

/* 0, or an exit status with the message printed: also if there is something at @path. */
int cli_directory_open(struct cli_directory *directory, const char *path);
int cli_directory_commit(struct cli_directory *directory);
void cli_directory_abandon(struct cli_directory *directory);

#endif
