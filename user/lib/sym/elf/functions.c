// SPDX-License-Identifier: MIT
/*
 * Sections come in the order of their addresses. One that does not is left out, so that time is
 * limited by the number of sections and functions.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sym/elf/functions.h"
#include "sym/elf/tables.h"

#ifndef DF_1_PIE	/* older <elf.h> */
#define DF_1_PIE	0x08000000
#endif

#define PADDING	16U	/* bytes between functions that are only there to align the next one */
#define START	64U	/* bytes of _start, if no table describes it; real ones have 30 to 60 */

struct finder {
	Elf *elf;
	struct kb_symtab *out;
	const struct kb_unwind_functions *functions;
	size_t next;		/* the first function that ends after the last section */
	uint64_t end;		/* of that section */
};

static int add(const struct finder *finder, uint64_t start, uint64_t end, const char *name)
{
	return kb_symtab_add(finder->out, start, end - start, KB_SYMTAB_NO_LIMIT, name,
			     strlen(name), *name ? KB_RANK_LOCAL : KB_RANK_NAMELESS, 0);
}

static int add_functions(const struct finder *finder)
{
	const struct kb_unwind_functions *functions = finder->functions;
	int ret = 0;

	for (size_t i = 0; i < functions->nr && !ret; i++)
		ret = add(finder, functions->rows[i].start, functions->rows[i].end, "");
	return ret;
}

/* Add what is between @start and @end, if it is more than padding. */
static int add_hole(const struct finder *finder, uint64_t start, uint64_t end)
{
	return start < end && end - start >= PADDING ? add(finder, start, end, "") : 0;
}

/* Add what no table describes between @start and @end. */
static int add_holes(struct finder *finder, uint64_t start, uint64_t end)
{
	const struct kb_unwind_functions *functions = finder->functions;
	int ret = 0;

	for (; finder->next < functions->nr && !ret; finder->next++) {
		const struct kb_unwind_function *function = &functions->rows[finder->next];

		if (function->start >= end)
			break;
		ret = add_hole(finder, start, function->start);
		if (function->end > start)
			start = function->end;
		if (start >= end)
			break;
	}
	return ret ? ret : add_hole(finder, start, end);
}

static int add_section(struct finder *finder, const GElf_Shdr *shdr, const char *name)
{
	uint64_t start = shdr->sh_addr, end = start + shdr->sh_size;

	if (!(shdr->sh_flags & SHF_EXECINSTR) || shdr->sh_type == SHT_NOBITS ||
	    start < finder->end || end <= start)
		return 0;
	finder->end = end;
	if (name && strcmp(name, ".init") == 0)
		return add(finder, start, end, "_init");
	if (name && strcmp(name, ".fini") == 0)
		return add(finder, start, end, "_fini");
	return add_holes(finder, start, end);
}

static int add_sections(struct finder *finder)
{
	Elf_Scn *scn = NULL;
	size_t names;
	int ret = 0;

	if (elf_getshdrstrndx(finder->elf, &names))
		return 0;
	while (!ret && (scn = elf_nextscn(finder->elf, scn))) {
		GElf_Shdr shdr;

		if (gelf_getshdr(scn, &shdr))
			ret = add_section(finder, &shdr,
					  elf_strptr(finder->elf, names, shdr.sh_name));
	}
	return ret;
}

/* What the dynamic section says of the kind of the file. */
struct dynamic {
	bool is_pie;
	bool needs;		/* libraries */
	const char *soname;	/* NULL: it has none */
};

static void read_dynamic(Elf *elf, struct dynamic *dynamic)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	GElf_Dyn dyn;

	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_DYNAMIC)
			continue;
		data = elf_getdata(scn, NULL);
		for (int i = 0; data && gelf_getdyn(data, i, &dyn) && dyn.d_tag != DT_NULL; i++) {
			dynamic->is_pie |= dyn.d_tag == DT_FLAGS_1 && dyn.d_un.d_val & DF_1_PIE;
			dynamic->needs |= dyn.d_tag == DT_NEEDED;
			if (dyn.d_tag == DT_SONAME)
				dynamic->soname = elf_strptr(elf, shdr.sh_link, dyn.d_un.d_val) ?: "";
		}
		return;
	}
}

static bool has_interpreter(Elf *elf)
{
	GElf_Phdr phdr;
	size_t nr;

	if (elf_getphdrnum(elf, &nr))
		return false;
	for (size_t i = 0; i < nr && i <= INT32_MAX; i++)
		if (gelf_getphdr(elf, i, &phdr) && phdr.p_type == PT_INTERP)
			return true;
	return false;
}

/*
 * Whether Linux or the loader jumps to the entry. A library may have an entry, too: for a greeting,
 * or because old linkers always set one.
 */
static bool is_begun(Elf *elf, const GElf_Ehdr *header)
{
	struct dynamic dynamic = { 0 };

	if (header->e_type == ET_EXEC)
		return true;
	read_dynamic(elf, &dynamic);
	if (!dynamic.soname)
		return dynamic.is_pie || has_interpreter(elf);
	/* the loader: ld-linux-x86-64.so.2, ld64.so.1, … */
	return dynamic.is_pie || (!strncmp(dynamic.soname, "ld", 2) && !dynamic.needs);
}

/* Add the function in which a program starts. It ends where a table says, or where one begins. */
static int add_start(const struct finder *finder)
{
	const struct kb_unwind_functions *functions = finder->functions;
	uint64_t start, end;
	GElf_Ehdr header;

	if (!gelf_getehdr(finder->elf, &header) || !header.e_entry ||
	    !is_begun(finder->elf, &header))
		return 0;
	start = header.e_machine == EM_ARM ? header.e_entry & ~UINT64_C(1) : header.e_entry;
	end = start > UINT64_MAX - START ? UINT64_MAX : start + START;
	for (size_t i = 0; i < functions->nr && functions->rows[i].start < end; i++) {
		const struct kb_unwind_function *function = &functions->rows[i];

		if (function->start > start)
			end = function->start;
		else if (function->end > start)
			end = function->end;
	}
	return start < end ? add(finder, start, end, "_start") : 0;
}

/* For files from which the headers of sections were removed. */
static int add_segments(struct finder *finder)
{
	size_t nr;
	int ret = 0;

	if (elf_getphdrnum(finder->elf, &nr))
		return 0;
	for (size_t i = 0; i < nr && i <= INT32_MAX && !ret; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(finder->elf, i, &phdr) || phdr.p_type != PT_LOAD ||
		    !(phdr.p_flags & PF_X) || phdr.p_vaddr < finder->end ||
		    phdr.p_filesz > UINT64_MAX - phdr.p_vaddr)
			continue;
		finder->end = phdr.p_vaddr + phdr.p_filesz;
		ret = add_holes(finder, phdr.p_vaddr, finder->end);
	}
	return ret;
}

static int add_all(struct finder *finder)
{
	int ret = add_functions(finder);

	if (!ret)
		ret = add_sections(finder);
	if (!ret && !finder->end)
		ret = add_segments(finder);
	return ret ? ret : add_start(finder);
}

int kb_elf_functions_add(struct kb_symtab *functions, Elf *elf)
{
	struct kb_unwind_functions *found = calloc(1, sizeof(*found));
	struct finder finder = { .elf = elf, .out = functions, .functions = found };
	struct kb_elf_tables tables = { 0 };
	int ret = found ? 0 : -ENOMEM;

	if (!ret && !kb_elf_tables_take(&tables, elf, NULL)) {
		ret = kb_unwind_functions_find(found, &tables.sections, NULL);
		if (ret != -ENOMEM)	/* without tables all of a section is one function */
			ret = add_all(&finder);
		kb_unwind_functions_free(found);
	}
	free(found);
	return ret;
}
