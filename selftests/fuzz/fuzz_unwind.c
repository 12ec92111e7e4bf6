// SPDX-License-Identifier: MIT
/*
 * Fuzz target of unwinding: whatever the tables are, rows come out that a look-up and a walk can
 * rely on, and so does a block that was damaged in a way that its check accepts.
 *
 * The first bytes choose the machine and the sizes of the tables, which follow. They are also
 * the stack and the registers of the walk.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "unwind/compile.h"
#include "unwind/walker.h"

#define FRAMES	16

static const struct {
	uint16_t elf, word;
} machines[] = {
	{ EM_X86_64, 8 }, { EM_386, 4 }, { EM_AARCH64, 8 }, { EM_ARM, 4 }, { EM_S390, 8 },
	{ EM_RISCV, 8 },
};

struct input {
	const uint8_t *data;
	size_t left;
};

static const uint8_t *take(struct input *input, size_t wanted, size_t *size)
{
	const uint8_t *data = input->data;

	*size = wanted < input->left ? wanted : input->left;
	input->data += *size;
	input->left -= *size;
	return data;
}

static struct kb_unwind_section section(struct input *input, uint8_t sixteens, uint64_t address)
{
	struct kb_unwind_section found = { .address = address };

	found.data = take(input, sixteens == 255 ? SIZE_MAX : sixteens * 16, &found.size);
	return found;
}

static const struct kb_unwind_rows *find(void *closure, uint64_t address, uint64_t *bias)
{
	*bias = address & 0xfff0000000000000;
	return closure;
}

static void check_bounds(const struct kb_unwind_rows *rows, uint64_t address)
{
	struct kb_unwind_bounds bounds;

	if (kb_unwind_function_at(rows, address, &bounds) &&
	    (address < bounds.start || address >= bounds.end))
		abort();
}

static void walk(const struct kb_unwind_rows *rows, const uint8_t *data, size_t size)
{
	struct kb_unwind_word words[64];
	struct kb_unwind_stack stack = { .words = words, .low = 0x7000, .high = 0x9000 };
	struct kb_unwind_frame frames[FRAMES];
	struct kb_unwind_chain chain = { .frames = frames, .max = FRAMES };
	struct kb_unwind_registers regs = { .known = UINT64_MAX };

	for (; stack.nr < ARRAY_SIZE(words) && size >= 8 * (stack.nr + 1); stack.nr++) {
		words[stack.nr].address = 0x7000 + 8 * stack.nr;
		memcpy(&words[stack.nr].word, data + 8 * stack.nr, 8);
	}
	for (uint32_t i = 0; i < rows->header->nr_rows && i < 32; i++) {
		for (unsigned int j = 0; j < KB_UNWIND_REGISTERS; j++)
			regs.value[j] = 0x7000 + 8 * ((i + j) % 64);
		regs.value[KB_UNWIND_PC] = rows->header->base + rows->starts[i];
		if (!regs.value[KB_UNWIND_PC])
			continue;
		check_bounds(rows, regs.value[KB_UNWIND_PC]);
		kb_unwind_walk(&chain, &regs, &stack, find, (void *)rows);
		if (!chain.nr || chain.nr > FRAMES || chain.end >= KB_UNWIND_ENDS)
			abort();
	}
}

/* Put another step into @block, and a byte, as @data says. */
static void damage(struct kb_unwind_header *block, const uint8_t *data)
{
	struct kb_unwind_step *end = (void *)((char *)block + block->size);
	uint64_t size = block->size;

	end[-1 - (int64_t)(data[0] % block->nr_steps)] = (struct kb_unwind_step) {
		.what = data[1] % KB_UNWIND_WHATS, .target = data[2], .base = data[3],
		.count = data[4], .offset = (int8_t)data[5],
	};
	if (data[6])
		((uint8_t *)block)[(data[6] | data[7] << 8) % size] = data[8];
	block->size = size;
	block->crc = kb_unwind_block_crc(block);
}

/* Our own block is good; one that was damaged is if its check says so. */
static void check_block(const struct kb_unwind_rows *rows, const uint8_t *data, size_t size)
{
	struct kb_unwind_header *copy = malloc(rows->header->size);
	struct kb_unwind_rows taken;

	for (size_t i = 0; i + 9 <= size && i < 36; i += 9) {
		memcpy(copy, rows->header, rows->header->size);
		if (kb_unwind_rows_take(&taken, copy, copy->size, NULL))
			abort();
		damage(copy, data + i);
		if (!kb_unwind_rows_take(&taken, copy, copy->size, NULL))
			walk(&taken, data, size);
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kb_unwind_sections sections = { .high = UINT32_MAX };
	struct kb_unwind_rows rows = { 0 };
	struct input input = { data + 6, size - 6 };

	if (size < 6)
		return 0;
	sections.elf = machines[data[0] % ARRAY_SIZE(machines)].elf;
	sections.word = machines[data[0] % ARRAY_SIZE(machines)].word;
	sections.big_endian = data[1] & 1;
	sections.low = data[1] & 2 ? 0x1000 : 0;
	sections.frames[1].debug = sections.frames[2].debug = true;
	sections.frames[0].section = section(&input, data[2], 0x100000);
	sections.frames[1].section = section(&input, data[3], 0);
	sections.exidx = section(&input, data[4], 0x110b14);
	sections.extab = section(&input, data[5], 0x110000);
	sections.init[0] = section(&input, data[1] >> 2, 0x140000);
	sections.vdso = section(&input, 255, 0x130000);
	sections.go = sections.vdso;
	kb_unwind_compile(&rows, &sections, NULL);
	if (!rows.header)
		return 0;
	walk(&rows, data, size);
	check_block(&rows, data, size);
	kb_unwind_rows_release(&rows);
	return 0;
}
