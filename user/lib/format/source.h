/* SPDX-License-Identifier: MIT */
/*
 * Where a decoder's bytes come from: memory, a file seen through a sliding map, or
 * a pipe seen through a buffer. However long the input is, only one window of it
 * is in memory. A decoder asks for the bytes at an offset and gets a pointer that
 * holds until it asks again.
 */
#ifndef KBARMAN_SOURCE_H
#define KBARMAN_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/error.h>

#define KB_SOURCE_WINDOW	((size_t)4 << 20)	/* bytes, unless set otherwise */
#define KB_SOURCE_WANT_MAX	((size_t)32 << 20)	/* the most that can be asked for */
#define KB_SOURCE_SIZE_UNKNOWN	UINT64_MAX

enum kb_source_kind {
	KB_SOURCE_MEMORY,
	KB_SOURCE_FILE,
	KB_SOURCE_STREAM,
};

struct kb_source {
	enum kb_source_kind kind;
	int fd;			/* -1: none */
	bool close_fd;
	char *name;		/* as messages say it */
	uint64_t size;		/* a stream's is unknown until its end is seen */
	uint64_t base;		/* in the file: where the input starts */
	size_t window_bytes;

	/* What is in memory: @length bytes, the first one at @offset of the input. */
	const uint8_t *window;
	uint64_t offset;
	size_t length;

	void *map;		/* the window of a file, page aligned */
	size_t map_bytes;
	uint8_t *buffer;	/* the window of a stream */
	size_t room;
};

/* @path "-" is standard input. */
int kb_source_open(struct kb_source *source, const char *path, struct kb_error *err);
int kb_source_open_memory(struct kb_source *source, const void *data, size_t size,
			  struct kb_error *err);
void kb_source_close(struct kb_source *source);

/*
 * The bytes from @offset on: at least @want (<= KB_SOURCE_WANT_MAX) of them, fewer
 * only where the input ends. Sets *@got to how many there are, and gives NULL if
 * there is none because of an error (a negative errno in @err) or of the end (0 in
 * @err->code). A stream can't go back behind the window: -ESPIPE.
 */
const uint8_t *kb_source_at(struct kb_source *source, uint64_t offset, size_t want, size_t *got,
			    struct kb_error *err);

/*
 * Windows of @bytes from now on. No pointer holds behind it; what a file's window
 * had in memory is given back.
 */
void kb_source_set_window(struct kb_source *source, size_t bytes);

/*
 * Make a stream one that can go back: all of it from the window on goes to a
 * temporary file without a name. Others are so already.
 */
int kb_source_spool(struct kb_source *source, struct kb_error *err);

#endif
