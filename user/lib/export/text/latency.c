// SPDX-License-Identifier: MIT
/* The latency report for people: its head, and the order of its parts. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "analysis/latency/late_waits.h"
#include "base/options.h"
#include "export/text/latency_parts.h"

static void put_line(const struct latency_text *text, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	text_printf(&text->put, "# %-9s: ", name);
	text_put(&text->put, value, 0);
	text_printf(&text->put, "\n");
}

static void put_time(const struct latency_text *text)
{
	time_t seconds = (time_t)(text->put.header->unix_base_ns / 1000000000);
	char date[64] = "";
	struct tm tm;

	if (text->put.header->unix_base_ns && gmtime_r(&seconds, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC, ", &tm);
	text_printf(&text->put, "# recorded : %s%.6f s, %u CPU%s\n", date,
		    (double)text->got->duration_ns / 1e9, text->got->nr_cores,
		    text->got->nr_cores == 1 ? "" : "s");
}

/* What is missing, and what that means for the numbers below. Always prints a line. */
static void put_losses(const struct latency_text *text)
{
	const struct kb_losses *losses = kb_trace_losses(text->trace, NULL);
	const struct kb_latency *got = text->got;

	if (losses && losses->stated)
		text_printf(&text->put, "# lost     : %" PRIu64 " records\n", losses->lost);
	else
		text_printf(&text->put, "# lost     : the capture does not say\n");
	if (losses && losses->overwritten)
		text_printf(&text->put, "#            %" PRIu64 " older records were overwritten by "
			    "newer ones\n", losses->overwritten);
	if (got->gaps)
		text_printf(&text->put, "#            in %" PRIu64 " gap%s\n", got->gaps,
			    got->gaps == 1 ? "" : "s");
}

static void put_records(const struct latency_text *text)
{
	const uint64_t *whats = text->got->whats;

	text_printf(&text->put, "# records  : %" PRIu64 ": %" PRIu64 " wakeups, %" PRIu64
		    " migrations, %" PRIu64 " interrupts, %" PRIu64 " softirqs\n",
		    text->got->records, whats[KB_WHAT_WAKING] + whats[KB_WHAT_WAKING_NEW],
		    whats[KB_WHAT_MIGRATE], whats[KB_WHAT_IRQ_ENTRY] + whats[KB_WHAT_IPI_ENTRY],
		    whats[KB_WHAT_SOFTIRQ_ENTRY]);
}

static void put_head(const struct latency_text *text)
{
	const struct kb_barman *barman = text->put.barman;
	const char *host = kb_barman_fact(barman, "host");

	put_line(text, "capture", text->options.capture);
	put_line(text, "host", host ? host : text->put.header->target_name);
	put_line(text, "release", kb_barman_fact(barman, "release"));
	put_line(text, "command", kb_barman_fact(barman, "command"));
	put_line(text, "sources", kb_barman_fact(barman, "sources"));
	put_time(text);
	put_records(text);
	put_losses(text);
	text_put_damage(&text->put, text->got->damaged);
	text_put_only(&text->put, text->options.filter);
}

int kb_latency_text(const struct kb_latency *latency, struct kb_trace *trace,
		    const struct kb_latency_text_options *options, struct kb_out *out,
		    struct kb_error *err)
{
	struct latency_text text = {
		.put = {
			.out = out,
			.trace = trace,
			.barman = kb_trace_barman(trace),
			.header = kb_trace_header(trace),
			.tasks = kb_trace_tasks(trace, NULL),
			.filter = kb_latency_filter(latency),
		},
		.got = latency,
		.trace = trace,
	};
	int ret = KB_OPTIONS(&text.options, options, err);

	if (ret)
		return ret;
	text.put.options.filter = text.options.filter;
	put_head(&text);
	if (text.options.waits)
		latency_put_waits(&text);
	if (text.options.interrupts) {
		latency_put_interrupts(&text);
		latency_put_halts(&text);
		latency_put_cpus(&text);
	}
	return text_end(&text.put, 0, err);
}
