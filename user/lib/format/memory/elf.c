// SPDX-License-Identifier: MIT
/*
 * ELF cores of a machine: /proc/vmcore of a kdump kernel, makedumpfile -E, QEMU, virsh dump. libelf
 * would keep all headers in memory. Source: elf(5).
 */
#include <elf.h>
#include <stdbool.h>

#include "format/memory/inside.h"
#include "format/wire.h"

struct core {
	unsigned int word;			/* bytes */
	bool swap;
	uint64_t segments, sections;		/* offsets of their headers */
	uint16_t type, size;			/* size: of a segment's header */
	uint32_t nr;
};

/* A number of segments that 16 bits do not hold is in the first header of a section. */
static int read_number(struct core *core, const struct kb_memory_file *file, struct kb_error *err)
{
	uint8_t section[sizeof(Elf64_Shdr)];
	size_t at = core->word == 8 ? offsetof(Elf64_Shdr, sh_info) : offsetof(Elf32_Shdr, sh_info);
	ssize_t got = kb_memory_pread(file, core->sections, section, at + 4, err);

	if (got >= 0 && (size_t)got < at + 4)
		return kb_memory_damaged(file, "it does not say how many segments it has", err);
	core->nr = got < 0 ? 0 : kb_load32(section + at, core->swap);
	return got < 0 ? (int)got : 0;
}

static int read_header(struct core *core, const struct kb_memory_file *file, struct kb_error *err)
{
	uint8_t bytes[sizeof(Elf64_Ehdr)] = { 0 };
	ssize_t got = kb_memory_pread(file, 0, bytes, sizeof(bytes), err);
	struct kb_cursor at = { .at = bytes + EI_NIDENT, .end = bytes + sizeof(bytes) };

	if (got < 0)
		return (int)got;
	core->word = bytes[EI_CLASS] == ELFCLASS64 ? 8 : 4;
	core->swap = bytes[EI_DATA] == ELFDATA2MSB ? KB_SWAP_BE : KB_SWAP_LE;
	at.swap = core->swap;
	core->type = kb_cursor_u16(&at);
	kb_cursor_take(&at, 2 + 4 + core->word);	/* machine, version, entry */
	core->segments = kb_cursor_word(&at, core->word);
	core->sections = kb_cursor_word(&at, core->word);
	kb_cursor_take(&at, 4 + 2);			/* flags, size of this header */
	core->size = kb_cursor_u16(&at);
	core->nr = kb_cursor_u16(&at);
	if (core->type != ET_CORE)
		return kb_memory_refuse(file, "is an ELF file, but no core", err);
	if (core->size < (core->word == 8 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
		return kb_memory_damaged(file, "its header has no size of those of segments", err);
	return core->nr == PN_XNUM ? read_number(core, file, err) : 0;
}

int kb_memory_elf(struct kb_memory_ranges *ranges, const struct kb_memory_file *file,
		  struct kb_error *err)
{
	struct core core = { 0 };
	int ret = read_header(&core, file, err);
	bool placed = false;

	for (uint64_t i = 0; !ret && i < core.nr; i++) {
		uint64_t offset = core.segments + i * core.size, start, physical;
		uint64_t in_file, in_memory;
		uint8_t bytes[sizeof(Elf64_Phdr)];
		ssize_t got = kb_memory_pread(file, offset, bytes, sizeof(bytes), err);
		struct kb_cursor at = { .at = bytes, .end = bytes + got, .swap = core.swap };
		uint32_t type;

		/* A file that was cut off has fewer. */
		if (got <= 0 || offset < core.segments)
			return (int)got;
		type = kb_cursor_u32(&at);
		if (core.word == 8)
			kb_cursor_u32(&at);		/* flags */
		start = kb_cursor_word(&at, core.word);
		kb_cursor_word(&at, core.word);		/* virtual address */
		physical = kb_cursor_word(&at, core.word);
		/* Virtual memory that is no memory has the largest address. */
		if (type != PT_LOAD || physical == (core.word == 8 ? UINT64_MAX : UINT32_MAX))
			continue;
		placed |= physical != 0;
		in_file = kb_cursor_word(&at, core.word);
		in_memory = kb_cursor_word(&at, core.word);
		/* Linux would try to read it, and fail itself; of other segments it has no offsets. */
		if (in_file > UINT64_MAX - physical)
			return kb_memory_damaged(file, "a segment ends behind all addresses (kexec makes such "
						       "a segment if /proc/kallsyms has no '_text')", err);
		ret = kb_memory_add(ranges, file, physical, in_file, start, err);
		/* makedumpfile -E leaves pages of zeros out, and others that it was told to. */
		if (!ret && in_memory > in_file)
			ret = kb_memory_add_zeros(ranges, file, physical + in_file,
						  in_memory - in_file, err);
	}
	if (!ret && !placed && ranges->nr > 1)
		return kb_memory_refuse(file, "is the core of a process: it does not say where its "
					      "bytes were in physical memory", err);
	return ret;
}
