// SPDX-License-Identifier: MIT
/*
 * The table of the formats that are recognised by content, and the function that reads the first
 * bytes of a file. Standard input can be read from its beginning afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/io/whole.h"
#include "cli/base/cli.h"
#include "cli/dump/formats.h"

static const struct cli_format formats[] = {
	{ "Barman capture", probe_barman, dump_barman, check_barman },
	{ "Annotate stream", probe_annotate, dump_annotate, check_annotate },
#ifndef KBARMAN_WITHOUT_heph
	{ "Heph trace", probe_heph, dump_heph, check_heph },
#endif
#ifndef KBARMAN_WITHOUT_tptp
	{ "TPTP trace", probe_tptp, dump_tptp, check_tptp },
#endif
	{ 0 },
};

const struct cli_format *cli_formats(void)
{
	return formats;
}

/*
 * Puts @start back in front of standard input: standard input becomes a pipe, and a child writes
 * @start and then the rest of the input to it. The child ends at the end of its input, or when the
 * pipe has no reader.
 */
static int unread(const uint8_t *start, size_t length)
{
	pid_t child, parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	child = fork();
	if (child < 0) {
		int error = -errno;

		close(ends[0]);
		close(ends[1]);
		return error;
	}
	if (child == 0) {
		static uint8_t piece[64 << 10];
		ssize_t n = length;

		close(ends[0]);
		/*
		 * The reader of the tool's output must not wait for this child, which writes none.
		 */
		close(STDOUT_FILENO);
		signal(SIGPIPE, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(0);
		memcpy(piece, start, length);
		/* Passes input on at once: a user may watch the output. */
		while ((n > 0 && !kb_write_whole(ends[1], piece, (size_t)n)) ||
		       (n < 0 && errno == EINTR))
			n = read(STDIN_FILENO, piece, sizeof(piece));
		_exit(0);
	}
	close(ends[1]);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	return 0;
}

/* Reads the first bytes of the file at *@path, which can be read again afterwards. */
static ssize_t peek(const char **path, uint8_t *start)
{
	bool is_stdin = strcmp(*path, "-") == 0;
	ssize_t got;
	off_t here;
	int fd, ret;

	fd = is_stdin ? STDIN_FILENO : open(*path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	here = lseek(fd, 0, SEEK_CUR);
	got = kb_read_whole(fd, start, FORMAT_PROBE_BYTES);
	if (here >= 0 && is_stdin)
		lseek(fd, here, SEEK_SET);
	if (!is_stdin) {
		/* A named pipe can't be opened twice either. */
		if (here < 0 && dup2(fd, STDIN_FILENO) >= 0)
			*path = "-";
		close(fd);
	}
	if (got < 0 || here >= 0)
		return got;
	ret = unread(start, got);
	return ret ? ret : got;
}

const struct cli_format *cli_format_of(const char **path)
{
	static uint8_t start[FORMAT_PROBE_BYTES];
	ssize_t got = peek(path, start);
	const char *name = strcmp(*path, "-") ? *path : "standard input";

	if (got < 0) {
		cli_warn("can't read %s: %s", name, strerror(-got));
		return NULL;
	}
	for (const struct cli_format *format = formats; format->name; format++) {
		if (format->probe(start, got))
			return format;
	}
	cli_warn("%s %s", name, got ? "has a format that kbarman does not know" : "is empty");
	return NULL;
}
