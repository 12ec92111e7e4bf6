// SPDX-License-Identifier: MIT
/* Three tables; adding a sample is one look-up of its symbol and two of rows a frame. */
#include <errno.h>
#include <string.h>

#include "analysis/stack.h"
#include "export/callstacks.h"
#include "export/label.h"
#include "sym/place.h"

static const struct kb_symbol nothing = {
	.name = "",
	.image = "[unknown]",
	.image_base = "[unknown]",
};

int kb_callstacks_init(struct kb_callstacks *stacks, bool addresses)
{
	struct kb_stack_node *root;

	stacks->addresses = addresses;
	kb_table_init(&stacks->images, sizeof(struct kb_stack_image), 2);
	kb_table_init(&stacks->frames, sizeof(struct kb_stack_frame), 3);
	kb_table_init(&stacks->nodes, sizeof(struct kb_stack_node), 2);
	root = kb_table_get(&stacks->nodes, (uint64_t[]) { UINT64_MAX, UINT64_MAX });
	return root ? 0 : -ENOMEM;
}

void kb_callstacks_release(struct kb_callstacks *stacks)
{
	kb_table_release(&stacks->images);
	kb_table_release(&stacks->frames);
	kb_table_release(&stacks->nodes);
}

static uint32_t number_of(const struct kb_table *table, const void *row)
{
	return (uint32_t)(((const char *)row - table->rows) / table->row_size);
}

/* The image of @symbol, which is at @place; -ENOMEM. */
static int64_t find_image(struct kb_callstacks *stacks, const struct kb_symbol *symbol,
			  const struct kb_place *place)
{
	uint64_t key[2] = { (uintptr_t)symbol->image, (uintptr_t)place->build_id };
	const struct kb_map *row = place->row;
	struct kb_stack_image *image = kb_table_get(&stacks->images, key);

	if (!image)
		return -ENOMEM;
	if (!image->path) {
		image->path = symbol->image;
		image->base_name = symbol->image_base;
		image->build_id = place->build_id;
		image->kernel = symbol->kernel;
		if (row && row->base_address >= row->image_offset)
			image->start = row->base_address - row->image_offset;
	}
	if (!row)
		image->end = UINT64_MAX;
	else if (image->start + row->image_offset + row->length > image->end)
		image->end = image->start + row->image_offset + row->length;
	return number_of(&stacks->images, image);
}

/* The frame of @pc; -ENOMEM. */
static int64_t find_frame(struct kb_callstacks *stacks, const struct kb_event *event, uint64_t pc,
			  struct kb_symbolizer *symbolizer)
{
	const struct kb_symbol *symbol = !symbolizer ? &nothing :
		kb_symbolizer_resolve(symbolizer, event->task_id, event->timestamp, pc);
	uint64_t address = 0, key[3] = { symbol->id };
	struct kb_stack_frame *frame;
	struct kb_place place = { 0 };
	int64_t image = -1;

	if (stacks->addresses) {
		if (symbolizer)
			kb_symbolizer_place(symbolizer, &place);
		address = place.row ? pc - place.row->base_address + place.row->image_offset : pc;
		image = find_image(stacks, symbol, &place);
		if (image < 0)
			return image;
		key[1] = address;
		key[2] = (uint64_t)image + 1;
	}
	frame = kb_table_get(&stacks->frames, key);
	if (!frame)
		return -ENOMEM;
	if (!frame->name) {
		if (image < 0)
			image = find_image(stacks, symbol, &place);
		if (image < 0)
			return image;
		frame->name = symbol->name;
		frame->address = address;
		frame->image = (uint32_t)image;
		frame->kernel = symbol->kernel;
	}
	return number_of(&stacks->frames, frame);
}

int64_t kb_callstacks_add(struct kb_callstacks *stacks, const struct kb_event *event,
			  struct kb_symbolizer *symbolizer)
{
	uint32_t depth = kb_stack_depth(event), node = KB_CALLSTACKS_ROOT;

	if (depth > KB_CALLSTACKS_DEPTH)
		depth = KB_CALLSTACKS_DEPTH;
	while (depth--) {
		int64_t frame = find_frame(stacks, event, kb_stack_lookup(event, depth),
					   symbolizer);
		uint64_t key[2] = { node, (uint64_t)frame };
		struct kb_stack_node *row;

		if (frame < 0)
			return frame;
		row = kb_table_get(&stacks->nodes, key);
		if (!row)
			return -ENOMEM;
		if (!row->depth) {
			row->parent = node;
			row->frame = (uint32_t)frame;
			row->depth = kb_stack_node(stacks, node)->depth + 1;
		}
		node = number_of(&stacks->nodes, row);
	}
	return node;
}

size_t kb_stack_label(const struct kb_callstacks *stacks, uint32_t frame,
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
