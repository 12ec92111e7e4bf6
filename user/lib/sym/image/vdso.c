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

#include "sym/elf/elf.h"
#include "sym/elf/unwind.h"
#include "sym/image/vdso.h"

#define MOST	(64U << 10)	/* bytes; real ones have one or two pages */

struct vdso {
	const void *data;
	size_t size;
	int fd;			/* a copy */
};

static int open_vdso(struct vdso *vdso)
{
	const ElfW(Ehdr) *header = (const void *)getauxval(AT_SYSINFO_EHDR);
	uint64_t size;

	if (!header)
		return -ENOENT;
	size = header->e_shoff + (uint64_t)header->e_shnum * header->e_shentsize;
	if (size < sizeof(*header) || size > MOST)
		return -EBADMSG;
	*vdso = (struct vdso) { header, size, memfd_create("vdso", MFD_CLOEXEC) };
	if (vdso->fd < 0)
		return -errno;
	if (write(vdso->fd, header, size) == (ssize_t)size)
		return 0;
	close(vdso->fd);
	return -EIO;
}

int kb_vdso_read(struct kb_elf *elf)
{
	struct vdso vdso;
	int ret = open_vdso(&vdso);
	char path[32];

	*elf = (struct kb_elf) { 0 };
	if (ret)
		return ret;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", vdso.fd);
	ret = kb_elf_read(elf, path, NULL);
	close(vdso.fd);
	return ret;
}

/* The kernel made it, so this process may read it. */
int kb_vdso_unwind(struct kb_elf *elf, struct kb_error *err)
{
	struct vdso vdso;
	int ret = open_vdso(&vdso);

	*elf = (struct kb_elf) { 0 };
	if (ret)
		return kb_error_set(err, ret, KB_NO_OFFSET, "[vdso] can't be read");
	ret = kb_elf_identify_fd(elf, vdso.fd, "[vdso]", err);
	if (!ret)
		ret = kb_elf_unwind_memory(&elf->unwind, vdso.data, vdso.size, err);
	close(vdso.fd);
	if (ret == -EBADMSG && elf->unwind.header)
		ret = 0;
	if (ret)
		kb_elf_release(elf);
	return ret;
}
