// SPDX-License-Identifier: MIT
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "sym/spaces.h"
#include "sym/stacks.h"
#include "sym/unwind_files.h"
#include "unwind/sparse.h"

#if defined(__x86_64__) || defined(__i386__)
#define MACHINE_64	EM_X86_64
#define MACHINE_32	EM_386
#elif defined(__aarch64__) || defined(__arm__)
#define MACHINE_64	EM_AARCH64
#define MACHINE_32	EM_ARM
#elif defined(__riscv)
#define MACHINE_64	EM_RISCV
#define MACHINE_32	EM_RISCV
#elif defined(__s390x__)
#define MACHINE_64	EM_S390
#define MACHINE_32	EM_NONE
#else
#define MACHINE_64	EM_NONE
#define MACHINE_32	EM_NONE
#endif

struct kb_stacks {
	struct kb_spaces *spaces;
	struct kb_unwind_files *files;
	struct kb_unwind_chain chain;
	struct kb_unwind_word *words;
	size_t max_words;
	const struct kb_unwind_machine *machine;	/* of the stack that is unwound now */
	uint32_t task;					/* whose it is */
	bool unmapped;		/* nothing is mapped where it was */
	bool waits;		/* a file is being read */
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
	ret = ret ?: kb_unwind_files_create(&stacks->files);
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

	return ret ? ret : kb_spaces_map(stacks->spaces, task, &range);
}

void kb_stacks_wait(struct kb_stacks *stacks)
{
	kb_unwind_files_wait(stacks->files);
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
	if (!file || file->rows.machine != stacks->machine)
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

	return word ? kb_unwind_machine(word == 8 ? MACHINE_64 : MACHINE_32, word) : NULL;
}

int kb_stacks_unwind(struct kb_stacks *stacks, uint32_t task, const void *data, size_t size,
		     const struct kb_unwind_chain **chain)
{
	const struct kb_unwind_machine *machine = machine_of(data, size);
	struct kb_unwind_sparse sparse;
	int ret;

	*chain = &stacks->chain;
	stacks->chain.nr = 0;
	if (!machine)
		return -EBADMSG;
	if (!KB_ARRAY_ROOM(stacks->words, stacks->max_words, size / sizeof(uint64_t)))
		return -ENOMEM;
	sparse = (struct kb_unwind_sparse) {
		.words = stacks->words, .max_words = stacks->max_words,
	};
	ret = kb_unwind_sparse_take(&sparse, machine, data, size, false);
	if (ret)
		return ret;
	stacks->task = task;
	stacks->machine = machine;
	stacks->waits = stacks->unmapped = false;
	kb_unwind_walk(&stacks->chain, &sparse.registers, &sparse.stack, find_rows, stacks);
	if (stacks->waits)
		return -EAGAIN;
	return stacks->unmapped && stacks->chain.nr == 1 ? -ENOENT : 0;
}
