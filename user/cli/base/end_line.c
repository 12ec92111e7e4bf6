// SPDX-License-Identifier: MIT
#include <string.h>

#include "analysis/facts/end.h"
#include "cli/base/end_line.h"

/* Addresses are texts: programs that read all numbers as doubles would round them. */
static void put_chain(struct kb_json *json, const char *chain)
{
	kb_json_array(json, "chain");
	for (size_t length; *chain; chain += length + (chain[length] == ',')) {
		length = strcspn(chain, ",");
		kb_json_text(json, NULL, chain, length);
	}
	kb_json_array_end(json);
}

void end_line(struct kb_json *json, const struct kb_barman *barman)
{
	struct kb_end end;

	if (!kb_end_get(barman, &end))
		return;
	kb_json_begin(json, "end");
	kb_json_string(json, "how", kb_end_word(end.how));
	if (end.ticks) {
		kb_json_i64(json, "at_ns", kb_barman_ns(barman, end.ticks));
		kb_json_u64(json, "cpu", end.cpu);
		kb_json_u64(json, "tid", end.task_id);
		kb_json_string(json, "task", end.task);
		kb_json_string(json, "text", end.text);
		put_chain(json, end.chain);
	}
	kb_json_end(json);
}
