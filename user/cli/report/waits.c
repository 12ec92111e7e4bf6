// SPDX-License-Identifier: MIT
/* kbarman report --waits: what tasks waited for. The JSON is complete. */
#include <kbarman/report_text.h>

#include "base/text/json.h"
#include "cli/base/cli.h"
#include "cli/report/print.h"

static void put_row(struct kb_json *json, struct kb_trace *trace, const struct kb_waits_row *row)
{
	kb_json_begin(json, "waited_for");
	kb_json_string(json, "task", row->task);
	report_put_object(json, row);
	report_put_holder(json, row);
	report_put_by(json, trace, &row->waker, row->woken);
	kb_json_u64(json, "waits", row->stats.count);
	report_put_stats(json, &row->stats);
	kb_json_end(json);
}

void report_put_waits(const struct kb_waits *waits, struct kb_trace *trace, struct kb_out *out)
{
	struct kb_json json = { .out = out };

	kb_json_begin(&json, "waits");
	kb_json_u64(&json, "duration_ns", waits->duration_ns);
	kb_json_u64(&json, "sum_ns", waits->sum_ns);
	kb_json_bool(&json, "objects", waits->has_objects);
	kb_json_bool(&json, "damaged", waits->damaged);
	kb_json_end(&json);
	for (uint32_t i = 0; i < waits->nr; i++)
		put_row(&json, trace, &waits->rows[i]);
}

int report_waits(struct report *report, bool json)
{
	const struct kb_waits_options how = { .size = sizeof(how), .filter = report->how.filter };
	const struct kb_waits_text_options text = {
		.size = sizeof(text), .capture = report->path, .filter = report->filters.text,
		.percent_limit = report->text.percent_limit,
	};
	const struct kb_waits *waits = NULL;
	struct kb_error err = { 0 };
	int ret = report_begin(report) ?:
		  report_take(kb_waits_create(&waits, report->trace, &how, &err), &err);

	if (ret)
		return ret;
	if (json)
		report_put_waits(waits, report->trace, report->out);
	else
		ret = kb_waits_text(waits, report->trace, &text, report->out, NULL);
	ret = report_end(report, ret, waits->damaged);
	kb_waits_destroy(waits);
	return ret;
}
