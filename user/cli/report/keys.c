// SPDX-License-Identifier: MIT
/* Keys that the JSON of several reports has. */
#include <kbarman/event.h>
#include <kbarman/waits.h>

#include "base/text/json.h"
#include "cli/report/print.h"

void report_put_by(struct kb_json *json, struct kb_trace *trace, const struct kb_origin *by, uint64_t ticks)
{
	char name[KB_ORIGIN_NAME];

	if (by->kind == KB_TILE_UNKNOWN)
		return;
	kb_json_string(json, "by", kb_origin_kind(by->kind));
	if (by->id != KB_ORIGIN_ANY)
		kb_json_u64(json, "by_id", by->id);
	kb_json_string(json, "by_name", kb_origin_name(trace, by, ticks, name, sizeof(name)));
	if (kb_origin_call(trace, by))
		kb_json_string(json, "by_call", kb_origin_call(trace, by));
}

void report_put_stats(struct kb_json *json, const struct kb_latency_stats *stats)
{
	kb_json_u64(json, "sum_ns", stats->sum_ns);
	kb_json_u64(json, "median_ns", stats->median_ns);
	kb_json_u64(json, "p99_ns", stats->p99_ns);
	kb_json_u64(json, "max_ns", stats->max_ns);
}

void report_put_waiter(struct kb_json *json, struct kb_trace *trace, const struct kb_link *link)
{
	char name[KB_TASK_NAME_BUFFER];
	const struct kb_waits_row row = kb_link_wait(link, trace, name);

	if (!row.object)
		return;
	kb_json_u64(json, "waiter_tid", link->waiter);
	kb_json_string(json, "waiter", row.task);
	if (row.call)
		kb_json_string(json, "call", row.call);
	kb_json_string(json, "object", kb_object_name(row.object) ?: "other");
	if (row.value)
		kb_json_u64(json, "object_value", row.value);
	if (row.name)
		kb_json_string(json, "object_name", row.name);
	kb_json_bool(json, "iowait", row.iowait);
}

void report_put_object(struct kb_json *json, const struct kb_waits_row *row)
{
	const char *object = kb_object_name(row->object);

	kb_json_string(json, "object", object ?: row->object ? "other" : "none");
	if (row->inferred)
		kb_json_string(json, "inferred", kb_inferred_name(row->inferred));
	if (row->call)
		kb_json_string(json, "call", row->call);
	kb_json_bool(json, "iowait", row->iowait);
	if (row->others)
		kb_json_bool(json, "others", true);
	if ((row->object == KB_OBJECT_FILE || row->object == KB_OBJECT_DEVICE) && !row->others)
		kb_json_u64(json, "device", row->device);
	if (row->object >= KB_OBJECT_FILE && !row->others && (row->value || row->object < KB_OBJECT_MUTEX))
		kb_json_u64(json, "object_value", row->value);
	if (row->object == KB_OBJECT_FUTEX && !row->others)
		kb_json_u64(json, "pid", row->pid);
	if (row->name && !row->others)
		kb_json_string(json, "name", row->name);
}

void report_put_holder(struct kb_json *json, const struct kb_waits_row *row)
{
	if (!row->holder)
		return;
	kb_json_u64(json, "holder_tid", row->holder);
	kb_json_string(json, "holder", row->holder_task);
}
