/* SPDX-License-Identifier: MIT */
/*
 * Internals of an output, for encoders: reserve room for the longest form of a packet, write
 * the packet, commit the bytes used. This takes one branch a packet.
 */
#ifndef KB_LIB_BASE_IO_OUT_PACKET_H
#define KB_LIB_BASE_IO_OUT_PACKET_H

#include <stdarg.h>
#include <stdbool.h>

#include <kbarman/out.h>

struct kb_out {
	uint8_t *at;		/* next free byte */
	uint8_t *end;		/* end of the buffer; == at after an error */
	uint8_t *buffer;
	uint64_t flushed;	/* bytes written out, or given to the helper */
	int error;		/* the first one, negative errno */
	int fd;
	bool socket;
	bool datagrams;		/* one datagram a packet */
	kb_out_write write;	/* NULL: output to memory, which is never written out */
	void *context;
	/* A helper that calls write() for this buffer while the caller fills the other one. */
	struct {
		struct kb_helper *helper;	/* NULL: the caller writes */
		uint8_t *buffer;
		size_t room, size;		/* bytes; size: to be written */
		int error;			/* the first one, negative errno */
	} behind;
};

/*
 * From now on a helper writes while the caller goes on. An error is told by a later call, at the
 * latest by kb_out_flush(), which waits for it. Without effect for memory and datagrams.
 * Returns 0 or a negative errno: then the caller writes as before.
 */
int kb_out_behind(struct kb_out *out);

/* kb_out_printf() of the caller's arguments. */
__attribute__((format(printf, 2, 0)))
int kb_out_vprintf(struct kb_out *out, const char *format, va_list args);

uint8_t *kb_out_reserve_slow(struct kb_out *out, size_t size);

/* Reserve @size contiguous bytes. NULL after an error, which is in out->error. */
static inline uint8_t *kb_out_reserve(struct kb_out *out, size_t size)
{
	if (__builtin_expect((size_t)(out->end - out->at) >= size, 1))
		return out->at;
	return kb_out_reserve_slow(out, size);
}

/* Commit a whole packet: it ends at @end and begins where kb_out_reserve() said. */
static inline int kb_out_commit(struct kb_out *out, uint8_t *end)
{
	out->at = end;
	return out->datagrams ? kb_out_flush(out) : 0;
}

/* Forget the content of an output to memory, and keep its memory for more. */
static inline void kb_out_clear(struct kb_out *out)
{
	out->at = out->buffer;
}

/* Set the output's error to @error (negative errno) if it has none. Returns the first error. */
int kb_out_fail(struct kb_out *out, int error);

#endif
