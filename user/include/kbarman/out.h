/* SPDX-License-Identifier: MIT */
/*
 * Output of encoders: a file, a socket, memory, or a function. An output buffers. It keeps its
 * first error: after that all data are dropped, and every encoder and kb_out_flush() return the
 * error. So a caller may check the last call only.
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
 * Output to @fd, which stays the caller's: a file, a pipe, or a connected socket. On a datagram
 * socket each packet becomes one datagram. On sockets a broken connection returns -EPIPE. On
 * pipes the caller has to ignore SIGPIPE to get -EPIPE. Returns 0 or a negative errno, as the
 * two functions below; kb_out_destroy() frees the output.
 */
int kb_out_fd(struct kb_out **out, int fd);

/* Output to memory that grows; see kb_out_data(). */
int kb_out_memory(struct kb_out **out);

/* Output to a function, which returns 0 or a negative errno. */
typedef int (*kb_out_write)(void *context, const void *data, size_t size);
int kb_out_function(struct kb_out **out, kb_out_write write, void *context);

/* Free the output. Data that were not flushed are lost. @out may be NULL. */
void kb_out_destroy(struct kb_out *out);

/* Write out what is buffered. Returns 0 or the first error. */
int kb_out_flush(struct kb_out *out);

/* Append @size bytes. Returns 0 or the first error. */
int kb_out_bytes(struct kb_out *out, const void *data, size_t size);

/* Append text, formatted as by printf(3). Returns 0 or the first error. */
int kb_out_printf(struct kb_out *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The first error; 0 if there is none. */
int kb_out_error(const struct kb_out *out);

/* Bytes accepted so far. */
uint64_t kb_out_count(const struct kb_out *out);

/*
 * The content of an output to memory. The pointer holds until the next write; the output owns
 * it.
 */
const void *kb_out_data(const struct kb_out *out, size_t *size);

#ifdef __cplusplus
}
#endif

#endif
