// SPDX-License-Identifier: MIT
/*
 * Saving what resolution needs: the capture is read once, every address in it is
 * resolved, and the images that this has loaded are saved.
 */
#include <kbarman/symbol.h>

#include "analysis/stack.h"

static int resolve_all(struct kb_barman *barman, struct kb_symbolizer *symbolizer,
		       struct kb_error *err)
{
	struct kb_event event;
	uint32_t frame, depth;
	int ret;

	while ((ret = kb_barman_next(barman, &event, err)) > 0) {
		if (event.type != KB_EVENT_SAMPLE || !event.sample.has_pc)
			continue;
		depth = kb_stack_depth(&event);
		for (frame = 0; frame < depth; frame++)
			kb_symbolizer_resolve(symbolizer, event.task_id, event.timestamp,
					      kb_stack_lookup(&event, frame));
	}
	return ret < 0;
}

int kb_capture_save_symbols(const char *capture, const struct kb_symbol_options *options,
			    void (*say)(void *context, const char *sentence), void *context,
			    struct kb_error *err)
{
	struct kb_symbolizer *symbolizer;
	struct kb_barman *barman;
	int damaged, ret;

	ret = kb_barman_open(&barman, capture, err);
	if (ret)
		return ret;
	/* No capture's name: an older CAPTURE.symbols must not be taken for the truth. */
	ret = kb_symbolizer_create(&symbolizer, barman, NULL, options, err);
	if (!ret) {
		struct kb_error write_error = { 0 };

		damaged = resolve_all(barman, symbolizer, err);
		ret = kb_symbolizer_save(symbolizer, capture, &write_error);
		if (ret && err)
			*err = write_error;
		else if (!ret)
			ret = damaged;
		if (say)
			kb_symbolizer_complaints(symbolizer, say, context);
		kb_symbolizer_destroy(symbolizer);
	}
	kb_barman_close(barman);
	return ret;
}
