// SPDX-License-Identifier: MIT
/*
 * The vdso is an ELF file that exists only in memory. It is copied to a memory file and read
 * like any other file.
 */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sym/elf.h"
#include "sym/vdso.h"

#define MOST	(64U << 10)	/* bytes; real ones have one or two pages */

int kb_vdso_read(struct kb_elf *elf)
{
	const ElfW(Ehdr) *header = (const void *)getauxval(AT_SYSINFO_EHDR);
	uint64_t size;
	char path[32];
	int fd, ret;

	*elf = (struct kb_elf) { 0 };
	if (!header)
		return -ENOENT;
	size = header->e_shoff + (uint64_t)header->e_shnum * header->e_shentsize;
	if (size < sizeof(*header) || size > MOST)
		return -EBADMSG;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = write(fd, header, size) == (ssize_t)size ? kb_elf_read(elf, path, NULL) : -EIO;
	close(fd);
	return ret;
}
