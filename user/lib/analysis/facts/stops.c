// SPDX-License-Identifier: MIT
/* One state for each CPU, and one row for each reason of a CPU. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <uapi/kbarman.h>

#include "analysis/facts/stops.h"

#define NO_SERIES	UINT32_MAX

static const struct {
	const char *name, *advice;
} reasons[KBARMAN_STOP_REASONS] = {
	[KBARMAN_STOPPED_THROTTLED] = { "throttled",
		"sample less (-F, -c), or raise kernel.perf_event_max_sample_rate" },
	[KBARMAN_STOPPED_ERROR] = { "error", "look for other users of the PMU" },
	[KBARMAN_STOPPED_OFFLINE] = { "offline", "keep the CPU online" },
};

struct row {
	uint64_t times;		/* number of stops, from the records */
	uint64_t stated;	/* and from the fact */
	uint64_t ns;
	int64_t first, last;
};

struct core {
	uint64_t state;		/* last value of the series */
	int64_t since;		/* ns; meaningful unless state is 0 */
	struct row rows[KBARMAN_STOP_REASONS];
};

struct kb_stops {
	uint32_t series, max_cores;
	struct core *cores;
};

const char *kb_stop_name(unsigned int reason)
{
	return reason < KBARMAN_STOP_REASONS ? reasons[reason].name : NULL;
}

const char *kb_stop_advice(const char *reason)
{
	unsigned int i;

	for (i = 0; i < KBARMAN_STOP_REASONS; i++)
		if (strcmp(reason, reasons[i].name) == 0)
			return reasons[i].advice;
	return "record again";
}

static void take_facts(struct kb_stops *stops, const struct kb_losses *losses)
{
	uint32_t i, reason;

	for (i = 0; i < losses->nr_stopped; i++) {
		const struct kb_loss *fact = &losses->stopped[i];

		for (reason = 0; reason < KBARMAN_STOP_REASONS; reason++)
			if (fact->core < stops->max_cores &&
			    strcmp(fact->what, reasons[reason].name) == 0)
				stops->cores[fact->core].rows[reason].stated = fact->count;
	}
}

/* The first series of that name: series of programs come behind those of the module. */
uint32_t kb_stops_series(const struct kb_header *header)
{
	uint32_t i;

	for (i = 0; i < header->nr_series; i++)
		if (header->series[i].name && strcmp(header->series[i].name, KB_STOP_SERIES) == 0)
			return i;
	return NO_SERIES;
}

bool kb_stops_offline(const struct kb_event *event, uint32_t series)
{
	return event->type == KB_EVENT_CUSTOM_COUNTER &&
	       event->custom_counter.counter == series &&
	       event->custom_counter.value == KBARMAN_STOPPED_OFFLINE + 1;
}

int kb_stops_create(struct kb_stops **out, const struct kb_header *header,
		    const struct kb_losses *losses, struct kb_error *err)
{
	struct kb_stops *stops = calloc(1, sizeof(*stops));

	if (stops)
		stops->cores = calloc((size_t)header->max_cores + 1, sizeof(*stops->cores));
	if (!stops || !stops->cores) {
		kb_stops_destroy(stops);
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory for %u CPUs",
				    header->max_cores);
	}
	stops->max_cores = header->max_cores;
	take_facts(stops, losses);
	stops->series = kb_stops_series(header);
	*out = stops;
	return 0;
}

void kb_stops_destroy(struct kb_stops *stops)
{
	if (!stops)
		return;
	free(stops->cores);
	free(stops);
}

/* The row for the state of @core; NULL: it counts, or the reason is not known. */
static struct row *current_row(struct core *core)
{
	return core->state && core->state <= KBARMAN_STOP_REASONS ? &core->rows[core->state - 1] :
								     NULL;
}

static void end_stop(struct core *core, int64_t ns)
{
	struct row *row = current_row(core);

	if (!row || ns <= core->since)
		return;
	if (!row->ns)
		row->first = core->since;
	row->ns += (uint64_t)ns - (uint64_t)core->since;
	row->last = ns;
}

bool kb_stops_feed(struct kb_stops *stops, const struct kb_event *event, int64_t ns)
{
	struct core *core;
	struct row *row;

	if (event->core >= stops->max_cores)
		return false;
	core = &stops->cores[event->core];
	if (event->type == KB_EVENT_SAMPLE)
		return core->state;
	if (event->type != KB_EVENT_CUSTOM_COUNTER ||
	    event->custom_counter.counter != stops->series)
		return false;
	end_stop(core, ns);
	core->state = event->custom_counter.value;
	core->since = ns;
	row = current_row(core);
	if (row)
		row->times++;
	return false;
}

void kb_stops_end(struct kb_stops *stops, int64_t last)
{
	uint32_t i;

	for (i = 0; i < stops->max_cores; i++) {
		end_stop(&stops->cores[i], last);
		stops->cores[i].state = 0;
	}
}

bool kb_stops_get(const struct kb_stops *stops, uint32_t i, struct kb_stop *stop)
{
	uint32_t core, reason;

	for (core = 0; core < stops->max_cores; core++) {
		for (reason = 0; reason < KBARMAN_STOP_REASONS; reason++) {
			const struct row *row = &stops->cores[core].rows[reason];

			if ((!row->times && !row->stated) || i--)
				continue;
			*stop = (struct kb_stop){
				.core = core,
				.reason = reasons[reason].name,
				/*
				 * Records may be lost or overwritten, and facts are written at
				 * the end: take the larger number.
				 */
				.times = row->times > row->stated ? row->times : row->stated,
				.ns = row->ns,
				.first = row->first,
				.last = row->last,
			};
			return true;
		}
	}
	return false;
}
