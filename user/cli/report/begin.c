// SPDX-License-Identifier: MIT
/* How each report begins and ends. */
#include <string.h>
#include <unistd.h>

#include <kbarman/out.h>

#include "analysis/facts/sources.h"
#include "cli/base/cli.h"
#include "cli/base/sandbox.h"
#include "cli/report/print.h"

int report_begin(struct report *report)
{
	const struct kb_trace_options how = {
		.size = sizeof(how), .symbols = &report->symbols,
	};
	struct kb_error err = { 0 };
	int ret;

	cli_progress(NULL, false);
	cli_sandbox_reading(report->path);
	if (kb_trace_open(&report->trace, report->path, &how, &err))
		return cli_fail_error(&err);
	if (filters_check(&report->filters, report->trace, report->path))
		return CLI_IMPOSSIBLE;
	ret = kb_out_fd(&report->out, STDOUT_FILENO);
	return ret ? cli_fail("can't write standard output: %s", strerror(-ret)) : CLI_OK;
}

int report_take(int made, const struct kb_error *err)
{
	cli_progress_end();
	if (made < 0)
		return cli_fail_error(err);
	if (made)
		cli_warn("%s", kb_error_text(err));
	return CLI_OK;
}

int report_check_wakeups(const struct report *report, bool seen)
{
	if (seen || kb_has_source(kb_trace_barman(report->trace), "wake"))
		return CLI_OK;
	return cli_fail("%s has no wakeups: record with 'kbarman record --latency'", report->path);
}

int report_end(const struct report *report, int written, bool damaged)
{
	written = written ?: kb_out_flush(report->out);
	if (written)
		return cli_fail("can't write standard output: %s", strerror(-written));
	return damaged ? CLI_DAMAGED : CLI_OK;
}
