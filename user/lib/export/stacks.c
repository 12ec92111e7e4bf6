// SPDX-License-Identifier: MIT
/* One pass over the capture; only the different chains are kept. */
#include <errno.h>
#include <string.h>

#include "export/stacks.h"

int kb_stacks_read(struct kb_stacks *stacks, struct kb_barman *barman,
		   struct kb_symbolizer *symbolizer, const struct kb_export_options *options,
		   struct kb_error *err)
{
	bool count = options->format && strcmp(options->format, "samples") == 0;
	bool chains = false;
	struct kb_event event;
	int ret;

	*stacks = (struct kb_stacks) { 0 };
	ret = kb_export_rewind(barman, err);
	if (!ret)
		ret = kb_calltree_create(&stacks->tree, barman, err);
	if (ret)
		return ret;
	while ((stacks->damage = kb_barman_next(barman, &event, err)) > 0) {
		if (event.type != KB_EVENT_SAMPLE || !event.sample.has_pc)
			continue;
		stacks->samples++;
		chains |= event.sample.nr_chain > 1;
		if (kb_calltree_add(stacks->tree, &event, symbolizer))
			return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	}
	stacks->nodes = kb_calltree_finish(stacks->tree, count, &stacks->nr, &stacks->order);
	if (!stacks->nodes)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	if (!stacks->samples)
		kb_export_say(options, "the capture has no samples with an address");
	else if (!chains)
		kb_export_say(options, "the capture has no call chains, every stack has one frame: "
			      "record with -g");
	return 0;
}

void kb_stacks_release(struct kb_stacks *stacks)
{
	kb_calltree_destroy(stacks->tree);
}
