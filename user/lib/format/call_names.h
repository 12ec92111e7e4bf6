/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_FORMAT_CALL_NAMES_H
#define KB_LIB_FORMAT_CALL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The name of the system call @number of @machine (uname(2); NULL: not known), the same pointer each
 * time; NULL: it has no name here. @compat: of the machine's other kind of programs.
 */
const char *kb_call_name(const char *machine, bool compat, uint16_t number);

/*
 * The same of call @call in which a task waits for @object, enum kb_object, with @flags, KB_OBJECT_*; NULL also:
 * it waits in none.
 */
const char *kb_object_call_name(const char *machine, uint8_t object, uint8_t flags, uint16_t call);

#endif
