// SPDX-License-Identifier: MIT
/*
 * See metric_choice.h. The counters of a metric are those of one kind of cores, and of one part of
 * the machine: cpu_core/cycles/u goes with cpu_core/instructions/u only.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/samples/metric_choice.h"

#define NAME_BYTES	128
#define KINDS_MAX	32

/* The PMU and the modifiers of a counter: "cpu_core" and "u"; often both are empty. */
struct kind {
	char pmu[NAME_BYTES], modifiers[16];
};

static void copy_name(const struct kb_names *names, uint32_t id, char name[NAME_BYTES])
{
	struct kb_text text = kb_names_counter(names, id);
	size_t length = text.length < NAME_BYTES ? text.length : NAME_BYTES - 1;

	memcpy(name, text.data, length);
	name[length] = '\0';
}

static struct kind kind_of(const char *name)
{
	const char *end = strrchr(name, strchr(name, '/') ? '/' : ':');
	struct kind kind = { 0 };

	memcpy(kind.pmu, name, kb_metric_pmu(name));
	if (end)
		snprintf(kind.modifiers, sizeof(kind.modifiers), "%s",
			 end + 1 + (end[1] == ':'));
	return kind;
}

static bool is_same(const struct kind *a, const struct kind *b)
{
	return !strcmp(a->pmu, b->pmu) && !strcmp(a->modifiers, b->modifiers);
}

/* Which counters a formula means, in the order of its names. */
struct search {
	const struct kb_names *names;
	const struct kb_barman *barman;
	bool elapsed;
	const struct kind *kind;
	struct kb_report_metric *metric;
	unsigned int nr;
	bool own;			/* one of them is of this kind */
};

/* The fact of that PMU, or of the only one. Source: caps/slots of the recorded machine's sysfs. */
static bool find_slots(const struct search *search, double *slots)
{
	char key[NAME_BYTES + 8];
	const char *fact;

	snprintf(key, sizeof(key), "slots%s%s", *search->kind->pmu ? "." : "", search->kind->pmu);
	fact = kb_barman_fact(search->barman, key);
	*slots = fact ? strtod(fact, NULL) : 0;
	return *slots > 0 && *slots < 256;
}

static bool find_counter(void *context, const char *name, struct kb_metric_count *count)
{
	struct search *search = context;
	const struct kb_names *names = search->names;

	count->value = 1;
	if (!strcmp(name, "$slots"))
		return find_slots(search, &search->metric->slots);
	if (*name == '$')
		return !strcmp(name, "$elapsed") && search->elapsed;
	for (uint32_t id = 0; id < kb_names_nr_counters(names); id++) {
		char counter[NAME_BYTES];
		struct kind kind;
		bool own;

		copy_name(names, id, counter);
		kind = kind_of(counter);
		own = is_same(&kind, search->kind);
		if (!kb_metric_is_event(counter, name) ||
		    (!own && !kb_metric_is_event("task-clock", name)))
			continue;
		if (search->nr == KB_METRIC_EVENTS_MAX)
			return false;
		search->own |= own;
		search->metric->ids[search->nr++] = id;
		search->metric->nr_ids = search->nr;
		return true;
	}
	return false;
}

/* The kinds of counters, in their order. Returns the number; hostile captures have more. */
static unsigned int find_kinds(const struct kb_names *names, struct kind kinds[KINDS_MAX])
{
	unsigned int nr = 0;

	for (uint32_t id = 0; id < kb_names_nr_counters(names) && nr < KINDS_MAX; id++) {
		char name[NAME_BYTES];
		bool known = false;

		copy_name(names, id, name);
		kinds[nr] = kind_of(name);
		for (unsigned int i = 0; i < nr && !known; i++)
			known = is_same(&kinds[i], &kinds[nr]);
		nr += !known;
	}
	return nr;
}

/* Is there @metric of this kind of counters? */
static bool make_metric(const struct search *where, const struct kb_metric *metric,
			const struct kind *kind, struct kb_report_metric *made)
{
	struct search search = *where;
	struct kb_metric_value value;

	search.metric = made;
	search.kind = kind;
	made->metric = metric;
	made->nr_ids = 0;
	snprintf(made->name, sizeof(made->name), "%.40s%s%.40s%s%.8s", kind->pmu,
		 *kind->pmu ? "/" : "", metric->name, *kind->modifiers ? ":" : "",
		 kind->modifiers);
	return kb_metric_evaluate(metric, find_counter, &search, &value) != -ENOENT && search.own;
}

static bool has_counter(const struct kb_names *names, uint32_t core, uint32_t id)
{
	for (uint32_t i = 0; i < kb_names_of_core(names, core); i++)
		if (kb_names_counter_id(names, core, i) == id)
			return true;
	return false;
}

bool kb_metric_is_on(const struct kb_report_metric *metric, const struct kb_names *names,
		     uint32_t core)
{
	for (unsigned int i = 0; i < metric->nr_ids; i++)
		if (!has_counter(names, core, metric->ids[i]))
			return false;
	return true;
}

unsigned int kb_metric_choose(const struct kb_names *names, const struct kb_barman *barman,
			      const char *list, bool elapsed, struct kb_report_metric *metrics,
			      unsigned int max)
{
	const struct search where = { .names = names, .barman = barman, .elapsed = elapsed };
	struct kind kinds[KINDS_MAX];
	unsigned int nr_kinds = find_kinds(names, kinds), nr = 0;

	for (const struct kb_metric *metric = kb_metrics_all(); metric->name; metric++) {
		unsigned int first = nr;

		if (!kb_metric_is_in(metric, list))
			continue;
		for (unsigned int kind = 0; kind < nr_kinds && nr < max; kind++) {
			bool known = !make_metric(&where, metric, &kinds[kind], &metrics[nr]);

			for (unsigned int i = first; i < nr && !known; i++)
				known = !strcmp(metrics[i].name, metrics[nr].name);
			nr += !known;
		}
	}
	return nr;
}
