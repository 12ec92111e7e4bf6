// SPDX-License-Identifier: MIT
/* Requests for people: what all of them waited for, and the slowest ones. */
#include <inttypes.h>

#include "base/options.h"
#include "export/text/path_put.h"

#define SHOWN_ROWS	40U
#define SHOWN_SUMS	10U	/* of a request */

static void put_head(const struct latency_text *text, const struct kb_requests *requests,
		     const struct kb_requests_text_options *how)
{
	const struct kb_latency_stats *times = &requests->durations;

	text_put_capture(&text->put, how->capture);
	text_printf(&text->put, "# requests : %" PRIu64, times->count);
	if (how->requests) {
		text_printf(&text->put, ", ");
		text_put(&text->put, how->requests, 0);
	}
	if (requests->open)
		text_printf(&text->put, "; %" PRIu64 " more had no end", requests->open);
	text_printf(&text->put,
		    "\n# duration : median %.6f ms, p99 %.6f ms, longest %.6f ms, sum %.6f ms\n",
		    text_ms(times->median_ns), text_ms(times->p99_ns), text_ms(times->max_ns),
		    text_ms(times->sum_ns));
	text_put_damage(&text->put, requests->damaged);
	text_put_only(&text->put, how->filter);
}

static void put_row(const struct latency_text *text, const struct kb_requests_row *row,
		    uint64_t all)
{
	struct kb_link link = row->longest;

	link.in_gap = false;
	text_printf(&text->put, "%13.6f", text_ms(row->stats.sum_ns));
	text_put_share(&text->put, row->stats.sum_ns, all, 7);
	text_printf(&text->put, "  %8" PRIu64 "  %12.6f  %12.6f  %12.6f  ", row->stats.count,
		    text_ms(row->stats.median_ns), text_ms(row->stats.p99_ns),
		    text_ms(row->stats.max_ns));
	text_put(&text->put, row->task ?: "itself", 0);
	text_printf(&text->put, " ");
	path_put_what(text, &link, row->stats.count);
	text_printf(&text->put, "\n");
}

static void put_rows(const struct latency_text *text, const struct kb_requests *requests)
{
	uint32_t i;

	text_put_title(&text->put,
		       "What the requests waited for (times in ms, of the requests that have it)");
	text_printf(&text->put, "#         Sum   Share  Requests        Median           p99       "
				"Longest  What\n#\n");
	for (i = 0; i < requests->nr && i < SHOWN_ROWS; i++)
		put_row(text, &requests->rows[i], requests->durations.sum_ns);
	if (i < requests->nr)
		text_printf(&text->put, "# %u more row%s shorter\n", requests->nr - i,
			    requests->nr - i == 1 ? " is" : "s are");
}

static int put_slowest(const struct latency_text *text, const struct kb_requests *requests)
{
	int ret = 0;

	if (requests->nr_slowest)
		text_put_title(&text->put,
			       "The slowest requests, and what each consists of (times in ms)");
	for (uint32_t i = 0; i < requests->nr_slowest && !ret; i++) {
		if (i)
			text_printf(&text->put, "#\n");
		path_put_name(text, requests->slowest[i]);
		text_printf(&text->put, "#\n" PATH_SUMS_HEAD);
		ret = path_put_sums(text, requests->slowest[i], SHOWN_SUMS);
	}
	return ret;
}

int kb_requests_text(const struct kb_requests *requests, struct kb_trace *trace,
		     const struct kb_requests_text_options *options, struct kb_out *out,
		     struct kb_error *err)
{
	struct latency_text text = {
		.put = { .out = out, .trace = trace, .tasks = kb_trace_tasks(trace, NULL) },
		.trace = trace,
	};
	struct kb_requests_text_options how;
	int ret = KB_OPTIONS(&how, options, err);

	if (ret)
		return ret;
	put_head(&text, requests, &how);
	put_rows(&text, requests);
	return text_end(&text.put, put_slowest(&text, requests), err);
}
