/* SPDX-License-Identifier: MIT */
/* What a record says that is written when a system call, a page fault or a block request ends. */
#ifndef KB_LIB_ANALYSIS_TIME_ENDED_H
#define KB_LIB_ANALYSIS_TIME_ENDED_H

#include <kbarman/barman.h>
#include <kbarman/ended.h>
#include <kbarman/names.h>

/* Whether it is known when @event began and ended: nothing says when a fault ends that brings no page. */
static inline bool kb_ended_is_timed(const struct kb_event *event)
{
	return event->custom_counter.begin &&
	       (event->custom_counter.what != KB_WHAT_FAULT || event->custom_counter.result >= 0);
}

/* How long @event took, ns; 0 where that is not known. */
uint64_t kb_ended_ns(const struct kb_barman *barman, const struct kb_event *event);

/* The task whose @event it is; 0: not known. */
static inline uint32_t kb_ended_task(const struct kb_event *event)
{
	return event->custom_counter.what == KB_WHAT_BLOCK ? event->custom_counter.id : event->task_id;
}

/*
 * Whether the call @event is one of a program. The first return of a new task from the call that made it is
 * none: its parent made that call, which has a record of its own.
 */
bool kb_syscall_is_own(const struct kb_names *names, const struct kb_event *event);

/* How the fault @event ended, and the word for it: "minor", "major", "failed". */
static inline enum kb_fault_kind kb_fault_kind(const struct kb_event *event)
{
	return event->custom_counter.result < 0 ? KB_FAULT_KIND_FAILED :
	       event->custom_counter.result == KB_FAULT_MAJOR ? KB_FAULT_KIND_MAJOR : KB_FAULT_KIND_MINOR;
}

const char *kb_fault_kind_name(enum kb_fault_kind kind);

#define KB_BLOCK_FLAGS_TEXT	40

/* The words for the flags of a request, without the operation, with commas between: "sync,meta". */
const char *kb_block_flags_text(uint16_t flags, char text[KB_BLOCK_FLAGS_TEXT]);

#define KB_DISK_TEXT		24

/* The disk @device: its name if the capture has it, or "MAJOR:MINOR"; NULL: there is none. */
const char *kb_disk_name(const struct kb_names *names, uint32_t device, char text[KB_DISK_TEXT]);

#endif
