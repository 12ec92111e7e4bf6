// SPDX-License-Identifier: MIT
/*
 * Chains of the kernel that were seen before: the module's own known_chain.h on stacks of functions
 * whose frames have the lengths that their tables say. What is on a stack between return addresses is
 * left from earlier calls, as on a real one.
 */
#include "../compare/kernel.h"
#include "../../kmod/stacks/known_chain.h"
#include "../lib/random.h"
#include "../lib/tap.h"

#define WORDS		2048U		/* of a stack: 16 KiB */
#define REGISTERS	21U		/* words of a system call's registers, at its end */
#define FUNCTIONS	40U
#define DEPTH		24U		/* most functions of a path between the system call and schedule() */
#define PATHS		60U
#define ROUNDS		200000U
#define LEFT_OUT	3U		/* frames that a chain does not have */

static unsigned long words[WORDS];
static unsigned int lengths[FUNCTIONS];
static struct kbarman_known_chains known;
static const char iterator;

/* Functions, outermost first, from those that a system call calls to that which calls schedule(). */
static struct path {
	unsigned int nr;
	u8 functions[DEPTH];
} paths[PATHS];

struct frame {
	unsigned long *place, address;
};

/* The stack of a task, and the frames that a walk finds, innermost first. */
struct made {
	unsigned int nr;
	struct frame frames[DEPTH + 4 + LEFT_OUT];
	struct kbarman_known_stack stack;
};

static void push(struct made *made, unsigned long **sp, unsigned long address)
{
	**sp = address;
	memmove(made->frames + 1, made->frames, made->nr++ * sizeof(made->frames[0]));
	made->frames[0] = (struct frame) { *sp, address };
}

static unsigned long address_in(unsigned int function)
{
	return 0xffffffff81000000UL + function * 0x1000UL;
}

/* @drawn: words by which the frame of the system call is longer. */
static void make(struct made *made, const struct path *path, unsigned int drawn)
{
	unsigned long *sp = words + WORDS - REGISTERS;

	made->nr = 0;
	push(made, &sp, address_in(1000));
	sp -= 9 + drawn;
	push(made, &sp, address_in(1001));
	for (unsigned int i = 0; i < path->nr; i++) {
		sp -= lengths[path->functions[i]];
		push(made, &sp, address_in(path->functions[i]));
	}
	/* schedule() and what it calls */
	for (unsigned int i = 0; i < 2 + LEFT_OUT; i++) {
		sp -= 7;
		push(made, &sp, address_in(2000 + i));
	}
	made->stack = (struct kbarman_known_stack) { sp - 1, words + WORDS };
}

/* As frames_x86.c walks. */
static bool walk(const struct made *made)
{
	kbarman_known_begin(&known, &iterator);
	for (unsigned int i = 0; i < made->nr; i++)
		if (!kbarman_known_add(&known, &made->stack, made->frames[i].place, made->frames[i].address,
				       i < LEFT_OUT))
			return false;
	kbarman_known_keep(&known, &made->stack);
	return true;
}

static bool is_right(const struct kbarman_known_chain *chain, const struct made *made)
{
	if (chain->nr != made->nr || chain->first != LEFT_OUT)
		return false;
	for (unsigned int i = 0; i < made->nr; i++)
		if (chain->addresses[i] != made->frames[i].address)
			return false;
	return true;
}

/* Some paths have a beginning of another one, and some are as deep with one other function. */
static void make_paths(void)
{
	for (unsigned int i = 0; i < FUNCTIONS; i++)
		lengths[i] = 2 + (unsigned int)random_below(30);
	for (struct path *path = paths; path < paths + PATHS; path++) {
		unsigned int same = 0;

		path->nr = 3 + (unsigned int)random_below(DEPTH - 3);
		if (path > paths && random_below(2)) {
			const struct path *other = &paths[random_below((u64)(path - paths))];

			*path = *other;
			same = (unsigned int)random_below(other->nr);
		}
		for (unsigned int i = same; i < path->nr; i++)
			path->functions[i] = (u8)random_below(FUNCTIONS);
	}
}

static void chains_that_are_known_are_right(bool draws, const char *right, const char *often)
{
	unsigned int found = 0, wrong = 0;
	struct made made;

	memset(&known, 0, sizeof(known));
	for (unsigned int round = 0; round < ROUNDS; round++) {
		const struct kbarman_known_chain *chain;

		/* A few are taken more often than the others, as programs do. */
		make(&made, &paths[random_below(random_below(4) ? 12 : PATHS)],
		     draws ? 2 * (unsigned int)random_below(64) : 0);
		chain = kbarman_known_find(&known, &made.stack, &iterator);
		if (!chain)
			walk(&made);
		found += !!chain;
		wrong += chain && !is_right(chain, &made);
	}
	tap_note("%u of %u", found, ROUNDS);
	tap_is(wrong, 0, right);
	tap_ok(found > ROUNDS / 2, often);
}

static void others_are_not_found(void)
{
	static const char other;
	unsigned int found = 0;
	struct made made;

	memset(&known, 0, sizeof(known));
	make(&made, &paths[0], 0);
	tap_ok(!kbarman_known_find(&known, &made.stack, &iterator) && walk(&made) &&
	       kbarman_known_find(&known, &made.stack, &iterator), "a_chain_is_known_the_second_time");
	tap_ok(!kbarman_known_find(&known, &made.stack, &other), "that_of_another_tracepoint_is_another_one");
	for (unsigned int i = 0; i < made.nr; i++) {
		*made.frames[i].place ^= 8;
		found += !!kbarman_known_find(&known, &made.stack, &iterator);
		*made.frames[i].place ^= 8;
	}
	tap_is(found, 0, "every_return_address_counts");
	made.frames[6].place = NULL;
	tap_ok(!walk(&made), "a_chain_with_an_interrupt_is_not_kept");
	make(&made, &paths[0], 0);
	made.frames[6].address ^= 8;
	tap_ok(!walk(&made), "a_return_address_that_somebody_has_exchanged_is_not_kept");
}

int main(void)
{
	random_start();
	make_paths();
	chains_that_are_known_are_right(false, "a_known_chain_is_that_of_the_walk", "most_are_known");
	chains_that_are_known_are_right(true, "it_is_so_where_system_calls_draw_a_length",
					"most_are_known_there_too");
	others_are_not_found();
	return tap_done();
}
