// SPDX-License-Identifier: MIT
/* A critical path for people: its sums, and its last links in order. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/latency/chains.h"
#include "analysis/latency/waited.h"
#include "analysis/time/origin.h"
#include "base/array.h"
#include "base/percent.h"
#include "base/table.h"
#include "export/text/path_put.h"

#define SHOWN_LINKS	100U
#define SHOWN_SUMS	40U

/* All links of one kind, task and origin. */
struct sum {
	uint64_t key[4];
	uint64_t ns, links;
	const struct kb_link *link;	/* the longest one, the first of these */
};

/* What was waited for meanwhile. */
static void put_wait(const struct latency_text *text, const struct kb_link *link)
{
	const struct kb_origin waiter = { .kind = KB_TILE_TASK, .id = link->waiter };
	char name[KB_TASK_NAME_BUFFER];
	const struct kb_waits_row row = kb_link_wait(link, text->trace, name);

	if (!row.object)
		return;
	text_printf(&text->put, ", ");
	if (link->waiter != link->task_id) {
		latency_put_origin(text, &waiter, link->ticks);
		text_printf(&text->put, " waited ");
	}
	text_printf(&text->put, "in ");
	latency_put_object(text, &row);
}

void path_put_what(const struct latency_text *text, const struct kb_link *link, uint64_t links)
{
	static const char *const whats[] = {
		[KB_LINK_RUN] = "ran",
		[KB_LINK_QUEUE] = "woken, waited for its CPU",
		[KB_LINK_PREEMPTED] = "preempted, waited for its CPU",
		[KB_LINK_WAIT] = "waited for ",
		[KB_LINK_UNKNOWN] = "waited, and no record says for what",
		[KB_LINK_UNSEEN] = "has no record of that time",
		[KB_LINK_THROTTLED] = "throttled: could have run, and its CPU idled",
	};

	text_printf(&text->put, "%s", whats[link->kind]);
	if (link->kind == KB_LINK_WAIT) {
		latency_put_origin(text, &link->by, link->ticks);
	} else if (link->by.kind != KB_TILE_UNKNOWN) {
		text_printf(&text->put, links == 1 ? " behind " : ", longest behind ");
		latency_put_origin(text, &link->by, link->ticks);
	}
	put_wait(text, link);
	if (link->in_gap)
		text_printf(&text->put, " (records are missing in that time)");
}

static void put_link(const struct latency_text *text, const struct kb_link *link, uint64_t links)
{
	const struct kb_origin task = { .kind = KB_TILE_TASK, .id = link->task_id };

	latency_put_origin(text, &task, link->ticks);
	text_printf(&text->put, " ");
	path_put_what(text, link, links);
	text_printf(&text->put, "\n");
}

/* ---- sums ---- */

static int compare(const void *left, const void *right)
{
	const struct sum *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	for (unsigned int i = 0; i < ARRAY_SIZE(a->key); i++)
		if (a->key[i] != b->key[i])
			return a->key[i] > b->key[i] ? 1 : -1;
	return 0;
}

/* What was waited for, which one only of what has an identity. */
static void put_waited_key(const struct kb_link *link, uint64_t key[2])
{
	const struct kb_object *object = &link->object;

	if (!object->kind)
		return;
	key[0] = (uint64_t)link->waiter << 32 | (uint64_t)object->call << 16 | (uint64_t)object->kind << 8 |
		 object->flags;
	key[1] = kb_waited_has_identity(object->kind) ? object->value : 0;
}

/* What the path consists of: who, whatever was in front of them in queues. */
static int sum_up(struct kb_table *sums, const struct kb_path *path)
{
	uint64_t i;

	for (i = 0; i < path->nr; i++) {
		const struct kb_link *link = &path->links[i];
		const struct kb_origin waker = kb_link_waker(link);
		uint64_t key[4] = { (uint64_t)link->kind << 32 | link->task_id,
				    kb_origin_key(&waker) };
		struct sum *sum;

		put_waited_key(link, key + 2);
		sum = kb_table_get(sums, key);
		if (!sum)
			return -ENOMEM;
		sum->ns += kb_link_ns(link);
		sum->links++;
		if (!sum->link || kb_link_ns(link) > kb_link_ns(sum->link))
			sum->link = link;
	}
	return 0;
}

int path_put_sums(const struct latency_text *text, const struct kb_path *path, uint32_t most)
{
	struct kb_table sums;
	int ret;
	uint32_t i;

	kb_table_init(&sums, sizeof(struct sum), 4);
	ret = sum_up(&sums, path);
	if (!ret && sums.nr)
		qsort(sums.rows, sums.nr, sizeof(struct sum), compare);
	for (i = 0; i < sums.nr && i < most && !ret; i++) {
		const struct sum *sum = kb_table_row(&sums, i);
		struct kb_link link = *sum->link;

		link.in_gap = false;
		text_printf(&text->put, "%13.6f  %6.2f%%  %8" PRIu64 "  ", text_ms(sum->ns),
			    kb_percent(sum->ns, (uint64_t)path->until - (uint64_t)path->from),
			    sum->links);
		put_link(text, &link, sum->links);
	}
	if (i < sums.nr && !ret)
		text_printf(&text->put, "# %u more row%s shorter\n", sums.nr - i,
			    sums.nr - i == 1 ? " is" : "s are");
	kb_table_release(&sums);
	return ret;
}

/* ---- links ---- */

static void put_links(const struct latency_text *text, const struct kb_path *path)
{
	uint64_t i = path->nr > SHOWN_LINKS ? path->nr - SHOWN_LINKS : 0;
	int64_t first = kb_trace_first(text->trace);

	text_put_title(&text->put, "Its links, in order (times in ms since the beginning)");
	if (i)
		text_printf(&text->put, "# %" PRIu64 " earlier link%s: --json shows them\n#\n", i,
			    i == 1 ? " is left out" : "s are left out");
	text_printf(&text->put, "#       Since          Time  Task, and what it did\n#\n");
	for (; i < path->nr; i++) {
		text_printf(&text->put, "%13.6f %13.6f  ",
			    text_ms((uint64_t)path->links[i].start - (uint64_t)first),
			    text_ms(kb_link_ns(&path->links[i])));
		put_link(text, &path->links[i], 1);
	}
}

static void put_times(const struct latency_text *text, const struct kb_path *path)
{
	const struct kb_origin task = { .kind = KB_TILE_TASK, .id = path->task_id };
	int64_t first = kb_trace_first(text->trace);

	latency_put_origin(text, &task, path->ticks);
	text_printf(&text->put, ", from %.6f ms to %.6f ms: %.6f ms, %" PRIu64 " link%s\n",
		    text_ms((uint64_t)path->from - (uint64_t)first),
		    text_ms((uint64_t)path->until - (uint64_t)first),
		    text_ms((uint64_t)path->until - (uint64_t)path->from), path->nr,
		    path->nr == 1 ? "" : "s");
}

static void put_cut(const struct latency_text *text, const struct kb_path *path)
{
	if (path->cut)
		text_printf(&text->put, "#            its beginning is left out: it has too many "
			    "links\n");
}

void path_put_name(const struct latency_text *text, const struct kb_path *path)
{
	text_printf(&text->put, "# ");
	put_times(text, path);
	put_cut(text, path);
}

static void put_head(const struct latency_text *text, const struct kb_path *path,
		     const char *capture)
{
	text_put_capture(&text->put, capture);
	text_printf(&text->put, "# path     : back from ");
	put_times(text, path);
	text_put_damage(&text->put, path->damaged);
	put_cut(text, path);
}

int kb_path_text(const struct kb_path *path, struct kb_trace *trace, const char *capture,
		 struct kb_out *out, struct kb_error *err)
{
	struct latency_text text = {
		.put = { .out = out, .trace = trace, .tasks = kb_trace_tasks(trace, NULL) },
		.trace = trace,
	};
	int ret;

	put_head(&text, path, capture);
	text_put_title(&text.put, "What it consists of (times in ms)");
	text_printf(&text.put, PATH_SUMS_HEAD);
	ret = path_put_sums(&text, path, SHOWN_SUMS);
	if (!ret)
		put_links(&text, path);
	return text_end(&text.put, ret, err);
}
