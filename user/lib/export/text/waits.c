// SPDX-License-Identifier: MIT
/* What tasks waited for, for people. */
#include <inttypes.h>
#include <stdio.h>

#include <kbarman/report_text.h>

#include "analysis/latency/waited.h"
#include "base/options.h"
#include "base/percent.h"
#include "export/label.h"
#include "export/text/latency_put.h"

static void put_what(const struct latency_text *text, const struct kb_waits_row *row)
{
	char number[KB_LABEL_OBJECT];

	if (*kb_label_object(row, number))
		text_printf(&text->put, " %s%s", number, row->name ? ":" : "");
	if (!row->name)
		return;
	text_printf(&text->put, " ");
	text_put(&text->put, row->name, 0);
}

/* Of the longest wait. */
static void put_others(const struct latency_text *text, const struct kb_waits_row *row)
{
	if (row->holder) {
		text_printf(&text->put, ", the longest held by ");
		text_put(&text->put, row->holder_task, 0);
		text_printf(&text->put, " (%" PRIu32 ")", row->holder);
	}
	if (row->waker.kind == KB_TILE_UNKNOWN)
		return;
	text_printf(&text->put, ", %s by ", row->holder ? "ended" : "the longest ended");
	latency_put_origin(text, &row->waker, row->woken);
}

void latency_put_inferred(const struct latency_text *text, unsigned int inferred)
{
	text_printf(&text->put, "[inferred: %s]", kb_inferred_name(inferred));
}

void latency_put_object(const struct latency_text *text, const struct kb_waits_row *row)
{
	if (row->others) {
		text_printf(&text->put, "[all others: %s]", kb_object_name(row->object) ?: "unknown");
		return;
	}
	if (row->inferred)
		latency_put_inferred(text, row->inferred);
	else
		text_printf(&text->put, "%s", kb_waited_call(row));
	put_what(text, row);
	if (row->iowait)
		text_printf(&text->put, " (disk)");
}

static bool has_inferred(const struct kb_waits *waits)
{
	bool has = false;

	for (uint32_t i = 0; i < waits->nr; i++)
		has |= waits->rows[i].inferred;
	return has;
}

static void put_head(const struct latency_text *text, const struct kb_waits *waits, const char *capture)
{
	text_put_capture(&text->put, capture);
	text_printf(&text->put, "# recorded : %.6f s\n# waits    : %.6f ms\n", (double)waits->duration_ns / 1e9,
		    text_ms(waits->sum_ns));
	text_put_damage(&text->put, waits->damaged);
	if (!waits->has_objects && waits->nr)
		text_printf(&text->put, "#            the capture does not say what tasks waited for: 'kbarman "
			    "record' does, where the module can\n");
	if (has_inferred(waits))
		text_printf(&text->put, "# inferred : by who woke them, and where in Linux they waited\n");
	if (kb_barman_fact(kb_trace_barman(text->trace), "objects_unnamed"))
		text_printf(&text->put, "#            objects are more than the recorder has names for\n");
	text_put_only(&text->put, text->put.options.filter);
}

/* Programs say what they wait for; the kernel's own tasks do not, and wait for work most of the time. */
static bool is_of_the_kernel(const struct kb_waits *waits, const struct kb_waits_row *row)
{
	return waits->has_objects && row->object == KB_OBJECT_NONE;
}

static void put_row(const struct latency_text *text, const struct kb_waits_row *row, uint64_t sum)
{
	text_printf(&text->put, "%13.3f", text_ms(row->stats.sum_ns));
	text_put_share(&text->put, row->stats.sum_ns, sum, 7);
	text_printf(&text->put, "  %8" PRIu64 "  %10.3f  %10.3f  %10.3f  ", row->stats.count,
		    latency_us(row->stats.median_ns), latency_us(row->stats.p99_ns),
		    latency_us(row->stats.max_ns));
	text_put(&text->put, row->task, 16);
	text_printf(&text->put, "  ");
	latency_put_object(text, row);
	if (!row->others)
		put_others(text, row);
	text_printf(&text->put, "\n");
}

static void put_rows(const struct latency_text *text, const struct kb_waits *waits)
{
	uint64_t kernel_ns = 0, kernel = 0, sum;
	uint32_t rest = 0;

	for (uint32_t i = 0; i < waits->nr; i++) {
		if (!is_of_the_kernel(waits, &waits->rows[i]))
			continue;
		kernel_ns += waits->rows[i].stats.sum_ns;
		kernel += waits->rows[i].stats.count;
	}
	sum = waits->sum_ns - kernel_ns;
	for (uint32_t i = 0; i < waits->nr; i++) {
		const struct kb_waits_row *row = &waits->rows[i];

		if (is_of_the_kernel(waits, row))
			continue;
		if (kb_percent(row->stats.sum_ns, sum) < text->options.percent_limit)
			rest++;
		else
			put_row(text, row, sum);
	}
	latency_put_rest(text, rest, "object");
	if (kernel)
		text_printf(&text->put, "# Left out: %" PRIu64 " waits of the kernel's own tasks, %.3f ms\n", kernel,
			    text_ms(kernel_ns));
}

int kb_waits_text(const struct kb_waits *waits, struct kb_trace *trace,
		  const struct kb_waits_text_options *options, struct kb_out *out, struct kb_error *err)
{
	struct latency_text text = {
		.put = { .out = out, .trace = trace, .tasks = kb_trace_tasks(trace, NULL) },
		.trace = trace,
	};
	struct kb_waits_text_options how;
	int ret = KB_OPTIONS(&how, options, err);

	if (ret)
		return ret;
	text.put.options.filter = how.filter;
	text.options.percent_limit = how.percent_limit;
	put_head(&text, waits, how.capture);
	text_put_chosen(&text.put, "Waits by what they were for (times in us)", false);
	text_printf(&text.put, "#    Sum (ms)   Share     Waits      Median         p99     Longest  Task"
			       "              Waited for\n#\n");
	put_rows(&text, waits);
	return text_end(&text.put, 0, err);
}
