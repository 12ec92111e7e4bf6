// SPDX-License-Identifier: MIT
/*
 * The bytes of a decoder; see source.h. A file is mapped in chunks instead of being read into a
 * buffer: this saves the copy, which takes as long as decoding. Each chunk is cut to the size
 * that the file has at that moment. If a file is truncated while it is read, a crash is
 * possible nevertheless.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/source.h"
#include "base/io/temporary.h"

static int source_error(struct kb_source *source, struct kb_error *err, int code, uint64_t offset,
			const char *what)
{
	return kb_error_set(err, code, offset, "%s: %s: %s", source->name, what, strerror(-code));
}

static int source_init(struct kb_source *source, const char *name, struct kb_error *err)
{
	memset(source, 0, sizeof(*source));
	source->fd = -1;
	source->window_bytes = KB_SOURCE_WINDOW;
	source->name = strdup(name);
	if (!source->name)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "%s: out of memory", name);
	return 0;
}

int kb_source_open_memory(struct kb_source *source, const void *data, size_t size,
			  struct kb_error *err)
{
	int ret = source_init(source, "memory", err);

	if (ret)
		return ret;
	source->kind = KB_SOURCE_MEMORY;
	source->size = size;
	source->window = data;
	source->length = size;
	return 0;
}

int kb_source_open_pages(struct kb_source *source, const char *name, uint64_t size, kb_source_read *read,
			 void *pages, struct kb_error *err)
{
	int ret = source_init(source, name, err);

	source->kind = KB_SOURCE_PAGES;
	source->size = size;
	source->read = read;
	source->pages = pages;
	return ret;
}

int kb_source_open(struct kb_source *source, const char *path, struct kb_error *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	struct stat st;
	off_t here = 0;
	int ret;

	ret = source_init(source, is_stdin ? "standard input" : path, err);
	if (ret)
		return ret;
	source->close_fd = !is_stdin;
	source->fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (source->fd < 0 || fstat(source->fd, &st)) {
		ret = kb_error_set(err, -errno, KB_NO_OFFSET, "can't open %s: %s", source->name,
				   strerror(errno));
		goto err_source;
	}
	if (S_ISDIR(st.st_mode)) {
		ret = kb_error_set(err, -EISDIR, KB_NO_OFFSET, "can't read %s: it is a directory",
				   source->name);
		goto err_source;
	}
	source->kind = KB_SOURCE_STREAM;
	source->size = KB_SOURCE_SIZE_UNKNOWN;
	/* Files of /proc have size 0 and are read like a pipe. */
	if (S_ISREG(st.st_mode) && st.st_size > 0)
		here = lseek(source->fd, 0, SEEK_CUR);
	if (S_ISREG(st.st_mode) && st.st_size > 0 && here >= 0) {
		source->kind = KB_SOURCE_FILE;
		source->base = here;
		source->size = st.st_size > here ? st.st_size - here : 0;
	}
	return 0;

err_source:
	kb_source_close(source);
	return ret;
}

void kb_source_close(struct kb_source *source)
{
	if (source->map)
		munmap(source->map, source->map_bytes);
	if (source->close_fd && source->fd >= 0)
		close(source->fd);
	free(source->buffer);
	free(source->name);
	memset(source, 0, sizeof(*source));
	source->fd = -1;
}

/* Move the map to @offset. The window is empty if the file ends before @offset. */
static int file_fill(struct kb_source *source, uint64_t offset, size_t want, struct kb_error *err)
{
	uint64_t page = sysconf(_SC_PAGESIZE);
	uint64_t start = (source->base + offset) & ~(page - 1);
	uint64_t skip = source->base + offset - start;
	uint64_t end;
	struct stat st;
	void *map;

	if (source->map)
		munmap(source->map, source->map_bytes);
	source->map = NULL;
	source->window = NULL;
	source->offset = offset;
	source->length = 0;
	if (fstat(source->fd, &st))
		return source_error(source, err, -errno, offset, "can't read");
	end = st.st_size > 0 ? st.st_size : 0;
	if (end < source->base + source->size)
		source->size = end > source->base ? end - source->base : 0;
	if (offset >= source->size)
		return 0;

	end = source->window_bytes > want ? source->window_bytes : want;
	source->map_bytes = end + skip;
	if (source->map_bytes > source->base + source->size - start)
		source->map_bytes = source->base + source->size - start;
	map = mmap(NULL, source->map_bytes, PROT_READ, MAP_PRIVATE, source->fd, start);
	if (map == MAP_FAILED)
		return source_error(source, err, -errno, offset, "can't map");
	madvise(map, source->map_bytes, MADV_SEQUENTIAL);
	source->map = map;
	source->window = (const uint8_t *)map + skip;
	source->length = source->map_bytes - skip;
	return 0;
}

/* Room in the buffer for @want bytes, and for the window. */
static int buffer_room(struct kb_source *source, size_t want)
{
	size_t room = source->window_bytes > want ? source->window_bytes : want;
	uint8_t *buffer;

	if (room <= source->room)
		return 0;
	buffer = realloc(source->buffer, room);
	if (!buffer)
		return -ENOMEM;
	source->buffer = buffer;
	source->room = room;
	source->window = buffer;
	return 0;
}

/* Append the result of one read() to the buffer; 0 at the end of the stream. */
static ssize_t stream_read(struct kb_source *source)
{
	ssize_t n;

	do {
		n = read(source->fd, source->buffer + source->length,
			 source->room - source->length);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	source->length += n;
	if (n == 0)
		source->size = source->offset + source->length;
	return n;
}

/* Move the buffer to @offset and fill it with at least @want bytes. */
static int stream_fill(struct kb_source *source, uint64_t offset, size_t want,
		       struct kb_error *err)
{
	ssize_t n = buffer_room(source, want);

	if (n)
		return source_error(source, err, n, offset, "can't read");
	if (offset < source->offset)
		return source_error(source, err, -ESPIPE, offset, "the beginning of a pipe can't "
				    "be read again");
	/* Everything before @offset is dropped, even if it was not read yet. */
	for (;;) {
		uint64_t behind = offset - source->offset;
		size_t drop = behind < source->length ? behind : source->length;

		if (drop)
			memmove(source->buffer, source->buffer + drop, source->length - drop);
		source->length -= drop;
		source->offset += drop;
		if (source->offset == offset && source->length >= want)
			return 0;
		if (source->size != KB_SOURCE_SIZE_UNKNOWN)
			return 0;
		n = stream_read(source);
		if (n < 0)
			return source_error(source, err, n, source->offset, "can't read");
	}
}

static int pages_fill(struct kb_source *source, uint64_t offset, size_t want, struct kb_error *err)
{
	int ret = buffer_room(source, want);

	if (ret)
		return source_error(source, err, ret, offset, "can't read");
	source->offset = offset;
	source->length = 0;
	if (offset >= source->size)
		return 0;
	want = source->window_bytes > want ? source->window_bytes : want;
	if (want > source->size - offset)
		want = source->size - offset;
	ret = source->read(source->pages, offset, source->buffer, want, err);
	if (!ret)
		source->length = want;
	return ret;
}

const uint8_t *kb_source_at(struct kb_source *source, uint64_t offset, size_t want, size_t *got,
			    struct kb_error *err)
{
	uint64_t inside = offset - source->offset;
	int ret = 0;

	if (err)
		err->code = 0;
	*got = 0;
	if (offset < source->offset || inside > source->length ||
	    source->length - inside < want) {
		if (source->kind == KB_SOURCE_FILE)
			ret = file_fill(source, offset, want, err);
		else if (source->kind == KB_SOURCE_STREAM)
			ret = stream_fill(source, offset, want, err);
		else if (source->kind == KB_SOURCE_PAGES)
			ret = pages_fill(source, offset, want, err);
		if (ret)
			return NULL;
		inside = offset - source->offset;
		if (offset < source->offset || inside > source->length)
			return NULL;
	}
	*got = source->length - inside;
	return *got ? source->window + inside : NULL;
}

void kb_source_set_window(struct kb_source *source, size_t bytes)
{
	source->window_bytes = bytes;
	if (source->kind != KB_SOURCE_FILE && source->kind != KB_SOURCE_PAGES)
		return;
	if (source->map)
		munmap(source->map, source->map_bytes);
	free(source->buffer);
	source->map = NULL;
	source->buffer = NULL;
	source->room = 0;
	source->window = NULL;
	source->length = 0;
}

static int write_at(int fd, const uint8_t *data, size_t length, uint64_t offset)
{
	while (length) {
		ssize_t n = pwrite(fd, data, length, offset);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			data += n;
			length -= n;
			offset += n;
		}
	}
	return 0;
}

int kb_source_spool(struct kb_source *source, struct kb_error *err)
{
	int fd, ret;

	if (source->kind != KB_SOURCE_STREAM)
		return 0;
	ret = buffer_room(source, source->window_bytes);
	if (ret)
		return source_error(source, err, ret, source->offset, "can't read");
	fd = kb_temporary_file();
	if (fd < 0)
		return source_error(source, err, fd, KB_NO_OFFSET,
				    "can't make a temporary file, set TMPDIR");
	/* Offsets stay the same: the part that is no longer there becomes a hole. */
	for (;;) {
		ret = write_at(fd, source->buffer, source->length, source->offset);
		if (ret) {
			close(fd);
			return source_error(source, err, ret, KB_NO_OFFSET,
					    "can't write a temporary file, set TMPDIR");
		}
		source->offset += source->length;
		source->length = 0;
		if (source->size != KB_SOURCE_SIZE_UNKNOWN)
			break;
		ret = stream_read(source);
		if (ret < 0) {
			close(fd);
			return source_error(source, err, ret, source->offset, "can't read");
		}
	}
	if (source->close_fd)
		close(source->fd);
	free(source->buffer);
	source->buffer = NULL;
	source->room = 0;
	source->window = NULL;
	source->kind = KB_SOURCE_FILE;
	source->fd = fd;
	source->close_fd = true;
	source->base = 0;
	return 0;
}
