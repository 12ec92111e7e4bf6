// SPDX-License-Identifier: MIT
#include <string.h>
#include <unistd.h>

#include "base/pid_namespace.h"

/* The first PID namespace has this number on every kernel. */
#define FIRST_PID_NAMESPACE	"pid:[4026531836]"

bool kb_is_in_pid_namespace(void)
{
	char name[64];
	ssize_t length = readlink("/proc/self/ns/pid", name, sizeof(name) - 1);

	if (length < 0)
		return false;
	name[length] = '\0';
	return strcmp(name, FIRST_PID_NAMESPACE) != 0;
}
