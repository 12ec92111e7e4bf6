// SPDX-License-Identifier: MIT
/* See parca.h. */
#include <string.h>

#include "base/text/json.h"
#include "export/otlp/parca.h"
#include "format/base64.h"

#define NAME_MAX_BYTES	256

static void put_label(struct kb_json *json, const char *name, const char *value)
{
	char plain[NAME_MAX_BYTES];
	size_t length = strnlen(name, sizeof(plain));

	for (size_t i = 0; i < length; i++) {
		char c = name[i];
		bool digit = c >= '0' && c <= '9';

		plain[i] = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (digit && i) ? c :
											    '_';
	}
	kb_json_object(json, NULL);
	kb_json_text(json, "name", plain, length);
	kb_json_string(json, "value", value);
	kb_json_object_end(json);
}

/* A text without quotes inside is its own JSON, so it is encoded where it is to stand. */
static void put_profile(struct kb_json *json, const void *profile, size_t size)
{
	static const char key[] = "\"rawProfile\":\"";
	size_t bytes = KB_BASE64_BYTES(size);
	uint8_t *at;

	kb_json_object(json, NULL);
	kb_out_bytes(json->out, key, strlen(key));
	at = kb_out_reserve(json->out, bytes);
	if (at) {
		kb_base64((char *)at, profile, size);
		kb_out_commit(json->out, at + bytes);
	}
	kb_out_bytes(json->out, "\"", 1);
	kb_json_object_end(json);
}

void kb_parca_write(struct kb_out *out, const struct kb_otlp_attribute *attributes, size_t nr,
		    const void *profile, size_t size)
{
	struct kb_json json = { .out = out };
	size_t i;

	kb_json_object(&json, NULL);
	kb_json_array(&json, "series");
	kb_json_object(&json, NULL);
	kb_json_object(&json, "labels");
	kb_json_array(&json, "labels");
	put_label(&json, "__name__", "kbarman");
	for (i = 0; i < nr; i++)
		put_label(&json, attributes[i].key, attributes[i].value);
	kb_json_array_end(&json);
	kb_json_object_end(&json);
	kb_json_array(&json, "samples");
	put_profile(&json, profile, size);
	kb_json_array_end(&json);
	kb_json_object_end(&json);
	kb_json_array_end(&json);
	kb_json_object_end(&json);
}
