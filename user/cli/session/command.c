// SPDX-License-Identifier: MIT
/*
 * Two pipes connect parent and child. The child reads the first pipe before it executes the
 * command, and writes the errno of a failed exec to the second, which a successful exec closes. If
 * the parent dies, the first pipe ends without a byte, and the child exits without running the
 * command.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/session/command.h"

__attribute__((noreturn))
static void child(char **argv, const sigset_t *mask, bool to_stderr, int go, int failure)
{
	ssize_t length;
	int error;
	char byte;

	do {
		length = read(go, &byte, 1);
	} while (length < 0 && errno == EINTR);
	if (length != 1)
		_exit(0);
	if (to_stderr)
		dup2(STDERR_FILENO, STDOUT_FILENO);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	error = errno;
	length = write(failure, &error, sizeof(error));
	_exit(length == sizeof(error) && error != ENOENT ? 126 : 127);
}

int command_prepare(struct command *command, char **argv, const sigset_t *mask, bool to_stderr)
{
	int go[2], failure[2], error;

	memset(command, 0, sizeof(*command));
	command->go = command->failure = -1;
	if (pipe2(go, O_CLOEXEC))
		return -errno;
	if (pipe2(failure, O_CLOEXEC)) {
		error = -errno;
		goto err_go;
	}
	command->pid = fork();
	if (command->pid < 0) {
		error = -errno;
		command->pid = 0;
		goto err_failure;
	}
	if (!command->pid) {
		close(go[1]);
		close(failure[0]);
		child(argv, mask, to_stderr, go[0], failure[1]);
	}
	close(go[0]);
	close(failure[1]);
	command->go = go[1];
	command->failure = failure[0];
	return 0;

err_failure:
	close(failure[0]);
	close(failure[1]);
err_go:
	close(go[0]);
	close(go[1]);
	return error;
}

void command_release(struct command *command)
{
	ssize_t length;

	do {
		length = write(command->go, "", 1);
	} while (length < 0 && errno == EINTR);
	close(command->go);
	command->go = -1;
}

bool command_has_ended(struct command *command)
{
	if (command->pid && !command->ended)
		command->ended = waitpid(command->pid, &command->status, WNOHANG) == command->pid;
	return command->ended;
}

int command_exec_error(const struct command *command)
{
	int error;

	return read(command->failure, &error, sizeof(error)) == sizeof(error) ? error : 0;
}

int command_exit_status(const struct command *command)
{
	if (WIFSIGNALED(command->status))
		return 128 + WTERMSIG(command->status);
	return WEXITSTATUS(command->status);
}

void command_close(struct command *command)
{
	if (!command->pid)
		return;
	close(command->failure);
	if (command->go >= 0) {
		close(command->go);
		waitpid(command->pid, NULL, 0);
	}
	memset(command, 0, sizeof(*command));
}
