// SPDX-License-Identifier: MIT
/* Whose chain of links the path is, and from when to when. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/latency/leads.h"
#include "analysis/trace/parts.h"
#include "analysis/trace/wanted.h"
#include "base/options.h"

struct path {
	struct kb_path shown;	/* the result; the first member */
	struct kb_path_options how;
	struct kb_wanted wanted;
	struct kb_trace *trace;
	struct kb_leads ends, stays;	/* what led to the end, and what the task did in a time */
	struct kb_leads *leads;	/* the one that is asked; of marks, the second one tells */
	bool begun, found;	/* the marks */
	uint32_t writer;	/* of the first one */
	bool reached;		/* the end of the time that is wanted */
	uint64_t task;		/* of which the path is then; */
	uint8_t state;		/* how it was there; */
	bool waits;		/* it neither ran nor was dead */
	int ended;		/* what the last step of the walk said */
};

static int no_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

static int64_t max_ns(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void destroy(struct path *path)
{
	kb_leads_release(&path->ends);
	kb_leads_release(&path->stays);
	free((struct kb_link *)path->shown.links);
	free(path);
}

/* The texts of some annotations are names of channels and groups. */
static bool is_text(const struct kb_event *event, const char *text)
{
	size_t length = strlen(text);

	return (event->annotation.type == KB_ANNOTATION_STRING ||
		event->annotation.type == KB_ANNOTATION_BOOKMARK) &&
	       event->annotation.text_length == length &&
	       memcmp(event->annotation.text, text, length) == 0;
}

static void feed_mark(struct path *path, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;

	if (event->type != KB_EVENT_ANNOTATION || !path->how.until)
		return;
	if (!path->begun && is_text(event, path->how.from)) {
		path->begun = true;
		path->writer = event->task_id;
		path->shown.from = walk->ns;
		path->stays.chains.needed = path->ends.chains.needed = walk->ns;
		kb_chains_forget(&path->ends.chains, walk->ns);
	} else if (path->begun && is_text(event, path->how.until)) {
		path->found = true;
		path->leads = event->task_id == path->writer ? &path->stays : &path->ends;
	}
}

/* ---- the task ---- */

/* When it ran last; the one that runs, later than all others. */
static int64_t last_ran(const struct kb_lead *task)
{
	return task->state == KB_LEAD_RUNS ? INT64_MAX : task->ran;
}

/* Was it there in the time that is wanted? */
static bool is_wanted(const struct path *path, const struct kb_lead *task)
{
	return !path->wanted.filter.has_time || task->state != KB_LEAD_DEAD ||
	       task->ran > kb_wanted_from(&path->wanted);
}

/* The task with the name or number that ran last. */
static struct kb_lead *find_task(struct path *path)
{
	const struct kb_tasks *tasks = kb_trace_tasks(path->trace, NULL);
	char buffer[KB_TASK_NAME_BUFFER];
	struct kb_lead *found = NULL;

	for (uint32_t i = 0; i < path->leads->tasks.nr; i++) {
		struct kb_lead *task = kb_table_row(&path->leads->tasks, i);

		if (path->how.has_tid ? task->key != path->how.tid
				      : strcmp(path->how.task,
					       kb_tasks_name(tasks, (uint32_t)task->key,
							     task->ran_ticks, buffer)) != 0)
			continue;
		if (!found || last_ran(task) > last_ran(found))
			found = task;
	}
	return found && is_wanted(path, found) ? found : NULL;
}

static struct kb_lead *chosen(const struct path *path)
{
	return kb_table_find(&path->leads->tasks, &path->task);
}

/*
 * @walk is behind the time that is wanted, so it is known which task the path is of. What that
 * waits for shows itself when it goes on.
 */
static int reach_end(struct path *path, const struct kb_walk *walk)
{
	struct kb_lead *task = find_task(path);
	struct kb_walk end = *walk;

	path->reached = true;
	path->waits = task && task->state != KB_LEAD_RUNS && task->state != KB_LEAD_DEAD;
	if (!task)
		return 0;
	path->task = task->key;
	path->state = task->state;
	end.ns = kb_wanted_until(&path->wanted);
	return task->state == KB_LEAD_RUNS ? kb_leads_extend(path->leads, task, &end) : 0;
}

static bool is_at_end(const struct path *path)
{
	return path->reached && (!path->waits || chosen(path)->state != path->state);
}

/*
 * Whether what it waits for at the end of the capture belongs to it: it did nothing else in the
 * wanted time.
 */
static bool only_waits(const struct path *path, const struct kb_lead *task)
{
	return path->wanted.filter.has_time && task->ran <= kb_wanted_from(&path->wanted);
}

/* When the path ends, and the chain that leads there. Returns 0 or -ENOMEM. */
static int find_end(struct path *path, struct kb_lead *task, const struct kb_walk *last,
		    uint32_t *head)
{
	if (task->state == KB_LEAD_DEAD ||
	    (!path->reached && task->state != KB_LEAD_RUNS && !only_waits(path, task))) {
		path->shown.until = task->ran;
		*head = task->before == KB_CHAIN_NONE ? task->head : task->before;
		return 0;
	}
	/* the capture ends before it goes on */
	if ((!path->reached || (path->waits && task->state == path->state)) &&
	    kb_leads_extend(path->leads, task, last))
		return -ENOMEM;
	path->shown.until = path->reached ? kb_wanted_until(&path->wanted) : task->since;
	*head = task->head;
	return 0;
}

static int finish_task(struct path *path, const struct kb_walk *last, struct kb_error *err)
{
	struct kb_lead *task = path->reached ? chosen(path) : find_task(path);
	const char *where = path->how.filter ? "the time that is wanted" : "this capture";
	uint32_t head = KB_CHAIN_NONE;

	if (task && find_end(path, task, last, &head))
		return no_memory(err);
	if (task)
		path->shown.from = path->leads->stays ? path->leads->chains.needed : task->first;
	/* the capture ends before that time */
	if (task && path->shown.until < path->shown.from)
		task = NULL;
	if (!task && path->how.has_tid)
		return kb_error_set(err, -ENOENT, KB_NO_OFFSET, "no task %u ran in %s", path->how.tid,
				    where);
	if (!task)
		return kb_error_set(err, -ENOENT, KB_NO_OFFSET, "no task '%s' ran in %s",
				    path->how.task, where);
	path->shown.task_id = (uint32_t)task->key;
	path->shown.ticks = task->ran_ticks;
	return kb_leads_path(path->leads, head, &path->shown) ? no_memory(err) : 0;
}

static int finish_marks(struct path *path, const struct kb_walk *walk, struct kb_error *err)
{
	struct kb_lead *task;

	if (!path->found)
		return kb_error_set(err, -ENOENT, KB_NO_OFFSET, "there is no mark '%s'%s",
				    path->begun ? path->how.until : path->how.from,
				    path->begun ? " behind the first one" : "");
	task = kb_leads_writer(path->leads, walk);
	if (!task)
		return no_memory(err);
	path->shown.task_id = (uint32_t)task->key;
	path->shown.ticks = walk->event.timestamp;
	path->shown.until = task->since;
	return kb_leads_path(path->leads, task->head, &path->shown) ? no_memory(err) : 0;
}

/* ---- the walk ---- */

static int prepare(struct path *path, struct kb_error *err)
{
	int ret = kb_trace_rewind(path->trace, err) ?:
		  kb_wanted_init(&path->wanted, path->trace, path->how.filter, err);
	bool has_time = path->wanted.filter.has_time;

	if (!ret && !has_time)
		ret = kb_leads_init(&path->ends, path->trace, false, err);
	if (!ret && (has_time || path->how.until))
		ret = kb_leads_init(&path->stays, path->trace, true, err);
	path->leads = has_time ? &path->stays : &path->ends;
	if (!ret && has_time)
		path->stays.chains.needed =
			max_ns(kb_wanted_from(&path->wanted), kb_trace_first(path->trace));
	return ret;
}

static int feed(struct path *path, const struct kb_walk *walk)
{
	int ret = path->ends.trace ? kb_leads_feed(&path->ends, walk) : 0;

	if (!ret && path->stays.trace)
		ret = kb_leads_feed(&path->stays, walk);
	return ret;
}

static int take_options(struct path *path, const struct kb_path_options *options,
			struct kb_error *err)
{
	int ret = KB_OPTIONS(&path->how, options, err);

	if (ret)
		return ret;
	if (path->how.filter && path->how.until)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET,
				    "two marks are the time of a critical path: no other one can be chosen");
	if (path->how.until ? !path->how.from : !path->how.task && !path->how.has_tid)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET,
				    "a critical path needs a task or two marks");
	return 0;
}

static int read_all(struct path *path, struct kb_error *err)
{
	const struct kb_walk *walk = NULL;
	int ret = 0;

	while (!is_at_end(path) && !path->found &&
	       (path->ended = kb_trace_next(path->trace, &walk, err)) > 0) {
		if (!path->reached && kb_wanted_is_behind(&path->wanted, walk->ns))
			ret = reach_end(path, walk);
		if (!ret && !is_at_end(path))
			ret = feed(path, walk);
		if (ret)
			return no_memory(err);
		feed_mark(path, walk);
	}
	if (path->ended == -ENOMEM)
		return -ENOMEM;
	path->shown.wakeups = path->leads->wakeups;
	return path->how.until ? finish_marks(path, walk, err) : finish_task(path, walk, err);
}

int kb_path_create(const struct kb_path **out, struct kb_trace *trace,
		   const struct kb_path_options *options, struct kb_error *err)
{
	struct path *path = calloc(1, sizeof(*path));
	int ret;

	if (!path)
		return no_memory(err);
	path->trace = trace;
	ret = take_options(path, options, err) ?: prepare(path, err) ?: read_all(path, err);
	if (ret) {
		destroy(path);
		return ret;
	}
	path->shown.damaged = kb_trace_is_damaged(path->trace, path->ended, err);
	*out = &path->shown;
	return path->shown.damaged;
}

void kb_path_destroy(const struct kb_path *path)
{
	if (path)
		destroy((struct path *)path);	/* NOLINT: it is its first member */
}
