/* SPDX-License-Identifier: MIT */
/*
 * Several files may have one path: in containers, or after an update. If the capture
 * distinguishes them, the name of an image is the end of a string
 * "kbarman.file=MAJOR:MINOR:INODE:SIZE:MTIME:PATH". Other readers follow the pointer to the
 * name and do not see the beginning of the string.
 */
#ifndef KB_LIB_FORMAT_BARMAN_FILE_H
#define KB_LIB_FORMAT_BARMAN_FILE_H

#include <stdint.h>

#include <kbarman/text.h>

#define BARMAN_FILE_FACT	"kbarman.file="
#define BARMAN_TASKS_FACT	"kbarman.tasks="
#define BARMAN_STATES_FACT	"kbarman.states="
#define BARMAN_FILE_MAX		96U	/* longest "MAJOR:MINOR:INODE:SIZE:MTIME" */

/* The file before the name at @ptr of the string table; empty if there is none. */
static inline struct kb_text barman_file_of(const char *strings, uint32_t ptr)
{
	const size_t length = sizeof(BARMAN_FILE_FACT) - 1;
	uint32_t start = ptr;

	/* go back over "MAJOR:MINOR:INODE:SIZE:MTIME:" */
	while (start && ptr - start < BARMAN_FILE_MAX &&
	       (strings[start - 1] == ':' || (strings[start - 1] >= '0' && strings[start - 1] <= '9')))
		start--;
	if (ptr - start < 2 || strings[ptr - 1] != ':' || start < length ||
	    memcmp(strings + start - length, BARMAN_FILE_FACT, length) != 0 ||
	    (start > length && strings[start - length - 1]))
		return kb_text(NULL);
	return (struct kb_text) { strings + start, ptr - 1 - start };
}

#endif
