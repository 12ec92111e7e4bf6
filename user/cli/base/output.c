// SPDX-License-Identifier: MIT
/* Output files: only this file gives them their final names. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io/create.h"
#include "cli/base/cli.h"

/*
 * The temporary files that exist now, for the exit and signal paths. A verb has only a few
 * outputs.
 */
static char *volatile temporaries[8];

void cli_output_remove_all(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(temporaries); i++) {
		if (temporaries[i])
			unlink(temporaries[i]);
	}
}

static void remove_and_die(int number)
{
	cli_output_remove_all();
	signal(number, SIG_DFL);
	raise(number);
}

static const int deadly[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ };

bool cli_output_remember(char *temporary)
{
	static bool prepared;

	if (!prepared) {
		atexit(cli_output_remove_all);
		for (size_t i = 0; i < ARRAY_SIZE(deadly); i++) {
			struct sigaction old;

			/* A verb that handles the signal itself ends with exit(). */
			if (sigaction(deadly[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
				signal(deadly[i], remove_and_die);
		}
		prepared = true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(temporaries); i++) {
		if (!temporaries[i]) {
			temporaries[i] = temporary;
			return true;
		}
	}
	return false;
}

static void forget(const char *temporary)
{
	for (size_t i = 0; i < ARRAY_SIZE(temporaries); i++) {
		if (temporaries[i] == temporary)
			temporaries[i] = NULL;
	}
}

static void output_free(struct cli_output *out)
{
	free(out->path);
	free(out->final);
	free(out->temporary);
	memset(out, 0, sizeof(*out));
	out->fd = -1;
}

/* The permissions that a file has that is made with @mode. */
static mode_t without_mask(mode_t mode)
{
	mode_t mask = umask(0);

	umask(mask);
	return mode & ~mask;
}

/* Makes @temporary, whose end gets another name. No signal comes before it is remembered. */
static int make_temporary(char *temporary)
{
	sigset_t blocked, old;
	int fd;

	sigemptyset(&blocked);
	for (size_t i = 0; i < ARRAY_SIZE(deadly); i++)
		sigaddset(&blocked, deadly[i]);
	sigprocmask(SIG_BLOCK, &blocked, &old);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0) {
		fd = -errno;
	} else if (!cli_output_remember(temporary)) {
		close(fd);
		unlink(temporary);
		fd = -EMFILE;
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	return fd;
}

static int open_temporary(struct cli_output *out, const struct stat *existing, bool private)
{
	mode_t mode;

	/* Follows a link: the target of the link is replaced, not the link. */
	out->final = existing ? realpath(out->path, NULL) : strdup(out->path);
	if (!out->final || asprintf(&out->temporary, "%s.XXXXXX", out->final) < 0)
		return -ENOMEM;
	out->fd = make_temporary(out->temporary);
	if (out->fd < 0)
		return out->fd;
	mode = existing ? existing->st_mode & (private ? 0770 : 0777) :
			  without_mask(private ? KB_CREATE_PRIVATE : 0666);
	/* Ignores errors: on a file system without modes the output is good all the same. */
	if (fchmod(out->fd, mode))
		errno = 0;
	out->regular = true;
	return 0;
}

static bool confined;

void cli_output_confined(void)
{
	confined = true;
}

/* Landlock's refusals look like those of the file's owner. */
static const char *refused_by(int ret)
{
	return ret == -EACCES && confined ?
	       "; if you may write there, the sandbox does not know this file system: try "
	       "--no-sandbox" : "";
}

static int open_output(struct cli_output *out, const char *path, bool private)
{
	bool is_stdout = strcmp(path, "-") == 0;
	struct stat st;
	int ret = 0;

	memset(out, 0, sizeof(*out));
	out->fd = -1;
	out->path = strdup(is_stdout ? "standard output" : path);
	if (!out->path)
		return cli_fail("out of memory");

	if (is_stdout) {
		out->stream = stdout;
		out->fd = STDOUT_FILENO;
		if (fstat(out->fd, &st) == 0)
			out->regular = S_ISREG(st.st_mode);
		return 0;
	}
	if (stat(path, &st)) {
		ret = errno == ENOENT ? open_temporary(out, NULL, private) : -errno;
	} else if (S_ISREG(st.st_mode)) {
		/* A rename over the file would replace it in spite of its write protection. */
		ret = access(path, W_OK) ? -errno : open_temporary(out, &st, private);
	} else {
		out->fd = open(path, O_WRONLY | O_CLOEXEC);
		ret = out->fd < 0 ? -errno : 0;
	}
	if (ret == 0) {
		out->stream = fdopen(out->fd, "w");
		if (!out->stream)
			ret = -errno;
	}
	if (ret) {
		cli_warn("can't write %s: %s%s", path, strerror(-ret), refused_by(ret));
		cli_output_abandon(out);
		return CLI_IMPOSSIBLE;
	}
	return 0;
}

int cli_output_open(struct cli_output *out, const char *path)
{
	return open_output(out, path, false);
}

int cli_output_open_private(struct cli_output *out, const char *path)
{
	return open_output(out, path, true);
}

int cli_output_commit(struct cli_output *out)
{
	int error = 0;

	if (!out->path)
		return 0;
	if (fflush(out->stream) || ferror(out->stream))
		error = errno ? errno : EIO;
	if (out->stream != stdout && fclose(out->stream) && !error)
		error = errno;
	out->stream = NULL;
	out->fd = -1;
	if (!error && out->temporary && rename(out->temporary, out->final))
		error = errno;
	if (error) {
		cli_warn("can't write %s: %s", out->path, strerror(error));
		cli_output_abandon(out);
		return CLI_IMPOSSIBLE;
	}
	if (out->temporary)
		forget(out->temporary);
	output_free(out);
	return 0;
}

void cli_output_abandon(struct cli_output *out)
{
	if (out->stream && out->stream != stdout)
		fclose(out->stream);
	else if (out->fd > STDERR_FILENO)
		close(out->fd);
	if (out->temporary) {
		unlink(out->temporary);
		forget(out->temporary);
	}
	output_free(out);
}

char *cli_output_new(char *name)
{
	if (!name)
		cli_warn("out of memory");
	if (!name || access(name, F_OK))
		return name;
	cli_warn("%s exists already: give another name with -o OUT", name);
	free(name);
	return NULL;
}
