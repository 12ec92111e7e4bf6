// SPDX-License-Identifier: MIT
/*
 * One walk: each request that ends has its path at hand (leads.h). Tasks stay, so a request ends
 * where a call began, though that has its record when it is over. Memory use grows with tasks, not
 * with requests.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/name_ids.h"
#include "analysis/latency/leads.h"
#include "analysis/latency/request_ends.h"
#include "analysis/time/histogram.h"
#include "analysis/time/origin.h"
#include "analysis/trace/parts.h"
#include "analysis/trace/wanted.h"
#include "base/options.h"

#define SLOWEST_MAX	1000U
#define OPEN_MAX	(1U << 20)	/* tasks and descriptors; no request of one more is seen */
#define OWN		UINT32_MAX	/* in place of the number of a name: the request's own task */

/* Which task, and for which first argument of its call. */
struct open {
	uint64_t key[2];
	bool begun;
	int64_t from;		/* ns */
};

/* A task that has, or had, requests. */
struct worker {
	uint64_t key;		/* the task id */
	uint64_t open;		/* requests */
};

struct sum {
	uint64_t key[3];	/* kind of link and number of the task's name; what woke; what was waited for */
	uint64_t request;	/* of which `ns' is: its number */
	uint64_t ns;
	struct kb_link longest;
	struct kb_histogram times;
};

struct requests {
	struct kb_requests shown;	/* the results; the first member */
	struct kb_requests_options how;
	struct kb_request_end from, until;
	struct kb_wanted wanted;
	struct kb_trace *trace;
	struct kb_leads leads;
	struct kb_name_ids comms;
	struct kb_table opened;		/* struct open */
	struct kb_table workers;	/* struct worker */
	struct kb_table sums;		/* struct sum */
	struct kb_histogram durations;
	struct kb_path **slowest;
	struct kb_requests_row *rows;
	bool calls, begun;		/* there are records of calls; a request began */
	int ended;			/* what the last step of the walk said */
};

static int no_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

/* ---- a request ---- */

/* What was waited for, by kind and call, and whether the request's task or another one did. */
static uint64_t waited_key(const struct kb_path *path, const struct kb_link *link)
{
	return !link->object.kind ? 0 : (uint64_t)link->object.call << 32 | (uint64_t)link->object.kind << 16 |
	       (uint64_t)link->object.flags << 8 | (link->waiter == link->task_id) << 1 |
	       (link->waiter == path->task_id);
}

static int add_links(struct requests *requests, const struct kb_path *path)
{
	uint64_t number = requests->durations.count;

	for (uint64_t i = 0; i < path->nr; i++) {
		const struct kb_link *link = &path->links[i];
		const struct kb_origin waker = kb_link_waker(link);
		bool own = link->task_id == path->task_id;
		const struct kb_name_id *comm = own ? NULL :
			kb_name_ids_find(&requests->comms, link->task_id, link->ticks);
		uint64_t key[3] = { (uint64_t)link->kind << 32 | (comm ? comm->id : OWN),
				    kb_origin_key(&waker), waited_key(path, link) };
		struct sum *sum = own || comm ? kb_table_get(&requests->sums, key) : NULL;

		if (!sum)
			return -ENOMEM;
		if (sum->request != number) {
			if (sum->request && kb_histogram_add(&sum->times, sum->ns))
				return -ENOMEM;
			sum->request = number;
			sum->ns = 0;
		}
		sum->ns += kb_link_ns(link);
		if (kb_link_ns(link) > kb_link_ns(&sum->longest))
			sum->longest = *link;
	}
	return 0;
}

static void free_path(struct kb_path *path)
{
	if (path)
		free((struct kb_link *)path->links);
	free(path);
}

static uint64_t duration(const struct kb_path *path)
{
	return (uint64_t)path->until - (uint64_t)path->from;
}

/* Takes @path, if it is one of the slowest ones; of two with one duration, the first one is. */
static void keep(struct requests *requests, struct kb_path *path)
{
	uint32_t at = requests->shown.nr_slowest;

	while (at && duration(requests->slowest[at - 1]) < duration(path))
		at--;
	if (at == requests->how.slowest) {
		free_path(path);
		return;
	}
	if (requests->shown.nr_slowest == requests->how.slowest)
		free_path(requests->slowest[requests->shown.nr_slowest - 1]);
	else
		requests->shown.nr_slowest++;
	memmove(requests->slowest + at + 1, requests->slowest + at,
		(requests->shown.nr_slowest - at - 1) * sizeof(*requests->slowest));
	requests->slowest[at] = path;
}

/* The request of the task of @walk has the chain from @head backwards. */
static int add_request(struct requests *requests, const struct kb_walk *walk, uint32_t head,
		       int64_t from, int64_t until)
{
	struct kb_path *path = calloc(1, sizeof(*path));

	if (!path)
		return -ENOMEM;
	path->task_id = walk->event.task_id;
	path->ticks = walk->event.timestamp;
	path->from = from;
	path->until = until;
	if (kb_leads_path(&requests->leads, head, path) ||
	    kb_histogram_add(&requests->durations, duration(path)) || add_links(requests, path)) {
		free_path(path);
		return -ENOMEM;
	}
	keep(requests, path);
	return 0;
}

/* ---- records ---- */

static struct open *open_of(struct requests *requests, const struct kb_event *event)
{
	uint64_t key[2] = { event->task_id,
			    requests->from.same_first ? event->custom_counter.arguments[0] : 0 };

	return requests->opened.nr < OPEN_MAX ? kb_table_get(&requests->opened, key) :
						kb_table_find(&requests->opened, key);
}

/* Links from before the requests that are open are needed no more. */
static void note_needed(struct requests *requests, int64_t now)
{
	for (uint32_t i = 0; i < requests->opened.nr; i++) {
		const struct open *open = kb_table_row(&requests->opened, i);

		if (open->begun && open->from < now)
			now = open->from;
	}
	requests->leads.chains.needed = now;
}

static int begin_request(struct requests *requests, const struct kb_walk *walk)
{
	uint64_t key = walk->event.task_id;
	struct open *open;
	struct worker *worker;

	if (requests->from.is_call && walk->event.custom_counter.result < 0 &&
	    walk->event.custom_counter.result >= -4095)
		return 0;
	worker = kb_table_get(&requests->workers, &key);
	open = worker ? open_of(requests, &walk->event) : NULL;
	/* its chain begins here at the latest */
	if (!worker || !kb_leads_writer(&requests->leads, walk) ||
	    (!open && requests->opened.nr < OPEN_MAX))
		return -ENOMEM;
	if (!open)
		return 0;
	worker->open += !open->begun;
	open->begun = requests->begun = true;
	open->from = walk->ns;
	return 0;
}

static int end_request(struct requests *requests, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	uint64_t key = event->task_id;
	struct worker *worker = kb_table_find(&requests->workers, &key);
	struct open *open = worker && worker->open ? open_of(requests, event) : NULL;
	const struct kb_lead *lead;
	int64_t until = walk->ns;

	if (!open || !open->begun)
		return 0;
	if (requests->until.is_call) {
		if (!event->custom_counter.begin)
			return 0;
		until = kb_barman_ns(kb_trace_barman(requests->trace), event->custom_counter.begin);
	}
	open->begun = false;
	worker->open--;
	if (until < open->from || until > walk->ns ||
	    !kb_wanted_time(&requests->wanted, open->from) ||
	    !kb_wanted_time(&requests->wanted, until) ||
	    !kb_wanted_task(&requests->wanted, event->task_id, event->timestamp))
		return 0;
	lead = kb_leads_writer(&requests->leads, walk);
	if (!lead)
		return -ENOMEM;
	return add_request(requests, walk, lead->head, open->from, until);
}

static int feed(struct requests *requests, const struct kb_walk *walk)
{
	const struct kb_event *event = &walk->event;
	bool is_call = event->type == KB_EVENT_CUSTOM_COUNTER &&
		       event->custom_counter.what == KB_WHAT_SYSCALL;
	int ret;

	if (requests->leads.chains.used >= requests->leads.chains.limit)
		note_needed(requests, walk->ns);
	ret = kb_leads_feed(&requests->leads, walk);
	if (ret)
		return ret;
	if ((!is_call && event->type != KB_EVENT_ANNOTATION) || !event->task_id)
		return 0;
	requests->calls |= is_call;
	if (kb_request_end_is(&requests->until, event, requests->leads.names))
		ret = end_request(requests, walk);
	if (!ret && kb_request_end_is(&requests->from, event, requests->leads.names))
		ret = begin_request(requests, walk);
	return ret;
}

static int read_all(struct requests *requests, struct kb_error *err)
{
	const struct kb_walk *walk;
	int ret = 0;

	while (!ret && (requests->ended = kb_trace_next(requests->trace, &walk, err)) > 0) {
		/* a call that ends later may have begun in that time */
		if (!requests->until.is_call && kb_wanted_is_behind(&requests->wanted, walk->ns))
			break;
		ret = feed(requests, walk);
	}
	return ret || requests->ended == -ENOMEM ? no_memory(err) : 0;
}

/* ---- the results ---- */

static int compare(const void *left, const void *right)
{
	const struct kb_requests_row *a = left, *b = right;
	uint64_t by_a = kb_origin_key(&a->longest.by), by_b = kb_origin_key(&b->longest.by);
	int order;

	if (a->stats.sum_ns != b->stats.sum_ns)
		return a->stats.sum_ns > b->stats.sum_ns ? -1 : 1;
	order = strcmp(a->task ?: "", b->task ?: "");
	if (!order)
		order = (a->kind > b->kind) - (a->kind < b->kind);
	return order ?: (by_a > by_b) - (by_a < by_b);
}

static int finish_rows(struct requests *requests)
{
	struct kb_requests *shown = &requests->shown;

	requests->rows = calloc((size_t)requests->sums.nr + 1, sizeof(*requests->rows));
	if (!requests->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < requests->sums.nr; i++) {
		struct sum *sum = kb_table_row(&requests->sums, i);
		uint32_t name = (uint32_t)sum->key[0];

		if (kb_histogram_add(&sum->times, sum->ns))
			return -ENOMEM;
		requests->rows[shown->nr++] = (struct kb_requests_row){
			.kind = (enum kb_link_kind)(sum->key[0] >> 32),
			.task = name == OWN ? NULL : kb_name_ids_name(&requests->comms, name),
			.longest = sum->longest,
			.stats = kb_histogram_stats(&sum->times),
		};
	}
	qsort(requests->rows, shown->nr, sizeof(*requests->rows), compare);
	shown->rows = requests->rows;
	return 0;
}

/* Why there is no request. */
static int none(const struct requests *requests, struct kb_error *err)
{
	const char *where = requests->how.filter ? " that is wanted" : "";

	if (!requests->calls && (requests->from.is_call || requests->until.is_call))
		return kb_error_set(err, -ENOENT, KB_NO_OFFSET,
				    "there are no system calls: 'kbarman record --sources "
				    "syscalls' records them");
	if (!requests->begun)
		return kb_error_set(err, -ENOENT, KB_NO_OFFSET, "there is no %s'%s'%s",
				    requests->from.is_call ? "" : "mark ", requests->from.text,
				    requests->from.is_call ? " that did not fail" : "");
	return kb_error_set(err, -ENOENT, KB_NO_OFFSET,
			    "there is no request%s: no '%s' is behind a '%s' of the same task",
			    where, requests->until.text, requests->from.text);
}

static int finish(struct requests *requests, struct kb_error *err)
{
	struct kb_requests *shown = &requests->shown;

	if (!requests->durations.count)
		return none(requests, err);
	if (finish_rows(requests))
		return no_memory(err);
	for (uint32_t i = 0; i < requests->workers.nr; i++) {
		const struct worker *worker = kb_table_row(&requests->workers, i);

		if (kb_wanted_task(&requests->wanted, (uint32_t)worker->key, UINT64_MAX))
			shown->open += worker->open;
	}
	shown->durations = kb_histogram_stats(&requests->durations);
	shown->slowest = (const struct kb_path *const *)requests->slowest;
	shown->wakeups = requests->leads.wakeups;
	shown->damaged = kb_trace_is_damaged(requests->trace, requests->ended, err);
	return 0;
}

/* ---- begin and end ---- */

static int take_options(struct requests *requests, const struct kb_requests_options *options,
			struct kb_error *err)
{
	int ret = KB_OPTIONS(&requests->how, options, err);

	if (ret)
		return ret;
	if (!requests->how.from || !requests->how.until)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET,
				    "a request needs a begin and an end");
	if (requests->how.slowest > SLOWEST_MAX)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET,
				    "more than %u of the slowest requests", SLOWEST_MAX);
	ret = kb_request_end_parse(&requests->from, requests->how.from, err) ?:
	      kb_request_end_parse(&requests->until, requests->how.until, err);
	if (!ret && requests->from.same_first != requests->until.same_first)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET,
				    "'%s' and '%s': write (fd) in both ends of a request, "
				    "or in none",
				    requests->how.from, requests->how.until);
	return ret;
}

static int prepare(struct requests *requests, struct kb_error *err)
{
	int ret = kb_leads_init(&requests->leads, requests->trace, true, err) ?:
		  kb_wanted_init(&requests->wanted, requests->trace, requests->how.filter, err);

	if (ret)
		return ret;
	kb_name_ids_init(&requests->comms, kb_trace_tasks(requests->trace, NULL));
	requests->slowest = calloc((size_t)requests->how.slowest + 1, sizeof(*requests->slowest));
	return requests->slowest ? 0 : no_memory(err);
}

static void destroy(struct requests *requests)
{
	for (uint32_t i = 0; i < requests->sums.nr; i++)
		kb_histogram_release(&((struct sum *)kb_table_row(&requests->sums, i))->times);
	for (uint32_t i = 0; i < requests->shown.nr_slowest; i++)
		free_path(requests->slowest[i]);
	kb_histogram_release(&requests->durations);
	kb_table_release(&requests->opened);
	kb_table_release(&requests->workers);
	kb_table_release(&requests->sums);
	kb_name_ids_release(&requests->comms);
	kb_leads_release(&requests->leads);
	free(requests->from.pattern);
	free(requests->until.pattern);
	free(requests->slowest);
	free(requests->rows);
	free(requests);
}

int kb_requests_create(const struct kb_requests **out, struct kb_trace *trace,
		       const struct kb_requests_options *options, struct kb_error *err)
{
	struct requests *requests = calloc(1, sizeof(*requests));
	int ret;

	if (!requests)
		return no_memory(err);
	requests->trace = trace;
	kb_table_init(&requests->opened, sizeof(struct open), 2);
	kb_table_init(&requests->workers, sizeof(struct worker), 1);
	kb_table_init(&requests->sums, sizeof(struct sum), 3);
	ret = take_options(requests, options, err) ?: prepare(requests, err) ?: read_all(requests, err) ?:
	      finish(requests, err);
	if (ret) {
		destroy(requests);
		return ret;
	}
	*out = &requests->shown;
	return requests->shown.damaged;
}

void kb_requests_destroy(const struct kb_requests *requests)
{
	if (requests)
		destroy((struct requests *)requests);	/* NOLINT: it is its first member */
}
