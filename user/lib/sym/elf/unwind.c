// SPDX-License-Identifier: MIT
/* The tables of a file are compiled while the file is open. */
#include <errno.h>
#include <stdlib.h>

#include "sym/elf/elf.h"
#include "sym/elf/minidebug.h"
#include "sym/elf/tables.h"
#include "sym/elf/unwind.h"
#include "sym/elf/zstd_sections.h"
#include "unwind/compile.h"

static Elf *open_minidebug(const struct kb_elf_tables *tables, uint8_t **image)
{
	Elf_Data *data = tables->minidebug ? elf_rawdata(tables->minidebug, NULL) : NULL;
	size_t size;

	if (!data || !data->d_buf || kb_minidebug_unpack(data->d_buf, data->d_size, image, &size))
		return NULL;
	return elf_memory((char *)*image, size);
}

static int compile(struct kb_unwind_rows *rows, struct kb_elf_tables *tables, Elf *elf, Elf *debug,
		   struct kb_error *err)
{
	int ret = kb_elf_tables_take(tables, elf, err);
	Elf *minidebug = NULL;
	uint8_t *image = NULL;

	if (ret)
		return ret;
	if (debug)
		kb_elf_tables_add(tables, debug);
	else if ((minidebug = open_minidebug(tables, &image)))
		kb_elf_tables_add(tables, minidebug);
	ret = kb_unwind_compile(rows, &tables->sections, err);
	elf_end(minidebug);
	free(image);
	return ret;
}

int kb_elf_unwind_fd(struct kb_unwind_rows *rows, int fd, int debug_fd, const char *path,
		     struct kb_error *err)
{
	struct kb_error inner = { 0 };
	struct kb_elf_tables tables = { 0 };
	Elf *elf, *debug;
	int ret;

	*rows = (struct kb_unwind_rows) { 0 };
	if (elf_version(EV_CURRENT) == EV_NONE)
		return kb_error_set(err, -ENOTSUP, KB_NO_OFFSET, "libelf is too old");
	elf = elf_begin(fd, ELF_C_READ, NULL);
	debug = debug_fd >= 0 ? elf_begin(debug_fd, ELF_C_READ, NULL) : NULL;
	ret = compile(rows, &tables, elf, debug, &inner);
	elf_end(debug);
	elf_end(elf);
	kb_zstd_sections_release(&tables.unpacked);
	if (ret)
		kb_error_set(err, ret, inner.offset, "%s: %s", path, kb_error_text(&inner));
	return ret;
}

int kb_elf_unwind_read_fd(struct kb_elf *elf, int fd, const char *path, struct kb_error *err)
{
	int ret = kb_elf_identify_fd(elf, fd, path, err);

	if (ret)
		return ret;
	ret = kb_elf_unwind_fd(&elf->unwind, fd, -1, path, err);
	if (ret == -EBADMSG && elf->unwind.header)
		ret = 0;
	if (!ret && elf->unwind.header->size > KB_UNWIND_SIZE_MAX)
		ret = kb_error_set(err, -EFBIG, KB_NO_OFFSET, "%s has too much code", path);
	if (ret)
		kb_elf_release(elf);
	return ret;
}

int kb_elf_unwind_memory(struct kb_unwind_rows *rows, const void *data, size_t size,
			 struct kb_error *err)
{
	struct kb_elf_tables tables = { .is_vdso = true };
	Elf *elf;
	int ret;

	*rows = (struct kb_unwind_rows) { 0 };
	if (elf_version(EV_CURRENT) == EV_NONE)
		return kb_error_set(err, -ENOTSUP, KB_NO_OFFSET, "libelf is too old");
	elf = elf_memory((char *)data, size);	/* it only reads */
	ret = compile(rows, &tables, elf, NULL, err);
	elf_end(elf);
	kb_zstd_sections_release(&tables.unpacked);
	return ret;
}
