/* SPDX-License-Identifier: MIT */
/*
 * The inside of an output, for encoders: reserve room for the most that a packet
 * can take, write it, commit what it took. No branch but one a packet.
 */
#ifndef KB_LIB_OUT_H
#define KB_LIB_OUT_H

#include <stdbool.h>

#include <kbarman/out.h>

struct kb_out {
	uint8_t *at;		/* next free byte */
	uint8_t *end;		/* of the buffer; == at after an error */
	uint8_t *buffer;
	uint64_t flushed;	/* bytes handed over */
	int error;		/* the first one, negative errno */
	int fd;
	bool socket;
	bool datagrams;		/* one packet each */
	kb_out_write write;	/* NULL: memory, which is never handed over */
	void *context;
};

uint8_t *kb_out_reserve_slow(struct kb_out *out, size_t size);

/* @size bytes in a row; NULL after an error, which is then in out->error. */
static inline uint8_t *kb_out_reserve(struct kb_out *out, size_t size)
{
	if (__builtin_expect((size_t)(out->end - out->at) >= size, 1))
		return out->at;
	return kb_out_reserve_slow(out, size);
}

/* A whole packet was written up to @end, behind what kb_out_reserve() gave. */
static inline int kb_out_commit(struct kb_out *out, uint8_t *end)
{
	out->at = end;
	return out->datagrams ? kb_out_flush(out) : 0;
}

/* Make @error (negative errno) the output's, if it has none. Returns the first. */
int kb_out_fail(struct kb_out *out, int error);

#endif
