/* SPDX-License-Identifier: MIT */
/*
 * A shadow stack: the calls that a program has made and that are not over. Chains of the walker are
 * compared with it, and those that differ are counted by cause: how the chain ended, and in which
 * function.
 */
#ifndef KBARMAN_SHADOW_H
#define KBARMAN_SHADOW_H

#include <stdlib.h>

#include "tap.h"
#include "unwind/walker.h"

#define SHADOW_DEPTH	512
#define SHADOW_CAUSES	64

struct shadow_call {
	uint64_t slot;		/* SP, as long as the call is not over, is at most that */
	uint64_t pc;		/* where the caller goes on */
};

struct shadow_cause {
	char text[640];
	unsigned long nr;
};

struct shadow {
	struct shadow_call calls[SHADOW_DEPTH];
	unsigned int depth;
	struct kb_unwind_frame frames[SHADOW_DEPTH + 1];
	struct kb_unwind_chain chain;
	uint64_t entry;		/* the program's _start */
	unsigned long steps, right, nr_words, nr_frames, whole;
	struct shadow_cause causes[SHADOW_CAUSES];
	unsigned int nr_causes;
};

/* Chains that depend on registers of which they say that they don't matter, of all shadows. */
static unsigned long shadow_misled;

/* The name of the function in which a frame is. */
typedef void shadow_name(void *closure, const struct kb_unwind_frame *frame, char *text,
			 size_t size);

static inline void shadow_push(struct shadow *shadow, uint64_t slot, uint64_t pc)
{
	if (shadow->depth < SHADOW_DEPTH)
		shadow->calls[shadow->depth++] = (struct shadow_call) { slot, pc };
}

static inline const struct shadow_call *shadow_top(const struct shadow *shadow)
{
	return shadow->depth ? &shadow->calls[shadow->depth - 1] : NULL;
}

/* Calls are over whose slot is below SP, whoever moved it there. */
static inline void shadow_end_calls(struct shadow *shadow, uint64_t sp)
{
	while (shadow->depth && shadow->calls[shadow->depth - 1].slot < sp)
		shadow->depth--;
}

/*
 * Whether the chain lacks nothing but _start: the table of a static program's __libc_start_main()
 * says that it is the outermost function.
 */
static inline bool shadow_lacks_start(const struct shadow *shadow)
{
	return shadow->chain.end == KB_UNWIND_WHOLE && shadow->chain.nr == shadow->depth &&
	       shadow->calls[0].pc - shadow->entry < 64;
}

static inline bool shadow_is_right(const struct shadow *shadow)
{
	if (shadow->chain.nr != shadow->depth + 1 && !shadow_lacks_start(shadow))
		return false;
	for (unsigned int i = 1; i < shadow->chain.nr; i++)
		if (shadow->chain.frames[i].pc != shadow->calls[shadow->depth - i].pc)
			return false;
	return true;
}

static inline void shadow_count_cause(struct shadow *shadow, shadow_name *name, void *closure)
{
	const struct kb_unwind_chain *chain = &shadow->chain;
	unsigned int i = 0, same = 1;
	char where[512], text[640];

	/* The frame behind which the chains differ */
	while (same < chain->nr && same <= shadow->depth &&
	       chain->frames[same].pc == shadow->calls[shadow->depth - same].pc)
		same++;
	name(closure, &chain->frames[same - 1], where, sizeof(where));
	snprintf(text, sizeof(text), "%s at frame %u%s: %s", kb_unwind_end_text(chain->end),
		 same - 1, same == chain->nr ? "" : ", wrong caller", where);
	while (i < shadow->nr_causes && strcmp(shadow->causes[i].text, text))
		i++;
	if (i == SHADOW_CAUSES)
		return;
	if (i == shadow->nr_causes)
		strcpy(shadow->causes[shadow->nr_causes++].text, text);
	shadow->causes[i].nr++;
}

/* Whether the chain is the same with other values in the registers of which it says that they don't matter. */
static inline bool shadow_needs_no_others(const struct shadow *shadow, const struct kb_unwind_registers *registers,
					  const struct kb_unwind_stack *stack, kb_unwind_find *find, void *closure)
{
	struct kb_unwind_frame frames[SHADOW_DEPTH + 1];
	struct kb_unwind_chain again = { .frames = frames, .max = SHADOW_DEPTH + 1 };
	const struct kb_unwind_chain *chain = &shadow->chain;
	struct kb_unwind_registers other = *registers;

	for (unsigned int i = 0; i < KB_UNWIND_PC; i++)
		if (i != stack->machine->sp && !(chain->used >> i & 1))
			other.value[i] = stack->low + stack->machine->word * (shadow->steps % 64);
	kb_unwind_walk(&again, &other, stack, find, closure);
	for (unsigned int i = 0; i < again.nr && i < chain->nr; i++)
		if (frames[i].pc != chain->frames[i].pc || frames[i].exact != chain->frames[i].exact)
			return false;
	return again.nr == chain->nr && again.end == chain->end && again.used == chain->used;
}

/* Walks @stack, and compares. True: the chain is right. */
static inline bool shadow_check(struct shadow *shadow, const struct kb_unwind_registers *registers,
				const struct kb_unwind_stack *stack, kb_unwind_find *find,
				shadow_name *name, void *closure)
{
	bool right;

	shadow->chain.frames = shadow->frames;
	shadow->chain.max = SHADOW_DEPTH + 1;
	kb_unwind_walk(&shadow->chain, registers, stack, find, closure);
	right = shadow_is_right(shadow);
	if (!shadow_needs_no_others(shadow, registers, stack, find, closure))
		shadow_misled++;
	shadow->steps++;
	shadow->nr_words += stack->nr;
	shadow->nr_frames += shadow->chain.nr;
	shadow->whole += shadow->chain.end == KB_UNWIND_WHOLE;
	shadow->right += right;
	if (!right)
		shadow_count_cause(shadow, name, closure);
	return right;
}

static inline int shadow_compare_causes(const void *a, const void *b)
{
	const struct shadow_cause *x = a, *y = b;

	return (x->nr < y->nr) - (x->nr > y->nr);
}

/* What was seen, and the causes of what differs, most of it first. */
static inline void shadow_tell(struct shadow *shadow, unsigned int word)
{
	double steps = shadow->steps ? shadow->steps : 1;

	tap_note("%lu instructions, %.4f %% right; %.1f frames, sparse stack %.0f bytes, "
		 "%.2f %% of chains end at a start", shadow->steps, 100 * shadow->right / steps,
		 shadow->nr_frames / steps, word * shadow->nr_words / steps,
		 100 * shadow->whole / steps);
	qsort(shadow->causes, shadow->nr_causes, sizeof(*shadow->causes), shadow_compare_causes);
	for (unsigned int i = 0; i < shadow->nr_causes && i < 12; i++)
		tap_note("%8lu %s", shadow->causes[i].nr, shadow->causes[i].text);
}

/* At least @percent of the instructions, and not just a few of them. */
static inline bool shadow_suffices(const struct shadow *shadow, double percent)
{
	return 100.0 * shadow->right >= percent * shadow->steps && shadow->steps > 1000;
}

#endif
