// SPDX-License-Identifier: MIT
/* System calls by task and call, for people. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <kbarman/report_text.h>

#include "base/options.h"
#include "base/percent.h"
#include "export/text/latency_put.h"

static void put_row(const struct latency_text *text, const struct kb_syscalls_row *row, uint64_t sum)
{
	text_printf(&text->put, "%13.3f", text_ms(row->stats.sum_ns));
	text_put_share(&text->put, row->stats.sum_ns, sum, 7);
	text_printf(&text->put, "  %8" PRIu64 "  %8" PRIu64 "  %10.3f  %10.3f  %10.3f  ", row->count, row->errors,
		    latency_us(row->stats.median_ns), latency_us(row->stats.p99_ns),
		    latency_us(row->stats.max_ns));
	text_put(&text->put, row->task, 16);
	if (row->call)
		text_printf(&text->put, "  %s\n", row->call);
	else
		text_printf(&text->put, "  [call %" PRIu32 "]\n", row->number);
}

static void put_head(const struct latency_text *text, const struct kb_syscalls *syscalls, const char *capture)
{
	if (capture) {
		text_printf(&text->put, "# capture  : ");
		text_put(&text->put, capture, 0);
		text_printf(&text->put, "\n");
	}
	text_printf(&text->put, "# recorded : %.6f s\n# syscalls : %" PRIu64 ", %.6f ms\n",
		    (double)syscalls->duration_ns / 1e9, syscalls->count, text_ms(syscalls->sum_ns));
	text_put_damage(&text->put, syscalls->damaged);
	text_put_only(&text->put, text->put.options.filter);
}

int kb_syscalls_text(const struct kb_syscalls *syscalls, struct kb_trace *trace,
		     const struct kb_syscalls_text_options *options, struct kb_out *out, struct kb_error *err)
{
	struct latency_text text = {
		.put = { .out = out, .trace = trace, .tasks = kb_trace_tasks(trace, NULL) },
		.trace = trace,
	};
	struct kb_syscalls_text_options how;
	int ret = KB_OPTIONS(&how, options, err);
	uint32_t rest = 0;

	if (ret)
		return ret;
	text.put.options.filter = how.filter;
	text.options.percent_limit = how.percent_limit;
	put_head(&text, syscalls, how.capture);
	text_put_chosen(&text.put, "System calls from begin to end (times in us)", false);
	text_printf(&text.put, "#    Sum (ms)   Share     Calls    Errors      Median         p99     Longest  Task"
			       "              Call\n#\n");
	for (uint32_t i = 0; i < syscalls->nr; i++) {
		const struct kb_syscalls_row *row = &syscalls->rows[i];

		if (kb_percent(row->stats.sum_ns, syscalls->sum_ns) < how.percent_limit)
			rest++;
		else
			put_row(&text, row, syscalls->sum_ns);
	}
	latency_put_rest(&text, rest, "row");
	ret = kb_out_flush(out);
	return ret ? kb_error_set(err, ret, KB_NO_OFFSET, "can't write the report: %s", strerror(-ret)) : 0;
}
