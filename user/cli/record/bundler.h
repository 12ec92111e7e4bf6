/* SPDX-License-Identifier: MIT */
/*
 * Saves the symbols of captures that are written while a recording goes on. Reading the files takes
 * longer than a recorder may look away, and later the programs may be gone. So `kbarman bundle` does it,
 * in a process of its own for each capture.
 */
#ifndef KB_CLI_RECORD_BUNDLER_H
#define KB_CLI_RECORD_BUNDLER_H

#include <limits.h>
#include <sys/types.h>

#define BUNDLER_JOBS	4	/* at the same time */

struct bundler_job {
	pid_t pid;			/* 0: none */
	char path[PATH_MAX];		/* of the capture */
};

/* All zero, but for the priority: nothing is being saved. */
struct bundler {
	int nice;			/* of those processes */
	struct bundler_job jobs[BUNDLER_JOBS];
};

/* Begins to save the symbols of the capture @path, if that is a file. */
void bundler_begin(struct bundler *bundler, const char *path);

/* Waits until all that has begun is saved. */
void bundler_wait(struct bundler *bundler);

#endif
