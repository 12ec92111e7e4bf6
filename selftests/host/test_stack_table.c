// SPDX-License-Identifier: MIT
/* Chains of addresses, more than are remembered whole, beside the chains that the nodes spell. */
#include <stdlib.h>

#include "../lib/random.h"
#include "../lib/tap.h"
#include "export/stack_table.h"
#include "written.h"

#define CHAINS		40000U	/* more than the table remembers at a time */
#define DEPTH		24U
#define ROUNDS		120000U

static uint64_t chains[CHAINS][DEPTH];
static uint32_t depths[CHAINS], nodes[CHAINS];

/* Many begin in the same way, and some are a part of others. */
static void make_chains(void)
{
	for (uint32_t i = 0; i < CHAINS; i++) {
		uint32_t from = i ? random_below(i) : 0, same;

		depths[i] = 1 + random_below(DEPTH);
		same = i ? random_below(depths[i]) : 0;
		if (same > depths[from])
			same = depths[from];
		/* outermost last */
		for (uint32_t d = 0; d < depths[i]; d++)
			chains[i][depths[i] - 1 - d] = d < same ? chains[from][depths[from] - 1 - d] :
						       0x1000 + random_below(1 << 20);
	}
}

/* Do the nodes from @node up to the root have the addresses of chain @i? */
static bool is_chain(const struct kb_stack_table *stacks, uint32_t node, uint32_t i)
{
	uint32_t d;

	for (d = 0; d < depths[i] && node != KB_STACK_TABLE_ROOT; d++) {
		const struct kb_stack_node *row = kb_stack_node(stacks, node);

		/* a caller's address is looked up inside the call before it */
		if (kb_stack_frame(stacks, row->frame)->address != chains[i][d] - (d > 0) ||
		    row->depth != depths[i] - d)
			return false;
		node = row->parent;
	}
	return d == depths[i] && node == KB_STACK_TABLE_ROOT;
}

int main(void)
{
	struct written capture = written_begin(&(struct kb_barman_layout) {
		.size = sizeof(struct kb_barman_layout),
		.max_cores = 1, .max_string_table_length = 64 });
	struct kb_barman *barman = written_open(&capture);
	struct kb_stack_table stacks = { .addresses = true };
	struct kb_symbolizer *symbolizer;
	unsigned int wrong = 0, moved = 0;
	struct kb_error err;

	random_start();
	make_chains();
	if (kb_symbolizer_create(&symbolizer, barman, NULL, NULL, &err) ||
	    kb_stack_table_init(&stacks, true))
		abort();
	for (uint32_t n = 0; n < ROUNDS; n++) {
		/* all of them, and some of them again and again */
		uint32_t i = n % 3 ? random_below(random_below(CHAINS) + 1) : n / 3;
		const struct kb_event event = {
			.type = KB_EVENT_SAMPLE, .task_id = 1, .timestamp = n,
			.sample = { .has_pc = true, .pc = chains[i][0], .chain = chains[i],
				    .nr_chain = depths[i] },
		};
		int64_t node = kb_stack_table_add(&stacks, &event, symbolizer);

		wrong += node <= 0 || !is_chain(&stacks, (uint32_t)node, i);
		moved += nodes[i] && nodes[i] != node;
		nodes[i] = (uint32_t)node;
	}
	tap_is(wrong, 0, "nodes_spell_the_chain_that_was_added");
	tap_is(moved, 0, "a_chain_has_one_node");
	kb_stack_table_release(&stacks);
	kb_symbolizer_destroy(symbolizer);
	kb_barman_close(barman);
	return tap_done();
}
