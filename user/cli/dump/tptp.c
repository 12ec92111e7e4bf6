// SPDX-License-Identifier: MIT
/* kbarman dump and check of a TPTP trace, binary or XML: the messages as they are in the file. */
#include <string.h>

#include <kbarman/tptp.h>

#include "cli/base/cli.h"
#include "cli/dump/formats.h"

/* The magic number, or XML with <TRACE in its first bytes. */
bool probe_tptp(const uint8_t *start, size_t length)
{
	size_t at = 0;

	if (length >= 4 && (start[0] == '0' || start[0] == 0) && memcmp(start + 1, "TBF", 3) == 0)
		return true;
	if (length >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0)
		at = 3;
	while (at < length && strchr(" \t\r\n", start[at]) && start[at])
		at++;
	return at < length && start[at] == '<' && memmem(start + at, length - at, "<TRACE", 6);
}

static void put_value(struct kb_json *json, const struct kb_tptp_field *field,
		      const union kb_tptp_value *value, uint32_t depth)
{
	uint32_t i;

	switch (field->type) {
	case KB_TPTP_TYPE_STRING:
		kb_json_text(json, field->name, value->string.length ? value->string.data : "",
			     value->string.length);
		break;
	case KB_TPTP_TYPE_STRINGS:
		kb_json_array(json, field->name);
		for (i = 0; i < depth; i++)
			kb_json_text(json, NULL, value->strings[i].data, value->strings[i].length);
		kb_json_array_end(json);
		break;
	case KB_TPTP_TYPE_LONGS:
		kb_json_array(json, field->name);
		for (i = 0; i < depth; i++)
			kb_json_i64(json, NULL, value->longs[i]);
		kb_json_array_end(json);
		break;
	default:
		kb_json_i64(json, field->name, value->number);
	}
}

static void put_message(struct kb_json *json, const struct kb_tptp_message *message)
{
	uint32_t depth = kb_tptp_message_depth(message);

	kb_json_begin(json, "message");
	kb_json_u64(json, "id", message->table->id);
	kb_json_string(json, "name", message->table->name);
	for (unsigned int i = 0; i < message->table->nr_fields; i++)
		put_value(json, &message->table->fields[i], &message->values[i], depth);
	kb_json_end(json);
}

int dump_tptp(const char *path, struct kb_json *json)
{
	struct kb_tptp_message message;
	struct kb_error err = { 0 };
	struct kb_tptp *tptp;
	int ret, status = CLI_OK;

	if (kb_tptp_open(&tptp, path, &err))
		return cli_fail_error(&err);
	while (!kb_out_error(json->out) && (ret = kb_tptp_next(tptp, &message, &err)) != 0) {
		if (ret > 0) {
			put_message(json, &message);
			continue;
		}
		kb_out_flush(json->out);
		cli_warn("%s", kb_error_text(&err));
		status = CLI_DAMAGED;
	}
	kb_tptp_close(tptp);
	return status;
}

int check_tptp(const char *path, void (*say)(const char *sentence))
{
	struct kb_tptp_message message;
	struct kb_error err = { 0 };
	struct kb_tptp *tptp;
	int ret, status = CLI_OK;

	if (kb_tptp_open(&tptp, path, &err)) {
		say(kb_error_text(&err));
		return CLI_IMPOSSIBLE;
	}
	while ((ret = kb_tptp_next(tptp, &message, &err)) != 0) {
		if (ret > 0)
			continue;
		say(kb_error_text(&err));
		status = CLI_DAMAGED;
	}
	kb_tptp_close(tptp);
	return status;
}
