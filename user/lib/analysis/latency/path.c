// SPDX-License-Identifier: MIT
/*
 * The walk goes forward, and each task has the chain of links that led to what it does now. A task
 * that another one wakes gives up its own chain and takes the chain of the task that wakes. So at
 * the end the chain is there, without going back over the capture.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/names.h>

#include "analysis/facts/object_names.h"
#include "analysis/latency/chains.h"
#include "analysis/time/gaps.h"
#include "analysis/time/history.h"
#include "analysis/time/origin.h"
#include "analysis/time/waker.h"
#include "analysis/trace/wanted.h"
#include "base/options.h"
#include "base/table.h"

#define LINKS_MAX	200000U
#define PIECES		64U	/* looked at, to say who ran while a task waited for its CPU */
#define RAN_MAX		16U	/* different ones of these */

enum task_state {
	TASK_NEW = 0,		/* of this struct */
	TASK_RUNS,
	TASK_BLOCKED,
	TASK_WOKEN,
	TASK_PREEMPTED,
};

struct task {
	uint64_t key;		/* the task id */
	uint8_t state;		/* enum task_state */
	bool woken_early;	/* while it ran */
	uint32_t head;		/* of its chain, up to `since` */
	uint32_t before;	/* of the chain that it had when it ran last, if woken since */
	int64_t since;		/* ns */
	int64_t first;		/* ns: its first record */
	int64_t ran;		/* ns: the end of its last run so far */
	uint64_t ran_ticks;	/* the same */
};

struct path {
	struct kb_path shown;	/* the result; the first member */
	struct kb_path_options how;
	struct kb_wanted wanted;
	struct kb_trace *trace;
	const struct kb_names *names;
	struct kb_tiles *tiles;
	struct kb_history *history;
	struct kb_gaps gaps;
	struct kb_chains chains;
	struct kb_table tasks;
	struct kb_link *links;	/* of the result */
	bool begun, found;	/* the marks */
	int ended;		/* what the last step of the walk said */
};

static int no_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

static void destroy(struct path *path)
{
	kb_chains_release(&path->chains);
	kb_table_release(&path->tasks);
	kb_gaps_release(&path->gaps);
	kb_history_destroy(path->history);
	kb_tiles_destroy(path->tiles);
	free(path->links);
	free(path);
}

/* ---- chains of tasks ---- */

static struct task *get_task(struct path *path, uint32_t task_id, int64_t now)
{
	uint64_t key = task_id;
	struct task *task = kb_table_get(&path->tasks, &key);

	if (task && task->state == TASK_NEW) {
		task->state = TASK_RUNS;
		task->head = task->before = KB_CHAIN_NONE;
		task->since = task->first = task->ran = now;
	}
	return task;
}

/* What @task did since task->since, until the record of @walk, becomes a link. */
static int add_link(struct path *path, struct task *task, const struct kb_walk *walk,
		    enum kb_link_kind kind, const struct kb_origin *by)
{
	static const struct kb_origin nobody = { .kind = KB_TILE_UNKNOWN };
	const struct kb_link link = {
		.kind = kind,
		.task_id = (uint32_t)task->key,
		.by = by ? *by : nobody,
		.ticks = walk->event.timestamp,
		.start = task->since,
		.end = walk->ns,
	};
	uint32_t head;

	if (walk->ns <= task->since)
		return 0;
	head = kb_chains_add(&path->chains, task->head, &link);
	if (head == KB_CHAIN_NONE)
		return -ENOMEM;
	task->head = head;
	task->since = walk->ns;
	return 0;
}

static int add_run(struct path *path, struct task *task, const struct kb_walk *walk)
{
	/* a record that is out of order counts as one with the time of the record before it */
	task->ran = walk->ns > task->since ? walk->ns : task->since;
	task->ran_ticks = walk->event.timestamp;
	return add_link(path, task, walk, KB_LINK_RUN, NULL);
}

struct ran {
	struct kb_latency_piece pieces[RAN_MAX];
	uint32_t nr;
};

static bool take_piece(void *context, const struct kb_origin *what, uint64_t ns)
{
	struct ran *ran = context;
	uint32_t i;

	for (i = 0; i < ran->nr; i++)
		if (kb_origin_key(&ran->pieces[i].what) == kb_origin_key(what))
			break;
	if (i == RAN_MAX)
		return true;
	if (i == ran->nr)
		ran->pieces[ran->nr++] = (struct kb_latency_piece){ .what = *what };
	ran->pieces[i].ns += ns;
	return true;
}

/* What ran most on this CPU while @task waited for it. */
static struct kb_origin most_ran(const struct path *path, const struct task *task,
				 const struct kb_walk *walk)
{
	struct kb_origin most = { .kind = KB_TILE_UNKNOWN };
	struct ran ran = { .nr = 0 };
	uint64_t ns = 0;
	uint32_t i;

	kb_history_look(path->history, walk->event.core, task->since, walk->ns, PIECES, take_piece,
			&ran);
	for (i = 0; i < ran.nr; i++) {
		if (ran.pieces[i].ns <= ns)
			continue;
		ns = ran.pieces[i].ns;
		most = ran.pieces[i].what;
	}
	return most;
}

/* ---- records ---- */

static int leaves(struct path *path, const struct kb_walk *walk)
{
	struct task *task = get_task(path, walk->running, walk->ns);

	if (!task || add_run(path, task, walk))
		return -ENOMEM;
	if (walk->event.task_switch.reason == KB_SWITCH_BLOCKED) {
		task->state = TASK_BLOCKED;
	} else {
		task->state = TASK_PREEMPTED;
		task->woken_early = false;
	}
	return 0;
}

static int runs(struct path *path, const struct kb_walk *walk)
{
	struct task *task = get_task(path, walk->event.task_id, walk->ns);
	struct kb_origin ran;
	int ret = 0;

	if (!task)
		return -ENOMEM;
	ran = most_ran(path, task, walk);
	if (task->state == TASK_PREEMPTED)
		ret = add_link(path, task, walk, KB_LINK_PREEMPTED, &ran);
	else if (task->state == TASK_WOKEN || task->woken_early)
		ret = add_link(path, task, walk, KB_LINK_QUEUE, &ran);
	else if (task->state == TASK_BLOCKED)
		ret = add_link(path, task, walk, KB_LINK_UNKNOWN, NULL);
	task->state = TASK_RUNS;
	task->woken_early = false;
	kb_chains_drop(&path->chains, task->before);
	task->before = KB_CHAIN_NONE;
	return ret;
}

/* @task takes the chain of the task that wakes it. */
static int take_chain(struct path *path, struct task *task, uint32_t waker_id,
		      const struct kb_walk *walk)
{
	uint64_t key = waker_id;
	struct task *waker = kb_table_find(&path->tasks, &key);

	if (add_run(path, waker, walk))
		return -ENOMEM;
	if (task->before == KB_CHAIN_NONE)
		task->before = task->head;
	else
		kb_chains_drop(&path->chains, task->head);
	task->head = kb_chains_hold(&path->chains, waker->head);
	task->since = walk->ns;
	return 0;
}

/* Whether the task that runs woke in a softirq of its own: it sent something to another one of its machine. */
static bool wakes_by_sending(const struct path *path, const struct kb_event *event, const struct kb_origin *waker)
{
	const char *softirq = waker->id == KB_ORIGIN_ANY ? NULL : kb_softirq_name(waker->id);

	return waker->kind == KB_TILE_SOFTIRQ && (waker->id == KB_ORIGIN_ANY || (softirq && strcmp(softirq, "NET_RX") == 0)) &&
	       event->task_id && event->custom_counter.object.kind == KB_OBJECT_SOCKET &&
	       kb_object_names_is_local(kb_names_object(path->names, event, event->task_id));
}

static int feed_waking(struct path *path, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	struct kb_origin waker = kb_waker(path->tiles, event);
	struct task *task;
	bool by_task;
	int ret;

	if (wakes_by_sending(path, event, &waker))
		waker = (struct kb_origin){ .kind = KB_TILE_TASK, .id = event->task_id };
	by_task = waker.kind == KB_TILE_TASK && waker.id != event->custom_counter.id;
	/* the task that runs here has not gone to sleep yet, whoever wakes it */
	if (event->custom_counter.id == event->task_id)
		return 0;
	if (!event->custom_counter.id || (by_task && !get_task(path, waker.id, walk->ns)))
		return event->custom_counter.id ? -ENOMEM : 0;
	task = get_task(path, event->custom_counter.id, walk->ns);
	if (!task)
		return -ENOMEM;
	if (task->state == TASK_PREEMPTED)
		return 0;
	/* one that has no record before this one waits */
	if (task->state == TASK_RUNS && task->first < walk->ns) {
		task->woken_early = true;
		return 0;
	}
	ret = by_task ? take_chain(path, task, waker.id, walk)
		      : add_link(path, task, walk, KB_LINK_WAIT, &waker);
	task->state = TASK_WOKEN;
	return ret;
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

static bool feed_mark(struct path *path, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;

	if (event->type != KB_EVENT_ANNOTATION || !path->how.until)
		return false;
	if (!path->begun && is_text(event, path->how.from)) {
		path->begun = true;
		path->shown.from = walk->ns;
		kb_chains_forget(&path->chains, walk->ns);
	} else if (path->begun && is_text(event, path->how.until)) {
		path->found = true;
	}
	return path->found;
}

static int feed(struct path *path, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	int ret = 0;

	if (event->type == KB_EVENT_TASK_SWITCH) {
		if (walk->known && walk->running)
			ret = leaves(path, walk);
		if (!ret && event->task_id)
			ret = runs(path, walk);
	} else if (event->type == KB_EVENT_CUSTOM_COUNTER &&
		   (event->custom_counter.what == KB_WHAT_WAKING ||
		    event->custom_counter.what == KB_WHAT_WAKING_NEW)) {
		ret = feed_waking(path, walk);
	}
	return ret;
}

/* Puts the number of tiles into the history. Returns 0 or -ENOMEM. */
static int feed_tiles(struct path *path, const struct kb_walk *walk)
{
	struct kb_tile tiles[KB_TILES_MOST];
	int nr = kb_tiles_feed(path->tiles, walk, tiles), ret = nr < 0 ? nr : 0, i;

	for (i = 0; i < nr && !ret; i++)
		ret = kb_history_add(path->history, &tiles[i]);
	return ret;
}

/* ---- the result ---- */

/* The links of the chain from @head back to path->shown.from. */
static int collect(struct path *path, uint32_t head)
{
	const struct kb_chain_link *all = path->chains.links;
	uint64_t nr = 0, at;
	uint32_t link;

	for (link = head; link < KB_CHAIN_CUT && all[link].link.end > path->shown.from;
	     link = all[link].before)
		nr++;
	path->shown.cut = link == KB_CHAIN_CUT;
	path->links = calloc(nr + 1, sizeof(*path->links));
	if (!path->links)
		return -ENOMEM;
	for (link = head, at = nr; at; link = all[link].before)
		path->links[--at] = all[link].link;
	path->shown.links = path->links;
	path->shown.nr = nr;
	return 0;
}

/* Join links that are alike, and cut the first one off where the path begins. */
static void tidy(struct path *path)
{
	struct kb_link *links = path->links;
	uint64_t i, nr = 0;

	for (i = 1; i < path->shown.nr; i++) {
		if (!kb_link_goes_on(&links[nr], &links[i])) {
			links[++nr] = links[i];
			continue;
		}
		links[nr].end = links[i].end;
		links[nr].ticks = links[i].ticks;
	}
	if (!path->shown.nr)
		return;
	path->shown.nr = nr + 1;
	if (links[0].start < path->shown.from)
		links[0].start = path->shown.from;
	path->shown.cut &= links[0].start > path->shown.from;
	path->shown.from = links[0].start;
	for (i = 0; i < path->shown.nr; i++)
		links[i].in_gap = kb_gaps_overlap(&path->gaps, links[i].start, links[i].end);
}

/* Did it run in the time that is wanted? */
static bool task_ran(const struct path *path, const struct task *task)
{
	return !path->wanted.filter.has_time || task->state == TASK_RUNS ||
	       task->ran > kb_wanted_from(&path->wanted);
}

/* The task with the name or number that ran last. */
static struct task *find_task(struct path *path)
{
	const struct kb_tasks *tasks = kb_trace_tasks(path->trace, NULL);
	char buffer[KB_TASK_NAME_BUFFER];
	struct task *found = NULL;
	uint32_t i;

	for (i = 0; i < path->tasks.nr; i++) {
		struct task *task = kb_table_row(&path->tasks, i);

		if (path->how.has_tid ? task->key != path->how.tid
				      : strcmp(path->how.task,
					       kb_tasks_name(tasks, (uint32_t)task->key,
							     task->ran_ticks, buffer)) != 0)
			continue;
		if (!found || task->ran > found->ran)
			found = task;
	}
	return found && task_ran(path, found) ? found : NULL;
}

static int finish_task(struct path *path, const struct kb_walk *last, struct kb_error *err)
{
	struct task *task = find_task(path);
	const char *where = path->how.filter ? "the time that is wanted" : "this capture";
	uint32_t head;

	if (!task && path->how.has_tid)
		return kb_error_set(err, -ENOENT, KB_NO_OFFSET, "no task %u ran in %s", path->how.tid,
				    where);
	if (!task)
		return kb_error_set(err, -ENOENT, KB_NO_OFFSET, "no task '%s' ran in %s",
				    path->how.task, where);
	if (task->state == TASK_RUNS && last && add_run(path, task, last))
		return no_memory(err);
	path->shown.task_id = (uint32_t)task->key;
	path->shown.ticks = task->ran_ticks;
	path->shown.from = kb_wanted_nearest(&path->wanted, task->first);
	path->shown.until = task->ran;
	/* what it waits for at the end is not part of it */
	head = task->before == KB_CHAIN_NONE ? task->head : task->before;
	while (head < KB_CHAIN_CUT && path->chains.links[head].link.end > task->ran)
		head = path->chains.links[head].before;
	return collect(path, head) ? no_memory(err) : 0;
}

static int finish_marks(struct path *path, const struct kb_walk *walk, struct kb_error *err)
{
	struct task *task;

	if (!path->found)
		return kb_error_set(err, -ENOENT, KB_NO_OFFSET, "there is no mark '%s'%s",
				    path->begun ? path->how.until : path->how.from,
				    path->begun ? " behind the first one" : "");
	task = get_task(path, walk->event.task_id, walk->ns);
	if (!task || add_run(path, task, walk))
		return no_memory(err);
	path->shown.task_id = (uint32_t)task->key;
	path->shown.ticks = walk->event.timestamp;
	path->shown.until = task->ran;
	return collect(path, task->head) ? no_memory(err) : 0;
}

/* ---- the walk ---- */

static int prepare(struct path *path, struct kb_error *err)
{
	uint32_t max_cores = kb_trace_header(path->trace)->max_cores;
	int ret = kb_trace_rewind(path->trace, err);

	path->names = ret || !kb_trace_tasks(path->trace, err) ? NULL : kb_trace_names(path->trace, err);
	if (!ret && !path->names)
		ret = -ENOMEM;
	ret = ret ?: kb_wanted_init(&path->wanted, path->trace, path->how.filter, err) ?:
	      kb_gaps_read(&path->gaps, path->trace, err);
	if (ret)
		return ret;
	kb_chains_init(&path->chains, LINKS_MAX);
	kb_table_init(&path->tasks, sizeof(struct task), 1);
	if (kb_tiles_create(&path->tiles, path->trace, err) ||
	    kb_history_create(&path->history, max_cores))
		return no_memory(err);
	return 0;
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
	struct kb_walk end;
	int ret = 0;

	while ((path->ended = kb_trace_next(path->trace, &walk, err)) > 0) {
		if (path->how.filter && kb_wanted_nearest(&path->wanted, walk->ns) < walk->ns) {
			/* what runs there runs until the end of the time */
			end = *walk;
			end.ns = kb_wanted_until(&path->wanted);
			walk = &end;
			break;
		}
		ret = feed_tiles(path, walk) ?: feed(path, walk);
		if (ret)
			return no_memory(err);
		if (feed_mark(path, walk))
			break;
	}
	if (path->ended == -ENOMEM)
		return -ENOMEM;
	ret = path->how.until ? finish_marks(path, walk, err) : finish_task(path, walk, err);
	if (!ret)
		tidy(path);
	return ret;
}

static bool is_damaged(const struct path *path, struct kb_error *err)
{
	const struct kb_error *first;

	if (path->ended < 0)
		return true;
	if (!kb_barman_damage(kb_trace_barman(path->trace), &first))
		return false;
	if (err)
		*err = *first;
	return true;
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
	path->shown.damaged = is_damaged(path, err);
	*out = &path->shown;
	return path->shown.damaged;
}

void kb_path_destroy(const struct kb_path *path)
{
	if (path)
		destroy((struct path *)path);	/* NOLINT: it is its first member */
}
