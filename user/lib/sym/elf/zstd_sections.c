// SPDX-License-Identifier: MIT
/*
 * libelf has two copies of what it knows of a section's bytes: as they are, and in the machine's
 * order. Both get the decompressed bytes, and the header says that nothing is compressed.
 */
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>

#include "base/array.h"
#include "format/zstd.h"
#include "sym/elf/zstd_sections.h"

#define MAX_UNPACKED	(4ULL << 30)	/* of a file */
#define MAX_RATIO	256U		/* of a section; real ones are less than ten times as long */
#define PADDING		4096		/* zeros after a section: readers look for ends of strings */

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD	2
#endif

static void *unpack(struct kb_zstd_sections *sections, const struct kb_zstd *zstd,
		    const Elf_Data *packed, size_t header, uint64_t size, int *ret)
{
	void *block;

	*ret = -EBADMSG;
	if (size / MAX_RATIO > packed->d_size)
		return NULL;
	*ret = -EFBIG;
	if (size > MAX_UNPACKED || sections->size + size > MAX_UNPACKED)
		return NULL;
	*ret = -ENOMEM;
	if (!KB_ARRAY_ROOM(sections->blocks, sections->max, sections->nr + 1))
		return NULL;
	block = calloc(1, size + PADDING);
	if (!block)
		return NULL;
	sections->blocks[sections->nr++] = block;
	sections->size += size;
	*ret = zstd->decompress(block, size, (const char *)packed->d_buf + header,
				packed->d_size - header) == size ? 0 : -EBADMSG;
	return block;
}

int kb_zstd_section_unpack(struct kb_zstd_sections *sections, Elf *elf, Elf_Scn *scn, GElf_Shdr *shdr)
{
	size_t header = gelf_fsize(elf, ELF_T_CHDR, 1, EV_CURRENT);
	Elf_Data *raw = elf_rawdata(scn, NULL), *data = elf_getdata(scn, NULL);
	const struct kb_zstd *zstd;
	GElf_Chdr chdr;
	void *block;
	int ret;

	if (!gelf_getchdr(scn, &chdr) || chdr.ch_type != ELFCOMPRESS_ZSTD)
		return 0;
	if (!raw || !data || !raw->d_buf || raw->d_size < header)
		return -EBADMSG;
	zstd = kb_zstd();
	if (!zstd)
		return -ENOPKG;
	block = unpack(sections, zstd, raw, header, chdr.ch_size, &ret);
	if (ret)
		return ret;
	shdr->sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
	shdr->sh_size = chdr.ch_size;
	shdr->sh_addralign = chdr.ch_addralign;
	if (!gelf_update_shdr(scn, shdr))
		return -EBADMSG;
	raw->d_buf = data->d_buf = block;
	raw->d_size = data->d_size = chdr.ch_size;
	raw->d_type = data->d_type = ELF_T_BYTE;
	return 0;
}

int kb_zstd_sections_unpack(struct kb_zstd_sections *sections, Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	int ret = 0;

	while (!ret && (scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &shdr) && shdr.sh_type != SHT_NOBITS &&
		    shdr.sh_flags & SHF_COMPRESSED)
			ret = kb_zstd_section_unpack(sections, elf, scn, &shdr);
	return ret;
}

void kb_zstd_sections_release(struct kb_zstd_sections *sections)
{
	for (size_t i = 0; i < sections->nr; i++)
		free(sections->blocks[i]);
	free(sections->blocks);
	*sections = (struct kb_zstd_sections) { 0 };
}
