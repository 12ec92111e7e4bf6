// SPDX-License-Identifier: MIT
/*
 * Chains of addresses, more than are remembered whole, beside the chains that the nodes spell; and
 * one address of a file in different mappings.
 */
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

static void chains_are_what_was_added(void)
{
	struct written capture = written_begin(&(struct kb_barman_layout) {
		.size = sizeof(struct kb_barman_layout),
		.max_cores = 1, .max_string_table_length = 64 });
	struct kb_barman *barman = written_open(&capture);
	struct kb_stack_table stacks = { .addresses = true };
	struct kb_symbolizer *symbolizer;
	unsigned int wrong = 0, moved = 0;
	struct kb_error err;

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
}

/* ---- mappings ---- */

/* Two tasks, who call one address of @path from programs of their own. */
struct seen {
	const char *path;
	uint64_t bases[2], lengths[2], offsets[2];	/* how each has mapped it */
	uint64_t pcs[2];
};

/* The images of @path in the table, and the bytes of the longest one. */
static void look(const struct seen *seen, unsigned int *nr, uint64_t *longest)
{
	struct written capture = written_begin(&(struct kb_barman_layout) {
		.size = sizeof(struct kb_barman_layout), .max_cores = 1, .max_task_infos = 2,
		.max_mmap_layout = 4, .max_string_table_length = 256 });
	struct kb_stack_table stacks = { 0 };
	struct kb_symbolizer *symbolizer;
	struct kb_barman *barman;
	struct kb_error err;

	for (uint32_t task = 0; task < 2; task++) {
		const struct kb_map program = { .task_id = 1 + task, .base_address = 0x400000,
						.length = 0x1000 * (1 + task), .image = "/no/program" };
		const struct kb_map map = { .task_id = 1 + task, .base_address = seen->bases[task],
					    .length = seen->lengths[task], .image = seen->path,
					    .image_offset = seen->offsets[task] };

		if (kb_barman_writer_map(capture.writer, &program) ||
		    kb_barman_writer_map(capture.writer, &map))
			abort();
	}
	barman = written_open(&capture);
	if (kb_symbolizer_create(&symbolizer, barman, NULL, NULL, &err) ||
	    kb_stack_table_init(&stacks, true))
		abort();
	for (uint32_t task = 0; task < 2; task++) {
		const uint64_t chain[2] = { seen->pcs[task], 0x400010 + 0x100 * task };
		const struct kb_event event = {
			.type = KB_EVENT_SAMPLE, .task_id = 1 + task, .timestamp = 10 + task,
			.sample = { .has_pc = true, .pc = chain[0], .chain = chain, .nr_chain = 2 },
		};

		if (kb_stack_table_add(&stacks, &event, symbolizer) <= 0)
			abort();
	}
	*nr = 0;
	*longest = 0;
	for (uint32_t i = 0; i < stacks.images.nr; i++) {
		const struct kb_stack_image *image = kb_stack_image(&stacks, i);

		if (!strcmp(image->path, "/no/program"))
			continue;
		++*nr;
		if (image->end - image->start > *longest)
			*longest = image->end - image->start;
	}
	kb_stack_table_release(&stacks);
	kb_symbolizer_destroy(symbolizer);
	kb_barman_close(barman);
}

static void mappings_are_told_apart(void)
{
	const struct seen longer = { "/no/library", { 0x7f0000000000, 0x7e0000000000 },
				     { 0x1000, 0x9000 }, { 0x2000, 0x2000 },
				     { 0x7f0000000100, 0x7e0000000100 } };
	const struct seen memory = { "", { 0x7f0000000000, 0x7f0000004000 }, { 0x10000, 0x2000 },
				     { 0, 0 }, { 0x7f0000004100, 0x7f0000004100 } };
	const struct seen parts = { "/no/library", { 0x7f0000000000, 0x7e0000000000 },
				    { 0x10000, 0x1000 }, { 0x2000, 0x6000 },
				    { 0x7f0000004100, 0x7e0000000100 } };
	unsigned int nr;
	uint64_t longest;

	look(&longer, &nr, &longest);
	tap_is(nr, 1, "a_part_of_a_file_is_one_image_wherever_it_is_mapped");
	tap_is(longest, 0x9000, "an_image_is_as_long_as_its_longest_mapping");
	look(&memory, &nr, &longest);
	tap_is(nr, 2, "memory_without_a_file_is_another_image_at_each_address");
	look(&parts, &nr, &longest);
	tap_is(nr, 2, "parts_of_a_file_are_images_of_their_own");
}

int main(void)
{
	random_start();
	chains_are_what_was_added();
	mappings_are_told_apart();
	return tap_done();
}
