/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Chains of the kernel that were seen before. By tables, the kernel's unwinder takes some 250
 * instructions a frame, and tasks wait again and again at the same places. How long the frame of a
 * return address is stands in those tables. So a stack with the same return addresses at the same
 * distances from where the walk began has the same chain. One frame is of a length that is drawn for
 * each system call, the last but one: the last return address then stands where it stood from the end of
 * the stack. Pure code.
 *
 * Context of all functions: the only user of the memory, preemption off.
 */
#ifndef KBARMAN_KNOWN_CHAIN_H
#define KBARMAN_KNOWN_CHAIN_H

#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/types.h>

#define KBARMAN_KNOWN_FRAMES	40	/* a longer chain is not kept */
#define KBARMAN_KNOWN_SETS	16	/* a power of two */
#define KBARMAN_KNOWN_WAYS	4	/* chains in a set */
#define KBARMAN_KNOWN_PROBE	2	/* the frame whose address tells the set: who called schedule() */

/* Of a return address, in words: above the beginning of the walk, below the end of the stack. */
struct kbarman_known_place {
	u16 above, below;
};

struct kbarman_known_chain {
	const void *iterator;		/* as for kbarman_callchain_here() */
	unsigned int nr;		/* return addresses; 0: this is no chain */
	unsigned int first;		/* those before it are left out of the chain */
	struct kbarman_known_place places[KBARMAN_KNOWN_FRAMES];
	unsigned long addresses[KBARMAN_KNOWN_FRAMES];
};

/* Of a CPU. All zero: none is known. */
struct kbarman_known_chains {
	unsigned int probe;		/* words above the beginning; it stays as it is found first */
	unsigned int next;		/* the way that is taken next */
	struct kbarman_known_chain new;	/* that is walked now */
	struct kbarman_known_chain chains[KBARMAN_KNOWN_SETS][KBARMAN_KNOWN_WAYS];
};

/* How many bytes a CPU needs; 0: this kernel has no such unwinder. */
static inline unsigned long kbarman_known_bytes(void)
{
	return IS_ENABLED(CONFIG_X86_64) && IS_ENABLED(CONFIG_UNWINDER_ORC) ?
		       sizeof(struct kbarman_known_chains) : 0;
}

/* The stack from the beginning of the walk to its end. */
struct kbarman_known_stack {
	const unsigned long *begin, *end;
};

static inline struct kbarman_known_chain *known_set(struct kbarman_known_chains *known,
						    const struct kbarman_known_stack *stack)
{
	unsigned long word = 0;

	if (known->probe < stack->end - stack->begin)
		word = READ_ONCE_NOCHECK(stack->begin[known->probe]);
	word ^= word >> 12;
	return known->chains[(word ^ word >> 4) % KBARMAN_KNOWN_SETS];
}

/* Whether all return addresses of @chain are where they were, in @words words. */
static inline bool known_holds(const struct kbarman_known_chain *chain,
			       const struct kbarman_known_stack *stack, unsigned long words)
{
	unsigned int i;

	for (i = 0; i < chain->nr; i++) {
		const struct kbarman_known_place *place = &chain->places[i];

		if (place->above < words &&
		    READ_ONCE_NOCHECK(stack->begin[place->above]) == chain->addresses[i])
			continue;
		return i == chain->nr - 1 && place->below <= words &&
		       READ_ONCE_NOCHECK(stack->end[-(long)place->below]) == chain->addresses[i];
	}
	return true;
}

/* The chain of @stack; NULL: it is not known. */
static inline const struct kbarman_known_chain *
kbarman_known_find(struct kbarman_known_chains *known, const struct kbarman_known_stack *stack,
		   const void *iterator)
{
	const struct kbarman_known_chain *chain = known_set(known, stack);
	unsigned int i;

	for (i = 0; i < KBARMAN_KNOWN_WAYS; i++, chain++)
		if (chain->nr && chain->iterator == iterator &&
		    known_holds(chain, stack, stack->end - stack->begin))
			return chain;
	return NULL;
}

/* A walk begins, of a stack that is not known. */
static inline void kbarman_known_begin(struct kbarman_known_chains *known, const void *iterator)
{
	known->new.iterator = iterator;
	known->new.nr = 0;
	known->new.first = 0;
}

/*
 * The walk found @address at @place. @left_out: the chain does not have it. False: a chain with such a
 * frame can't be kept.
 */
static inline bool kbarman_known_add(struct kbarman_known_chains *known,
				     const struct kbarman_known_stack *stack,
				     const unsigned long *place, unsigned long address, bool left_out)
{
	struct kbarman_known_chain *new = &known->new;

	if (place < stack->begin || place >= stack->end || new->nr == KBARMAN_KNOWN_FRAMES ||
	    READ_ONCE_NOCHECK(*place) != address)
		return false;
	new->places[new->nr] = (struct kbarman_known_place) { place - stack->begin, stack->end - place };
	new->addresses[new->nr++] = address;
	if (left_out)
		new->first = new->nr;
	return true;
}

/* The walk has come to its end: keep its chain. */
static inline void kbarman_known_keep(struct kbarman_known_chains *known,
				      const struct kbarman_known_stack *stack)
{
	const struct kbarman_known_chain *new = &known->new;
	unsigned int probe = new->first + KBARMAN_KNOWN_PROBE;

	if (probe >= new->nr)
		return;
	if (!known->probe)
		known->probe = new->places[probe].above;
	known_set(known, stack)[known->next++ % KBARMAN_KNOWN_WAYS] = *new;
}

#endif /* KBARMAN_KNOWN_CHAIN_H */
