/* SPDX-License-Identifier: MIT */
/*
 * Input of streaming decoders: a window that slides over a file, a pipe or memory. Memory use
 * is the window, which is as large as the largest packet requested.
 */
#ifndef KB_LIB_BASE_IO_IN_H
#define KB_LIB_BASE_IO_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/error.h>

struct kb_in {
	const uint8_t *at;	/* next byte */
	const uint8_t *end;	/* end of the bytes in the window */
	uint8_t *window;	/* NULL: the input is in memory */
	size_t size;		/* of the window */
	uint64_t offset;	/* of `end` in the input */
	char *name;		/* name for error texts */
	int fd;
	bool owned;		/* close fd at the end */
	bool ended;
	int error;		/* of read(), negative errno */
};

/*
 * For formats that are read from front to back; kb_source is for the others. @path: "-" is
 * standard input.
 */
int kb_in_open(struct kb_in *in, const char *path, struct kb_error *err);
void kb_in_memory(struct kb_in *in, const void *data, size_t size);
void kb_in_close(struct kb_in *in);

/*
 * Make @want bytes available at in->at. Returns the number of available bytes: less than @want
 * at the end, after a read error, or without memory.
 */
size_t kb_in_want_slow(struct kb_in *in, size_t want);

static inline size_t kb_in_want(struct kb_in *in, size_t want)
{
	size_t there = (size_t)(in->end - in->at);

	return there >= want ? there : kb_in_want_slow(in, want);
}

/* Name of the input for error texts. */
static inline const char *kb_in_name(const struct kb_in *in)
{
	return in->name ? in->name : "the input";
}

/* The error of a failed read(): returns the code and puts the sentence into @err. */
int kb_in_error(const struct kb_in *in, struct kb_error *err);

/* Skip @count bytes. Returns how many of them there were. */
uint64_t kb_in_skip(struct kb_in *in, uint64_t count);

/* Offset of in->at in the input. */
static inline uint64_t kb_in_offset(const struct kb_in *in)
{
	return in->offset - (uint64_t)(in->end - in->at);
}

#endif
