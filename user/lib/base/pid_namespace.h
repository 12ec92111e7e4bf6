/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_BASE_PID_NAMESPACE_H
#define KB_LIB_BASE_PID_NAMESPACE_H

#include <stdbool.h>

/*
 * True in a PID namespace, as of a container: processes have other numbers there than in captures,
 * which have those of the machine.
 */
bool kb_is_in_pid_namespace(void);

#endif
