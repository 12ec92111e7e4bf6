// SPDX-License-Identifier: MIT
/* kbarman report --critical-path: the chain of who waited for whom. */
#include <stdlib.h>
#include <string.h>

#include "base/text/json.h"
#include "cli/base/cli.h"
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
	report_put_waiter(json, trace, link);
	kb_json_i64(json, "at_ns", link->start);
	kb_json_i64(json, "end_ns", link->end);
	kb_json_u64(json, "duration_ns", (uint64_t)link->end - (uint64_t)link->start);
	kb_json_bool(json, "gap", link->in_gap);
	kb_json_end(json);
}

void report_put_path(const struct kb_path *path, struct kb_trace *trace, struct kb_json *json)
{
	kb_json_begin(json, "path");
	put_task(json, trace, path->task_id, path->ticks);
	kb_json_i64(json, "from_ns", path->from);
	kb_json_i64(json, "until_ns", path->until);
	kb_json_u64(json, "links", path->nr);
	kb_json_bool(json, "cut", path->cut);
	kb_json_bool(json, "damaged", path->damaged);
	kb_json_end(json);
	for (uint64_t i = 0; i < path->nr; i++)
		put_link(json, trace, &path->links[i]);
}

int report_path(struct report *report, bool json)
{
	struct kb_path_options how = { .size = sizeof(how), .filter = report->how.filter };
	char *text = strdup(report->critical_path);
	const struct kb_path *path = NULL;
	struct kb_error err = { 0 };
	int ret;

	if (!text)
		return cli_fail("out of memory");
	kb_path_parse(&how, text);
	ret = report_begin(report) ?: report_take(kb_path_create(&path, report->trace, &how, &err), &err);
	free(text);
	if (ret)
		return ret;
	ret = report_check_wakeups(report, path->wakeups);
	if (!ret) {
		if (json)
			report_put_path(path, report->trace, &(struct kb_json){ .out = report->out });
		else
			ret = kb_path_text(path, report->trace, report->path, report->out, NULL);
		ret = report_end(report, ret, path->damaged);
	}
	kb_path_destroy(path);
	return ret;
}
