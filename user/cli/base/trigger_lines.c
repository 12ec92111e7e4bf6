// SPDX-License-Identifier: MIT
#include "analysis/facts/triggered.h"
#include "cli/base/trigger_lines.h"

void trigger_lines(struct kb_json *json, const struct kb_barman *barman)
{
	struct kb_triggered told;

	if (!kb_barman_fact(barman, KB_TRIGGERED_FACT))
		return;
	for (uint32_t i = 0; kb_triggered_get(barman, i, &told); i++) {
		kb_json_begin(json, "trigger");
		kb_json_i64(json, "at_ns", told.ns);
		kb_json_u64(json, "timestamp", told.ticks);
		if (told.core != KB_CORE_NONE)
			kb_json_u64(json, "cpu", told.core);
		kb_json_u64(json, "tid", told.task_id);
		kb_json_u64(json, "measured", told.measured);
		kb_json_string(json, "expression", told.expression);
		kb_json_string(json, "reason", told.reason);
		kb_json_end(json);
	}
	kb_json_begin(json, "triggers");
	kb_json_u64(json, "moments", kb_triggered_number(barman, KB_TRIGGERED_FACT));
	kb_json_u64(json, "suppressed", kb_triggered_number(barman, KB_TRIGGERED_FACT ".suppressed"));
	kb_json_u64(json, "unwatched_bytes",
		    kb_triggered_number(barman, KB_TRIGGERED_FACT ".unwatched"));
	kb_json_end(json);
}
