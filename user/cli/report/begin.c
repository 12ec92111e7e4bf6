// SPDX-License-Identifier: MIT
/* How each report begins. */
#include "cli/base/cli.h"
#include "cli/base/sandbox.h"
#include "cli/report/print.h"

int report_begin(struct report *report)
{
	const struct kb_trace_options how = {
		.size = sizeof(how), .symbols = &report->symbols,
	};
	struct kb_error err = { 0 };

	cli_progress(NULL, false);
	cli_sandbox_reading(report->path);
	if (kb_trace_open(&report->trace, report->path, &how, &err))
		return cli_fail_error(&err);
	return filters_check(&report->filters, report->trace, report->path) ? CLI_IMPOSSIBLE : CLI_OK;
}
