// SPDX-License-Identifier: MIT
/* kbarman report --syscalls, --faults, --block: what took time. The JSON is complete. */
#include <kbarman/report_text.h>

#include "analysis/time/ended.h"
#include "base/text/json.h"
#include "cli/base/cli.h"
#include "cli/report/print.h"

static const struct words {
	const char *source, *what;	/* of 'record --sources'; for people */
	const char *all, *row;		/* kinds of lines of JSON */
	const char *count;
} words[] = {
	[KB_WHAT_SYSCALL] = { "syscalls", "system calls", "syscalls", "syscalls_of", "calls" },
	[KB_WHAT_FAULT] = { "faults", "page faults", "faults", "faults_of", "faults" },
	[KB_WHAT_BLOCK] = { "block", "block requests", "block", "block_of", "requests" },
};

static void put_name(struct kb_json *json, const struct kb_ended_row *row, enum kb_what what)
{
	switch (what) {
	case KB_WHAT_SYSCALL:
		if (row->name)
			kb_json_string(json, "call", row->name);
		kb_json_u64(json, "number", row->number);
		kb_json_bool(json, "compat", row->flags);
		break;
	case KB_WHAT_FAULT:
		kb_json_string(json, "fault", kb_fault_kind_name(row->number));
		if (row->name)
			kb_json_string(json, "symbol", row->name);
		kb_json_string(json, "image", row->image);
		break;
	default:
		if (row->name)
			kb_json_string(json, "disk", row->name);
		kb_json_u64(json, "device", row->number);
		if (kb_block_operation_name((uint8_t)row->flags))
			kb_json_string(json, "operation", kb_block_operation_name((uint8_t)row->flags));
		kb_json_u64(json, "bytes", row->bytes);
	}
}

static void put_row(struct kb_json *json, const struct kb_ended_row *row, enum kb_what what)
{
	kb_json_begin(json, words[what].row);
	if (row->task)
		kb_json_string(json, "task", row->task);
	put_name(json, row, what);
	kb_json_u64(json, words[what].count, row->count);
	kb_json_u64(json, "errors", row->errors);
	kb_json_u64(json, "unbegun", row->count - row->stats.count);
	report_put_stats(json, &row->stats);
	kb_json_end(json);
}

void report_put_ended(const struct kb_ended *ended, struct kb_out *out)
{
	struct kb_json json = { .out = out };

	kb_json_begin(&json, words[ended->what].all);
	kb_json_u64(&json, "duration_ns", ended->duration_ns);
	kb_json_u64(&json, words[ended->what].count, ended->count);
	kb_json_u64(&json, "sum_ns", ended->sum_ns);
	kb_json_bool(&json, "damaged", ended->damaged);
	kb_json_end(&json);
	for (uint32_t i = 0; i < ended->nr; i++)
		put_row(&json, &ended->rows[i], ended->what);
}

int report_ended(struct report *report, bool json)
{
	const struct kb_ended_options how = {
		.size = sizeof(how), .what = report->ended, .filter = report->how.filter };
	const struct kb_ended_text_options text = {
		.size = sizeof(text), .capture = report->path, .filter = report->filters.text,
		.percent_limit = report->text.percent_limit,
	};
	const struct kb_ended *ended = NULL;
	struct kb_error err = { 0 };
	int ret = report_begin(report) ?:
		  report_take(kb_ended_create(&ended, report->trace, &how, &err), &err);

	if (ret)
		return ret;
	if (!ended->recorded && !ended->count) {
		ret = cli_fail("%s has no %s: record with 'kbarman record --sources %s'", report->path,
			       words[how.what].what, words[how.what].source);
	} else {
		if (json)
			report_put_ended(ended, report->out);
		else
			ret = kb_ended_text(ended, report->trace, &text, report->out, NULL);
		ret = report_end(report, ret, ended->damaged);
	}
	kb_ended_destroy(ended);
	return ret;
}
