/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_FORMAT_CALL_NAMES_H
#define KB_LIB_FORMAT_CALL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a task that waits for @object, enum kb_object, with @flags, KB_OBJECT_*, is in no system call. */
bool kb_object_is_outside(uint8_t object, uint8_t flags);

/*
 * The name of the system call @call of @machine (uname(2); NULL: not known) in which a task waits for @object
 * with @flags, the same pointer each time; NULL: it is in none, or that has no name here.
 */
const char *kb_object_call_name(const char *machine, uint8_t object, uint8_t flags, uint16_t call);

#endif
