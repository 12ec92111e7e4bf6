/* SPDX-License-Identifier: MIT */
/*
 * format/annotate/: the stream of Arm's Annotate clients: its encoder, and a strict reader.
 *
 * The frequent messages, for encoders that know the type of what they write. The bytes are
 * those of kb_annotate_write(), without filling a struct. Each function writes the fields of a
 * message to @at, between kb_annotate_begin() and kb_annotate_end(), and returns the position
 * after them.
 */
#ifndef KB_LIB_FORMAT_ANNOTATE_PUT_H
#define KB_LIB_FORMAT_ANNOTATE_PUT_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include <kbarman/annotate.h>

#include "base/io/out_packet.h"
#include "format/leb.h"

#define KB_ANNOTATE_START	5	/* bytes of marker and length */
/* Room for any message without its texts, lists and image. */
#define KB_ANNOTATE_FIXED	(KB_ANNOTATE_START + 16 * KB_LEB64_MAX)

/* Length of a client's setup: version 3 added a byte after the pid. */
static inline size_t kb_annotate_setup_bytes(int32_t version)
{
	return KB_ANNOTATE_SETUP_BYTES - (version < 3);
}

/* Write the setup of a stream of any version to @at. Returns the position after it. */
static inline uint8_t *kb_annotate_put_setup(uint8_t *at, const struct kb_annotate_setup *setup)
{
	uint32_t ids[2] = { htole32((uint32_t)setup->tid), htole32((uint32_t)setup->pid) };

	memcpy(at, "ANNOTATE 3\n", 11);
	at[9] = (uint8_t)('0' + setup->version);
	memcpy(at + 11, ids, 8);
	if (setup->version >= 3)
		at[19] = setup->dont_mangle;
	return at + kb_annotate_setup_bytes(setup->version);
}

static inline uint8_t *kb_annotate_begin(uint8_t *start, enum kb_annotate_type type)
{
	*start = (uint8_t)type;
	return start + KB_ANNOTATE_START;
}

/* Set the length of the message that begins at @start and ends at @end. */
static inline void kb_annotate_end(uint8_t *start, const uint8_t *end, uint64_t image_bytes)
{
	uint32_t length = htole32((uint32_t)((uint64_t)(end - start) - KB_ANNOTATE_START +
					     image_bytes));

	memcpy(start + 1, &length, 4);
}

static inline uint8_t *kb_annotate_put_color(uint8_t *at, uint32_t color)
{
	color = htobe32(color);
	memcpy(at, &color, 4);
	return at + 4;
}

static inline uint8_t *kb_annotate_put_value(uint8_t *at, const struct kb_leb *when,
					     int32_t core, int32_t key, int64_t value)
{
	at = kb_leb_put(kb_leb_put_packed(at, when), core);
	return kb_leb_put(kb_leb_put(at, key), value);
}

static inline uint8_t *kb_annotate_put_activity(uint8_t *at, const struct kb_leb *when,
						int32_t core, int32_t key, int32_t activity,
						int32_t tid)
{
	at = kb_leb_put(kb_leb_put_packed(at, when), core);
	at = kb_leb_put(kb_leb_put(at, key), activity);
	return kb_leb_put(at, tid);
}

/* Write a job up to its dependencies. The dependencies (if any) and the name follow. */
static inline uint8_t *kb_annotate_put_job(uint8_t *at, const struct kb_annotate_job *job,
					   const struct kb_leb *start)
{
	at = kb_leb_put(kb_leb_put(at, job->view), job->job);
	at = kb_leb_put_packed(kb_leb_put(at, job->track), start);
	at = kb_leb_put(at, job->duration);
	at = kb_annotate_put_color(at, job->color);
	return kb_leb_put(kb_leb_put(at, job->primary), job->nr_deps);
}

#endif
