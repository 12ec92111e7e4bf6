// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "sym/files/native.h"
#include "sym/jit/jitdump_file.h"
#include "sym/unwind/dumps.h"
#include "sym/unwind/files.h"
#include "sym/unwind/memo.h"
#include "sym/unwind/spaces.h"
#include "sym/unwind/stacks.h"
#include "unwind/sparse.h"

struct kb_stacks {
	struct kb_spaces *spaces;
	struct kb_unwind_files *files;
	struct kb_unwind_dumps *dumps;
	struct kb_unwind_memo *memo;
	uint64_t time;			/* CLOCK_MONOTONIC of the stack, in ns */
	struct kb_unwind_chain chain;
	struct kb_unwind_word *words;
	size_t max_words;
	const struct kb_unwind_machine *machine;	/* of the stack that is unwound now */
	uint32_t task;					/* whose it is */
	bool unmapped;		/* nothing is mapped where it was */
	bool waits;		/* a file is being read */
	bool passing;		/* it was in code whose rows may be others later */
};

int kb_stacks_create(struct kb_stacks **out, uint32_t max)
{
	struct kb_stacks *stacks = calloc(1, sizeof(*stacks));
	int ret;

	*out = NULL;
	if (!stacks)
		return -ENOMEM;
	stacks->chain.max = max;
	stacks->chain.frames = calloc(max, sizeof(*stacks->chain.frames));
	ret = stacks->chain.frames ? kb_spaces_create(&stacks->spaces) : -ENOMEM;
	ret = ret ?: kb_unwind_dumps_create(&stacks->dumps);
	ret = ret ?: kb_unwind_memo_create(&stacks->memo);
	ret = ret ?: kb_unwind_files_create(&stacks->files);
	stacks->time = UINT64_MAX;
	if (ret)
		kb_stacks_destroy(stacks);
	else
		*out = stacks;
	return ret;
}

void kb_stacks_destroy(struct kb_stacks *stacks)
{
	if (!stacks)
		return;
	kb_unwind_files_destroy(stacks->files);
	kb_unwind_dumps_destroy(stacks->dumps);
	kb_unwind_memo_destroy(stacks->memo);
	kb_spaces_destroy(stacks->spaces);
	free(stacks->chain.frames);
	free(stacks->words);
	free(stacks);
}

int kb_stacks_map(struct kb_stacks *stacks, uint32_t task, uint64_t key,
		  const struct kb_unwind_place *place)
{
	struct kb_space_range range = {
		.first = place->start,
		.last = place->start + place->length - 1,
		.offset = place->offset,
	};
	int ret = kb_unwind_files_number(stacks->files, key, place, &range.file);

	if (!ret && kb_is_jitdump(place->image))
		ret = kb_unwind_dumps_map(stacks->dumps, task, key, place);
	return ret ? ret : kb_spaces_map(stacks->spaces, task, &range);
}

void kb_stacks_at(struct kb_stacks *stacks, uint64_t time)
{
	stacks->time = time;
}

void kb_stacks_wait(struct kb_stacks *stacks)
{
	kb_unwind_files_wait(stacks->files);
	kb_unwind_dumps_wait(stacks->dumps);
}

/* The rows of code that was made at run time, or whose file nobody could read yet. */
static const struct kb_unwind_rows *find_made(struct kb_stacks *stacks, uint64_t address,
					      uint64_t *bias)
{
	const struct kb_unwind_rows *rows;

	stacks->passing = true;
	if (stacks->waits)
		return NULL;
	rows = kb_unwind_dumps_find(stacks->dumps, stacks->task, address, stacks->time, bias,
				    &stacks->waits);
	return rows && rows->machine == stacks->machine ? rows : NULL;
}

/* kb_unwind_find */
static const struct kb_unwind_rows *find_rows(void *closure, uint64_t address, uint64_t *bias)
{
	struct kb_stacks *stacks = closure;
	const struct kb_space_range *range = kb_spaces_find(stacks->spaces, stacks->task, address);
	const struct kb_elf_segment *segment;
	const struct kb_unwind_file *file;
	uint64_t offset;

	if (!range) {
		stacks->unmapped = true;
		return NULL;
	}
	if (kb_unwind_files_get(stacks->files, range->file, &file) == -EAGAIN)
		stacks->waits = true;
	if (!file)
		return find_made(stacks, address, bias);
	if (file->rows.machine != stacks->machine)
		return NULL;
	offset = range->offset + (address - range->first);
	segment = kb_elf_segment_among(file->segments, file->nr_segments, offset);
	if (!segment)
		return NULL;
	*bias = address - (segment->vaddr + (offset - segment->offset));
	return &file->rows;
}

/* The machine of a task whose stack has words of that size. */
static const struct kb_unwind_machine *machine_of(const void *data, size_t size)
{
	unsigned int word = kb_unwind_sparse_word(data, size, false);

	return word ? kb_unwind_machine(word == 8 ? KB_NATIVE_64 : KB_NATIVE_32, word) : NULL;
}

/* Fill the chain. Returns as kb_stacks_unwind(). */
static int walk(struct kb_stacks *stacks, const struct kb_unwind_seen *stack)
{
	struct kb_unwind_sparse sparse;
	int ret;

	stacks->chain.nr = 0;
	if (!stack->machine)
		return -EBADMSG;
	if (!KB_ARRAY_ROOM(stacks->words, stacks->max_words, stack->size / sizeof(uint32_t)))
		return -ENOMEM;
	sparse = (struct kb_unwind_sparse) {
		.words = stacks->words, .max_words = stacks->max_words,
	};
	ret = kb_unwind_sparse_take(&sparse, stack->machine, stack->data, stack->size, false);
	if (ret)
		return ret;
	stacks->task = stack->task;
	stacks->machine = stack->machine;
	stacks->waits = stacks->unmapped = stacks->passing = false;
	kb_unwind_walk(&stacks->chain, &sparse.registers, &sparse.stack, find_rows, stacks);
	if (stacks->waits)
		return -EAGAIN;
	return stacks->unmapped && stacks->chain.nr == 1 ? -ENOENT : 0;
}

int kb_stacks_unwind(struct kb_stacks *stacks, uint32_t task, const void *data, size_t size,
		     const struct kb_unwind_chain **chain)
{
	struct kb_unwind_seen stack = {
		.task = task, .changes = kb_spaces_changes(stacks->spaces, task),
		.machine = machine_of(data, size), .data = data, .size = size,
	};
	int ret;

	*chain = stack.machine ? kb_unwind_memo_find(stacks->memo, &stack) : NULL;
	if (*chain)
		return 0;
	*chain = &stacks->chain;
	ret = walk(stacks, &stack);
	if (!ret && !stacks->passing)
		kb_unwind_memo_keep(stacks->memo, &stack, &stacks->chain);
	return ret;
}
