// SPDX-License-Identifier: MIT
/* kbarman report --request: what requests waited for, and the paths of the slowest ones. */
#include <stdlib.h>
#include <string.h>

#include <kbarman/out.h>

#include "base/text/json.h"
#include "cli/base/cli.h"
#include "cli/report/print.h"

#define SLOWEST_MAX	1000	/* the library's */

bool report_take_slowest(struct report *report, const char *value)
{
	char *end;

	report->slowest = (uint32_t)strtoul(value, &end, 10);
	if (*value >= '0' && *value <= '9' && !*end && strlen(value) <= 4 &&
	    report->slowest <= SLOWEST_MAX)
		return true;
	cli_fail("--slowest %s: give a number from 0 to %d", value, SLOWEST_MAX);
	return false;
}

int report_choose_requests(struct report *report)
{
	const char *task = report->critical_path;
	bool number = task && *task && !task[strspn(task, "0123456789")];

	if (report->latency || report->irq || report->waits || report->ended || report->filters.how.cpus ||
	    (task && strstr(task, "..")))
		return cli_fail("--request is a report of its own, and goes where waits lead: leave out --latency, "
				"--irq, --waits, --syscalls, --faults, --block, options that choose CPUs, and marks "
				"of --critical-path");
	return task && filters_take(&report->filters, number ? OPTION_FILTER_TID : OPTION_FILTER_TASK, task) ==
	       FILTERS_WRONG ? CLI_IMPOSSIBLE : CLI_OK;
}

static void put_stats(struct kb_json *json, const struct kb_latency_stats *stats)
{
	kb_json_u64(json, "requests", stats->count);
	report_put_stats(json, stats);
}

static void put_json(const struct kb_requests *requests, struct kb_trace *trace, struct kb_out *out)
{
	struct kb_json json = { .out = out };

	kb_json_begin(&json, "requests");
	put_stats(&json, &requests->durations);
	kb_json_u64(&json, "open", requests->open);
	kb_json_bool(&json, "damaged", requests->damaged);
	kb_json_end(&json);
	for (uint32_t i = 0; i < requests->nr; i++) {
		const struct kb_requests_row *row = &requests->rows[i];

		kb_json_begin(&json, "requests_link");
		kb_json_string(&json, "what", kb_link_name(row->kind));
		kb_json_bool(&json, "own", !row->task);
		if (row->task)
			kb_json_string(&json, "task", row->task);
		report_put_by(&json, trace, &row->longest.by, row->longest.ticks);
		report_put_waiter(&json, trace, &row->longest);
		put_stats(&json, &row->stats);
		kb_json_end(&json);
	}
	for (uint32_t i = 0; i < requests->nr_slowest; i++)
		report_put_path(requests->slowest[i], trace, &json);
}

static int print(const struct report *report, const struct kb_requests *requests, bool json)
{
	const struct kb_requests_text_options how = {
		.size = sizeof(how),
		.capture = report->path,
		.filter = report->filters.text,
		.requests = report->request,
	};
	int ret = report_check_wakeups(report, requests->wakeups);

	if (ret)
		return ret;
	if (json)
		put_json(requests, report->trace, report->out);
	else
		ret = kb_requests_text(requests, report->trace, &how, report->out, NULL);
	return report_end(report, ret, requests->damaged);
}

int report_requests(struct report *report, bool json)
{
	struct kb_requests_options how = {
		.size = sizeof(how), .filter = report->how.filter, .slowest = report->slowest,
	};
	const struct kb_requests *requests = NULL;
	char *text = strdup(report->request);
	struct kb_error err = { 0 };
	int ret;

	if (!text)
		return cli_fail("out of memory");
	ret = kb_requests_parse(&how, text) ? 0 :
	      cli_fail("--request %s: give FROM..UNTIL, two marks or two system calls: 'syscall:read(fd).."
		       "syscall:write(fd)'", report->request);
	ret = ret ?: report_begin(report) ?:
	      report_take(kb_requests_create(&requests, report->trace, &how, &err), &err);
	if (!ret) {
		ret = print(report, requests, json);
		kb_requests_destroy(requests);
	}
	free(text);
	return ret;
}
