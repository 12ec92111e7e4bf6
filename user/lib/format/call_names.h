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

#endif
