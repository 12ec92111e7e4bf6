// SPDX-License-Identifier: MIT
/* A stack has one place, which its hash says. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sym/unwind/memo.h"

struct kept {
	struct kb_unwind_seen stack;	/* its data are behind the frames */
	struct kb_unwind_chain chain;
	size_t bytes;			/* of all of this */
	struct kb_unwind_frame frames[];
};

struct kb_unwind_memo {
	uint64_t seed;
	size_t bytes;			/* of all that is kept */
	uint32_t oldest;		/* place from which on it goes, if there are too many bytes */
	struct kept *places[KB_UNWIND_MEMO_STACKS];
};

int kb_unwind_memo_create(struct kb_unwind_memo **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->seed = kb_hash_seed(*out);
	return 0;
}

static void forget(struct kb_unwind_memo *memo, struct kept **place)
{
	if (*place)
		memo->bytes -= (*place)->bytes;
	free(*place);
	*place = NULL;
}

void kb_unwind_memo_destroy(struct kb_unwind_memo *memo)
{
	if (!memo)
		return;
	for (uint32_t i = 0; i < KB_UNWIND_MEMO_STACKS; i++)
		forget(memo, &memo->places[i]);
	free(memo);
}

/* The registers that always count: SP and PC. */
static uint64_t always(const struct kb_unwind_seen *stack)
{
	return UINT64_C(1) << stack->machine->sp | UINT64_C(1) << KB_UNWIND_PC;
}

static uint64_t hash_bytes(uint64_t hash, const uint8_t *from, const uint8_t *end)
{
	uint64_t word = 0;

	for (; end - from >= (ptrdiff_t)sizeof(word); from += sizeof(word)) {
		memcpy(&word, from, sizeof(word));
		hash = kb_hash_word(hash, word);
	}
	word = 0;
	memcpy(&word, from, (size_t)(end - from));
	return kb_hash_word(hash, word);
}

/* Of what always counts. */
static uint64_t hash_of(const struct kb_unwind_seen *stack, uint64_t seed)
{
	const uint8_t *data = stack->data, *at = data + stack->registers.from;
	uint64_t hash = kb_hash_word(seed ^ stack->changes, stack->task);

	hash = hash_bytes(hash, data, at);
	for (uint64_t left = stack->registers.known; left; left &= left - 1, at += sizeof(uint64_t))
		if (always(stack) >> __builtin_ctzll(left) & 1)
			hash = hash_bytes(hash, at, at + sizeof(uint64_t));
	return hash_bytes(hash, at, data + stack->size);
}

/* The place of @stack; the upper bits of a hash are the best. */
static uint32_t place_of(const struct kb_unwind_seen *stack)
{
	return (uint32_t)(stack->hash >> 32) % KB_UNWIND_MEMO_STACKS;
}

/* Whether the registers at which the walk of @kept looked have the same values in @stack. */
static bool has_same_registers(const struct kept *kept, const struct kb_unwind_seen *stack)
{
	uint64_t used = kept->chain.used | always(stack);
	size_t at = stack->registers.from;

	for (uint64_t left = stack->registers.known; left; left &= left - 1, at += sizeof(uint64_t))
		if (used >> __builtin_ctzll(left) & 1 &&
		    memcmp((const uint8_t *)kept->stack.data + at, (const uint8_t *)stack->data + at,
			   sizeof(uint64_t)))
			return false;
	return true;
}

static bool is_same(const struct kept *kept, const struct kb_unwind_seen *stack)
{
	const uint8_t *old = kept->stack.data, *new = stack->data;
	size_t to = stack->registers.to;

	return kept->stack.hash == stack->hash && kept->stack.task == stack->task &&
	       kept->stack.changes == stack->changes && kept->stack.size == stack->size &&
	       !memcmp(old, new, stack->registers.from) && !memcmp(old + to, new + to, stack->size - to) &&
	       has_same_registers(kept, stack);
}

const struct kb_unwind_chain *kb_unwind_memo_find(const struct kb_unwind_memo *memo,
						  struct kb_unwind_seen *stack)
{
	const struct kept *kept;

	if (!kb_unwind_sparse_find_registers(&stack->registers, stack->data, stack->size, false))
		return NULL;
	stack->hash = hash_of(stack, memo->seed);
	kept = memo->places[place_of(stack)];
	return kept && is_same(kept, stack) ? &kept->chain : NULL;
}

void kb_unwind_memo_keep(struct kb_unwind_memo *memo, const struct kb_unwind_seen *stack,
			 const struct kb_unwind_chain *chain)
{
	struct kept **place = &memo->places[place_of(stack)], *kept;
	size_t frames = chain->nr * sizeof(*chain->frames);
	size_t bytes = sizeof(*kept) + frames + stack->size;

	forget(memo, place);
	for (; bytes <= KB_UNWIND_MEMO_BYTES && memo->bytes > KB_UNWIND_MEMO_BYTES - bytes;
	     memo->oldest = (memo->oldest + 1) % KB_UNWIND_MEMO_STACKS)
		forget(memo, &memo->places[memo->oldest]);
	kept = bytes <= KB_UNWIND_MEMO_BYTES ? malloc(bytes) : NULL;
	if (!kept)
		return;
	kept->stack = *stack;
	kept->stack.data = memcpy((uint8_t *)kept->frames + frames, stack->data, stack->size);
	kept->chain = *chain;
	kept->chain.frames = memcpy(kept->frames, chain->frames, frames);
	kept->bytes = bytes;
	memo->bytes += bytes;
	*place = kept;
}
