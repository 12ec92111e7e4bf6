// SPDX-License-Identifier: MIT
/*
 * Stubs are identified by their jump, not by their number: linkers leave out, add and order
 * stubs in different ways (.plt.got, .plt.sec, branch protection).
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "sym/elf/plt.h"

#ifndef R_AARCH64_IRELATIVE	/* musl's <elf.h> */
#define R_AARCH64_IRELATIVE	1032
#endif

#define MAX_SLOTS	(1U << 20)
#define MAX_NAME	1024	/* longest name of a function, with "@plt" */
#define BTI_C		0xd503245fU
#define RISCV_ENTRY	16

#ifndef R_RISCV_IRELATIVE		/* before glibc 2.33 */
#define R_RISCV_IRELATIVE	58
#endif

struct slot {
	uint64_t address;	/* of the GOT entry */
	uint64_t resolver;	/* of a function without a symbol (IRELATIVE), or 0 */
	uint32_t name;		/* offset in .dynstr if there is no resolver */
};

struct plt {
	struct kb_symtab *symtab;
	Elf *elf;
	GElf_Half machine;
	Elf_Data *strings;
	struct slot *slots;	/* by address */
	size_t nr, max;
};

static int compare_slots(const void *left, const void *right)
{
	const struct slot *a = left, *b = right;

	return (a->address > b->address) - (a->address < b->address);
}

static int add_slot(struct plt *plt, struct slot slot)
{
	if (plt->nr == MAX_SLOTS)
		return 0;
	if (!KB_ARRAY_ROOM(plt->slots, plt->max, plt->nr + 1))
		return -ENOMEM;
	plt->slots[plt->nr++] = slot;
	return 0;
}

static bool fills_slot(const struct plt *plt, unsigned int type)
{
	switch (plt->machine) {
	case EM_X86_64:
		return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
	case EM_AARCH64:
		return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
	default:
		return type == R_RISCV_JUMP_SLOT || type == R_RISCV_64;
	}
}

static bool fills_slot_by_resolver(const struct plt *plt, unsigned int type)
{
	switch (plt->machine) {
	case EM_X86_64:
		return type == R_X86_64_IRELATIVE;
	case EM_AARCH64:
		return type == R_AARCH64_IRELATIVE;
	default:
		return type == R_RISCV_IRELATIVE;
	}
}

/* The .dynsym of these relocations, with strings in .dynstr; NULL in a static program. */
static Elf_Data *functions(struct plt *plt, const GElf_Shdr *shdr)
{
	Elf_Scn *dynsym = elf_getscn(plt->elf, shdr->sh_link);
	GElf_Shdr link;

	if (!dynsym || !gelf_getshdr(dynsym, &link) || link.sh_type != SHT_DYNSYM)
		return NULL;
	plt->strings = elf_getdata(elf_getscn(plt->elf, link.sh_link), NULL);
	return elf_getdata(dynsym, NULL);
}

/* Read the slots that the relocations of one section fill with functions. */
static int read_slots(struct plt *plt, Elf_Scn *scn, const GElf_Shdr *shdr)
{
	Elf_Data *data = elf_getdata(scn, NULL), *symbols = functions(plt, shdr);
	size_t size = gelf_fsize(plt->elf, ELF_T_RELA, 1, EV_CURRENT), i;
	GElf_Rela rela;
	GElf_Sym sym;
	int ret = 0;

	if (!data || !size)
		return 0;
	for (i = 0; i < data->d_size / size && i <= INT32_MAX && !ret; i++) {
		if (!gelf_getrela(data, i, &rela))
			continue;
		if (fills_slot_by_resolver(plt, GELF_R_TYPE(rela.r_info)))
			ret = add_slot(plt, (struct slot) {
				.address = rela.r_offset, .resolver = rela.r_addend });
		else if (symbols && fills_slot(plt, GELF_R_TYPE(rela.r_info)) &&
			 GELF_R_SYM(rela.r_info) <= INT32_MAX &&
			 gelf_getsym(symbols, GELF_R_SYM(rela.r_info), &sym))
			ret = add_slot(plt, (struct slot) {
				.address = rela.r_offset, .name = sym.st_name });
	}
	return ret;
}

static uint32_t load32(const uint8_t *at)
{
	return (uint32_t)at[3] << 24 | at[2] << 16 | at[1] << 8 | at[0];
}

/* "NAME@plt", or "*ABS*+0xRESOLVER@plt" as in objdump. Returns the length; 0 without a name. */
static size_t stub_name(const struct plt *plt, const struct slot *slot, char *name, size_t size)
{
	const char *text;
	size_t length;

	if (slot->resolver)
		return snprintf(name, size, "*ABS*+%#llx@plt", (unsigned long long)slot->resolver);
	if (!plt->strings || !plt->strings->d_buf || slot->name >= plt->strings->d_size)
		return 0;
	text = (const char *)plt->strings->d_buf + slot->name;
	length = strnlen(text, plt->strings->d_size - slot->name);
	if (!length || length + sizeof("@plt") > size)
		return 0;
	memcpy(name, text, length);
	memcpy(name + length, "@plt", 4);
	return length + 4;
}

static int add_stub(struct plt *plt, uint64_t address, uint64_t size, uint64_t slot)
{
	const struct slot key = { .address = slot };
	const struct slot *found = bsearch(&key, plt->slots, plt->nr, sizeof(key), compare_slots);
	char name[MAX_NAME];
	size_t length = found ? stub_name(plt, found, name, sizeof(name)) : 0;

	if (!length)
		return 0;
	return kb_symtab_add(plt->symtab, address, size, KB_SYMTAB_NO_LIMIT, name, length,
			     KB_RANK_LOCAL, 0);
}

/*
 * Whether the entry is a jump and a nop of two bytes. Static programs have these, in sections
 * without an entry size.
 */
static bool is_short(const GElf_Shdr *shdr, const uint8_t *code)
{
	return shdr->sh_entsize == 8 ||
		(code[0] == 0xff && code[1] == 0x25 && code[6] == 0x66 && code[7] == 0x90);
}

/* "jmp *slot(%rip)", maybe after endbr64 or bnd, in entries of 8 or 16 bytes. */
static int read_x86(struct plt *plt, const GElf_Shdr *shdr, const uint8_t *code, size_t size)
{
	size_t entry, at, i;
	int ret = 0;

	for (at = 0; at + 8 <= size && !ret; at += entry) {
		entry = is_short(shdr, code + at) ? 8 : 16;
		if (at + entry > size)
			break;
		for (i = at; i + 6 <= at + entry && (code[i] != 0xff || code[i + 1] != 0x25); i++)
			;
		if (i + 6 <= at + entry)
			ret = add_stub(plt, shdr->sh_addr + at, entry, shdr->sh_addr + i + 6 +
				       (uint64_t)(int64_t)(int32_t)load32(code + i + 2));
	}
	return ret;
}

/*
 * "adrp x16, page; ldr x17, [x16, #offset]", maybe after bti. A stub ends where the next one
 * begins.
 */
static int read_arm64(struct plt *plt, const GElf_Shdr *shdr, const uint8_t *code, size_t size)
{
	size_t start = 0, i;
	uint64_t slot = 0;
	int ret = 0;

	for (i = 0; i + 8 <= size && !ret; i += 4) {
		uint32_t adrp = load32(code + i), ldr = load32(code + i + 4);
		uint64_t pages = (adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
		size_t here = i >= 4 && load32(code + i - 4) == BTI_C ? i - 4 : i;

		if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		if (slot)
			ret = add_stub(plt, shdr->sh_addr + start, here - start, slot);
		start = here;
		pages = (pages ^ 0x100000) - 0x100000;	/* sign extension of 21 bits */
		slot = ((shdr->sh_addr + i) & ~(uint64_t)4095) + (pages << 12) +
			(ldr >> 10 & 0xfff) * 8;
	}
	if (slot && !ret)
		ret = add_stub(plt, shdr->sh_addr + start, size - start, slot);
	return ret;
}

/* "auipc t3, pages; ld t3, offset(t3)", and a jump. */
static int read_riscv(struct plt *plt, const GElf_Shdr *shdr, const uint8_t *code, size_t size)
{
	int ret = 0;

	for (size_t at = 0; at + RISCV_ENTRY <= size && !ret; at += RISCV_ENTRY) {
		uint32_t auipc = load32(code + at), ld = load32(code + at + 4);

		if ((auipc & 0xfff) == 0xe17 && (ld & 0xfffff) == 0xe3e03)
			ret = add_stub(plt, shdr->sh_addr + at, RISCV_ENTRY, shdr->sh_addr + at +
				       (uint64_t)(int64_t)(int32_t)(auipc & 0xfffff000) +
				       (uint64_t)(int64_t)((int32_t)ld >> 20));
	}
	return ret;
}

static int read_stubs(struct plt *plt, Elf_Scn *scn, const GElf_Shdr *shdr)
{
	Elf_Data *data = elf_getdata(scn, NULL);

	if (!data || !data->d_buf)
		return 0;
	switch (plt->machine) {
	case EM_X86_64:
		return read_x86(plt, shdr, data->d_buf, data->d_size);
	case EM_AARCH64:
		return read_arm64(plt, shdr, data->d_buf, data->d_size);
	default:
		return read_riscv(plt, shdr, data->d_buf, data->d_size);
	}
}

static int each_section(struct plt *plt, bool stubs)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names;
	int ret = 0;

	if (elf_getshdrstrndx(plt->elf, &names))
		return 0;
	while (!ret && (scn = elf_nextscn(plt->elf, scn))) {
		const char *name;

		if (!gelf_getshdr(scn, &shdr))
			continue;
		name = elf_strptr(plt->elf, names, shdr.sh_name);
		if (!stubs && shdr.sh_type == SHT_RELA)
			ret = read_slots(plt, scn, &shdr);
		else if (stubs && shdr.sh_type == SHT_PROGBITS && shdr.sh_flags & SHF_EXECINSTR &&
			 name && strncmp(name, ".plt", 4) == 0)
			ret = read_stubs(plt, scn, &shdr);
	}
	return ret;
}

int kb_plt_add(struct kb_symtab *symtab, Elf *elf)
{
	struct plt plt = { .symtab = symtab, .elf = elf };
	GElf_Ehdr header;
	int ret;

	if (!gelf_getehdr(elf, &header) || header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64 &&
	     header.e_machine != EM_RISCV))
		return 0;
	plt.machine = header.e_machine;
	ret = each_section(&plt, false);
	if (!ret && plt.nr) {
		qsort(plt.slots, plt.nr, sizeof(*plt.slots), compare_slots);
		ret = each_section(&plt, true);
	}
	free(plt.slots);
	return ret;
}
