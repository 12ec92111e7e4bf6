/* SPDX-License-Identifier: MIT */
/*
 * Writes a trace in the Common Trace Format 1.8: a directory with a file of packets for each
 * CPU, and the file `metadata' that describes them. Fields are little endian and not aligned.
 * Source: "Common Trace Format (CTF) Specification v1.8.3".
 */
#ifndef KB_LIB_FORMAT_CTF_H
#define KB_LIB_FORMAT_CTF_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <kbarman/error.h>
#include <kbarman/out.h>

struct kb_ctf;

/* Create the trace in the empty directory @path. Returns 0 or a negative errno and @err. */
int kb_ctf_create(struct kb_ctf **out, const char *path, struct kb_error *err);
void kb_ctf_destroy(struct kb_ctf *ctf);

/*
 * Begin an event of @core at @time. A time before the last event of the stream becomes the time
 * of that event. Returns a pointer to @room bytes, at most 64 KiB, for its fields.
 */
uint8_t *kb_ctf_begin(struct kb_ctf *ctf, uint32_t core, uint16_t id, uint64_t time, size_t room);
/* End the event; its fields end before @at. */
void kb_ctf_end(struct kb_ctf *ctf, const uint8_t *at);

/* @count events of @core are missing at this place. */
void kb_ctf_discard(struct kb_ctf *ctf, uint32_t core, uint64_t count);

/* The number of events that got the time of the event before them. */
uint64_t kb_ctf_moved(const struct kb_ctf *ctf);

/*
 * Write what is left, and the metadata: what every trace needs, then @events, which is text in
 * the format's own language. @end: time up to which the last packets last. Returns 0 or the first error,
 * also in @err.
 */
int kb_ctf_finish(struct kb_ctf *ctf, uint64_t end, const char *environment, int64_t clock_offset,
		  const char *events, struct kb_error *err);

static inline uint8_t *kb_ctf_put32(uint8_t *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, 4);
	return at + 4;
}

static inline uint8_t *kb_ctf_put64(uint8_t *at, uint64_t value)
{
	value = htole64(value);
	memcpy(at, &value, 8);
	return at + 8;
}

#endif
