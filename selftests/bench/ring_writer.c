// SPDX-License-Identifier: MIT
/*
 * One task switch recorded, as the module's probe does it: a call of its own, the guard
 * of preemption around it. Compiled once for every clock, with the module's own ring.c
 * and record.c: see ring.c here.
 */
#include "ring/record.h"

/* As the kernel's: a count to go up and down, and a look whether somebody waits. */
static volatile int preempt_count = 1;

static noinline void reschedule(void)
{
	preempt_count++;
}

void WRITER(struct kbarman_ring *ring, u32 task_id, u8 prev_state);

noinline void WRITER(struct kbarman_ring *ring, u32 task_id, u8 prev_state)
{
	__asm__ volatile("incl %0" : "+m"(preempt_count));
	kbarman_record_switch(ring, task_id,
			      prev_state ? BM_TASK_SWITCH_BLOCKED : BM_TASK_SWITCH_PREEMPTED,
			      prev_state);
	barrier();
	if (unlikely(--preempt_count == 0))
		reschedule();
}
