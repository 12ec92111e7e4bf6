/* SPDX-License-Identifier: MIT */
/* What the test build of the module (module/) is asked and told by its parameters. */
#ifndef KBARMAN_PARAMETERS_H
#define KBARMAN_PARAMETERS_H

#include "lib.h"

#define PARAMETERS	"/sys/module/kbarman/parameters/"

static inline uint64_t read_number(const char *path)
{
	char text[32];

	read_file(path, text, sizeof(text));
	return strtoull(text, NULL, 0);
}

/* The module is loaded, and has parameters to ask; the program ends where it has none. */
static inline void test_build_want(void)
{
	module_want();
	if (access(PARAMETERS "test_fault", W_OK))
		lost("this is not the test build of the module");
}

static inline uint64_t parameter(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	return read_number(path);
}

static inline void write_parameter(const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	write_file(path, value);
}

#endif
