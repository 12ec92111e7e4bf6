// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "compat/mm.h"
#include "maps/maps.h"
#include "session.h"
#include "stacks/sparse.h"
#include "stacks/task_ranges.h"

#define LIBRARY_BYTES	(1UL << 30)	/* of addresses: libraries are in these */

/* True if @sp may point into the stack at @range. An empty stack's points to the end. */
static bool range_is_of(const struct kbarman_range *range, unsigned long sp)
{
	return sp - range->low <= range->span && range->span;
}

/* The stack that the program gave Linux for signals. */
static bool range_of_signals(struct kbarman_range *range, unsigned long sp)
{
	*range = (struct kbarman_range) { current->sas_ss_sp, current->sas_ss_size };
	return range_is_of(range, sp);
}

/*
 * The stack that Linux made for the program. Arguments and environment are above it. Its mapping
 * has no more pages than all mappings of this kind.
 */
static bool range_of_program(struct kbarman_range *range, unsigned long sp)
{
	const struct mm_struct *mm = current->mm;
	unsigned long end = READ_ONCE(mm->start_stack);
	unsigned long bytes = min(READ_ONCE(mm->stack_vm), end >> PAGE_SHIFT) << PAGE_SHIFT;

	*range = (struct kbarman_range) { end - bytes, bytes };
	return range_is_of(range, sp);
}

/* From @sp to the end of @range, inside of what a user can have. */
static struct kbarman_range range_above(const struct kbarman_range *range, unsigned long sp)
{
	unsigned long end = min_t(unsigned long, range->low + range->span, KBARMAN_TASK_SIZE_MAX);

	return (struct kbarman_range) { sp, end > sp ? end - sp : 0 };
}

static bool task_find_stack(const struct kbarman_session *session, struct kbarman_range *stack,
			    struct pt_regs *regs)
{
	unsigned long sp = user_stack_pointer(regs);
	struct kbarman_range range;

	*stack = (struct kbarman_range) { sp, 0 };
	if (sp >= KBARMAN_TASK_SIZE_MAX)
		return false;
	if (range_of_signals(&range, sp) || range_of_program(&range, sp) ||
	    kbarman_maps_stack(session, regs, &range)) {
		*stack = range_above(&range, sp);
		return true;
	}
	stack->span = PAGE_SIZE - offset_in_page(sp);
	return false;
}

/*
 * The program is between start_code and end_code. Its libraries are below mmap_base, where other
 * memory is, too: until the session knows better.
 */
bool kbarman_task_ranges(const struct kbarman_session *session,
			 struct kbarman_sparse_ranges *ranges, struct pt_regs *regs)
{
	const struct mm_struct *mm = current->mm;
	unsigned long libraries = min(mm->mmap_base, LIBRARY_BYTES);
	bool known = task_find_stack(session, &ranges->stack, regs);

	ranges->code[0] = (struct kbarman_range) { mm->start_code, mm->end_code - mm->start_code };
	if (!kbarman_maps_libraries(session, &ranges->code[1])) {
		memset(&ranges->code[1], 0, KBARMAN_LIBRARY_RANGES * sizeof(ranges->code[1]));
		ranges->code[1] = (struct kbarman_range) { mm->mmap_base - libraries, libraries };
	}
	kbarman_sparse_ranges_close(ranges);
	return known;
}
