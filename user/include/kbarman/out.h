/* SPDX-License-Identifier: MIT */
/*
 * Where encoders write to: a file, a socket, memory, or a function. An output
 * buffers, and keeps the first error: after one everything is dropped, and every
 * encoder and kb_out_flush() return it. So only the last call needs a check.
 */
#ifndef KBARMAN_OUT_H
#define KBARMAN_OUT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kb_out;

/*
 * To @fd, which stays the caller's: a file, a pipe, or a connected socket. A
 * datagram socket gets one packet a datagram. A broken pipe is -EPIPE on sockets;
 * on pipes the caller has to ignore SIGPIPE for that.
 */
int kb_out_fd(struct kb_out **out, int fd);

/* To memory that grows: see kb_out_data(). */
int kb_out_memory(struct kb_out **out);

/* To a function, which returns 0 or a negative errno. */
typedef int (*kb_out_write)(void *context, const void *data, size_t size);
int kb_out_function(struct kb_out **out, kb_out_write write, void *context);

/* Drops what was not flushed. NULL is fine. */
void kb_out_destroy(struct kb_out *out);

/* Hand over what is buffered. Returns 0 or the first error. */
int kb_out_flush(struct kb_out *out);

/* Any number of bytes as they are. Returns 0 or the first error. */
int kb_out_bytes(struct kb_out *out, const void *data, size_t size);

int kb_out_printf(struct kb_out *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The first error, 0 if none. */
int kb_out_error(const struct kb_out *out);

/* Bytes accepted so far. */
uint64_t kb_out_count(const struct kb_out *out);

/* What is in an output to memory, until it is written to again. */
const void *kb_out_data(const struct kb_out *out, size_t *size);

#ifdef __cplusplus
}
#endif

#endif
