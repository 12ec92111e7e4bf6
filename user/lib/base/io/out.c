// SPDX-License-Identifier: MIT
/*
 * Buffered output for encoders. Memory use is one buffer, or the largest packet, or the whole
 * content of an output to memory; twice that where a helper writes. Bytes leave in order, complete
 * or with an error that is kept. One datagram is one packet.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/helper.h"
#include "base/io/out_packet.h"

#define BUFFER_BYTES	(128u << 10)
#define BEHIND_BYTES	(512u << 10)	/* of both buffers: a helper has to be woken for each */

static int write_fd(void *context, const void *data, size_t size)
{
	const struct kb_out *out = context;
	const uint8_t *at = data;

	while (size) {
		ssize_t done = out->socket ? send(out->fd, at, size, MSG_NOSIGNAL) :
					     write(out->fd, at, size);

		if (done >= 0) {
			at += done;
			size -= (size_t)done;
		} else if (errno == EAGAIN) {
			poll(&(struct pollfd){ .fd = out->fd, .events = POLLOUT }, 1, -1);
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

static int create(struct kb_out **out, kb_out_write write, void *context)
{
	struct kb_out *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->buffer = malloc(BUFFER_BYTES);
	if (!o->buffer) {
		free(o);
		return -ENOMEM;
	}
	o->at = o->buffer;
	o->end = o->buffer + BUFFER_BYTES;
	o->fd = -1;
	o->write = write;
	o->context = context;
	*out = o;
	return 0;
}

int kb_out_fd(struct kb_out **out, int fd)
{
	socklen_t length = sizeof(int);
	int error, type;

	error = create(out, write_fd, NULL);
	if (error)
		return error;
	(*out)->context = *out;
	(*out)->fd = fd;
	(*out)->socket = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0;
	(*out)->datagrams = (*out)->socket && (type == SOCK_DGRAM || type == SOCK_SEQPACKET);
	return 0;
}

int kb_out_memory(struct kb_out **out)
{
	return create(out, NULL, NULL);
}

int kb_out_function(struct kb_out **out, kb_out_write write, void *context)
{
	return create(out, write, context);
}

void kb_out_destroy(struct kb_out *out)
{
	if (!out)
		return;
	kb_helper_end(out->behind.helper);
	free(out->behind.buffer);
	free(out->buffer);
	free(out);
}

int kb_out_fail(struct kb_out *out, int error)
{
	if (!out->error) {
		out->error = error;
		out->end = out->at;
	}
	return out->error;
}

/* ---- writing behind ---- */

int kb_out_behind(struct kb_out *out)
{
	size_t used = (size_t)(out->at - out->buffer);
	uint8_t *buffer;

	if (!out->write || out->datagrams || out->behind.buffer)
		return 0;
	out->behind.buffer = malloc(BEHIND_BYTES);
	out->behind.room = BEHIND_BYTES;
	buffer = used < BEHIND_BYTES ? realloc(out->buffer, BEHIND_BYTES) : NULL;
	if (buffer) {
		out->buffer = buffer;
		out->at = buffer + used;
		out->end = buffer + BEHIND_BYTES;
	}
	if (!out->behind.buffer)
		return -ENOMEM;
	return kb_helper_start(&out->behind.helper);
}

static void write_behind(void *context)
{
	struct kb_out *out = context;

	out->behind.error = out->write(out->context, out->behind.buffer, out->behind.size);
}

/* Wait until the helper has written what it has. Returns its error. */
static int wait_behind(struct kb_out *out)
{
	if (out->behind.helper)
		kb_helper_wait(out->behind.helper);
	return out->behind.error;
}

/* The helper writes the buffer's @size bytes, and the caller goes on with the helper's buffer. */
static void give_behind(struct kb_out *out, size_t size)
{
	uint8_t *buffer = out->behind.buffer;
	size_t room = out->behind.room;

	out->behind.buffer = out->buffer;
	out->behind.room = (size_t)(out->end - out->buffer);
	out->behind.size = size;
	kb_helper_give(out->behind.helper, write_behind, out);
	out->buffer = buffer;
	out->end = buffer + room;
}

/* ---- */

/* Write out what is buffered, or let the helper do it. */
static int write_out(struct kb_out *out)
{
	size_t size = (size_t)(out->at - out->buffer);
	int error;

	if (out->error || !out->write || !size)
		return out->error;
	error = wait_behind(out);
	if (!error && !out->behind.helper)
		error = out->write(out->context, out->buffer, size);
	if (error)
		return kb_out_fail(out, error);
	if (out->behind.helper)
		give_behind(out, size);
	out->flushed += size;
	out->at = out->buffer;
	return 0;
}

int kb_out_flush(struct kb_out *out)
{
	int error = write_out(out) ?: wait_behind(out);

	return error ? kb_out_fail(out, error) : 0;
}

/* Make room: write out the buffer, and enlarge it if that is not enough. */
uint8_t *kb_out_reserve_slow(struct kb_out *out, size_t size)
{
	size_t used, room;
	uint8_t *buffer;

	if (write_out(out))
		return NULL;
	used = (size_t)(out->at - out->buffer);
	room = (size_t)(out->end - out->buffer);
	if (room - used >= size)
		return out->at;
	if (size > SIZE_MAX / 2 - used || room > SIZE_MAX / 4) {
		kb_out_fail(out, -ENOMEM);
		return NULL;
	}
	while (room - used < size)
		room *= 2;
	buffer = realloc(out->buffer, room);
	if (!buffer) {
		kb_out_fail(out, -ENOMEM);
		return NULL;
	}
	out->buffer = buffer;
	out->at = buffer + used;
	out->end = buffer + room;
	return out->at;
}

int kb_out_bytes(struct kb_out *out, const void *data, size_t size)
{
	const uint8_t *from = data;

	while (size && !out->error) {
		size_t part = out->write && size > BUFFER_BYTES ? BUFFER_BYTES : size;
		uint8_t *at = kb_out_reserve(out, part);

		if (!at)
			break;
		memcpy(at, from, part);
		out->at += part;
		from += part;
		size -= part;
	}
	return out->error;
}

int kb_out_vprintf(struct kb_out *out, const char *format, va_list args)
{
	va_list again;
	uint8_t *at;
	int length;

	va_copy(again, args);
	length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	if (length < 0)
		return kb_out_fail(out, -EINVAL);
	at = kb_out_reserve(out, (size_t)length + 1);
	if (!at)
		return out->error;
	vsnprintf((char *)at, (size_t)length + 1, format, args);
	out->at += length;
	return 0;
}

int kb_out_printf(struct kb_out *out, const char *format, ...)
{
	va_list args;
	int ret;

	va_start(args, format);
	ret = kb_out_vprintf(out, format, args);
	va_end(args);
	return ret;
}

int kb_out_error(const struct kb_out *out)
{
	return out->error;
}

uint64_t kb_out_count(const struct kb_out *out)
{
	return out->flushed + (size_t)(out->at - out->buffer);
}

const void *kb_out_data(const struct kb_out *out, size_t *size)
{
	*size = (size_t)(out->at - out->buffer);
	return out->buffer;
}
