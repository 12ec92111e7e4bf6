// SPDX-License-Identifier: MIT
/*
 * The sliding window. It is filled with large read() calls, so resident memory is the window; a
 * mapped file would count with all its pages.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/in.h"

#define WINDOW_BYTES	(256u << 10)

int kb_in_open(struct kb_in *in, const char *path, struct kb_error *err)
{
	bool standard = strcmp(path, "-") == 0;

	memset(in, 0, sizeof(*in));
	in->fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (in->fd < 0)
		return kb_error_set(err, -errno, KB_NO_OFFSET, "can't open %s: %s", path,
				    strerror(errno));
	in->owned = !standard;
	in->size = WINDOW_BYTES;
	in->window = malloc(in->size);
	in->name = strdup(standard ? "standard input" : path);
	if (!in->window || !in->name) {
		kb_in_close(in);
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "%s: out of memory", path);
	}
	in->at = in->end = in->window;
	return 0;
}

int kb_in_error(const struct kb_in *in, struct kb_error *err)
{
	return kb_error_set(err, in->error, kb_in_offset(in), "can't read %s: %s",
			    kb_in_name(in), strerror(-in->error));
}

void kb_in_memory(struct kb_in *in, const void *data, size_t size)
{
	memset(in, 0, sizeof(*in));
	in->fd = -1;
	in->at = data;
	in->end = in->at + size;
	in->offset = size;
	in->ended = true;
}

void kb_in_close(struct kb_in *in)
{
	if (in->owned)
		close(in->fd);
	free(in->window);
	free(in->name);
	memset(in, 0, sizeof(*in));
	in->fd = -1;
	in->ended = true;
}

/* Move the unread bytes to the front of a window of at least @want bytes. */
static bool make_room(struct kb_in *in, size_t want)
{
	size_t left = (size_t)(in->end - in->at), size = in->size;
	uint8_t *window = in->window;

	memmove(window, in->at, left);
	in->at = window;
	in->end = window + left;
	if (want <= size)
		return true;
	while (size < want) {
		if (size > SIZE_MAX / 2)
			return false;
		size *= 2;
	}
	window = realloc(window, size);
	if (!window)
		return false;
	in->window = window;
	in->size = size;
	in->at = window;
	in->end = window + left;
	return true;
}

size_t kb_in_want_slow(struct kb_in *in, size_t want)
{
	if (!in->ended && !make_room(in, want)) {
		in->error = -ENOMEM;
		in->ended = true;
	}
	while (!in->ended && (size_t)(in->end - in->at) < want) {
		size_t have = (size_t)(in->end - in->window);
		ssize_t n = read(in->fd, in->window + have, in->size - have);

		if (n > 0) {
			in->end += n;
			in->offset += (uint64_t)n;
		} else if (n == 0 || errno != EINTR) {
			in->error = n == 0 ? 0 : -errno;
			in->ended = true;
		}
	}
	return (size_t)(in->end - in->at);
}

uint64_t kb_in_skip(struct kb_in *in, uint64_t count)
{
	uint64_t left = count;

	while (left) {
		size_t there = kb_in_want(in, 1);
		size_t step = there < left ? there : (size_t)left;

		if (!step)
			break;
		in->at += step;
		left -= step;
	}
	return count - left;
}
