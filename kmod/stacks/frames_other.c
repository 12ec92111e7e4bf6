// SPDX-License-Identifier: GPL-2.0-only
/*
 * Call chains on other architectures: kernel frames from stack_trace_save(), and sparse stacks.
 * User code there has no reliable frame pointers.
 */
#include <linux/hardirq.h>
#include <linux/minmax.h>
#include <linux/ptrace.h>
#include <linux/stacktrace.h>

#include "stacks/callchain.h"
#include "stacks/frames.h"

/* Where user_registers.c knows the registers. */
#if defined(CONFIG_ARM) || defined(CONFIG_S390)
#define STACKS		KBARMAN_FEATURE_CHAIN_STACK
#else
#define STACKS		0
#endif

#define OWN_FRAMES	24	/* most frames of an interrupt and its handler */

#ifdef CONFIG_STACKTRACE
const u32 kbarman_callchain_features = KBARMAN_FEATURE_CHAIN_KERNEL | STACKS;

/* stack_trace_save() begins with this function. The frames before the one of @regs are skipped. */
void kbarman_frames_kernel(struct kbarman_frames *frames, struct pt_regs *regs)
{
	unsigned long addresses[OWN_FRAMES + 40];
	unsigned int nr, i = 0;

	/* The unwinders of these architectures may take locks. */
	if (in_nmi())
		return;
	nr = stack_trace_save(addresses, ARRAY_SIZE(addresses), 0);
	if (regs) {
		while (i < nr && addresses[i] != instruction_pointer(regs))
			i++;
		if (i == nr) {
			kbarman_frames_add(frames, instruction_pointer(regs));
			return;
		}
	}
	while (i < nr && kbarman_frames_add(frames, addresses[i]))
		i++;
}
#else
const u32 kbarman_callchain_features = STACKS;

void kbarman_frames_kernel(struct kbarman_frames *frames, struct pt_regs *regs)
{
}
#endif

/* In an NMI, the page tables of the next task may already be loaded. */
bool kbarman_user_is_here(void)
{
	return !in_nmi();
}

void kbarman_user_place(struct kbarman_user_place *place, struct pt_regs *regs)
{
}
