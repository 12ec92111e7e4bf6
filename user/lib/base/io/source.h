/* SPDX-License-Identifier: MIT */
/*
 * base/io/: bytes from and to files: sources and streams for decoders (source.h, in.h), the output
 * of encoders (out.c), writing in the background (behind.h), and files that are made where no link
 * leads (create.h).
 *
 * The bytes of a decoder: memory, a file in a sliding map, or a pipe or scattered pages in a buffer. Only one
 * window of the input is in memory, however long the input is. A decoder requests the bytes at
 * an offset and gets a pointer that holds until the next request.
 */
#ifndef KB_LIB_BASE_IO_SOURCE_H
#define KB_LIB_BASE_IO_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/error.h>

#define KB_SOURCE_WINDOW	((size_t)4 << 20)	/* bytes; the default */
#define KB_SOURCE_WANT_MAX	((size_t)32 << 20)	/* largest request */
#define KB_SOURCE_SIZE_UNKNOWN	UINT64_MAX

enum kb_source_kind {
	KB_SOURCE_MEMORY,
	KB_SOURCE_FILE,
	KB_SOURCE_STREAM,
	KB_SOURCE_PAGES,
};

/* Copies @bytes at @offset, which are inside. Returns 0 or a negative errno. */
typedef int kb_source_read(void *pages, uint64_t offset, void *to, size_t bytes, struct kb_error *err);

struct kb_source {
	enum kb_source_kind kind;
	int fd;			/* -1: none */
	bool close_fd;
	char *name;		/* name for error texts */
	uint64_t size;		/* of a stream: unknown until its end is read */
	uint64_t base;		/* offset of the input's start in the file */
	size_t window_bytes;

	/* The bytes in memory: @length bytes, the first one at @offset of the input. */
	const uint8_t *window;
	uint64_t offset;
	size_t length;

	void *map;		/* the window of a file, page aligned */
	size_t map_bytes;
	uint8_t *buffer;	/* the window of a stream, or of pages */
	size_t room;

	kb_source_read *read;	/* of pages */
	void *pages;
};

/* @path "-" is standard input. */
int kb_source_open(struct kb_source *source, const char *path, struct kb_error *err);
int kb_source_open_memory(struct kb_source *source, const void *data, size_t size,
			  struct kb_error *err);
/* @size bytes that @read copies from @pages, which the caller keeps. */
int kb_source_open_pages(struct kb_source *source, const char *name, uint64_t size, kb_source_read *read,
			 void *pages, struct kb_error *err);
void kb_source_close(struct kb_source *source);

/*
 * Get the bytes from @offset on: at least @want (<= KB_SOURCE_WANT_MAX), fewer only at the end
 * of the input. Sets *@got to their number. NULL: no bytes, because of an error (a negative
 * errno in @err) or of the end (0 in @err->code). -ESPIPE: a stream can't go back behind its
 * window.
 */
const uint8_t *kb_source_at(struct kb_source *source, uint64_t offset, size_t want, size_t *got,
			    struct kb_error *err);

/*
 * Use windows of @bytes from now on. Earlier pointers are invalid. The memory of a file's
 * window is given back, and that of pages.
 */
void kb_source_set_window(struct kb_source *source, size_t bytes);

/*
 * Allow going back in a stream: everything from the window on goes to a temporary file without
 * a name. Other inputs allow it already.
 */
int kb_source_spool(struct kb_source *source, struct kb_error *err);

#endif
