/* SPDX-License-Identifier: MIT */
/*
 * Heph traces, "Trace Format" version 0.1.0: read and write. A trace is a sequence of packets.
 * Each packet contains its own size and can be sent alone. There are metadata packets (the
 * epoch is the only option) and events, which have a description and attributes.
 *
 * The writer does not check texts for UTF-8; a reader may refuse invalid UTF-8.
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
#define KB_HEPH_METADATA_BYTES	10	/* an empty metadata packet */
#define KB_HEPH_EVENT_BYTES	42	/* an event without description and attributes */
#define KB_HEPH_MAX_PACKET	(16u << 20)	/* the longest packet the reader takes */

enum kb_heph_type {
	KB_HEPH_U64	= 1,
	KB_HEPH_I64	= 2,
	KB_HEPH_F64	= 3,
	KB_HEPH_STRING	= 4,
	KB_HEPH_ARRAY	= 0x80,		/* added to one of the above */
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
	uint16_t count;			/* number of values; 1 if not an array */
	const union kb_heph_value *values;
};

struct kb_heph_event {
	uint32_t stream;
	uint32_t counter;		/* number of the event in its stream; wraps */
	uint64_t substream;
	uint64_t start, end;		/* ns since the trace's epoch */
	struct kb_text description;	/* at most 65535 bytes */
	uint32_t nr_attributes;
	const struct kb_heph_attribute *attributes;	/* the reader sets NULL: see
							 * kb_heph_next_attribute() */
};

/*
 * Write the epoch: the time, in ns since the Unix epoch, that all other times are relative to.
 * Returns 0 or the output's error.
 */
int kb_heph_write_epoch(struct kb_out *out, uint64_t epoch);

/* Write any option: @size bytes at @value. Returns 0, -EMSGSIZE or the output's error. */
int kb_heph_write_option(struct kb_out *out, struct kb_text name, const void *value, size_t size);

/*
 * Write an event. Returns 0 or a negative errno. -EMSGSIZE: a text has more than 65535 bytes, or
 * the packet more than 2^32; -EINVAL: an attribute has an unknown type. In both cases nothing is
 * written and the output stays usable.
 */
int kb_heph_write_event(struct kb_out *out, const struct kb_heph_event *event);

struct kb_heph_reader;

struct kb_heph_packet {
	uint32_t magic;			/* kind of the packet: KB_HEPH_*_MAGIC */
	uint32_t size;			/* bytes, including magic and size */
	uint64_t offset;		/* offset in the input, bytes */
	union {
		struct {
			struct kb_text option;
			const void *value;
			size_t value_bytes;
			bool is_epoch;	/* the option is the epoch, and has 8 bytes */
			uint64_t epoch;
		} metadata;
		struct kb_heph_event event;
	};
};

/*
 * Open the trace at @path ("-" is standard input) or in memory. @data stays the caller's and
 * must live until kb_heph_close(), which frees the reader. Returns 0 or a negative errno and
 * @err. -ENODATA: not a Heph trace. Memory use is that of the largest packet.
 */
int kb_heph_open(struct kb_heph_reader **reader, const char *path, struct kb_error *err);
int kb_heph_open_memory(struct kb_heph_reader **reader, const void *data, size_t size,
			struct kb_error *err);
void kb_heph_close(struct kb_heph_reader *reader);

/*
 * Read the next packet. Returns 1 and fills @packet, whose pointers hold until the next call; 0
 * at the end; a negative errno and @err where the trace is damaged. Calls after an error return
 * 0. A delivered packet is whole: its sizes fit and its types exist.
 */
int kb_heph_next(struct kb_heph_reader *reader, struct kb_heph_packet *packet,
		 struct kb_error *err);

/*
 * Read the next attribute of the event that kb_heph_next() delivered last. Returns 1, or 0 if
 * there are no more. The pointers of @attribute hold until the next call of either function.
 */
int kb_heph_next_attribute(struct kb_heph_reader *reader, struct kb_heph_attribute *attribute);

/*
 * What the format forbids and the reader accepted: invalid UTF-8, an event that ends before it
 * starts, an unknown option. Returns the number of findings and sets @first to the first of
 * them (NULL if none).
 */
unsigned int kb_heph_damage(const struct kb_heph_reader *reader, const struct kb_error **first);

#ifdef __cplusplus
}
#endif

#endif
