// SPDX-License-Identifier: MIT
/*
 * Captures are read one after the other and leave their cells in one table. How many captures a side
 * has is known only at the end, so each of the first ones of a side is also cut in slices of time.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diff/inside.h"
#include "analysis/diff/judge.h"
#include "analysis/diff/tree.h"
#include "analysis/trace/inside.h"
#include "base/array.h"
#include "base/options.h"
#include "format/barman/identity.h"
#include "stats/contrast.h"

static int no_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

int kb_differ_create(struct kb_differ **out, const struct kb_diff_options *options,
		     struct kb_error *err)
{
	struct kb_differ *differ = calloc(1, sizeof(*differ));
	int ret;

	if (!differ)
		return no_memory(err);
	ret = KB_OPTIONS(&differ->how, options, err);
	if (!ret && !(differ->how.level >= 0 && differ->how.level < 1))
		ret = kb_error_set(err, -EINVAL, KB_NO_OFFSET,
				   "a level of confidence is above 0 and below 1");
	if (!ret && kb_diff_table_init(&differ->table))
		ret = no_memory(err);
	if (ret) {
		kb_differ_destroy(differ);
		return ret;
	}
	if (!(differ->how.level > 0))
		differ->how.level = 0.95;
	if (!(differ->how.least < 0 || differ->how.least > 0))
		differ->how.least = 0.005;
	*out = differ;
	return 0;
}

void kb_differ_destroy(struct kb_differ *differ)
{
	if (!differ)
		return;
	for (uint32_t i = 0; i < differ->nr; i++)
		kb_diff_origin_release(&differ->origins[i]);
	kb_diff_doubts_release(&differ->doubts);
	kb_diff_table_release(&differ->table);
	free(differ->origins);
	free(differ->captures);
	free(differ->sides);
	free(differ->rows);
	free(differ->nodes);
	free(differ->order);
	free(differ);
}

static int make_room(struct kb_differ *differ)
{
	uint32_t room = differ->room ? 2 * differ->room : 8;
	struct kb_diff_capture *captures;
	struct kb_diff_origin *origins;
	uint8_t *sides;

	if (differ->nr < differ->room)
		return 0;
	captures = reallocarray(differ->captures, room, sizeof(*captures));
	if (captures)
		differ->captures = captures;
	origins = reallocarray(differ->origins, room, sizeof(*origins));
	if (origins)
		differ->origins = origins;
	sides = reallocarray(differ->sides, room, sizeof(*sides));
	if (sides)
		differ->sides = sides;
	if (!captures || !origins || !sides)
		return -ENOMEM;
	differ->room = room;
	return 0;
}

struct kb_diff_capture *kb_differ_new_capture(struct kb_differ *differ, unsigned int side)
{
	struct kb_diff_capture *capture;

	if (make_room(differ))
		return NULL;
	capture = &differ->captures[differ->nr];
	*capture = (struct kb_diff_capture){
		.number = differ->nr,
		.side = side,
		.slices = differ->shown.sides[side].captures == 0,
		.per_second = differ->how.per_second,
	};
	differ->origins[differ->nr] = (struct kb_diff_origin){ .side = side };
	differ->sides[differ->nr] = (uint8_t)side;
	differ->nr++;
	differ->shown.sides[side].captures++;
	return capture;
}

/* A copy would count as another run, which is as exact as can be. */
static bool has_copy(const struct kb_differ *differ, unsigned int side,
		     const struct barman_identity *identity)
{
	for (uint32_t i = 0; i < differ->nr; i++)
		if (differ->origins[i].side == side && barman_is_same(&differ->origins[i].identity, identity))
			return true;
	return false;
}

int kb_differ_add(struct kb_differ *differ, unsigned int side, struct kb_trace *trace,
		  struct kb_error *err)
{
	struct barman_identity identity;
	struct kb_diff_capture *capture;
	struct kb_diff_origin *origin;
	int ret;

	if (side > 1 || differ->judged)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET,
				    side > 1 ? "there are two sides" : "they are compared already");
	ret = barman_identify(trace->barman, &identity, err);
	if (ret)
		return ret;
	if (has_copy(differ, side, &identity))
		return kb_error_set(err, -EEXIST, KB_NO_OFFSET,
				    "'%s' is the same capture as another one of its side: give one of them",
				    trace->path ?: "-");
	capture = kb_differ_new_capture(differ, side);
	if (!capture)
		return no_memory(err);
	ret = kb_diff_read(&differ->table, capture, trace, differ->how.filter, err);
	if (ret < 0)
		return ret;
	origin = &differ->origins[capture->number];
	if (kb_diff_origin_read(origin, trace, err))
		return -ENOMEM;
	origin->identity = identity;
	origin->seconds = capture->seconds;
	origin->weight = capture->weighed > 0 ? capture->weight / capture->weighed : 0;
	origin->damaged = capture->damaged;
	return ret;
}

/* ---- the results ---- */

static void add_up(struct kb_differ *differ)
{
	differ->shown.has_objects = true;
	for (uint32_t i = 0; i < differ->nr; i++) {
		const struct kb_diff_capture *capture = &differ->captures[i];
		struct kb_diff_side *side = &differ->shown.sides[differ->sides[i]];

		side->samples += capture->samples;
		side->switches += capture->switches;
		side->records += capture->records;
		side->lost += differ->origins[i].lost;
		side->seconds += capture->seconds / side->captures;
		side->damaged |= capture->damaged;
		differ->shown.has_objects &= capture->has_objects;
	}
}

static void count_rows(struct kb_diff *shown)
{
	for (uint32_t i = 0; i < shown->nr; i++) {
		shown->nr_compared += shown->rows[i].compared;
		shown->nr_certain += shown->rows[i].certain;
	}
}

int kb_differ_judge(struct kb_differ *differ, const struct kb_diff **diff, struct kb_error *err)
{
	const struct kb_diff_judging judging = {
		.level = differ->how.level,
		.least = differ->how.least,
		.sides = differ->sides,
		.nr_captures = differ->nr,
	};
	struct kb_diff *shown = &differ->shown;
	int64_t nr;

	*diff = shown;
	if (differ->judged)
		return 0;
	if (!shown->sides[0].captures || !shown->sides[1].captures)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "a side has no capture");
	add_up(differ);
	if (!shown->has_objects)
		kb_diff_table_drop(&differ->table, KB_DIFF_OBJECT);
	nr = kb_diff_judge(&differ->table, &judging, &differ->rows);
	if (nr < 0)
		return no_memory(err);
	differ->judged = true;
	shown->rows = differ->rows;
	shown->nr = (uint32_t)nr;
	shown->one_each = shown->sides[0].captures == 1 && shown->sides[1].captures == 1;
	count_rows(shown);
	if (kb_diff_tree(&differ->table, shown, &differ->nodes, &differ->order) ||
	    (differ->origins[0].events &&
	     kb_diff_doubts_find(&differ->doubts, differ->origins, differ->nr,
				 differ->how.per_second)))
		return no_memory(err);
	shown->nodes = differ->nodes;
	shown->order = differ->order;
	shown->nr_nodes = differ->table.places.nr;
	shown->doubts = differ->doubts.rows;
	shown->nr_doubts = differ->doubts.nr;
	return 0;
}

double kb_diff_exceeds(const struct kb_diff_row *row, double limit, bool falls)
{
	struct kb_contrast contrast = kb_diff_row_contrast(row, 1 + limit);
	double above = kb_contrast_above(&contrast);

	if (isinf(contrast.error))
		return 1;
	return falls ? 1 - above : above;
}

const char *kb_diff_measure_name(enum kb_diff_measure measure)
{
	static const char *const names[] = { "time", "cpu", "wait", "latency", "latency-p99",
					     "counter", "ipc", "idle", "irq" };

	return measure < ARRAY_SIZE(names) ? names[measure] : "";
}

const char *kb_diff_by_name(enum kb_diff_by by)
{
	static const char *const names[] = { "total", "task", "symbol", "chain", "state",
					     "handler", "object" };

	return by < ARRAY_SIZE(names) ? names[by] : "";
}
