// SPDX-License-Identifier: MIT
/*
 * Fuzz target of the Heph reader. What it reads and takes for whole, the encoder writes
 * again as the same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include <kbarman/heph.h>

#define MAX_ATTRIBUTES	64

/* The event's attributes with copies of their values; how many, or -1 if too many. */
static int collect(struct kb_heph_reader *reader, struct kb_heph_attribute *attributes,
		   union kb_heph_value **values)
{
	struct kb_heph_attribute attribute;
	int n = 0;

	while (kb_heph_next_attribute(reader, &attribute)) {
		size_t bytes = attribute.count * sizeof(*attribute.values);

		if (n == MAX_ATTRIBUTES) {
			while (n)
				free(values[--n]);
			return -1;
		}
		values[n] = malloc(bytes + 1);
		if (!values[n])
			abort();
		memcpy(values[n], attribute.values, bytes);
		attribute.values = values[n];
		attributes[n++] = attribute;
	}
	return n;
}

static void must_be_the_same(struct kb_heph_reader *reader, const struct kb_heph_packet *packet,
			     const uint8_t *bytes)
{
	struct kb_heph_attribute attributes[MAX_ATTRIBUTES];
	union kb_heph_value *values[MAX_ATTRIBUTES];
	struct kb_heph_event event = packet->event;
	struct kb_out *out;
	int n, i, error;
	size_t size;

	if (kb_out_memory(&out))
		abort();
	if (packet->magic == KB_HEPH_METADATA_MAGIC) {
		error = kb_heph_write_option(out, packet->metadata.option,
					     packet->metadata.value, packet->metadata.value_bytes);
	} else {
		n = collect(reader, attributes, values);
		event.attributes = attributes;
		error = n < 0 ? 1 : kb_heph_write_event(out, &event);
		for (i = 0; i < n; i++)
			free(values[i]);
	}
	if (error < 0)
		abort();
	if (!error && (memcmp(kb_out_data(out, &size), bytes, packet->size) != 0 ||
		       size != packet->size))
		abort();
	kb_out_destroy(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kb_heph_reader *reader;
	struct kb_heph_packet packet;
	struct kb_error err;

	if (kb_heph_open_memory(&reader, data, size, &err))
		return 0;
	while (kb_heph_next(reader, &packet, &err) > 0)
		must_be_the_same(reader, &packet, data + packet.offset);
	kb_heph_close(reader);
	return 0;
}
