/* SPDX-License-Identifier: MIT */
/*
 * A command that is there before it runs: forked at once, so that it can be
 * recorded from its first instruction on, and executed when told.
 */
#ifndef KBARMAN_CLI_COMMAND_H
#define KBARMAN_CLI_COMMAND_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct command {
	pid_t pid;		/* 0: there is none */
	int go;			/* a byte lets it run; closed: it goes away */
	int failure;		/* the errno of a failed exec comes out of it */
	bool ended;
	int status;		/* as of waitpid(), once it has ended */
};

/*
 * Fork; the child will have signal mask @mask and run @argv, with its standard
 * output on standard error if @to_stderr. 0 or negative errno.
 */
int command_prepare(struct command *command, char **argv, const sigset_t *mask, bool to_stderr);

/* Let it run. */
void command_release(struct command *command);

/* Has it ended? Doesn't wait. */
bool command_has_ended(struct command *command);

/* After its end: the errno if it could not be executed, else 0. */
int command_exec_error(const struct command *command);

/* After its end: what a shell would call its exit status. */
int command_exit_status(const struct command *command);

/* If it was not released, it will not run at all. */
void command_close(struct command *command);

#endif
