/* SPDX-License-Identifier: MIT */
/*
 * Heph traces, "Trace Format" version 0.1.0: read and write. A trace is a sequence
 * of packets, each of its own size, which may travel one by one: metadata (the epoch
 * is the one option there is) and events, which have a description and attributes.
 *
 * Text is written as it is given; a reader may refuse what is not UTF-8.
 */
#ifndef KBARMAN_HEPH_H
#define KBARMAN_HEPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/error.h>
#include <kbarman/out.h>
#include <kbarman/text.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KB_HEPH_METADATA_MAGIC	0x75d11d4du
#define KB_HEPH_EVENT_MAGIC	0xc1fc1fb7u
#define KB_HEPH_METADATA_BYTES	10	/* of a metadata packet with nothing in it */
#define KB_HEPH_EVENT_BYTES	42	/* of an event without description, attributes */
#define KB_HEPH_MAX_PACKET	(16u << 20)	/* the longest that the reader takes */

enum kb_heph_type {
	KB_HEPH_U64	= 1,
	KB_HEPH_I64	= 2,
	KB_HEPH_F64	= 3,
	KB_HEPH_STRING	= 4,
	KB_HEPH_ARRAY	= 0x80,		/* or'ed to one of them */
};

union kb_heph_value {
	uint64_t u64;
	int64_t i64;
	double f64;
	struct kb_text string;		/* at most 65535 bytes */
};

struct kb_heph_attribute {
	struct kb_text name;		/* at most 65535 bytes */
	uint8_t type;			/* enum kb_heph_type */
	uint16_t count;			/* of the values; no array: 1 */
	const union kb_heph_value *values;
};

struct kb_heph_event {
	uint32_t stream;
	uint32_t counter;		/* of the events of its stream, wraps */
	uint64_t substream;
	uint64_t start, end;		/* ns since the trace's epoch */
	struct kb_text description;	/* at most 65535 bytes */
	uint32_t nr_attributes;
	const struct kb_heph_attribute *attributes;	/* the reader leaves NULL here: see
							 * kb_heph_next_attribute() */
};

/* Write the epoch: ns since the Unix epoch that times are relative to. */
int kb_heph_write_epoch(struct kb_out *out, uint64_t epoch);

/* Write any option. */
int kb_heph_write_option(struct kb_out *out, struct kb_text name, const void *value, size_t size);

/*
 * Write an event. -EMSGSIZE: a text has more than 65535 bytes or the packet 2^32;
 * -EINVAL: an attribute has a type that does not exist. Nothing is written then, and
 * the output is as good as before.
 */
int kb_heph_write_event(struct kb_out *out, const struct kb_heph_event *event);

struct kb_heph_reader;

struct kb_heph_packet {
	uint32_t magic;			/* what it is: KB_HEPH_*_MAGIC */
	uint32_t size;			/* in bytes, with magic and size */
	uint64_t offset;		/* in the input */
	union {
		struct {
			struct kb_text option;
			const void *value;
			size_t value_bytes;
			bool is_epoch;	/* and of the right size */
			uint64_t epoch;
		} metadata;
		struct kb_heph_event event;
	};
};

/*
 * Open the trace at @path ("-" is standard input) or in memory, which must stay.
 * Memory use is that of the largest packet. -ENODATA: it is not a Heph trace.
 */
int kb_heph_open(struct kb_heph_reader **reader, const char *path, struct kb_error *err);
int kb_heph_open_memory(struct kb_heph_reader **reader, const void *data, size_t size,
			struct kb_error *err);
void kb_heph_close(struct kb_heph_reader *reader);

/*
 * The next packet. Returns 1 and fills @packet, whose pointers hold until the next
 * call; 0 at the end; or a negative errno with @err filled where the trace is
 * damaged: calls return 0 after that. A packet that was returned is whole: its sizes
 * fit, its types exist.
 */
int kb_heph_next(struct kb_heph_reader *reader, struct kb_heph_packet *packet,
		 struct kb_error *err);

/*
 * The next attribute of the event that kb_heph_next() gave last. Returns 1, or 0 when
 * there is none left. Its pointers hold until the next call of either.
 */
int kb_heph_next_attribute(struct kb_heph_reader *reader, struct kb_heph_attribute *attribute);

/*
 * What the text does not allow but did not stop the reader: broken UTF-8, an event
 * that ends before it starts, an unknown option. Their number, and the first of them.
 */
unsigned int kb_heph_damage(const struct kb_heph_reader *reader, const struct kb_error **first);

#ifdef __cplusplus
}
#endif

#endif
