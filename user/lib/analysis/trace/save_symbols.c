// SPDX-License-Identifier: MIT
/*
 * Save what is needed to resolve addresses: read the capture once, resolve every address in it,
 * and save the images that were loaded. Most addresses come again and again: one whose answer is
 * known to hold is not resolved another time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <kbarman/chain.h>

#include "analysis/trace/parts.h"
#include "base/options.h"
#include "base/table.h"
#include "sym/symbolizer/bundle.h"
#include "sym/symbolizer/place.h"

#define RESOLVED_MAX	(1U << 20)	/* addresses of tasks that are remembered */

struct resolved {
	uint64_t task_id, address;	/* the key */
	uint64_t since, until;		/* the answer holds */
};

/* What was resolved already: a table of struct resolved. It begins anew when it is full. */
static void begin(struct kb_table *resolved)
{
	kb_table_init(resolved, sizeof(struct resolved), 2);
}

static void resolve(struct kb_symbolizer *symbolizer, struct kb_table *resolved, uint32_t task_id,
		    uint64_t timestamp, uint64_t address)
{
	const uint64_t key[] = { task_id, address };
	struct resolved *row;

	if (resolved->nr == RESOLVED_MAX) {
		kb_table_release(resolved);
		begin(resolved);
	}
	row = kb_table_get(resolved, key);
	if (row && row->since <= timestamp && timestamp <= row->until && row->until)
		return;
	kb_symbolizer_resolve(symbolizer, task_id, timestamp, address);
	if (row)
		kb_symbolizer_holds(symbolizer, &row->since, &row->until);
}

static void resolve_stack(struct kb_symbolizer *symbolizer, struct kb_table *resolved,
			  const struct kb_event *event, uint32_t task_id)
{
	uint32_t frame, depth = kb_chain_depth(event);

	for (frame = 0; frame < depth; frame++)
		resolve(symbolizer, resolved, task_id, event->timestamp, kb_chain_lookup(event, frame));
}

/* Returns 0, 1 if the capture is damaged, or -ENOMEM. */
static int resolve_all(struct kb_barman *barman, struct kb_symbolizer *symbolizer,
		       struct kb_error *err)
{
	struct kb_table resolved;
	uint32_t max_cores = kb_barman_header(barman)->max_cores;
	uint32_t *running = calloc((size_t)max_cores + 1, sizeof(*running));
	struct kb_event event;
	int ret;

	if (!running)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	begin(&resolved);
	while ((ret = kb_barman_next(barman, &event, err)) > 0) {
		if (event.type == KB_EVENT_SAMPLE && event.sample.has_pc)
			resolve_stack(symbolizer, &resolved, &event, event.task_id);
		if (event.type != KB_EVENT_TASK_SWITCH || event.core >= max_cores)
			continue;
		/* the chain is that of the previous task */
		resolve_stack(symbolizer, &resolved, &event, running[event.core]);
		running[event.core] = event.task_id;
	}
	kb_table_release(&resolved);
	free(running);
	return ret < 0;
}

/* Who removes a capture removes it first, and then what is beside it: nothing is left of both. */
static int save(const struct kb_symbolizer *symbolizer, const char *capture, struct kb_error *err)
{
	int ret = kb_symbolizer_save(symbolizer, capture, err);
	char *path;

	if (ret || !access(capture, F_OK) || errno != ENOENT)
		return ret;
	if (asprintf(&path, "%s" KB_BUNDLE_SUFFIX, capture) >= 0) {
		unlink(path);
		free(path);
	}
	return kb_error_set(err, -ENOENT, KB_NO_OFFSET, "no symbols were saved: %s was removed meanwhile",
			    capture);
}

int kb_capture_save_symbols(const char *capture, const struct kb_symbol_options *options,
			    void (*say)(void *context, const char *sentence), void *context,
			    struct kb_error *err)
{
	struct kb_symbol_options as_they_are;
	const struct kb_trace_options how = { .size = sizeof(how), .symbols = &as_they_are };
	struct kb_error write_error = { 0 };
	struct kb_symbolizer *symbolizer;
	struct kb_barman *barman;
	struct kb_trace *trace;
	int damaged, ret = KB_OPTIONS(&as_they_are, options, err);

	if (ret)
		return ret;
	/* The saved names are those of the linker. */
	as_they_are.raw_names = true;

	/* No path: an existing CAPTURE.symbols must not be used as a source. */
	ret = kb_barman_open(&barman, capture, err) ?:
	      kb_trace_adopt(&trace, barman, NULL, &how, err);
	if (ret)
		return ret;
	symbolizer = kb_trace_symbolizer(trace, &write_error);
	if (!symbolizer) {
		kb_trace_close(trace);
		if (err)
			*err = write_error;
		return write_error.code;
	}
	damaged = resolve_all(barman, symbolizer, err);
	ret = damaged < 0 ? damaged : save(symbolizer, capture, &write_error);
	if (ret && damaged >= 0 && err)
		*err = write_error;
	else if (!ret)
		ret = damaged;
	if (say)
		kb_symbolizer_complaints(symbolizer, say, context);
	kb_trace_close(trace);
	return ret;
}
