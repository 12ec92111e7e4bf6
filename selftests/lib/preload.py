# SPDX-License-Identifier: MIT
"""Libraries for $LD_PRELOAD: what a test puts between a program and the C library."""
import os
import subprocess

# On Debian 13 libelf loads libzstd, too, so that it can't be hidden as a whole.
NO_LIBZSTD = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
void *dlopen(const char *name, int flags)
{
	void *(*next)(const char *name, int flags) = dlsym(RTLD_NEXT, "dlopen");
	return name && !strcmp(name, "libzstd.so.1") ? 0 : next(name, flags);
}
"""


def late(call):
    """The source of a `call` that tells that it was made, and then waits while a file is there."""
    return f"""
#include <stdlib.h>
#include <unistd.h>
int {call}
{{
	close(creat(getenv("CHILD_IS_THERE"), 0600));
	while (!access(getenv("CHILD_WAITS"), F_OK))
		usleep(10000);
	return 0;
}}
"""


def build(directory, name, source):
    """Compiles the C of `source`. Returns the path of the library."""
    path = os.path.join(directory, name + ".so")
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-x", "c", "-o", path, "-"], input=source,
                   check=True, text=True)
    return path
