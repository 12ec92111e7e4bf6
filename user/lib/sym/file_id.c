// SPDX-License-Identifier: MIT
/* The file is mapped for a moment, to find it among our own mappings. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sym/file_id.h"

/* What /proc/self/maps says of the mapping at @address. */
static bool find_mapping(uintptr_t address, char id[KB_FILE_ID])
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned int major, minor;
	bool found = false;
	char *line = NULL;
	uint64_t inode;
	uintptr_t low;
	size_t size = 0;

	while (maps && !found && getline(&line, &size, maps) > 0)
		found = sscanf(line, "%" SCNxPTR "-%*x %*s %*x %x:%x %" SCNu64, &low, &major,
			       &minor, &inode) == 4 && low == address;
	if (found)
		snprintf(id, KB_FILE_ID, "%u:%u:%" PRIu64, major, minor, inode);
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

bool kb_file_id(const char *path, char id[KB_FILE_ID])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool found = false;
	void *page;

	if (fd < 0)
		return false;
	/* Beyond the end of a short file nothing is read, only mapped. */
	page = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	if (page != MAP_FAILED) {
		found = find_mapping((uintptr_t)page, id);
		munmap(page, 1);
	}
	close(fd);
	return found;
}
