/* SPDX-License-Identifier: MIT */
/* CPython calls its functions "py::FUNCTION:/path/file.py" in perf maps and jitdumps. */
#ifndef KB_LIB_SYM_NAMES_PYTHON_NAME_H
#define KB_LIB_SYM_NAMES_PYTHON_NAME_H

#include <stddef.h>
#include <string.h>

/* The source file in @name; NULL: it is not such a name. Before ":FILE" is "py::FUNCTION". */
static inline const char *kb_python_file(const char *name)
{
	const char *colon = strncmp(name, "py::", 4) == 0 ? strchr(name + 4, ':') : NULL;

	return colon && colon > name + 4 && colon[1] ? colon + 1 : NULL;
}

#endif
