// SPDX-License-Identifier: MIT
#include "base/array.h"
#include "export/viewers/firefox_marks.h"

int kb_firefox_mark_order(const void *left, const void *right)
{
	const struct kb_firefox_mark *a = left, *b = right;

	if (a->task != b->task)
		return a->task < b->task ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->end < b->end ? -1 : a->end > b->end;
}

/* What the schemas below say. */
void kb_firefox_mark_data(struct kb_json *json, const struct kb_task_table *tasks,
			  const struct kb_firefox_mark *mark)
{
	static const char *const types[] = { "Mark", "Wakeup", "Interrupt" };
	char label[KB_TASK_LABEL];

	kb_json_object(json, NULL);
	kb_json_string(json, "type", types[mark->kind]);
	switch (mark->kind) {
	case KB_FIREFOX_WAKEUP:
		kb_json_text(json, "by", label, kb_task_label(tasks, mark->about, label));
		kb_json_string(json, "context", kb_context_name(mark->context) ?: "?");
		break;
	case KB_FIREFOX_HANDLER:
		kb_json_string(json, "what", mark->what);
		kb_json_u64(json, "number", mark->about);
		break;
	default:
		kb_json_u64(json, "channel", mark->channel);
	}
	kb_json_object_end(json);
}

static void write_field(struct kb_json *json, const char *key, const char *label,
			const char *format)
{
	kb_json_object(json, NULL);
	kb_json_string(json, "key", key);
	kb_json_string(json, "label", label);
	kb_json_string(json, "format", format);
	kb_json_object_end(json);
}

/* Begin the schema of a type of markers, up to its fields. @label: what a chart and a table show. */
static void begin_schema(struct kb_json *json, const char *name, const char *label)
{
	static const char *const display[] = { "marker-chart", "marker-table", "timeline-overview" };
	size_t i;

	kb_json_object(json, NULL);
	kb_json_string(json, "name", name);
	kb_json_string(json, "chartLabel", label);
	kb_json_string(json, "tooltipLabel", label);
	kb_json_string(json, "tableLabel", label);
	kb_json_array(json, "display");
	for (i = 0; i < ARRAY_SIZE(display); i++)
		kb_json_string(json, NULL, display[i]);
	kb_json_array_end(json);
	kb_json_array(json, "data");
}

static void end_schema(struct kb_json *json)
{
	kb_json_array_end(json);
	kb_json_object_end(json);
}

void kb_firefox_mark_schemas(struct kb_json *json)
{
	kb_json_array(json, "markerSchema");
	begin_schema(json, "Mark", "{marker.name}");
	write_field(json, "channel", "Channel", "integer");
	end_schema(json);
	begin_schema(json, "Wakeup", "{marker.name} by {marker.data.by}");
	write_field(json, "by", "By", "string");
	write_field(json, "context", "From", "string");
	end_schema(json);
	begin_schema(json, "Interrupt", "{marker.name}");
	write_field(json, "what", "Kind", "string");
	write_field(json, "number", "Number", "integer");
	end_schema(json);
	kb_json_array_end(json);
}
