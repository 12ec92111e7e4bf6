/* SPDX-License-Identifier: MIT */
/*
 * The call chain of a sample or a task switch as frames, innermost first. Frame 0 of a sample
 * is where it fell, with or without a chain. A switch without a chain has no frames.
 *
 * The addresses in an event are as recorded. Those of callers are return addresses: the call is
 * in front of the address, and behind a call that never returns the next function may begin. So
 * the name and the line of a frame are those of kb_chain_lookup(), which has stepped back into
 * the call. Pass its result to kb_symbolizer_resolve() or kb_symbolizer_frames() as it is: these
 * functions step back no further.
 *
 *	for (uint32_t frame = 0; frame < kb_chain_depth(&event); frame++)
 *		puts(kb_symbolizer_resolve(symbolizer, event.task_id, event.timestamp,
 *					   kb_chain_lookup(&event, frame))->name);
 *
 * That is for a sample. The chain of a task switch belongs to the task that ran before, and
 * task_id is the next one. All functions are for samples and task switches only. They only read
 * @event.
 */
#ifndef KBARMAN_CHAIN_H
#define KBARMAN_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/event.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 1 if the chain of a sample does not begin with its PC, which then is frame 0; else 0. */
static inline uint32_t kb_chain_extra(const struct kb_event *event)
{
	return event->type != KB_EVENT_TASK_SWITCH &&
	       (event->sample.nr_chain == 0 || event->sample.chain[0] != event->sample.pc);
}

/* The number of frames. */
static inline uint32_t kb_chain_depth(const struct kb_event *event)
{
	return event->type == KB_EVENT_TASK_SWITCH ? event->task_switch.nr_chain :
		event->sample.nr_chain + kb_chain_extra(event);
}

/* The recorded address of @frame, which is below the depth. */
static inline uint64_t kb_chain_pc(const struct kb_event *event, uint32_t frame)
{
	uint32_t extra = kb_chain_extra(event);

	if (event->type == KB_EVENT_TASK_SWITCH)
		return event->task_switch.chain[frame];
	return frame < extra ? event->sample.pc : event->sample.chain[frame - extra];
}

/*
 * The address by which @frame, which is below the depth, is looked up: one byte lower than the
 * recorded one. Three are not return addresses, and are as recorded: where a sample fell, the
 * first frame of user space (there user code was interrupted or entered the kernel), and 0.
 */
static inline uint64_t kb_chain_lookup(const struct kb_event *event, uint32_t frame)
{
	bool is_switch = event->type == KB_EVENT_TASK_SWITCH;
	uint32_t kernel = is_switch ? event->task_switch.nr_chain_kernel :
		event->sample.nr_chain_kernel;
	uint64_t pc = kb_chain_pc(event, frame);

	return (frame == 0 && !is_switch) || frame == kernel + kb_chain_extra(event) || !pc ?
		pc : pc - 1;
}

#ifdef __cplusplus
}
#endif

#endif
