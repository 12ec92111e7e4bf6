// SPDX-License-Identifier: MIT
/* Sections are found by their names. Those that are compressed are unpacked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sym/elf/tables.h"

#ifndef SHT_ARM_EXIDX
#define SHT_ARM_EXIDX	0x70000001
#endif

#define MAX_UNPACKED	(256U << 20)	/* bytes of a compressed section */
#define MAX_VDSO	(64U << 10)	/* bytes of its code */

/* .eh_frame, .debug_frame of the file, and of a file with its debug information */
enum { EH_FRAME, DEBUG_FRAME, OTHER_FRAME };

static struct kb_unwind_section contents(const GElf_Shdr *shdr, const Elf_Data *data)
{
	if (!data || !data->d_buf)
		return (struct kb_unwind_section) { 0 };
	return (struct kb_unwind_section) {
		.data = data->d_buf, .size = data->d_size, .address = shdr->sh_addr,
	};
}

static struct kb_unwind_section raw(Elf_Scn *scn, const GElf_Shdr *shdr)
{
	return contents(shdr, shdr->sh_type == SHT_NOBITS ? NULL : elf_rawdata(scn, NULL));
}

/* The same for a section of debug information, which may be compressed. */
static struct kb_unwind_section unpacked(struct kb_elf_tables *tables, Elf *elf, Elf_Scn *scn)
{
	GElf_Shdr shdr;
	GElf_Chdr chdr;

	if (!gelf_getshdr(scn, &shdr))
		return (struct kb_unwind_section) { 0 };
	if (!(shdr.sh_flags & SHF_COMPRESSED))
		return raw(scn, &shdr);
	if (!gelf_getchdr(scn, &chdr) || chdr.ch_size > MAX_UNPACKED ||
	    kb_zstd_section_unpack(&tables->unpacked, elf, scn, &shdr))
		return (struct kb_unwind_section) { 0 };
	if (shdr.sh_flags & SHF_COMPRESSED && elf_compress(scn, 0, 0) < 0)
		return (struct kb_unwind_section) { 0 };
	return contents(&shdr, elf_getdata(scn, NULL));
}

static void take_section(struct kb_elf_tables *tables, Elf *elf, Elf_Scn *scn, const GElf_Shdr *shdr,
			 const char *name)
{
	struct kb_unwind_sections *sections = &tables->sections;

	if (strcmp(name, ".eh_frame") == 0)
		sections->frames[EH_FRAME].section = raw(scn, shdr);
	else if (strcmp(name, ".debug_frame") == 0)
		sections->frames[DEBUG_FRAME].section = unpacked(tables, elf, scn);
	else if (shdr->sh_type == SHT_ARM_EXIDX)
		sections->exidx = raw(scn, shdr);
	else if (strcmp(name, ".ARM.extab") == 0)
		sections->extab = raw(scn, shdr);
	else if (strcmp(name, ".gnu_debugdata") == 0)
		tables->minidebug = scn;
	else if (strcmp(name, ".gopclntab") == 0 || strcmp(name, ".data.rel.ro.gopclntab") == 0)
		sections->go = raw(scn, shdr);
	else if (strcmp(name, ".init") == 0)
		sections->init[0] = raw(scn, shdr);
	else if (strcmp(name, ".fini") == 0)
		sections->init[1] = raw(scn, shdr);
	else if (tables->is_vdso && strcmp(name, ".text") == 0 && shdr->sh_size <= MAX_VDSO)
		sections->vdso = raw(scn, shdr);
}

static void take_sections(struct kb_elf_tables *tables, Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name;

		if (!gelf_getshdr(scn, &shdr))
			continue;
		name = elf_strptr(elf, names, shdr.sh_name);
		if (name)
			take_section(tables, elf, scn, &shdr, name);
	}
}

/* The limits of code. */
static void take_limits(struct kb_unwind_sections *sections, Elf *elf)
{
	size_t nr, i;

	sections->low = UINT64_MAX;
	sections->high = 0;
	if (elf_getphdrnum(elf, &nr))
		return;
	for (i = 0; i < nr && i <= INT32_MAX; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(elf, i, &phdr) || phdr.p_type != PT_LOAD ||
		    !(phdr.p_flags & PF_X) || phdr.p_memsz > UINT64_MAX - phdr.p_vaddr)
			continue;
		if (phdr.p_vaddr < sections->low)
			sections->low = phdr.p_vaddr;
		if (phdr.p_vaddr + phdr.p_memsz > sections->high)
			sections->high = phdr.p_vaddr + phdr.p_memsz;
	}
}

static bool take_header(struct kb_unwind_sections *sections, Elf *elf)
{
	GElf_Ehdr header;

	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header))
		return false;
	sections->elf = header.e_machine;
	sections->word = header.e_ident[EI_CLASS] == ELFCLASS64 ? 8 : 4;
	sections->big_endian = header.e_ident[EI_DATA] == ELFDATA2MSB;
	return true;
}

int kb_elf_tables_take(struct kb_elf_tables *tables, Elf *elf, struct kb_error *err)
{
	struct kb_unwind_sections *sections = &tables->sections;

	if (!take_header(sections, elf))
		return kb_error_set(err, -ENOEXEC, KB_NO_OFFSET, "it is not an ELF file");
	take_limits(sections, elf);
	if (sections->low > sections->high)
		return kb_error_set(err, -ENOEXEC, KB_NO_OFFSET, "it has no code");
	sections->frames[DEBUG_FRAME].debug = sections->frames[OTHER_FRAME].debug = true;
	take_sections(tables, elf);
	return 0;
}

void kb_elf_tables_add(struct kb_elf_tables *tables, Elf *debug)
{
	struct kb_elf_tables other = { .unpacked = tables->unpacked };

	if (!take_header(&other.sections, debug) ||
	    other.sections.elf != tables->sections.elf ||
	    other.sections.word != tables->sections.word ||
	    other.sections.big_endian != tables->sections.big_endian)
		return;
	take_sections(&other, debug);
	tables->unpacked = other.unpacked;
	tables->sections.frames[OTHER_FRAME].section = other.sections.frames[DEBUG_FRAME].section;
}
