// SPDX-License-Identifier: MIT
/* See sides.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io/whole.h"
#include "cli/base/cli.h"
#include "cli/base/sides.h"
#include "export/arm/annotate_side.h"
#include "sym/files/regular.h"
#include "sym/symbolizer/bundle.h"

static const char *const suffixes[] = { SIDE_KALLSYMS, KB_BUNDLE_SUFFIX, ANNOTATE_SIDE_SUFFIX };

#define NR_SUFFIXES	(ARRAY_SIZE(suffixes))

void side_remove(const char *capture, const char *suffix)
{
	char *path;

	if (asprintf(&path, "%s%s", capture, suffix) < 0)
		return;
	if (unlink(path) && errno != ENOENT)
		cli_warn("%s belongs to another capture and can't be removed: %s", path,
			 strerror(errno));
	free(path);
}

void sides_remove(const char *capture)
{
	for (size_t i = 0; i < NR_SUFFIXES; i++)
		side_remove(capture, suffixes[i]);
}

static uint64_t bytes_of(const char *capture, const char *suffix)
{
	struct stat st;
	uint64_t bytes = 0;
	char *path;

	if (asprintf(&path, "%s%s", capture, suffix) < 0)
		return 0;
	if (!lstat(path, &st) && st.st_nlink == 1)
		bytes = (uint64_t)st.st_blocks * 512;
	free(path);
	return bytes;
}

uint64_t sides_bytes(const char *capture)
{
	uint64_t bytes = bytes_of(capture, "");

	for (size_t i = 0; i < NR_SUFFIXES; i++)
		bytes += bytes_of(capture, suffixes[i]);
	return bytes;
}

/* A FIFO may have no writer, and a device no end. */
static void copy(const char *source, const char *path)
{
	int fd = kb_open_regular(source, 0);
	struct cli_output out;
	char piece[65536];
	ssize_t length;

	if (fd < 0) {
		if (fd != -ENOENT)
			cli_warn("can't read %s: %s: its content will be missing", source, strerror(-fd));
		return;
	}
	if (!cli_output_open_private(&out, path)) {
		while ((length = kb_read_whole(fd, piece, sizeof(piece))) > 0)
			fwrite(piece, 1, (size_t)length, out.stream);
		if (length < 0) {
			cli_warn("can't read %s: its content will be missing", source);
			cli_output_abandon(&out);
		} else {
			cli_output_commit(&out);
		}
	}
	close(fd);
}

void sides_copy(const char *from, const char *to)
{
	for (size_t i = 0; i < NR_SUFFIXES; i++) {
		char *source = NULL, *path = NULL;

		side_remove(to, suffixes[i]);
		if (asprintf(&source, "%s%s", from, suffixes[i]) < 0)
			source = NULL;
		if (asprintf(&path, "%s%s", to, suffixes[i]) < 0)
			path = NULL;
		if (source && path)
			copy(source, path);
		free(source);
		free(path);
	}
}
