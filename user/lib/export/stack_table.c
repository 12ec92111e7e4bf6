// SPDX-License-Identifier: MIT
/*
 * Adding a sample takes a look-up of its symbol and two look-ups of rows for each frame. If
 * frames are addresses, it takes only one: there are then more rows than fit into a cache.
 */
#include <errno.h>
#include <string.h>

#include <kbarman/chain.h>
#include "export/label.h"
#include "export/stack_table.h"
#include "sym/place.h"

static const struct kb_frame nothing = {
	.symbol = {
		.name = "",
		.image = "[unknown]",
		.image_base = "[unknown]",
	},
	.file = "",
};

struct call {
	uint64_t key[4];	/* node, address, symbol, image */
	uint32_t node;		/* 0: not looked up yet */
};

int kb_stack_table_init(struct kb_stack_table *stacks, bool addresses)
{
	struct kb_stack_node *root;

	stacks->addresses = addresses;
	kb_table_init(&stacks->images, sizeof(struct kb_stack_image), 3);
	kb_table_init(&stacks->frames, sizeof(struct kb_stack_frame), 3);
	kb_table_init(&stacks->nodes, sizeof(struct kb_stack_node), 2);
	kb_table_init(&stacks->calls, sizeof(struct call), 4);
	root = kb_table_get(&stacks->nodes, (uint64_t[]) { UINT64_MAX, UINT64_MAX });
	return root ? 0 : -ENOMEM;
}

void kb_stack_table_release(struct kb_stack_table *stacks)
{
	kb_table_release(&stacks->images);
	kb_table_release(&stacks->frames);
	kb_table_release(&stacks->nodes);
	kb_table_release(&stacks->calls);
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
	uint64_t key[2] = { parent, frame };
	struct kb_stack_node *row = kb_table_get(&stacks->nodes, key);

	if (!row)
		return -ENOMEM;
	if (!row->depth) {
		row->parent = parent;
		row->frame = frame;
		row->depth = kb_stack_node(stacks, parent)->depth + 1;
	}
	return number_of(&stacks->nodes, row);
}

/* Add all frames at @pc below @node, inlined ones last. Returns the last node or -ENOMEM. */
static int64_t add_frames(struct kb_stack_table *stacks, const struct kb_event *event, uint64_t pc,
			  int64_t node, struct kb_symbolizer *symbolizer)
{
	const struct kb_frame *frames = &nothing;
	struct kb_place place = { 0 };
	uint32_t nr = 1;

	if (symbolizer) {
		nr = kb_symbolizer_frames(symbolizer, event->task_id, event->timestamp, pc, &frames);
		kb_symbolizer_place(symbolizer, &place);
	}
	while (nr-- && node >= 0) {
		int64_t frame = find_frame(stacks, &frames[nr], pc, &place);

		node = frame < 0 ? frame : find_node(stacks, (uint32_t)node, (uint32_t)frame);
	}
	return node;
}

/* The same, with a faster way for a call that was seen before. */
static int64_t add_call(struct kb_stack_table *stacks, const struct kb_event *event, uint64_t pc,
			int64_t node, struct kb_symbolizer *symbolizer)
{
	const struct kb_symbol *symbol = kb_symbolizer_resolve(symbolizer, event->task_id,
							       event->timestamp, pc);
	uint64_t key[4] = { (uint64_t)node, 0, symbol->id, (uintptr_t)symbol->image };
	struct kb_place place;
	struct call *call;

	kb_symbolizer_place(symbolizer, &place);
	key[1] = address_of(pc, &place);
	call = kb_table_get(&stacks->calls, key);
	if (!call)
		return -ENOMEM;
	if (!call->node) {
		node = add_frames(stacks, event, pc, node, symbolizer);
		if (node > 0)
			call->node = (uint32_t)node;
		return node;
	}
	return call->node;
}

int64_t kb_stack_table_add(struct kb_stack_table *stacks, const struct kb_event *event,
			   struct kb_symbolizer *symbolizer)
{
	uint32_t depth = kb_chain_depth(event);
	int64_t node = KB_STACK_TABLE_ROOT;

	if (depth > KB_STACK_TABLE_DEPTH)
		depth = KB_STACK_TABLE_DEPTH;
	while (depth-- && node >= 0) {
		uint64_t pc = kb_chain_lookup(event, depth);

		node = stacks->addresses && symbolizer ?
			add_call(stacks, event, pc, node, symbolizer) :
			add_frames(stacks, event, pc, node, symbolizer);
	}
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
