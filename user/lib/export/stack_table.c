// SPDX-License-Identifier: MIT
/*
 * Adding a sample takes a look-up of its symbol and two look-ups of rows for each frame. If
 * frames are addresses, there are more rows than fit into a cache. Then the frames of an address
 * are looked up once, and a whole chain that was added before takes one look-up.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/chain.h>
#include "base/array.h"
#include "base/hash.h"
#include "export/label.h"
#include "export/stack_table.h"
#include "sym/symbolizer/place.h"

static const struct kb_frame nothing = {
	.symbol = {
		.name = "",
		.raw_name = "",
		.image = "[unknown]",
		.image_base = "[unknown]",
	},
	.file = "",
};

/* A call as far as it makes chains different. */
struct met {
	uint64_t key[2];	/* address; line of code made at run time, and symbol, which is of
				 * one image */
};

/* What is at an address, as far as one mapping is like another one. */
struct site {
	uint64_t key[4];	/* a struct met; offset and length of the mapping */
	uint32_t nr;		/* of its frames; 0: not looked up yet */
	uint32_t first;		/* the frame's number; with more frames, where their numbers are in
				 * inlined[], the outermost one first */
};

#define MEMO_CHAINS	(1U << 15)
#define MEMO_FRAMES	(1U << 18)	/* of all chains: 4 MiB */

/* When there is no more room for frames, all chains are forgotten. */
struct kb_stack_memo {
	struct known {
		uint32_t node;			/* 0: none */
		uint32_t first, nr;		/* its frames, outermost first */
	} chains[MEMO_CHAINS];			/* from hash % MEMO_CHAINS on; at most half are used */
	uint32_t nr_chains;
	uint64_t pcs[KB_STACK_TABLE_DEPTH];	/* of the one that is added */
	struct met chain[KB_STACK_TABLE_DEPTH];
	uint64_t keys[KB_STACK_TABLE_DEPTH][4];	/* of its sites */
	uint64_t hashes[KB_STACK_TABLE_DEPTH];	/* of these */
	uint32_t *inlined, nr_inlined, max_inlined;	/* frames of sites that have several */
	uint32_t nr_frames;
	struct met frames[MEMO_FRAMES];
};

int kb_stack_table_init(struct kb_stack_table *stacks, bool addresses)
{
	const struct kb_stack_node root = { .parent = KB_STACK_TABLE_ROOT, .frame = UINT32_MAX };

	stacks->addresses = addresses;
	kb_table_init(&stacks->images, sizeof(struct kb_stack_image), 3);
	kb_table_init(&stacks->frames, sizeof(struct kb_stack_frame), 3);
	kb_table_init(&stacks->nodes, sizeof(struct kb_stack_node), 1);
	kb_table_init(&stacks->sites, sizeof(struct site), 4);
	if (addresses && !(stacks->memo = calloc(1, sizeof(*stacks->memo))))
		return -ENOMEM;
	return kb_table_get(&stacks->nodes, &root.key) ? 0 : -ENOMEM;
}

void kb_stack_table_release(struct kb_stack_table *stacks)
{
	kb_table_release(&stacks->images);
	kb_table_release(&stacks->frames);
	kb_table_release(&stacks->nodes);
	kb_table_release(&stacks->sites);
	if (stacks->memo)
		free(stacks->memo->inlined);
	free(stacks->memo);
}

static uint32_t number_of(const struct kb_table *table, const void *row)
{
	return (uint32_t)(((const char *)row - table->rows) / table->row_size);
}

/*
 * The mapping row that covers @symbol. kallsyms may give a symbol another image than the row
 * that covers its address; then NULL: the row does not describe that image.
 */
static const struct kb_map *row_of(const struct kb_symbol *symbol, const struct kb_place *place)
{
	if (place->row && symbol->kernel && strcmp(place->row->image, symbol->image) != 0)
		return NULL;
	return place->row;
}

/*
 * Distinguishes mappings of one image: a part of a file has the same offset wherever it is
 * mapped. Memory without a file has its address as offset, so it is different at each address.
 */
static uint64_t offset_of(const struct kb_map *row, const struct kb_place *place)
{
	return place->anonymous ? row->base_address : row->image_offset;
}

/* The number of the image of @symbol, which @row maps unless it is NULL; -ENOMEM. */
static int64_t find_image(struct kb_stack_table *stacks, const struct kb_symbol *symbol,
			  const struct kb_place *place, const struct kb_map *row)
{
	uint64_t key[3] = { (uintptr_t)symbol->image, (uintptr_t)place->build_id };
	struct kb_stack_image *image;

	if (stacks->addresses)
		key[2] = row ? offset_of(row, place) : UINT64_MAX;
	image = kb_table_get(&stacks->images, key);
	if (!image)
		return -ENOMEM;
	if (!image->path) {
		image->path = symbol->image;
		image->base_name = symbol->image_base;
		image->build_id = place->build_id;
		image->kernel = symbol->kernel;
		image->mapped = row;
		image->start = row ? row->base_address : 0;
		image->offset = row ? offset_of(row, place) : 0;
	}
	if (row && image->start + row->length > image->end)
		image->end = image->start + row->length;
	return number_of(&stacks->images, image);
}

/* The address of a frame, the same for all calls of one instruction of an image. */
static uint64_t address_of(uint64_t pc, const struct kb_place *place)
{
	return place->row && !place->anonymous ?
		pc - place->row->base_address + place->row->image_offset : pc;
}

/* The row of @frame, which has the address @pc and the place @place; -ENOMEM. */
static int64_t find_frame(struct kb_stack_table *stacks, const struct kb_frame *frame, uint64_t pc,
			  const struct kb_place *place)
{
	uint64_t address = 0, key[3] = { frame->symbol.id };
	const struct kb_map *map = NULL;
	struct kb_stack_frame *row;
	int64_t image = -1;

	if (stacks->addresses) {
		map = row_of(&frame->symbol, place);
		image = find_image(stacks, &frame->symbol, place, map);
		if (image < 0)
			return image;
		address = map ? pc - map->base_address +
			kb_stack_image(stacks, (uint32_t)image)->start : pc;
		key[1] = address;
		key[2] = (uint64_t)frame->line_id << 32 | (uint64_t)(image + 1);
	}
	row = kb_table_get(&stacks->frames, key);
	if (!row)
		return -ENOMEM;
	if (!row->name) {
		if (image < 0)
			image = find_image(stacks, &frame->symbol, place, map);
		if (image < 0)
			return image;
		row->name = frame->symbol.name;
		row->raw_name = frame->symbol.raw_name;
		row->file = stacks->addresses ? frame->file : "";
		row->line = stacks->addresses ? frame->line : 0;
		row->address = address;
		row->image = (uint32_t)image;
		row->kernel = frame->symbol.kernel;
	}
	return number_of(&stacks->frames, row);
}

/* The node of @frame below the node @parent; -ENOMEM. */
static int64_t find_node(struct kb_stack_table *stacks, uint32_t parent, uint32_t frame)
{
	const struct kb_stack_node wanted = { .parent = parent, .frame = frame };
	struct kb_stack_node *row = kb_table_get(&stacks->nodes, &wanted.key);

	if (!row)
		return -ENOMEM;
	if (!row->depth) {
		row->depth = kb_stack_node(stacks, parent)->depth + 1;
		row->kernel = kb_stack_frame(stacks, frame)->kernel;
	}
	return number_of(&stacks->nodes, row);
}

/* Add all frames at @pc below @node, inlined ones last. Returns the last node or -ENOMEM. */
static int64_t add_frames(struct kb_stack_table *stacks, const struct kb_event *event, uint64_t pc,
			  int64_t node, struct kb_symbolizer *symbolizer)
{
	static const struct kb_place nowhere;
	const struct kb_place *place = &nowhere;
	const struct kb_frame *frames = &nothing;
	uint32_t nr = 1;

	if (symbolizer) {
		nr = kb_symbolizer_frames(symbolizer, event->task_id, event->timestamp, pc, &frames);
		place = kb_symbolizer_place(symbolizer);
	}
	while (nr-- && node >= 0) {
		int64_t frame = find_frame(stacks, &frames[nr], pc, place);

		node = frame < 0 ? frame : find_node(stacks, (uint32_t)node, (uint32_t)frame);
	}
	return node;
}

/* What makes the frame at @pc different. */
static struct met meet(const struct kb_event *event, uint64_t pc, struct kb_symbolizer *symbolizer)
{
	const struct kb_symbol *symbol = kb_symbolizer_resolve(symbolizer, event->task_id,
							       event->timestamp, pc);
	const struct kb_place *place = kb_symbolizer_place(symbolizer);

	return (struct met) { { address_of(pc, place),
				(uint64_t)place->line_id << 32 | symbol->id } };
}

/* The key of what is at @pc, which @met tells. find_image() tells such mappings apart. */
static void find_site(const struct kb_event *event, uint64_t pc, const struct met *met,
		      struct kb_symbolizer *symbolizer, uint64_t key[4])
{
	const struct kb_symbol *symbol = kb_symbolizer_resolve(symbolizer, event->task_id,
							       event->timestamp, pc);
	const struct kb_place *place = kb_symbolizer_place(symbolizer);
	const struct kb_map *row = row_of(symbol, place);

	key[0] = met->key[0];
	key[1] = met->key[1];
	key[2] = row ? offset_of(row, place) : UINT64_MAX;
	key[3] = row ? row->length : 0;
}

/* Note the frames at @pc, which are those of @site. */
static int fill_site(struct kb_stack_table *stacks, const struct kb_event *event, uint64_t pc,
		     struct site *site, struct kb_symbolizer *symbolizer)
{
	struct kb_stack_memo *memo = stacks->memo;
	const struct kb_frame *frames;
	uint32_t nr = kb_symbolizer_frames(symbolizer, event->task_id, event->timestamp, pc, &frames);
	const struct kb_place *place = kb_symbolizer_place(symbolizer);
	int64_t frame;

	if (nr > 1 && !KB_ARRAY_ROOM(memo->inlined, memo->max_inlined, memo->nr_inlined + nr))
		return -ENOMEM;
	site->first = memo->nr_inlined;
	for (uint32_t i = nr; i--; ) {
		frame = find_frame(stacks, &frames[i], pc, place);
		if (frame < 0)
			return -ENOMEM;
		if (nr == 1)
			site->first = (uint32_t)frame;
		else
			memo->inlined[memo->nr_inlined++] = (uint32_t)frame;
	}
	site->nr = nr;
	return 0;
}

/* The last node of the frames of @site, which are called from @node; -ENOMEM. */
static int64_t add_site(struct kb_stack_table *stacks, const struct site *site, int64_t node)
{
	const uint32_t *frames = site->nr == 1 ? &site->first : stacks->memo->inlined + site->first;

	for (uint32_t i = 0; i < site->nr && node >= 0; i++)
		node = find_node(stacks, (uint32_t)node, frames[i]);
	return node;
}

/* Where the chain whose @depth frames are in memo->chain is, or where there is room for it. */
static struct known *known_chain(struct kb_stack_memo *memo, uint64_t hash, uint32_t depth)
{
	struct known *known;

	for (;; hash++) {
		known = &memo->chains[hash % MEMO_CHAINS];
		if (!known->node || (known->nr == depth &&
				     !memcmp(memo->frames + known->first, memo->chain,
					     depth * sizeof(*memo->frames))))
			return known;
	}
}

static void memorize(struct kb_stack_memo *memo, uint64_t hash, uint32_t depth, int64_t node)
{
	if (depth > MEMO_FRAMES - memo->nr_frames || memo->nr_chains == MEMO_CHAINS / 2) {
		memset(memo->chains, 0, sizeof(memo->chains));
		memo->nr_frames = memo->nr_chains = 0;
	}
	*known_chain(memo, hash, depth) = (struct known) {
		.node = (uint32_t)node, .first = memo->nr_frames, .nr = depth };
	memcpy(memo->frames + memo->nr_frames, memo->chain, depth * sizeof(*memo->frames));
	memo->nr_frames += depth;
	memo->nr_chains++;
}

/*
 * The lookup addresses of all @depth frames, outermost first: kb_chain_lookup() of each. All but two
 * at most are return addresses.
 */
static void look_up_chain(const struct kb_event *restrict event, uint32_t depth,
			  uint64_t *restrict pcs)
{
	const bool is_switch = event->type == KB_EVENT_TASK_SWITCH;
	const uint64_t *chain = is_switch ? event->task_switch.chain : event->sample.chain;
	const uint32_t extra = kb_chain_extra(event);
	const uint32_t user = extra + (is_switch ? event->task_switch.nr_chain_kernel :
				       event->sample.nr_chain_kernel);

	for (uint32_t frame = extra; frame < depth; frame++) {
		uint64_t pc = chain[frame - extra];

		pcs[depth - 1 - frame] = pc ? pc - 1 : pc;
	}
	if (depth && !is_switch)
		pcs[depth - 1] = kb_chain_lookup(event, 0);
	if (user < depth)
		pcs[depth - 1 - user] = kb_chain_lookup(event, user);
}

/* Add all @depth frames of a chain that is in the memo's arrays. Returns the last node or -ENOMEM. */
static int64_t add_new_chain(struct kb_stack_table *stacks, const struct kb_event *event,
			     uint32_t depth, struct kb_symbolizer *symbolizer)
{
	struct kb_stack_memo *memo = stacks->memo;
	int64_t node = KB_STACK_TABLE_ROOT;

	for (uint32_t i = 0; i < depth; i++) {
		find_site(event, memo->pcs[i], &memo->chain[i], symbolizer,
			  memo->keys[i]);
		memo->hashes[i] = kb_table_hash(&stacks->sites, memo->keys[i]);
		kb_table_fetch_slot(&stacks->sites, memo->hashes[i]);
	}
	for (uint32_t i = 0; i < depth; i++)
		kb_table_fetch_row(&stacks->sites, memo->hashes[i]);
	for (uint32_t i = 0; i < depth && node >= 0; i++) {
		uint32_t number = kb_table_number(&stacks->sites, memo->keys[i], memo->hashes[i]);
		struct site *site;

		if (number == KB_TABLE_NONE)
			return -ENOMEM;
		site = kb_table_row(&stacks->sites, number);
		if (!site->nr && fill_site(stacks, event, memo->pcs[i], site, symbolizer))
			return -ENOMEM;
		node = add_site(stacks, site, node);
	}
	return node;
}

/* Add all @depth frames of a chain of addresses. Returns the last node or -ENOMEM. */
static int64_t add_chain(struct kb_stack_table *stacks, const struct kb_event *event, uint32_t depth,
			 struct kb_symbolizer *symbolizer)
{
	struct kb_stack_memo *memo = stacks->memo;
	uint64_t hash = stacks->sites.seed;
	uint32_t known, i;
	int64_t node;

	look_up_chain(event, depth, memo->pcs);
	for (i = 0; i < depth; i++) {
		memo->chain[i] = meet(event, memo->pcs[i], symbolizer);
		hash = kb_hash_word(hash, memo->chain[i].key[0] ^ memo->chain[i].key[1] << 48);
	}
	known = known_chain(memo, hash, depth)->node;
	if (known)
		return known;
	node = add_new_chain(stacks, event, depth, symbolizer);
	if (node > 0)
		memorize(memo, hash, depth, node);
	return node;
}

int64_t kb_stack_table_add(struct kb_stack_table *stacks, const struct kb_event *event,
			   struct kb_symbolizer *symbolizer)
{
	uint32_t depth = kb_chain_depth(event);
	int64_t node = KB_STACK_TABLE_ROOT;

	if (depth > KB_STACK_TABLE_DEPTH)
		depth = KB_STACK_TABLE_DEPTH;
	if (stacks->addresses && symbolizer)
		return add_chain(stacks, event, depth, symbolizer);
	while (depth-- && node >= 0)
		node = add_frames(stacks, event, kb_chain_lookup(event, depth), node, symbolizer);
	return node;
}

size_t kb_stack_label(const struct kb_stack_table *stacks, uint32_t frame,
		      char label[KB_STACK_LABEL])
{
	const struct kb_stack_frame *f = kb_stack_frame(stacks, frame);
	const char *base = kb_stack_image(stacks, f->image)->base_name;
	size_t length;

	if (f->name[0])
		return kb_label(label, KB_STACK_LABEL, f->name, strlen(f->name), false);
	if (base[0] == '[')
		return kb_label(label, KB_STACK_LABEL, base, strlen(base), false);
	label[0] = '[';
	length = 1 + kb_label(label + 1, KB_STACK_LABEL - 2, base, strlen(base), false);
	label[length++] = ']';
	return length;
}
