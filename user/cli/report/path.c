// SPDX-License-Identifier: MIT
/* kbarman report --critical-path: the chain of who waited for whom. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kbarman/out.h>

#include "base/text/json.h"
#include "cli/base/cli.h"
#include "cli/base/sandbox.h"
#include "cli/report/print.h"

static void put_task(struct kb_json *json, struct kb_trace *trace, uint32_t task_id, uint64_t ticks)
{
	const struct kb_tasks *tasks = kb_trace_tasks(trace, NULL);
	char buffer[KB_TASK_NAME_BUFFER];
	struct kb_task_hit hit;

	kb_tasks_find(tasks, task_id, ticks, &hit);
	kb_json_u64(json, "pid", hit.tgid);
	kb_json_u64(json, "tid", task_id);
	kb_json_string(json, "task", kb_tasks_name(tasks, task_id, ticks, buffer));
}

static void put_link(struct kb_json *json, struct kb_trace *trace, const struct kb_link *link)
{
	kb_json_begin(json, "path_link");
	kb_json_string(json, "what", kb_link_name(link->kind));
	put_task(json, trace, link->task_id, link->ticks);
	report_put_by(json, trace, &link->by, link->ticks);
	kb_json_i64(json, "at_ns", link->start);
	kb_json_i64(json, "end_ns", link->end);
	kb_json_u64(json, "duration_ns", (uint64_t)link->end - (uint64_t)link->start);
	kb_json_bool(json, "gap", link->in_gap);
	kb_json_end(json);
}

static int print_json(const struct kb_path *path, struct kb_trace *trace)
{
	struct kb_json json = { 0 };
	int ret = kb_out_fd(&json.out, STDOUT_FILENO);
	uint64_t i;

	if (ret)
		return ret;
	kb_json_begin(&json, "path");
	put_task(&json, trace, path->task_id, path->ticks);
	kb_json_i64(&json, "from_ns", path->from);
	kb_json_i64(&json, "until_ns", path->until);
	kb_json_u64(&json, "links", path->nr);
	kb_json_bool(&json, "cut", path->cut);
	kb_json_bool(&json, "damaged", path->damaged);
	kb_json_end(&json);
	for (i = 0; i < path->nr; i++)
		put_link(&json, trace, &path->links[i]);
	ret = kb_out_flush(json.out);
	kb_out_destroy(json.out);
	return ret;
}

static int print_text(const struct kb_path *path, struct kb_trace *trace, const char *capture)
{
	struct kb_out *out;
	int ret = kb_out_fd(&out, STDOUT_FILENO);

	if (ret)
		return ret;
	ret = kb_path_text(path, trace, capture, out, NULL);
	kb_out_destroy(out);
	return ret;
}

static int make(struct report *report, const struct kb_path_options *how, bool json)
{
	const struct kb_trace_options options = {
		.size = sizeof(options), .symbols = &report->symbols,
	};
	const struct kb_path *path;
	struct kb_error err = { 0 };
	int ret;

	if (kb_trace_open(&report->trace, report->path, &options, &err))
		return cli_fail_error(&err);
	if (filters_check(&report->filters, report->trace, report->path))
		return CLI_IMPOSSIBLE;
	ret = kb_path_create(&path, report->trace, how, &err);
	cli_progress_end();
	if (ret < 0)
		return cli_fail_error(&err);
	if (ret)
		cli_warn("%s", kb_error_text(&err));
	ret = json ? print_json(path, report->trace)
		   : print_text(path, report->trace, report->path);
	if (ret)
		ret = cli_fail("can't write standard output: %s", strerror(-ret));
	else
		ret = path->damaged ? CLI_DAMAGED : CLI_OK;
	kb_path_destroy(path);
	return ret;
}

int report_path(struct report *report, bool json)
{
	struct kb_path_options how = { .size = sizeof(how), .filter = report->how.filter };
	char *text = strdup(report->critical_path);
	int status;

	if (!text)
		return cli_fail("out of memory");
	kb_path_parse(&how, text);
	cli_progress(NULL, false);
	cli_sandbox_reading(report->path);
	status = make(report, &how, json);
	cli_progress_end();
	free(text);
	return status;
}
