/* SPDX-License-Identifier: MIT */
/*
 * The call chain of a sample as frames, innermost first. Frame 0 is where the sample
 * fell, with or without a chain. Frames of callers are return addresses: the call is
 * in front of them, and where it never returns, the next function begins there. So
 * they are looked up one byte before, except the first frame of user space, which
 * is where the kernel was entered.
 */
#ifndef KB_LIB_ANALYSIS_STACK_H
#define KB_LIB_ANALYSIS_STACK_H

#include <stdint.h>

#include <kbarman/event.h>

/* 1 if the chain does not begin with the PC itself. */
static inline uint32_t kb_stack_extra(const struct kb_event *event)
{
	return event->sample.nr_chain == 0 || event->sample.chain[0] != event->sample.pc;
}

static inline uint32_t kb_stack_depth(const struct kb_event *event)
{
	return event->sample.nr_chain + kb_stack_extra(event);
}

/* The address of a frame below the depth. */
static inline uint64_t kb_stack_pc(const struct kb_event *event, uint32_t frame)
{
	uint32_t extra = kb_stack_extra(event);

	return frame < extra ? event->sample.pc : event->sample.chain[frame - extra];
}

/* The address to look it up by. */
static inline uint64_t kb_stack_lookup(const struct kb_event *event, uint32_t frame)
{
	uint32_t entry = event->sample.nr_chain_kernel + kb_stack_extra(event);
	uint64_t pc = kb_stack_pc(event, frame);

	return frame == 0 || (frame == entry && event->sample.nr_chain_kernel) || !pc ?
		pc : pc - 1;
}

#endif
