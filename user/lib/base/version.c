// SPDX-License-Identifier: MIT
/* The file VERSION is the one place for the version; make passes it on. */
#include <kbarman/version.h>

const char *kb_version(void)
{
	return KBARMAN_VERSION;
}
