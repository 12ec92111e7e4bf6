// SPDX-License-Identifier: MIT
/*
 * Debug files are searched in the places where gdb searches them, and in its order. A file with
 * another build-id or checksum is skipped.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sym/elf/elf.h"
#include "sym/image/debugfile.h"
#include "sym/image/debuginfod.h"

#define DEBUG_ROOT	"/usr/lib/debug"

/* The search: it ends with the first file that @fits. */
struct search {
	const struct kb_elf *elf;
	bool (*fits)(struct search *search, const char *path);
	struct kb_elf *out;	/* fits_symbols(): target of the symbols */
	char *found;
};

/* Try @path. It may be NULL; it is freed, or kept as the result. */
static bool try_path(struct search *search, char *path)
{
	if (path && search->fits(search, path)) {
		search->found = path;
		return true;
	}
	free(path);
	return false;
}

static bool __attribute__((format(printf, 2, 3))) try(struct search *search, const char *format,
						      ...)
{
	va_list args;
	char *path;
	int ret;

	va_start(args, format);
	ret = vasprintf(&path, format, args);
	va_end(args);
	return try_path(search, ret < 0 ? NULL : path);
}

static bool try_build_id(struct search *search, const char *symfs)
{
	const struct kb_build_id *id = &search->elf->build_id;
	char hex[KB_BUILD_ID_TEXT];

	if (id->length < 2)
		return false;
	kb_build_id_text(hex, id);
	return try(search, "%s" DEBUG_ROOT "/.build-id/%.2s/%s.debug", symfs, hex, hex + 2);
}

static bool try_debuglink(struct search *search, const char *symfs, const char *path)
{
	const char *slash = strrchr(path, '/'), *link = search->elf->debuglink;
	int length = slash ? slash - path : 0;

	if (!link[0])
		return false;
	return try(search, "%s%.*s/%s", symfs, length, path, link) ||
	       try(search, "%s%.*s/.debug/%s", symfs, length, path, link) ||
	       try(search, "%s" DEBUG_ROOT "%.*s/%s", symfs, length, path, link);
}

static bool find(struct search *search, const char *symfs, const char *path)
{
	return try_build_id(search, symfs) || try_debuglink(search, symfs, path) ||
	       try_path(search, kb_debuginfod_find(&search->elf->build_id));
}

static bool fits_symbols(struct search *search, const char *path)
{
	return kb_elf_add_debug(search->out, path) == 0;
}

bool kb_debugfile_add(struct kb_elf *elf, const char *symfs, const char *path)
{
	struct search search = { .elf = elf, .fits = fits_symbols, .out = elf };
	bool found = find(&search, symfs, path);

	free(search.found);
	return found;
}

static bool fits_dwarf(struct search *search, const char *path)
{
	return kb_elf_check_dwarf(search->elf, path) == 0;
}

char *kb_debugfile_dwarf(const struct kb_elf *elf, const char *symfs, const char *path)
{
	struct search search = { .elf = elf, .fits = fits_dwarf };

	return find(&search, symfs, path) ? search.found : NULL;
}
