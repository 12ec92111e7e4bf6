// SPDX-License-Identifier: MIT
/* What kbarman stat counts: the events of -e, or the usual ones, and those that metrics need. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/stat/stat.h"
#include "record/perf/pmus.h"

#define USUAL_EVENTS \
	"context-switches,cpu-migrations,page-faults,cycles,instructions,branches,branch-misses"

/* For each -d, as perf does. */
static const char *const detailed_events[] = {
	",L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses",
	(",L1-icache-loads,L1-icache-load-misses,"
	 "dTLB-loads,dTLB-load-misses,iTLB-loads,iTLB-load-misses"),
	",L1-dcache-prefetches,L1-dcache-prefetch-misses",
};

static int add_list(struct stat_run *run, const char *list, unsigned int set)
{
	struct kb_perf_event events[STAT_EVENTS_MAX];
	struct kb_cpu_pmus pmus;
	struct kb_error err;
	int nr = kb_events_parse_each_pmu(events, STAT_EVENTS_MAX - run->nr_events, list, NULL, &err);

	if (nr < 0)
		return cli_fail_error(&err);
	kb_cpu_pmus_read("/sys", &pmus);
	run->nr_kinds = pmus.nr_kinds;
	for (int i = 0; i < nr; i++) {
		struct stat_event *event = &run->events[run->nr_events++];

		event->set = set;
		event->event = events[i];
		event->kind = kb_cpu_pmus_kind_of(&pmus, &events[i]);
	}
	return 0;
}

/* Names of the events of a set, in which metrics share what they need. */
struct set {
	char group[32];			/* of its metrics */
	const char *names[KB_EVENTS_MAX];
	unsigned int nr;
};

static bool has(const struct set *set, const char *name)
{
	for (unsigned int i = 0; i < set->nr; i++)
		if (!strcmp(set->names[i], name))
			return true;
	return false;
}

enum presence {
	HERE,		/* a kind of cores has all events of a metric */
	APART,		/* kinds of cores have a part of them each */
	ABSENT,
};

static enum presence find_presence(const struct kb_metric *metric)
{
	const char *events[KB_METRIC_EVENTS_MAX];
	struct kb_perf_event parsed[KB_EVENTS_MAX];
	struct kb_cpu_pmus pmus;
	char text[512];
	unsigned int nr = kb_metric_events(metric, events, text, sizeof(text));
	uint32_t common = UINT32_MAX;	/* a bit for each kind that has all of them until now */

	kb_cpu_pmus_read("/sys", &pmus);
	for (unsigned int i = 0; i < nr; i++) {
		int kinds = kb_events_parse_each_pmu(parsed, KB_EVENTS_MAX, events[i], NULL, NULL);
		uint32_t mask = 0;

		if (kinds < 0)
			return ABSENT;
		for (int j = 0; j < kinds; j++) {
			int kind = kb_cpu_pmus_kind_of(&pmus, &parsed[j]);

			mask |= kind < 0 ? UINT32_MAX : UINT32_C(1) << kind;
		}
		common &= mask;
	}
	return common ? HERE : APART;
}

/*
 * The set in which a metric's events are counted at the same moments: one that has all of them, or
 * one of metrics of the same group that has some; else a new one.
 */
static struct set *find_set(struct set *sets, unsigned int *nr_sets, const struct kb_metric *metric,
			    const char *const *events, unsigned int nr)
{
	struct set *set;

	for (unsigned int i = 0; i < *nr_sets; i++) {
		unsigned int common = 0;

		for (unsigned int j = 0; j < nr; j++)
			common += has(&sets[i], events[j]);
		if (common == nr || (common && *metric->group && !strcmp(sets[i].group, metric->group)))
			return &sets[i];
	}
	set = &sets[(*nr_sets)++];
	*set = (struct set){ .nr = 0 };
	snprintf(set->group, sizeof(set->group), "%s", metric->group);
	return set;
}

static int add_set(struct stat_run *run, const struct set *set, unsigned int number)
{
	char list[2048] = "{";
	size_t used = 1;

	/* Intel's PMU wants the slots to lead what is a part of them. */
	if (has(set, "slots"))
		used += (size_t)snprintf(list + used, sizeof(list) - used, "slots,");
	for (unsigned int i = 0; i < set->nr && used < sizeof(list); i++)
		if (strcmp(set->names[i], "slots"))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s,",
						 set->names[i]);
	if (used >= sizeof(list))
		return cli_fail("-M: too many events for one group");
	list[used - 1] = '}';
	return add_list(run, list, number);
}

struct metrics {
	struct set sets[STAT_METRICS_MAX];
	char names[STAT_METRICS_MAX][512];
	unsigned int nr_sets;
};

static void add_metric(struct stat_run *run, struct metrics *metrics,
		       const struct kb_metric *metric)
{
	const char *events[KB_METRIC_EVENTS_MAX];
	unsigned int nr;
	struct set *set;

	if (run->nr_metrics == STAT_METRICS_MAX)
		return;
	if (find_presence(metric) != HERE)
		return;
	nr = kb_metric_events(metric, events, metrics->names[run->nr_metrics],
			      sizeof(metrics->names[0]));
	set = find_set(metrics->sets, &metrics->nr_sets, metric, events, nr);
	for (unsigned int i = 0; i < nr; i++)
		if (!has(set, events[i]) && set->nr < KB_EVENTS_MAX)
			set->names[set->nr++] = events[i];
	run->metrics[run->nr_metrics].metric = metric;
	run->metrics[run->nr_metrics++].set = (unsigned int)(set - metrics->sets) + 1;
}

/* Which of the metrics of -M has no row whose events are here? */
static void tell_missing(const struct stat_run *run)
{
	for (const struct kb_metric *m = kb_metrics_all(); m->name; m++) {
		bool found = !kb_metric_is_in(m, run->metrics_text);

		for (unsigned int i = 0; i < run->nr_metrics && !found; i++)
			found = !strcmp(run->metrics[i].metric->name, m->name);
		/* once for rows of one name */
		for (const struct kb_metric *other = kb_metrics_all(); other < m && !found; other++)
			found = !strcmp(other->name, m->name);
		if (!found && find_presence(m) == APART)
			cli_warn("no core has all events of '%s' (%s)", m->name, m->formula);
		else if (!found)
			cli_warn("the PMU has no events for '%s' (%s)", m->name, m->formula);
	}
}

static int add_metrics(struct stat_run *run)
{
	struct metrics *metrics = calloc(1, sizeof(*metrics));
	struct kb_error err;
	int ret = 0;

	if (!metrics)
		return cli_fail("out of memory");
	if (kb_metrics_check(run->metrics_text, &err)) {
		free(metrics);
		return cli_fail("-M %s", kb_error_text(&err));
	}
	for (const struct kb_metric *m = kb_metrics_all(); m->name; m++)
		if (kb_metric_is_in(m, run->metrics_text))
			add_metric(run, metrics, m);
	for (unsigned int i = 0; i < metrics->nr_sets && !ret; i++)
		ret = add_set(run, &metrics->sets[i], i + 1);
	free(metrics);
	if (ret)
		return ret;
	if (strcmp(run->metrics_text, "all"))
		tell_missing(run);
	return run->nr_metrics || run->events_text ? 0 :
	       cli_fail("-M: nothing is left to count: 'kbarman list --metrics' shows what is needed");
}

int stat_choose_events(struct stat_run *run)
{
	char list[1024];
	int ret = 0;

	if (run->events_text)
		ret = add_list(run, run->events_text, 0);
	else if (!run->metrics_text || run->detail) {
		snprintf(list, sizeof(list), "%s-clock,%s%s%s%s",
			 run->all || run->cpus_text ? "cpu" : "task", USUAL_EVENTS,
			 run->detail > 0 ? detailed_events[0] : "",
			 run->detail > 1 ? detailed_events[1] : "",
			 run->detail > 2 ? detailed_events[2] : "");
		ret = add_list(run, list, 0);
	}
	return ret ?: run->metrics_text ? add_metrics(run) : 0;
}
