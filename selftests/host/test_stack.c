// SPDX-License-Identifier: MIT
/*
 * Where a chain of frame records may lead: the module's own stack.h, with a memory of the test's
 * in which somebody has written whatever he liked.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "../../kmod/stacks/stack.h"
#include "../lib/random.h"
#include "../lib/tap.h"

#define STACK	4096UL			/* bytes of one */
#define WORDS	(STACK / sizeof(long))

/* Both at a multiple of their size, as the kernel's are; and something else in between. */
static unsigned long memory[3 * WORDS] __attribute__((aligned(STACK)));
#define BASE	((unsigned long)memory)
#define TASK	(BASE)
#define OTHER	(BASE + STACK)
#define IRQ	(BASE + 2 * STACK)

static struct kbarman_stack task_stack(void)
{
	return (struct kbarman_stack){ TASK, TASK + STACK };
}

static void put(unsigned long frame, unsigned long next)
{
	memory[(frame - BASE) / sizeof(long)] = next;
}

/* As frames_arm64.c walks; how many records were read. */
static unsigned int walk(unsigned long sp, unsigned long frame)
{
	struct kbarman_stacks stacks = kbarman_stacks_from(sp, IRQ + STACK, task_stack());
	unsigned int count = 0;

	while (kbarman_stacks_lead_to(&stacks, frame)) {
		count++;
		frame = memory[(frame - BASE) / sizeof(long)];
	}
	return count;
}

static void whole_chains(void)
{
	memset(memory, 0, sizeof(memory));
	put(TASK + 512, TASK + 528);
	put(TASK + 528, TASK + STACK - 16);
	tap_is(walk(TASK + 500, TASK + 512), 3, "a_chain_goes_up_to_the_end_of_its_stack");
	put(IRQ + 64, IRQ + 128);
	put(IRQ + 128, TASK + 512);
	tap_is(walk(IRQ + 64, IRQ + 64), 5, "an_interrupts_chain_goes_on_with_the_tasks");
}

static void wrong_records(void)
{
	memset(memory, 0, sizeof(memory));
	put(TASK + 512, TASK + 512);
	tap_is(walk(TASK, TASK + 512), 1, "a_record_that_leads_to_itself_is_the_last");
	put(TASK + 512, TASK + 256);
	put(TASK + 256, TASK + 512);
	tap_is(walk(TASK, TASK + 512), 1, "no_chain_goes_down");
	put(TASK + 512, TASK + 520);
	tap_is(walk(TASK, TASK + 512), 1, "records_do_not_overlap");
	put(TASK + 512, OTHER + 512);
	put(OTHER + 512, OTHER + 1024);
	tap_is(walk(TASK, TASK + 512), 1, "other_memory_is_not_read");
	put(TASK + 512, IRQ + 64);
	put(IRQ + 64, IRQ + 128);
	tap_is(walk(TASK, TASK + 512), 1, "no_chain_goes_from_the_tasks_stack_to_an_interrupts");
	put(IRQ + 64, TASK + 512);
	tap_is(walk(IRQ, IRQ + 64), 2, "nor_back_after_it_came_from_there");
	tap_is(walk(IRQ + 128, IRQ + 64), 0, "nothing_below_the_stack_pointer_is_read");
	tap_is(walk(TASK, TASK + 513), 0, "nor_what_no_record_begins_at");
	tap_is(walk(TASK, TASK + STACK - 8), 0, "nor_a_record_that_the_stack_ends_in");
	tap_is(walk(TASK, ~0UL - 7), 0, "nor_the_end_of_the_address_space");
	tap_is(walk(TASK, 0), 0, "nor_its_beginning");
}

/* Records point anywhere: each is read once, in one of the two stacks, and there is an end. */
static void any_records(void)
{
	bool inside = true, bounded = true;

	for (unsigned int turn = 0; turn < 20000; turn++) {
		unsigned long sp = (random_below(2) ? TASK : IRQ) + random_below(STACK);
		struct kbarman_stacks stacks = kbarman_stacks_from(sp, IRQ + STACK, task_stack());
		unsigned long frame;
		unsigned int count = 0;

		for (size_t i = 0; i < 3 * WORDS; i++)
			memory[i] = BASE + random_below(3 * STACK);
		frame = BASE + random_below(3 * STACK);
		while (count <= 2 * WORDS && kbarman_stacks_lead_to(&stacks, frame)) {
			inside &= (frame >= TASK && frame <= TASK + STACK - 16) ||
				  (sp >= IRQ && frame >= sp && frame <= IRQ + STACK - 16);
			count++;
			frame = memory[(frame - BASE) / sizeof(long)];
		}
		bounded &= count <= WORDS;
	}
	tap_ok(inside, "whatever_stands_there_only_the_stacks_are_read");
	tap_ok(bounded, "and_each_record_once");
}

int main(void)
{
	random_start();
	whole_chains();
	wrong_records();
	any_records();
	return tap_done();
}
