// SPDX-License-Identifier: MIT
/* See metric_tracks.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/samples/metric_tracks.h"

struct kb_metric_core {
	int64_t since;
	bool begun;		/* the counters were read at `since` */
	uint32_t metrics;	/* a bit for each whose counters the core has */
	uint64_t *sums;		/* by slot; NULL until the first sample */
};

/* Numbers the counters that metrics need. */
static void number_slots(struct kb_metric_tracks *tracks)
{
	for (unsigned int i = 0; i < tracks->nr; i++) {
		const struct kb_report_metric *metric = &tracks->metrics[i];

		for (unsigned int j = 0; j < metric->nr_ids; j++)
			if (!tracks->slots[metric->ids[j]])
				tracks->slots[metric->ids[j]] = (uint16_t)++tracks->nr_slots;
	}
}

int kb_metric_tracks_init(struct kb_metric_tracks *tracks, const struct kb_names *names,
			  const struct kb_barman *barman, uint32_t nr_cores)
{
	memset(tracks, 0, sizeof(*tracks));
	tracks->names = names;
	tracks->nr_cores = nr_cores < KB_METRIC_CORES_MAX ? nr_cores : KB_METRIC_CORES_MAX;
	tracks->nr = kb_metric_choose(names, barman, "all", false, tracks->metrics,
				      KB_METRIC_TRACKS_MAX);
	if (!tracks->nr)
		return 0;
	tracks->cores = calloc((size_t)tracks->nr_cores + 1, sizeof(*tracks->cores));
	tracks->slots = calloc(kb_names_nr_counters(names), sizeof(*tracks->slots));
	if (!tracks->cores || !tracks->slots)
		return -ENOMEM;
	number_slots(tracks);
	return 0;
}

void kb_metric_tracks_release(struct kb_metric_tracks *tracks)
{
	for (uint32_t i = 0; tracks->cores && i < tracks->nr_cores; i++)
		free(tracks->cores[i].sums);
	free(tracks->cores);
	free(tracks->slots);
}

/* Which metrics can be had of core number @number? */
static uint32_t metrics_of(const struct kb_metric_tracks *tracks, uint32_t number)
{
	uint32_t metrics = 0;

	for (unsigned int i = 0; i < tracks->nr; i++)
		if (kb_metric_is_on(&tracks->metrics[i], tracks->names, number))
			metrics |= UINT32_C(1) << i;
	return metrics;
}

/* The core of the sample; NULL: it has no metrics. */
static struct kb_metric_core *find_core(const struct kb_metric_tracks *tracks, uint32_t number)
{
	struct kb_metric_core *core = number < tracks->nr_cores ? &tracks->cores[number] : NULL;

	if (!core || core->sums)
		return core;
	core->metrics = metrics_of(tracks, number);
	core->sums = calloc(tracks->nr_slots + 1, sizeof(*core->sums));
	return core->sums ? core : NULL;
}

/* Add up what a sample says. False: a counter could not be read. */
static bool add(const struct kb_metric_tracks *tracks, const struct kb_event *sample, uint64_t *sums)
{
	uint32_t known = kb_names_of_core(tracks->names, sample->core);
	bool whole = true;

	for (uint32_t i = 0; i < sample->sample.nr_counters && i < known; i++) {
		unsigned int slot =
			tracks->slots[kb_names_counter_id(tracks->names, sample->core, i)];

		if (slot && sample->sample.counters[i] == KB_COUNTER_INVALID)
			whole = false;
		else if (slot)
			sums[slot] += sample->sample.counters[i];
	}
	return whole;
}

struct sums {
	const struct kb_metric_tracks *tracks;
	const uint64_t *sums;
	const struct kb_report_metric *metric;
	unsigned int nr;
};

static bool find_sum(void *context, const char *name, struct kb_metric_count *count)
{
	struct sums *sums = context;

	count->value = *name == '$' ? sums->metric->slots :
		       (double)sums->sums[sums->tracks->slots[sums->metric->ids[sums->nr++]]];
	return true;
}

bool kb_metric_tracks_feed(struct kb_metric_tracks *tracks, const struct kb_event *sample,
			   int64_t ns, int64_t *from, double values[KB_METRIC_TRACKS_MAX])
{
	struct kb_metric_core *core;
	bool whole, ends;

	core = tracks->nr && sample->sample.nr_counters ? find_core(tracks, sample->core) : NULL;
	if (!core || !core->metrics)
		return false;
	whole = add(tracks, sample, core->sums);
	ends = core->begun && whole && ns - core->since >= KB_METRIC_SPAN_NS;
	for (unsigned int i = 0; ends && i < tracks->nr; i++) {
		struct sums found = { tracks, core->sums, &tracks->metrics[i], 0 };
		struct kb_metric_value value;

		values[i] = core->metrics >> i & 1 &&
			    !kb_metric_evaluate(tracks->metrics[i].metric, find_sum, &found, &value) ?
			    value.value : NAN;
	}
	*from = core->since;
	/*
	 * The first reading counted from a time that is not known. So did the one behind a reading
	 * that failed, because a counter goes on from where it was read.
	 */
	if (ends || !whole || !core->begun) {
		memset(core->sums, 0, (tracks->nr_slots + 1) * sizeof(*core->sums));
		core->since = ns;
		core->begun = whole;
	}
	return ends;
}
