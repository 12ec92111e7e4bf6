// SPDX-License-Identifier: MIT
/* kbarman report --classes: where the time of tasks and CPUs went. The JSON is complete. */
#include <kbarman/waits.h>
#include <kbarman/report_text.h>

#include "base/text/json.h"
#include "cli/base/cli.h"
#include "cli/report/print.h"

static void put_sums(struct kb_json *json, const struct kb_classes *classes)
{
	for (unsigned int kind = 0; kind < KB_CLASSES; kind++) {
		if (!classes->ns[kind])
			continue;
		kb_json_begin(json, "class_sum");
		kb_json_string(json, "class", kb_class_name(kind));
		kb_json_u64(json, "sum_ns", classes->ns[kind]);
		kb_json_end(json);
	}
}

static void put_cpu(struct kb_json *json, const struct kb_classes_cpu *cpu)
{
	for (unsigned int kind = 0; kind < KB_CLASSES; kind++) {
		if (!cpu->ns[kind])
			continue;
		kb_json_begin(json, "class_cpu");
		kb_json_u64(json, "cpu", cpu->cpu);
		kb_json_string(json, "class", kb_class_name(kind));
		kb_json_u64(json, "sum_ns", cpu->ns[kind]);
		kb_json_end(json);
	}
}

static void put_names(struct kb_json *json, const struct kb_classes_task *task)
{
	kb_json_u64(json, "pid", task->tgid);
	kb_json_u64(json, "tid", task->tid);
	kb_json_string(json, "task", task->name);
}

static void put_what(struct kb_json *json, const struct kb_class_row *row)
{
	const char state[] = { row->state, '\0' };

	switch (row->kind) {
	case KB_CLASS_CALL:
	case KB_CLASS_RUNNING:
		if (row->name)
			kb_json_string(json, "call", row->name);
		if (row->kind == KB_CLASS_RUNNING && !row->known)
			break;
		kb_json_u64(json, "number", row->number);
		kb_json_bool(json, "compat", row->compat);
		break;
	case KB_CLASS_FAULT:
		kb_json_string(json, "fault", row->name);
		break;
	case KB_CLASS_WAIT:
		if (row->wait)
			report_put_object(json, row->wait);
		else
			kb_json_string(json, "state", state);
		if (row->inferred)
			kb_json_string(json, "inferred", kb_inferred_name(row->inferred));
		break;
	default:
		break;
	}
}

static void put_task(struct kb_json *json, const struct kb_classes_task *task)
{
	kb_json_begin(json, "class_task");
	put_names(json, task);
	kb_json_u64(json, "lived_ns", task->lived_ns);
	kb_json_end(json);
	for (uint32_t i = 0; i < task->nr; i++) {
		kb_json_begin(json, "class_of");
		put_names(json, task);
		kb_json_string(json, "class", kb_class_name(task->rows[i].kind));
		put_what(json, &task->rows[i]);
		kb_json_u64(json, "sum_ns", task->rows[i].ns);
		kb_json_end(json);
	}
}

void report_put_classes(const struct kb_classes *classes, struct kb_out *out)
{
	struct kb_json json = { .out = out };

	kb_json_begin(&json, "classes");
	kb_json_u64(&json, "duration_ns", classes->duration_ns);
	kb_json_u64(&json, "tasks", classes->nr_tasks);
	kb_json_bool(&json, "only_some", classes->only_some);
	kb_json_bool(&json, "calls", classes->has_calls);
	kb_json_bool(&json, "faults", classes->has_faults);
	kb_json_bool(&json, "interrupts", classes->has_interrupts);
	kb_json_bool(&json, "wakeups", classes->has_wakeups);
	kb_json_bool(&json, "objects", classes->has_objects);
	kb_json_bool(&json, "damaged", classes->damaged);
	kb_json_end(&json);
	put_sums(&json, classes);
	for (uint32_t i = 0; i < classes->nr_cpus; i++)
		put_cpu(&json, &classes->cpus[i]);
	for (uint32_t i = 0; i < classes->nr_tasks; i++)
		put_task(&json, &classes->tasks[i]);
}

int report_classes(struct report *report, bool json)
{
	const struct kb_classes_options how = {
		.size = sizeof(how), .filter = report->how.filter, .by_name = !json,
	};
	const struct kb_classes_text_options text = {
		.size = sizeof(text), .capture = report->path, .filter = report->filters.text,
		.percent_limit = report->text.percent_limit,
	};
	const struct kb_classes *classes = NULL;
	struct kb_error err = { 0 };
	int ret = report_begin(report) ?:
		  report_take(kb_classes_create(&classes, report->trace, &how, &err), &err);

	if (ret)
		return ret;
	if (json)
		report_put_classes(classes, report->out);
	else
		ret = kb_classes_text(classes, report->trace, &text, report->out, NULL);
	ret = report_end(report, ret, classes->damaged);
	kb_classes_destroy(classes);
	return ret;
}
