// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kbarman/trace.h>

#include "base/io/create.h"
#include "base/io/temporary.h"
#include "base/io/whole.h"
#include "cli/base/cli.h"
#include "cli/base/sides.h"
#include "cli/record/output.h"
#include "export/arm/annotate_side.h"
#include "sym/symbolizer/bundle.h"

#define COPY_BYTES	(256 << 10)

void record_output_init(struct record_output *out)
{
	memset(out, 0, sizeof(*out));
	out->fd = -1;
}

static int open_spool(struct record_output *out)
{
	out->fd = kb_temporary_file();
	if (out->fd < 0)
		return cli_fail("can't write a temporary file: %s; set TMPDIR to a folder with enough space",
				strerror(-out->fd));
	out->spooled = true;
	return 0;
}

/*
 * Opens and empties @path, unless another recorder has the file open: -EBUSY. That recorder may
 * have just renamed it. Returns a descriptor, or -errno.
 */
static int open_alone(const char *path)
{
	struct flock lock = { .l_type = F_WRLCK };
	struct stat opened, there;
	int fd = kb_create(AT_FDCWD, path, KB_CREATE_SAME, KB_CREATE_PRIVATE), error;

	if (fd < 0)
		return fd;
	/*
	 * The lock is that of the process: children that still have the descriptor when the recorder ends
	 * do not hold it. A file system without locks takes one recorder's word for it.
	 */
	if (fcntl(fd, F_SETLK, &lock) && (errno == EAGAIN || errno == EACCES))
		error = -EBUSY;
	else if (fstat(fd, &opened) || stat(path, &there) || opened.st_ino != there.st_ino ||
		 opened.st_dev != there.st_dev)
		error = -EBUSY;
	else
		error = ftruncate(fd, 0) ? -errno : 0;
	if (!error)
		return fd;
	close(fd);
	return error;
}

static int open_partial(struct record_output *out)
{
	if (asprintf(&out->partial, "%s.partial", out->final) < 0 ||
	    asprintf(&out->compact, "%s.compact", out->final) < 0 ||
	    asprintf(&out->side_final, "%s.kallsyms", out->final) < 0 ||
	    asprintf(&out->side_partial, "%s.kallsyms", out->partial) < 0)
		return cli_fail("out of memory");
	out->fd = open_alone(out->partial);
	if (out->fd < 0) {
		if (out->fd == -EBUSY)
			cli_fail("another recorder writes %s: choose another file (-o)", out->name);
		else
			cli_fail("can't write %s: %s", out->partial, strerror(-out->fd));
		out->fd = -1;
		free(out->partial);	/* this recorder must not remove the file */
		out->partial = NULL;
		return CLI_IMPOSSIBLE;
	}
	/* a killed recorder may have left this file */
	side_remove(out->partial, ANNOTATE_SIDE_SUFFIX);
	return 0;
}

int record_output_open(struct record_output *out, const char *path)
{
	struct stat st;

	if (!strcmp(path, "-")) {
		out->name = "standard output";
		if (isatty(STDOUT_FILENO))
			return cli_fail("won't write a capture to a terminal: send it to a file or pipe");
		return open_spool(out);
	}
	out->name = path;
	if (stat(path, &st)) {
		if (errno != ENOENT)
			return cli_fail("can't write %s: %s", path, strerror(errno));
		out->final = strdup(path);
		return out->final ? open_partial(out) : cli_fail("out of memory");
	}
	/* A rename over the file would replace it in spite of its write protection. */
	if (S_ISDIR(st.st_mode) || access(path, W_OK))
		return cli_fail("can't write %s: %s", path,
				S_ISDIR(st.st_mode) ? strerror(EISDIR) : strerror(errno));
	/* Follows a link: the target of the link is replaced, not the link. */
	out->final = realpath(path, NULL);
	if (!out->final)
		return cli_fail("can't write %s: %s", path, strerror(errno));
	return S_ISREG(st.st_mode) ? open_partial(out) : open_spool(out);
}

FILE *record_output_side(struct record_output *out)
{
	int fd;

	if (out->spooled)
		return NULL;
	fd = kb_create(AT_FDCWD, out->side_partial, KB_CREATE_NEW, KB_CREATE_PRIVATE);
	if (fd < 0) {
		cli_warn("kernel symbols will be missing: can't write %s: %s", out->side_partial,
			 strerror(-fd));
		return NULL;
	}
	out->side = fdopen(fd, "w");
	if (!out->side)
		close(fd);
	return out->side;
}

FILE *record_output_side_again(struct record_output *out)
{
	int fd = out->has_side ? kb_create(AT_FDCWD, out->side_partial, KB_CREATE_SAME, KB_CREATE_PRIVATE) : -1;

	if (fd < 0)
		return NULL;
	out->side = fdopen(fd, "a");
	if (!out->side)
		close(fd);
	return out->side;
}

void record_output_side_done(struct record_output *out, bool useful)
{
	bool broken;

	if (!out->side)
		return;
	broken = ferror(out->side);
	broken |= fclose(out->side) != 0;
	out->side = NULL;
	if (useful && broken)
		cli_warn("kernel symbols will be missing: can't write %s; check the free space",
			 out->side_partial);
	out->has_side = useful && !broken;
	if (!out->has_side)
		unlink(out->side_partial);
}

const char *record_output_name(const struct record_output *out)
{
	const char *slash = out->spooled ? NULL : strrchr(out->final, '/');

	return out->spooled ? NULL : slash ? slash + 1 : out->final;
}

uint64_t record_output_size(const struct record_output *out)
{
	struct stat st;

	return fstat(out->fd, &st) ? 0 : (uint64_t)st.st_size;
}

static int copy_spool(struct record_output *out)
{
	int fd = out->final ? open(out->final, O_WRONLY | O_CLOEXEC) : STDOUT_FILENO;
	char *buffer = malloc(COPY_BYTES);
	off_t at = 0;
	int ret = fd < 0 ? -errno : buffer ? 0 : -ENOMEM;

	while (!ret) {
		ssize_t length = pread(out->fd, buffer, COPY_BYTES, at);

		if (length <= 0) {
			ret = length ? -errno : 0;
			break;
		}
		ret = kb_write_whole(fd, buffer, (size_t)length);
		at += length;
	}
	free(buffer);
	if (out->final && fd >= 0 && close(fd) && !ret)
		ret = -errno;
	return ret;
}

int record_output_compact(struct record_output *out)
{
	int fd = out->spooled ? -1 : open_alone(out->compact);

	return fd < 0 ? -1 : fd;
}

void record_output_compact_done(struct record_output *out, int fd, bool whole)
{
	if (fd < 0)
		return;
	if (!whole) {
		close(fd);
		unlink(out->compact);
		return;
	}
	/* From here on the copy is the capture. Another recorder finds one of them locked. */
	if (rename(out->compact, out->partial))
		cli_warn("can't rename %s: %s", out->compact, strerror(errno));
	close(out->fd);
	out->fd = fd;
}

int record_output_commit(struct record_output *out)
{
	int ret;

	if (out->spooled) {
		ret = copy_spool(out);
		return ret ? cli_fail("can't write %s: %s", out->name, strerror(-ret)) : 0;
	}
	/* Renames the symbols first: if the capture has its final name, all files are complete. */
	if (out->has_side) {
		if (rename(out->side_partial, out->side_final))
			cli_warn("can't rename %s, kernel symbols stay there: %s",
				 out->side_partial, strerror(errno));
	} else {
		unlink(out->side_final);	/* that of a former capture of the same name */
	}
	side_remove(out->final, KB_BUNDLE_SUFFIX);
	side_remove(out->final, ANNOTATE_SIDE_SUFFIX);
	out->kept = true;
	if (rename(out->partial, out->final)) {
		cli_warn("can't rename %s, the capture stays there: %s", out->partial,
			 strerror(errno));
		return CLI_DAMAGED;
	}
	return 0;
}

void record_output_symbols(struct record_output *out)
{
	struct kb_error err;

	if (out->spooled)
		cli_note("%s has the capture alone: its names are found on this machine only, and as long "
			 "as its programs are there; for others record into a file", out->name);
	else if (kb_capture_save_symbols(out->final, NULL, NULL, NULL, &err) < 0)
		cli_warn("other machines will not find names for this capture: %s",
			 kb_error_text(&err));
}

bool record_output_keep(struct record_output *out)
{
	out->kept = out->partial != NULL;
	return out->kept;
}

void record_output_close(struct record_output *out)
{
	if (out->fd >= 0)
		close(out->fd);
	if (out->partial && !out->kept) {
		unlink(out->partial);
		if (out->has_side)
			unlink(out->side_partial);
	}
	free(out->final);
	free(out->partial);
	free(out->compact);
	free(out->side_final);
	free(out->side_partial);
	record_output_init(out);
}
