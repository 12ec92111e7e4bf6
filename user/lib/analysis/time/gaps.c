// SPDX-License-Identifier: MIT
/*
 * A record tells of a gap only when the gap is over. So a first walk over the capture finds them
 * all. Far more gaps than a recording has are joined to fewer and longer ones. If the oldest records
 * of a CPU were overwritten, all time in front of its first record is a gap.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/facts/losses_read.h"
#include "analysis/time/gaps.h"
#include "base/array.h"
#include "base/bisect.h"

#define GAPS_MAX	65536U

/* The first records of the CPUs. */
struct begins {
	uint32_t max_cores;
	bool *overwritten, *seen;	/* max_cores each */
	int64_t *first;			/* ns, if seen */
};

void kb_gaps_release(struct kb_gaps *gaps)
{
	free(gaps->rows);
	free(gaps->before);
	*gaps = (struct kb_gaps){ 0 };
}

static int compare(const void *left, const void *right)
{
	const struct kb_gap *a = left, *b = right;

	return (a->start > b->start) - (a->start < b->start);
}

static void join(struct kb_gaps *gaps)
{
	uint32_t i, nr = 0;

	if (!gaps->nr)
		return;
	qsort(gaps->rows, gaps->nr, sizeof(*gaps->rows), compare);
	for (i = 1; i < gaps->nr; i++) {
		if (gaps->rows[i].start > gaps->rows[nr].end)
			gaps->rows[++nr] = gaps->rows[i];
		else if (gaps->rows[i].end > gaps->rows[nr].end)
			gaps->rows[nr].end = gaps->rows[i].end;
	}
	gaps->nr = nr + 1;
}

/* Join every two neighbours. */
static void halve(struct kb_gaps *gaps)
{
	uint32_t i, nr = gaps->nr / 2;

	for (i = 0; i < nr; i++)
		gaps->rows[i] = (struct kb_gap){ gaps->rows[2 * i].start,
						 gaps->rows[2 * i + 1].end };
	if (gaps->nr % 2)
		gaps->rows[nr++] = gaps->rows[gaps->nr - 1];
	gaps->nr = nr;
}

static int add(struct kb_gaps *gaps, int64_t start, int64_t end)
{
	if (gaps->nr == GAPS_MAX) {
		join(gaps);
		/* or else the next one might have to join them again */
		if (gaps->nr > GAPS_MAX / 2)
			halve(gaps);
	}
	if (!KB_ARRAY_ROOM(gaps->rows, gaps->room, (size_t)gaps->nr + 1))
		return -ENOMEM;
	gaps->rows[gaps->nr++] = (struct kb_gap){ start, end };
	return 0;
}

static int add_slice(struct kb_gaps *gaps, const struct kb_slice *slice)
{
	return slice->kind == KB_SLICE_LOST ? add(gaps, slice->start, slice->end) : 0;
}

static void note_first(struct begins *begins, const struct kb_walk *walk)
{
	uint32_t core = walk->event.core;

	if (core >= begins->max_cores || begins->seen[core])
		return;
	begins->seen[core] = true;
	begins->first[core] = walk->ns;
}

static int walk(struct kb_gaps *gaps, struct kb_trace *trace, struct begins *begins)
{
	const struct kb_walk *walk;
	struct kb_slice slice;
	unsigned int i;
	int ret = 0;

	while (!ret && kb_trace_next(trace, &walk, NULL) > 0) {
		note_first(begins, walk);
		for (i = 0; i < walk->nr_slices && !ret; i++)
			ret = add_slice(gaps, &walk->slices[i]);
	}
	while (!ret && kb_trace_end(trace, &slice))
		ret = add_slice(gaps, &slice);
	return ret;
}

/* What is in front of the first record of a CPU that had others before. */
static int add_begins(struct kb_gaps *gaps, struct kb_trace *trace, const struct begins *begins)
{
	int64_t first = kb_trace_first(trace), end;
	uint32_t core;
	int ret = 0;

	for (core = 0; core < begins->max_cores && !ret; core++) {
		end = begins->seen[core] ? begins->first[core] : kb_trace_last(trace);
		if (begins->overwritten[core] && end > first)
			ret = add(gaps, first, end);
	}
	return ret;
}

static int find(struct kb_gaps *gaps, struct kb_trace *trace)
{
	const struct kb_header *header = kb_trace_header(trace);
	size_t room = (size_t)header->max_cores + 1;
	struct begins begins = {
		.max_cores = header->max_cores,
		.overwritten = calloc(room, sizeof(*begins.overwritten)),
		.seen = calloc(room, sizeof(*begins.seen)),
		.first = calloc(room, sizeof(*begins.first)),
	};
	int ret = -ENOMEM;

	if (begins.overwritten && begins.seen && begins.first) {
		kb_losses_overwritten(header, begins.overwritten);
		ret = walk(gaps, trace, &begins) ?: add_begins(gaps, trace, &begins);
	}
	free(begins.overwritten);
	free(begins.seen);
	free(begins.first);
	return ret;
}

static uint64_t length_of(const struct kb_gap *gap)
{
	return (uint64_t)gap->end - (uint64_t)gap->start;
}

static int add_up(struct kb_gaps *gaps)
{
	if (!gaps->nr)
		return 0;
	gaps->before = calloc(gaps->nr, sizeof(*gaps->before));
	for (uint32_t i = 1; gaps->before && i < gaps->nr; i++)
		gaps->before[i] = gaps->before[i - 1] + length_of(&gaps->rows[i - 1]);
	return gaps->before ? 0 : -ENOMEM;
}

int kb_gaps_read(struct kb_gaps *gaps, struct kb_trace *trace, struct kb_error *err)
{
	const struct kb_losses *losses = kb_trace_losses(trace, err);
	int ret;

	*gaps = (struct kb_gaps){ 0 };
	if (!losses)
		return -ENOMEM;
	if (losses->stated && !losses->lost && !losses->overwritten)
		return 0;
	ret = kb_barman_keep(kb_trace_barman(trace), err);
	if (ret)
		return ret;
	if (find(gaps, trace))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	join(gaps);
	if (add_up(gaps))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	return kb_trace_rewind(trace, err);
}

/* The first gap that ends behind @ns. */
static uint32_t first_behind(const struct kb_gaps *gaps, int64_t ns)
{
	return KB_BISECT(k, 0, gaps->nr, gaps->rows[k].end <= ns);
}

bool kb_gaps_overlap(const struct kb_gaps *gaps, int64_t from, int64_t until)
{
	uint32_t i = first_behind(gaps, from);

	return i < gaps->nr && gaps->rows[i].start < until;
}

/* How much of the time in front of @ns are gaps. */
static uint64_t ns_before(const struct kb_gaps *gaps, int64_t ns)
{
	uint32_t i = first_behind(gaps, ns);

	if (i == gaps->nr)
		return i ? gaps->before[i - 1] + length_of(&gaps->rows[i - 1]) : 0;
	return gaps->before[i] +
	       (ns > gaps->rows[i].start ? (uint64_t)ns - (uint64_t)gaps->rows[i].start : 0);
}

uint64_t kb_gaps_ns(const struct kb_gaps *gaps, int64_t from, int64_t until)
{
	return ns_before(gaps, until) - ns_before(gaps, from);
}
