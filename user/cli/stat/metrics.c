// SPDX-License-Identifier: MIT
/* The metrics of kbarman stat, for each kind of cores. */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "cli/stat/stat.h"
#include "record/perf/pmus.h"

struct look {
	const struct stat_run *run;
	size_t share;
	unsigned int set;
	const char *pmu;
	size_t pmu_length;
};

/* Slots of a cycle: of this kind of cores, or of the only one. */
static double read_slots(const struct look *look)
{
	struct kb_cpu_pmus pmus;
	char name[64];

	if (look->pmu_length && look->pmu_length < sizeof(name)) {
		memcpy(name, look->pmu, look->pmu_length);
		name[look->pmu_length] = '\0';
	} else {
		kb_cpu_pmus_read("/sys", &pmus);
		if (!pmus.nr)
			return 0;
		memcpy(name, pmus.pmus[0].name, sizeof(name));
	}
	return kb_pmu_slots("/sys", name);
}

static bool is_of(const struct look *look, const struct stat_event *event)
{
	return !kb_metric_pmu(event->event.name) ||
	       (kb_metric_pmu(event->event.name) == look->pmu_length &&
		!memcmp(event->event.name, look->pmu, look->pmu_length));
}

/* With groups, what the metric's own set counted; what -e counted is as good as nothing else. */
static const struct stat_event *find_event(const struct look *look, const char *name)
{
	for (unsigned int i = 0; i < look->run->nr_events; i++) {
		const struct stat_event *event = &look->run->events[i];

		if (event->set == look->set && is_of(look, event) &&
		    kb_metric_is_event(event->event.name, name))
			return event;
	}
	return NULL;
}

/* The time in which the other events of a set could occur, if only one kind of cores has them. */
static bool time_of_kind(const struct look *look, double *ns)
{
	for (unsigned int i = 0; i < look->run->nr_events; i++) {
		const struct stat_event *event = &look->run->events[i];

		if (event->set != look->set || event->kind < 0 || event->error || !is_of(look, event))
			continue;
		*ns = stat_result_of(look->run, event, look->share).on_ns;
		return true;
	}
	return false;
}

static bool find_count(void *context, const char *name, struct kb_metric_count *count)
{
	const struct look *look = context;
	const struct stat_run *run = look->run;
	const struct stat_event *event;
	struct stat_result result;

	if (!strcmp(name, "$elapsed")) {
		count->value = run->elapsed.nr ? run->elapsed.mean * 1e9 :
			       (double)(run->ended - run->since);
		return true;
	}
	if (!strcmp(name, "$slots")) {
		count->value = read_slots(look);
		return count->value > 0;
	}
	event = find_event(look, name);
	if (!event || event->error)
		return false;
	result = stat_result_of(run, event, look->share);
	if (!result.known)
		return false;
	count->value = result.value;
	if (stat_is_time(event))
		time_of_kind(look, &count->value);
	count->part = result.enabled && result.running < result.enabled ?
		      (double)result.running / (double)result.enabled : 1;
	count->together = result.alone ? 0 : event->set;
	count->has_error = result.in_turns && run->runs == 1;
	count->error = result.error;
	return count->part > 0;
}

/* The kind of cores of event @i of a set, if none in front of it has this kind. */
static bool next_kind(const struct stat_run *run, struct look *look, unsigned int i)
{
	const struct stat_event *event = &run->events[i];
	const char *name = event->event.name;
	size_t length = kb_metric_pmu(name);

	if (event->set != look->set || event->event.flags & KB_PERF_GROUP)
		return false;
	look->pmu = name;
	look->pmu_length = length;
	return true;
}

static void put_kind(struct stat_run *run, struct look *look, const struct kb_metric *metric,
		     void (*put)(struct stat_run *run, size_t share,
				 const struct stat_metric_value *value))
{
	struct stat_metric_value value = {
		.metric = metric, .pmu = look->pmu, .pmu_length = look->pmu_length };
	const char *events[KB_METRIC_EVENTS_MAX];
	char text[512];
	unsigned int nr = kb_metric_events(metric, events, text, sizeof(text));
	int ret;

	for (unsigned int i = 0; i < nr; i++) {
		const struct stat_event *event = find_event(look, events[i]);

		if (!event)
			return;		/* other cores have it */
		if (event->error && !value.why)
			value.why = stat_why_not(event);
	}
	ret = value.why ? 0 : kb_metric_evaluate(metric, find_count, look, &value.value);
	if (ret)
		value.why = ret == -ERANGE ? "it is a part of nothing" :
			    strstr(metric->formula, "$slots") && !(read_slots(look) > 0) ?
			    "the PMU does not say how many slots a cycle has" :
			    "an event never got a counter";
	put(run, look->share, &value);
}

void stat_metrics(struct stat_run *run, size_t share,
		  void (*put)(struct stat_run *run, size_t share,
			      const struct stat_metric_value *value))
{
	for (unsigned int m = 0; m < run->nr_metrics; m++) {
		struct look look = { .run = run, .share = share, .set = run->metrics[m].set };

		for (unsigned int i = 0; i < run->nr_events; i++)
			if (next_kind(run, &look, i))
				put_kind(run, &look, run->metrics[m].metric, put);
	}
}
