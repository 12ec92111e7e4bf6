// SPDX-License-Identifier: MIT
/* kbarman report --syscalls: the system calls. The JSON is complete. */
#include <kbarman/report_text.h>

#include "base/text/json.h"
#include "cli/base/cli.h"
#include "cli/report/print.h"

static void put_row(struct kb_json *json, const struct kb_syscalls_row *row)
{
	kb_json_begin(json, "syscalls_of");
	kb_json_string(json, "task", row->task);
	if (row->call)
		kb_json_string(json, "call", row->call);
	kb_json_u64(json, "number", row->number);
	kb_json_bool(json, "compat", row->compat);
	kb_json_u64(json, "calls", row->count);
	kb_json_u64(json, "errors", row->errors);
	kb_json_u64(json, "unbegun", row->count - row->stats.count);
	kb_json_u64(json, "sum_ns", row->stats.sum_ns);
	kb_json_u64(json, "median_ns", row->stats.median_ns);
	kb_json_u64(json, "p99_ns", row->stats.p99_ns);
	kb_json_u64(json, "max_ns", row->stats.max_ns);
	kb_json_end(json);
}

void report_put_syscalls(const struct kb_syscalls *syscalls, struct kb_out *out)
{
	struct kb_json json = { .out = out };

	kb_json_begin(&json, "syscalls");
	kb_json_u64(&json, "duration_ns", syscalls->duration_ns);
	kb_json_u64(&json, "calls", syscalls->count);
	kb_json_u64(&json, "sum_ns", syscalls->sum_ns);
	kb_json_bool(&json, "damaged", syscalls->damaged);
	kb_json_end(&json);
	for (uint32_t i = 0; i < syscalls->nr; i++)
		put_row(&json, &syscalls->rows[i]);
}

int report_syscalls(struct report *report, bool json)
{
	const struct kb_syscalls_options how = { .size = sizeof(how), .filter = report->how.filter };
	const struct kb_syscalls_text_options text = {
		.size = sizeof(text), .capture = report->path, .filter = report->filters.text,
		.percent_limit = report->text.percent_limit,
	};
	const struct kb_syscalls *syscalls = NULL;
	struct kb_error err = { 0 };
	int ret = report_begin(report) ?:
		  report_take(kb_syscalls_create(&syscalls, report->trace, &how, &err), &err);

	if (ret)
		return ret;
	if (!syscalls->recorded && !syscalls->count) {
		ret = cli_fail("%s has no system calls: record with 'kbarman record --sources syscalls'", report->path);
	} else {
		if (json)
			report_put_syscalls(syscalls, report->out);
		else
			ret = kb_syscalls_text(syscalls, report->trace, &text, report->out, NULL);
		ret = report_end(report, ret, syscalls->damaged);
	}
	kb_syscalls_destroy(syscalls);
	return ret;
}
