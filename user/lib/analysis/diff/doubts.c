// SPDX-License-Identifier: MIT
/*
 * Captures are compared with the first one: what all agree in is not said. A difference is grave if
 * the numbers of the two mean different things.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/losses.h>
#include <kbarman/names.h>

#include "analysis/diff/doubts.h"
#include "base/array.h"

#define LENGTHS		1.5	/* times longer than another one */
#define RATES		1.05
#define PERIODS		1.2	/* times larger than another one; a sample may come late */

static const struct fact {
	const char *key, *what;
	bool grave;
} facts[] = {
	{ "machine", "machines", true },
	{ "fallback", "events in place of the PMU's", true },
	{ "filter", "choices of what was recorded", true },
	{ "sources", "sources of --latency", false },
	{ "callchain", "kinds of call chains", false },
	{ "off_cpu_min", "limits for call chains of waits", false },
	{ "host", "hosts", false },
	{ "release", "kernels", false },
	{ "counts", "times when counters are read", false },
};

/* ---- what a capture says ---- */

static char *events_of(const struct kb_names *names)
{
	char *list = strdup(""), *longer;

	for (uint32_t i = 0; list && i < kb_names_nr_counters(names); i++) {
		struct kb_text name = kb_names_counter(names, i);

		if (asprintf(&longer, "%s%s%.*s", list, i ? "," : "", (int)name.length,
			     name.data) < 0)
			longer = NULL;
		free(list);
		list = longer;
	}
	return list;
}

static uint64_t asleep_in(const struct kb_barman *barman)
{
	const char *fact = kb_barman_fact(barman, "asleep");

	return fact ? strtoull(fact, NULL, 10) : 0;
}

int kb_diff_origin_read(struct kb_diff_origin *origin, struct kb_trace *trace, struct kb_error *err)
{
	const struct kb_losses *losses = kb_trace_losses(trace, err);
	const struct kb_names *names = kb_trace_names(trace, err);
	const struct kb_header *header = kb_trace_header(trace);
	const struct kb_barman *barman = kb_trace_barman(trace);

	if (!losses || !names)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
		const char *value = kb_barman_fact(barman, facts[i].key);

		/* "pid:12,13": which numbers the processes had does not matter */
		origin->facts[i] = value ? strndup(value, strcspn(value, ":")) : strdup("");
		if (!origin->facts[i])
			return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	}
	origin->events = events_of(names);
	if (!origin->events)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	origin->rate = header->timer_sample_rate;
	origin->cpus = header->max_cores;
	origin->lost = losses->lost;
	origin->overwritten = losses->overwritten;
	origin->asleep = asleep_in(barman);
	return 0;
}

void kb_diff_origin_release(struct kb_diff_origin *origin)
{
	for (size_t i = 0; i < ARRAY_SIZE(origin->facts); i++)
		free(origin->facts[i]);
	free(origin->events);
}

/* ---- doubts ---- */

static int __attribute__((format(printf, 3, 4)))
doubt(struct kb_diff_doubts *doubts, bool grave, const char *format, ...)
{
	struct kb_diff_doubt *rows = reallocarray(doubts->rows, doubts->nr + 1, sizeof(*rows));
	char *sentence;
	va_list args;

	if (!rows)
		return -ENOMEM;
	doubts->rows = rows;
	va_start(args, format);
	if (vasprintf(&sentence, format, args) < 0)
		sentence = NULL;
	va_end(args);
	if (!sentence)
		return -ENOMEM;
	rows[doubts->nr++] = (struct kb_diff_doubt){ grave, sentence };
	return 0;
}

/* "A: xz; B: gzip", for two values that differ; "" is no value. */
static int differ(struct kb_diff_doubts *doubts, bool grave, const char *what, const char *first,
		  const char *other)
{
	return doubt(doubts, grave, "they are of different %s: '%s' and '%s'", what,
		     first[0] ? first : "none", other[0] ? other : "none");
}

static const struct kb_diff_origin *other_fact(const struct kb_diff_origin *origins, uint32_t nr,
					       size_t fact)
{
	for (uint32_t i = 1; i < nr; i++)
		if (strcmp(origins[0].facts[fact], origins[i].facts[fact]))
			return &origins[i];
	return NULL;
}

static int find_facts(struct kb_diff_doubts *doubts, const struct kb_diff_origin *origins,
		      uint32_t nr)
{
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(facts) && !ret; i++) {
		const struct kb_diff_origin *other = other_fact(origins, nr, i);

		if (other)
			ret = differ(doubts, facts[i].grave, facts[i].what, origins[0].facts[i],
				     other->facts[i]);
	}
	for (uint32_t i = 1; i < nr && !ret; i++)
		if (strcmp(origins[0].events, origins[i].events))
			return differ(doubts, true, "events", origins[0].events, origins[i].events);
	return ret;
}

static bool far_apart(double a, double b, double times)
{
	return a > times * b || b > times * a;
}

static int find_numbers(struct kb_diff_doubts *doubts, const struct kb_diff_origin *origins,
			uint32_t nr, bool per_second)
{
	const struct kb_diff_origin *rate = NULL, *period = NULL, *cpus = NULL;
	double shortest = origins[0].seconds, longest = shortest;
	int ret = 0;

	for (uint32_t i = 1; i < nr; i++) {
		if (far_apart(origins[0].rate, origins[i].rate, RATES))
			rate = &origins[i];
		if (origins[0].weight > 0 && origins[i].weight > 0 &&
		    far_apart(origins[0].weight, origins[i].weight, PERIODS))
			period = &origins[i];
		if (origins[0].cpus != origins[i].cpus)
			cpus = &origins[i];
		if (origins[i].seconds < shortest)
			shortest = origins[i].seconds;
		if (origins[i].seconds > longest)
			longest = origins[i].seconds;
	}
	if (rate)
		ret = doubt(doubts, true, "they were sampled at different rates: %u and %u a second",
			    origins[0].rate, rate->rate);
	if (!ret && !rate && !origins[0].rate && period)
		ret = doubt(doubts, true, "they were sampled with different periods: %.0f and %.0f "
			    "events in the mean", origins[0].weight, period->weight);
	if (!ret && cpus)
		ret = doubt(doubts, true, "they are of machines with %u and with %u CPUs",
			    origins[0].cpus, cpus->cpus);
	if (!ret && !per_second && far_apart(shortest, longest, LENGTHS))
		ret = doubt(doubts, false, "they lasted %.3g s to %.3g s: compare what they do in a "
			    "second, if they do not do the same work", shortest, longest);
	return ret;
}

static int find_lacks(struct kb_diff_doubts *doubts, const struct kb_diff_origin *origins,
		      uint32_t nr)
{
	uint64_t lost[2] = { 0 }, overwritten = 0, asleep = 0, damaged = 0;
	int ret = 0;

	for (uint32_t i = 0; i < nr; i++) {
		lost[origins[i].side] += origins[i].lost;
		overwritten += origins[i].overwritten > 0;
		asleep += origins[i].asleep > 0;
		damaged += origins[i].damaged;
	}
	if (lost[0] || lost[1])
		ret = doubt(doubts, false, "records were lost: %llu of A, %llu of B",
			    (unsigned long long)lost[0], (unsigned long long)lost[1]);
	if (!ret && overwritten)
		ret = doubt(doubts, false, "%llu of them begin late: older records were overwritten",
			    (unsigned long long)overwritten);
	if (!ret && asleep)
		ret = doubt(doubts, false, "the machine was suspended in %llu of them",
			    (unsigned long long)asleep);
	if (!ret && damaged)
		ret = doubt(doubts, false, "%llu of them are damaged",
			    (unsigned long long)damaged);
	return ret;
}

static int compare(const void *left, const void *right)
{
	const struct kb_diff_doubt *a = left, *b = right;

	if (a->grave != b->grave)
		return a->grave ? -1 : 1;
	return strcmp(a->sentence, b->sentence);
}

int kb_diff_doubts_find(struct kb_diff_doubts *doubts, const struct kb_diff_origin *origins,
			uint32_t nr, bool per_second)
{
	int ret = find_facts(doubts, origins, nr) ?:
		  find_numbers(doubts, origins, nr, per_second) ?:
		  find_lacks(doubts, origins, nr);

	if (doubts->nr)
		qsort(doubts->rows, doubts->nr, sizeof(*doubts->rows), compare);
	return ret;
}

void kb_diff_doubts_release(struct kb_diff_doubts *doubts)
{
	for (uint32_t i = 0; i < doubts->nr; i++)
		free((char *)doubts->rows[i].sentence);
	free(doubts->rows);
}
