// SPDX-License-Identifier: MIT
/* The one place that builds, from a reader, all that the readers of a capture need. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/chain.h>

#include "analysis/facts/losses_read.h"
#include "analysis/facts/process_notes.h"
#include "analysis/trace/inside.h"
#include "base/options.h"
#include "sym/symbolizer/shared_tasks.h"

static void *out_of_memory(struct kb_error *err)
{
	kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	return NULL;
}

int kb_trace_adopt(struct kb_trace **out, struct kb_barman *barman, const char *path,
		   const struct kb_trace_options *options, struct kb_error *err)
{
	struct kb_symbol_options symbols;
	struct kb_trace_options as_known;
	struct kb_trace *trace;
	int ret;

	ret = KB_OPTIONS(&as_known, options, err) ?: KB_OPTIONS(&symbols, as_known.symbols, err);
	if (ret) {
		kb_barman_close(barman);
		return ret;
	}
	trace = calloc(1, sizeof(*trace));
	if (trace)
		trace->barman = barman;
	else
		kb_barman_close(barman);
	if (!trace || (path && !(trace->path = strdup(path)))) {
		kb_trace_close(trace);
		out_of_memory(err);
		return -ENOMEM;
	}
	trace->symbols = symbols;
	kb_barman_set_counters(barman, as_known.counters);
	*out = trace;
	return 0;
}

int kb_trace_open(struct kb_trace **out, const char *path, const struct kb_trace_options *options,
		  struct kb_error *err)
{
	struct kb_barman *barman;
	int ret = kb_barman_open(&barman, path, err);

	return ret ? ret : kb_trace_adopt(out, barman, path, options, err);
}

int kb_trace_open_memory(struct kb_trace **out, const void *data, size_t size,
			 const struct kb_trace_options *options, struct kb_error *err)
{
	struct kb_barman *barman;
	int ret = kb_barman_open_memory(&barman, data, size, err);

	return ret ? ret : kb_trace_adopt(out, barman, NULL, options, err);
}

void kb_trace_close(struct kb_trace *trace)
{
	if (!trace)
		return;
	kb_symbolizer_destroy(trace->symbolizer);
	kb_timeline_destroy(trace->timeline);
	kb_names_destroy(trace->names);
	if (trace->losses)
		kb_losses_release(trace->losses);
	free(trace->losses);
	kb_process_notes_destroy(trace->notes);
	kb_tasks_destroy(trace->tasks);
	kb_barman_close(trace->barman);
	free(trace->path);
	free(trace);
}

/* ---- the parts ---- */

struct kb_barman *kb_trace_barman(const struct kb_trace *trace)
{
	return trace->barman;
}

const struct kb_header *kb_trace_header(const struct kb_trace *trace)
{
	return kb_barman_header(trace->barman);
}

const struct kb_tasks *kb_trace_tasks(struct kb_trace *trace, struct kb_error *err)
{
	if (!trace->tasks && kb_tasks_create(&trace->tasks, trace->barman))
		return out_of_memory(err);
	return trace->tasks;
}

const struct kb_losses *kb_trace_losses(struct kb_trace *trace, struct kb_error *err)
{
	struct kb_losses *losses;

	if (trace->losses)
		return trace->losses;
	losses = malloc(sizeof(*losses));
	if (!losses || kb_losses_read(losses, trace->barman)) {
		free(losses);
		return out_of_memory(err);
	}
	return trace->losses = losses;
}

const struct kb_process_notes *kb_trace_notes(struct kb_trace *trace, struct kb_error *err)
{
	if (!trace->notes && kb_process_notes_create(&trace->notes, trace->barman))
		return out_of_memory(err);
	return trace->notes;
}

struct kb_names *kb_trace_names(struct kb_trace *trace, struct kb_error *err)
{
	const struct kb_tasks *tasks = kb_trace_tasks(trace, err);

	if (tasks && !trace->names)
		kb_names_create(&trace->names, trace->barman, tasks, err);
	return trace->names;
}

struct kb_timeline *kb_trace_timeline(struct kb_trace *trace, struct kb_error *err)
{
	const struct kb_losses *losses = kb_trace_losses(trace, err);

	if (losses && !trace->timeline)
		kb_timeline_create(&trace->timeline, trace->barman, losses, err);
	return trace->timeline;
}

struct kb_symbolizer *kb_trace_symbolizer(struct kb_trace *trace, struct kb_error *err)
{
	const struct kb_tasks *tasks = kb_trace_tasks(trace, err);

	if (tasks && !trace->symbolizer)
		kb_symbolizer_share(&trace->symbolizer, trace->barman, tasks, trace->path,
				    &trace->symbols, err);
	return trace->symbolizer;
}

/* ---- the walk ---- */

/* Says what the records before it say of the current event. */
static const struct kb_walk *place(struct kb_trace *trace)
{
	struct kb_walk *now = &trace->walk;

	now->ns = barman_clock_ns(&trace->barman->clock, now->event.timestamp);
	now->running = 0;
	now->known = kb_timeline_running(trace->timeline, now->event.core, &now->running);
	now->nr_slices = kb_timeline_feed(trace->timeline, &now->event, now->ns, now->slices);
	return now;
}

int kb_trace_next(struct kb_trace *trace, const struct kb_walk **walk, struct kb_error *err)
{
	int ret;

	if (!trace->timeline && !kb_trace_timeline(trace, err))
		return -ENOMEM;
	ret = trace_next_event(trace, err);
	if (ret <= 0)
		return ret;
	*walk = place(trace);
	return 1;
}

const struct kb_walk *kb_trace_feed(struct kb_trace *trace, const struct kb_event *event)
{
	trace->walk.event = *event;
	return place(trace);
}

bool kb_trace_end(struct kb_trace *trace, struct kb_slice *slice)
{
	return kb_trace_timeline(trace, NULL) && kb_timeline_end(trace->timeline, slice);
}

int kb_trace_rewind(struct kb_trace *trace, struct kb_error *err)
{
	int ret = kb_barman_rewind(trace->barman);

	if (ret)
		return kb_error_set(err, ret, KB_NO_OFFSET, "the capture comes from a pipe and "
				    "was read already: write it to a file first");
	trace->result = 0;
	trace->nr_shown = 0;
	kb_timeline_destroy(trace->timeline);
	trace->timeline = NULL;
	return kb_trace_timeline(trace, err) ? 0 : -ENOMEM;
}

bool kb_trace_is_damaged(struct kb_trace *trace, int step, struct kb_error *err)
{
	const struct kb_error *first;

	if (step < 0)
		return true;
	if (!kb_barman_damage(trace->barman, &first))
		return false;
	if (err)
		*err = *first;
	return true;
}

uint64_t kb_trace_nr_shown(const struct kb_trace *trace)
{
	return trace->nr_shown;
}

int64_t kb_trace_first(const struct kb_trace *trace)
{
	return trace->timeline ? kb_timeline_first(trace->timeline) : 0;
}

int64_t kb_trace_last(const struct kb_trace *trace)
{
	return trace->timeline ? kb_timeline_last(trace->timeline) : 0;
}

uint64_t kb_trace_duration(const struct kb_trace *trace)
{
	return trace->timeline ? kb_timeline_duration(trace->timeline) : 0;
}

int kb_trace_frames(struct kb_trace *trace, uint32_t frame, const struct kb_frame **frames)
{
	const struct kb_event *event = &trace->walk.event;
	uint32_t task = event->type == KB_EVENT_TASK_SWITCH ? trace->walk.running : event->task_id;
	struct kb_symbolizer *symbolizer = kb_trace_symbolizer(trace, NULL);

	if (!symbolizer)
		return -ENOMEM;
	return (int)kb_symbolizer_frames(symbolizer, task, event->timestamp,
					 kb_chain_lookup(event, frame), frames);
}
