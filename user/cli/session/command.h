/* SPDX-License-Identifier: MIT */
/*
 * A command whose process exists before the command runs. It is forked at once and executed later,
 * so that it can be recorded from its first instruction on.
 */
#ifndef KB_CLI_SESSION_COMMAND_H
#define KB_CLI_SESSION_COMMAND_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct command {
	pid_t pid;		/* 0: there is no command */
	int go;			/* pipe: a byte starts the command, closing it ends the child */
	int failure;		/* pipe: the errno of a failed exec */
	bool ended;
	int status;		/* that of waitpid(), once the command has ended */
};

/*
 * Forks. The child will run @argv with the signal mask @mask; with @to_stderr its standard output
 * goes to standard error. Returns 0 or a negative errno.
 */
int command_prepare(struct command *command, char **argv, const sigset_t *mask, bool to_stderr);

/* Starts the command. */
void command_release(struct command *command);

/* Has the command ended? Doesn't wait. */
bool command_has_ended(struct command *command);

/* After the end of the command: the errno if it could not be executed, else 0. */
int command_exec_error(const struct command *command);

/* After the end of the command: its exit status as a shell reports it. */
int command_exit_status(const struct command *command);

/* A command that was not released will not run. */
void command_close(struct command *command);

#endif
