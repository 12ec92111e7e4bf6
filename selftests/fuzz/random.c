// SPDX-License-Identifier: MIT
/* Tables salt their hashes. Fuzz targets always have the same salt: a seed repeats a whole run. */
#include <string.h>
#include <sys/random.h>

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	(void)flags;
	memset(buffer, 0x5a, length);
	return (ssize_t)length;
}
