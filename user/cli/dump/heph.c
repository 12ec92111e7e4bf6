// SPDX-License-Identifier: MIT
/* kbarman dump and check of a Heph trace: the packets as they are in the file. */
#include <string.h>

#include <kbarman/heph.h>

#include "cli/base/cli.h"
#include "cli/dump/formats.h"

bool probe_heph(const uint8_t *start, size_t length)
{
	static const uint8_t metadata[] = { 0x75, 0xd1, 0x1d, 0x4d };
	static const uint8_t event[] = { 0xc1, 0xfc, 0x1f, 0xb7 };

	return length >= 4 && (memcmp(start, metadata, 4) == 0 || memcmp(start, event, 4) == 0);
}

static void put_metadata(struct kb_json *json, const struct kb_heph_packet *packet)
{
	kb_json_begin(json, "metadata");
	kb_json_text(json, "option", packet->metadata.option.data, packet->metadata.option.length);
	if (packet->metadata.is_epoch) {
		kb_json_u64(json, "value", packet->metadata.epoch);
	} else {	/* an option whose meaning is not known */
		kb_json_text(json, "value", NULL, 0);
		kb_json_u64(json, "length", packet->metadata.value_bytes);
	}
	kb_json_end(json);
}

static void put_value(struct kb_json *json, uint8_t type, const union kb_heph_value *value)
{
	switch (type & ~KB_HEPH_ARRAY) {
	case KB_HEPH_U64:
		kb_json_u64(json, NULL, value->u64);
		break;
	case KB_HEPH_I64:
		kb_json_i64(json, NULL, value->i64);
		break;
	case KB_HEPH_F64:
		kb_json_double(json, NULL, value->f64);
		break;
	case KB_HEPH_STRING:
		kb_json_text(json, NULL, value->string.data, value->string.length);
		break;
	}
}

static void put_attribute(struct kb_json *json, const struct kb_heph_attribute *attribute)
{
	static const char *const types[][2] = {
		[KB_HEPH_U64] = { "u64", "u64[]" }, [KB_HEPH_I64] = { "i64", "i64[]" },
		[KB_HEPH_F64] = { "f64", "f64[]" }, [KB_HEPH_STRING] = { "string", "string[]" },
	};
	bool array = attribute->type & KB_HEPH_ARRAY;
	uint32_t i;

	kb_json_array(json, NULL);
	kb_json_text(json, NULL, attribute->name.data, attribute->name.length);
	kb_json_string(json, NULL, types[attribute->type & ~KB_HEPH_ARRAY][array]);
	if (array)
		kb_json_array(json, NULL);
	for (i = 0; i < attribute->count; i++)
		put_value(json, attribute->type, &attribute->values[i]);
	if (array)
		kb_json_array_end(json);
	kb_json_array_end(json);
}

static void put_event(struct kb_json *json, struct kb_heph_reader *reader,
		      const struct kb_heph_event *event)
{
	struct kb_heph_attribute attribute;

	kb_json_begin(json, "event");
	kb_json_u64(json, "stream", event->stream);
	kb_json_u64(json, "counter", event->counter);
	kb_json_u64(json, "substream", event->substream);
	kb_json_u64(json, "start", event->start);
	kb_json_u64(json, "end", event->end);
	kb_json_text(json, "description", event->description.data, event->description.length);
	kb_json_array(json, "attributes");
	while (kb_heph_next_attribute(reader, &attribute))
		put_attribute(json, &attribute);
	kb_json_array_end(json);
	kb_json_end(json);
}

int dump_heph(const char *path, struct kb_json *json)
{
	struct kb_heph_packet packet;
	struct kb_heph_reader *reader;
	const struct kb_error *first;
	struct kb_error err = { 0 };
	unsigned int findings;

	if (kb_heph_open(&reader, path, &err))
		return cli_fail_error(&err);
	while (!kb_out_error(json->out) && kb_heph_next(reader, &packet, &err) > 0) {
		if (packet.magic == KB_HEPH_EVENT_MAGIC)
			put_event(json, reader, &packet.event);
		else
			put_metadata(json, &packet);
	}
	kb_out_flush(json->out);
	findings = kb_heph_damage(reader, &first);
	if (findings)
		cli_warn("%s (and %u more findings)", kb_error_text(first), findings - 1);
	if (err.code)
		cli_warn("%s", kb_error_text(&err));
	kb_heph_close(reader);
	return findings || err.code ? CLI_DAMAGED : CLI_OK;
}

int check_heph(const char *path, void (*say)(const char *sentence))
{
	struct kb_heph_packet packet;
	struct kb_heph_reader *reader;
	const struct kb_error *first;
	struct kb_error err = { 0 };
	unsigned int findings;

	if (kb_heph_open(&reader, path, &err)) {
		say(kb_error_text(&err));
		return CLI_IMPOSSIBLE;
	}
	while (kb_heph_next(reader, &packet, &err) > 0)
		;
	findings = kb_heph_damage(reader, &first);
	if (findings)
		say(kb_error_text(first));
	if (err.code)
		say(kb_error_text(&err));
	kb_heph_close(reader);
	return findings || err.code ? CLI_DAMAGED : CLI_OK;
}
