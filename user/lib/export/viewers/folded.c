// SPDX-License-Identifier: MIT
/*
 * Folded stacks, the input of flame graph tools: one line for each different stack,
 * "task;outermost;...;innermost WEIGHT". Kernel frames end in "_[k]", inlined frames in "_[i]".
 */
#include "export/list.h"
#include "export/run.h"
#include "export/viewers/folded_label.h"
#include "export/weighed_calls.h"

static void put_label(struct kb_out *out, const struct kb_calltree_node *node)
{
	char label[KB_FOLDED_LABEL];

	kb_calltree_label(node, label, sizeof(label));
	kb_folded_label(out, label, node->kernel, node->inlined);
}

static void put_stack(struct kb_out *out, const struct kb_weighed_calls *stacks,
		      const struct kb_calltree_node *node)
{
	const struct kb_calltree_node *path[KB_CALLTREE_DEPTH + 2];
	const struct kb_calltree_node *at;
	uint32_t depth = node->depth;

	for (at = node; at->depth; at = &stacks->nodes[at->parent])
		path[at->depth] = at;
	for (uint32_t i = 1; i <= depth; i++) {
		if (i > 1)
			kb_out_bytes(out, ";", 1);
		put_label(out, path[i]);
	}
	kb_out_printf(out, " %llu\n", (unsigned long long)node->self);
}

static int run(struct kb_trace *trace, const struct kb_export_options *options,
	       struct kb_out *out, struct kb_error *err)
{
	struct kb_weighed_calls stacks;
	uint32_t i;
	int ret;

	ret = kb_weighed_calls_read(&stacks, trace, options, err);
	for (i = 0; !ret && i < stacks.nr; i++)
		if (stacks.nodes[stacks.order[i]].self)
			put_stack(out, &stacks, &stacks.nodes[stacks.order[i]]);
	if (!ret)
		ret = kb_export_end(trace, out, false, err);
	kb_weighed_calls_release(&stacks);
	return ret;
}

static const char *const formats[] = KB_WEIGHED_CALLS_FORMATS(".folded");

const struct kb_export kb_export_folded = {
	.name = "folded",
	.extension = ".folded",
	.description = "folded stacks, for flame graph tools (weight, samples, offcpu)",
	.formats = formats,
	.run = run,
};
