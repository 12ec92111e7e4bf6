/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_FORMAT_CALL_NAMES_H
#define KB_LIB_FORMAT_CALL_NAMES_H

#include <stddef.h>

#include <kbarman/event.h>

/* Whether a task that waits for @object is in no system call. */
bool kb_object_is_outside(const struct kb_object *object);

/*
 * The name of system call @number on @machine (uname(2); NULL: not known), the same pointer each time; NULL: it
 * has no name here. @compat: of the machine's other kind of programs.
 */
const char *kb_call_name(const char *machine, bool compat, uint32_t number);

/* The same of the call of @object; NULL also if that is in none. */
const char *kb_object_call_name(const char *machine, const struct kb_object *object);

/* What @event, a task switch or a value, has of an object: KB_OBJECT_NONE if it has none. NULL: it is neither. */
static inline const struct kb_object *kb_event_object(const struct kb_event *event)
{
	return event->type == KB_EVENT_TASK_SWITCH ? &event->task_switch.object :
	       event->type == KB_EVENT_CUSTOM_COUNTER ? &event->custom_counter.object : NULL;
}

#endif
