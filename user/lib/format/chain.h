/* SPDX-License-Identifier: MIT */
/*
 * The call chain of a sample or a task switch as frames, innermost first. Frame 0 of a sample
 * is where it fell, with or without a chain. A switch without a chain has no frames. Frames of
 * callers are return addresses: the call is in front of the address, and behind a call that
 * never returns the next function may begin. So they are looked up one byte lower. The
 * exception is the first frame of user space: it is the address where user code was interrupted
 * or entered the kernel.
 */
#ifndef KB_LIB_FORMAT_CHAIN_H
#define KB_LIB_FORMAT_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/event.h>

/* 1 if the chain of a sample does not begin with its PC, else 0. */
static inline uint32_t kb_chain_extra(const struct kb_event *event)
{
	return event->type != KB_EVENT_TASK_SWITCH &&
	       (event->sample.nr_chain == 0 || event->sample.chain[0] != event->sample.pc);
}

static inline uint32_t kb_chain_depth(const struct kb_event *event)
{
	return event->type == KB_EVENT_TASK_SWITCH ? event->task_switch.nr_chain :
		event->sample.nr_chain + kb_chain_extra(event);
}

/* The address of @frame, which is below the depth. */
static inline uint64_t kb_chain_pc(const struct kb_event *event, uint32_t frame)
{
	uint32_t extra = kb_chain_extra(event);

	if (event->type == KB_EVENT_TASK_SWITCH)
		return event->task_switch.chain[frame];
	return frame < extra ? event->sample.pc : event->sample.chain[frame - extra];
}

/* The address by which @frame is looked up. */
static inline uint64_t kb_chain_lookup(const struct kb_event *event, uint32_t frame)
{
	bool is_switch = event->type == KB_EVENT_TASK_SWITCH;
	uint32_t kernel = is_switch ? event->task_switch.nr_chain_kernel :
		event->sample.nr_chain_kernel;
	uint64_t pc = kb_chain_pc(event, frame);

	return (frame == 0 && !is_switch) || frame == kernel + kb_chain_extra(event) || !pc ?
		pc : pc - 1;
}

#endif
