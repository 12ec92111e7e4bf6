// SPDX-License-Identifier: GPL-2.0-only
#include <linux/sched.h>

#include "capture/header.h"
#include "maps/space.h"

void kbarman_spaces_out_of_memory(struct kbarman_spaces *spaces)
{
	kbarman_header_miss(spaces->capture, KBARMAN_MISSED_MEMORY, 1);
}

bool kbarman_spaces_step_atomic(struct kbarman_spaces *spaces)
{
	return !READ_ONCE(spaces->hurry) || spaces->steps_left-- > 0;
}

bool kbarman_spaces_step(struct kbarman_spaces *spaces)
{
	cond_resched();
	return kbarman_spaces_step_atomic(spaces);
}
