// SPDX-License-Identifier: MIT
/* System calls, page faults and block requests, added up, for people. */
#include <inttypes.h>
#include <stdio.h>

#include <kbarman/report_text.h>

#include "analysis/time/ended.h"
#include "base/options.h"
#include "base/percent.h"
#include "export/text/latency_put.h"

static const struct words {
	const char *what, *title, *count, *name;
} words[] = {
	[KB_WHAT_SYSCALL] = { "syscalls", "System calls from begin to end (times in us)", "Calls", "Call" },
	[KB_WHAT_FAULT] = { "faults", "Page faults from begin to end, by who wanted the page (times in us)", "Faults",
			    "Kind    Function" },
	[KB_WHAT_BLOCK] = { "requests", "Requests to block devices, while the driver had them (times in us)",
			    "Requests", "Disk" },
};

static void put_name(const struct latency_text *text, const struct kb_ended_row *row, enum kb_what what)
{
	const char *operation = kb_block_operation_name((uint8_t)row->flags);

	if (what == KB_WHAT_FAULT)
		text_printf(&text->put, "%-6s  ", kb_fault_kind_name(row->number));
	if (row->name)
		text_put(&text->put, row->name, 0);
	else if (what == KB_WHAT_SYSCALL)
		text_printf(&text->put, "[call %" PRIu32 "]", row->number);
	else if (what == KB_WHAT_FAULT || !row->number)
		text_printf(&text->put, "[unknown]");
	else
		text_printf(&text->put, "%" PRIu32 ":%" PRIu32, row->number >> 20, row->number & 0xfffff);
	if (what == KB_WHAT_FAULT && row->image) {
		text_printf(&text->put, "  ");
		text_put(&text->put, row->image, 0);
	}
	if (what == KB_WHAT_BLOCK && operation)
		text_printf(&text->put, " %s", operation);
	else if (what == KB_WHAT_BLOCK)
		text_printf(&text->put, " [operation %u]", row->flags);
	if (row->bytes)
		text_printf(&text->put, ", %" PRIu64 " bytes", row->bytes);
	text_printf(&text->put, "\n");
}

static void put_row(const struct latency_text *text, const struct kb_ended *ended, const struct kb_ended_row *row)
{
	text_printf(&text->put, "%13.3f", text_ms(row->stats.sum_ns));
	text_put_share(&text->put, row->stats.sum_ns, ended->sum_ns, 7);
	text_printf(&text->put, "  %8" PRIu64 "  %8" PRIu64 "  %10.3f  %10.3f  %10.3f  ", row->count, row->errors,
		    latency_us(row->stats.median_ns), latency_us(row->stats.p99_ns),
		    latency_us(row->stats.max_ns));
	text_put(&text->put, row->task ?: "[unknown]", 16);
	text_printf(&text->put, "  ");
	put_name(text, row, ended->what);
}

static void put_head(const struct latency_text *text, const struct kb_ended *ended, const char *capture)
{
	text_put_capture(&text->put, capture);
	text_printf(&text->put, "# recorded : %.6f s\n# %-9s: %" PRIu64 ", %.6f ms\n",
		    (double)ended->duration_ns / 1e9, words[ended->what].what, ended->count,
		    text_ms(ended->sum_ns));
	text_put_damage(&text->put, ended->damaged);
	text_put_only(&text->put, text->put.options.filter);
}

int kb_ended_text(const struct kb_ended *ended, struct kb_trace *trace, const struct kb_ended_text_options *options,
		  struct kb_out *out, struct kb_error *err)
{
	struct latency_text text = {
		.put = { .out = out, .trace = trace, .tasks = kb_trace_tasks(trace, NULL) },
		.trace = trace,
	};
	struct kb_ended_text_options how;
	int ret = KB_OPTIONS(&how, options, err);
	uint32_t rest = 0;

	if (ret)
		return ret;
	text.put.options.filter = how.filter;
	text.options.percent_limit = how.percent_limit;
	put_head(&text, ended, how.capture);
	text_put_chosen(&text.put, words[ended->what].title, false);
	text_printf(&text.put, "#    Sum (ms)   Share  %8s    Errors      Median         p99     Longest  Task"
			       "              %s\n#\n", words[ended->what].count, words[ended->what].name);
	for (uint32_t i = 0; i < ended->nr; i++) {
		const struct kb_ended_row *row = &ended->rows[i];

		if (kb_percent(row->stats.sum_ns, ended->sum_ns) < how.percent_limit)
			rest++;
		else
			put_row(&text, ended, row);
	}
	latency_put_rest(&text, rest, "row");
	return text_end(&text.put, 0, err);
}
