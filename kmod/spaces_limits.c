// SPDX-License-Identifier: GPL-2.0-only
#include <linux/sched.h>

#include "header.h"
#include "space.h"

void kbarman_spaces_out_of_memory(struct kbarman_spaces *spaces)
{
	kbarman_header_miss(spaces->capture, KBARMAN_MISSED_MEMORY, 1);
}

bool kbarman_spaces_step(struct kbarman_spaces *spaces)
{
	cond_resched();
	return !READ_ONCE(spaces->hurry) || spaces->steps_left-- > 0;
}
