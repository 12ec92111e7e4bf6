// SPDX-License-Identifier: MIT
/* See metric_tracks.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/metric_tracks.h"

struct kb_metric_core {
	int64_t since;
	bool begun;		/* the counters were read at `since` */
};

int kb_metric_tracks_init(struct kb_metric_tracks *tracks, const struct kb_names *names,
			  const struct kb_barman *barman, uint32_t nr_cores)
{
	memset(tracks, 0, sizeof(*tracks));
	tracks->names = names;
	tracks->nr_cores = nr_cores;
	tracks->nr_counters = kb_names_nr_counters(names);
	tracks->nr = kb_metric_choose(names, barman, "all", false, tracks->metrics,
				      KB_METRIC_TRACKS_MAX);
	if (!tracks->nr)
		return 0;
	tracks->cores = calloc((size_t)nr_cores + 1, sizeof(*tracks->cores));
	tracks->sums = calloc((size_t)nr_cores + 1, tracks->nr_counters * sizeof(*tracks->sums));
	return tracks->cores && tracks->sums ? 0 : -ENOMEM;
}

void kb_metric_tracks_release(struct kb_metric_tracks *tracks)
{
	free(tracks->cores);
	free(tracks->sums);
}

/* Add up what a sample says. False: a counter could not be read. */
static bool add(const struct kb_metric_tracks *tracks, const struct kb_event *sample, uint64_t *sums)
{
	uint32_t known = kb_names_of_core(tracks->names, sample->core);
	bool whole = true;

	for (uint32_t i = 0; i < sample->sample.nr_counters && i < known; i++) {
		if (sample->sample.counters[i] == KB_COUNTER_INVALID)
			whole = false;
		else
			sums[kb_names_counter_id(tracks->names, sample->core, i)] +=
				sample->sample.counters[i];
	}
	return whole;
}

struct sums {
	const uint64_t *sums;
	const struct kb_report_metric *metric;
	unsigned int nr;
};

static bool find_sum(void *context, const char *name, struct kb_metric_count *count)
{
	struct sums *sums = context;

	count->value = *name == '$' ? sums->metric->slots : (double)sums->sums[sums->metric->ids[sums->nr++]];
	return true;
}

bool kb_metric_tracks_feed(struct kb_metric_tracks *tracks, const struct kb_event *sample,
			   int64_t ns, int64_t *from, double values[KB_METRIC_TRACKS_MAX])
{
	struct kb_metric_core *core;
	uint64_t *sums;
	bool whole, ends;

	if (!tracks->nr || sample->core >= tracks->nr_cores || !sample->sample.nr_counters)
		return false;
	core = &tracks->cores[sample->core];
	sums = tracks->sums + (size_t)sample->core * tracks->nr_counters;
	whole = add(tracks, sample, sums);
	ends = core->begun && whole && ns - core->since >= KB_METRIC_SPAN_NS;
	for (unsigned int i = 0; ends && i < tracks->nr; i++) {
		struct sums found = { sums, &tracks->metrics[i], 0 };
		struct kb_metric_value value;

		values[i] = kb_metric_evaluate(tracks->metrics[i].metric, find_sum, &found, &value) ?
			    NAN : value.value;
	}
	*from = core->since;
	/* The first reading counted from a time that is not known. */
	if (ends || !whole || !core->begun) {
		memset(sums, 0, tracks->nr_counters * sizeof(*sums));
		core->since = ns;
		core->begun = true;
	}
	return ends;
}
