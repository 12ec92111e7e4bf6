// SPDX-License-Identifier: MIT
/*
 * The places where gdb looks as well, in its order. A file that is not the right
 * one, as its build-id or checksum tells, is passed over.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sym/debugfile.h"

#define DEBUG_ROOT	"/usr/lib/debug"

static bool __attribute__((format(printf, 2, 3))) try(struct kb_elf *elf, const char *format, ...)
{
	va_list args;
	char *path;
	int ret;

	va_start(args, format);
	ret = vasprintf(&path, format, args);
	va_end(args);
	if (ret < 0)
		return false;
	ret = kb_elf_add_debug(elf, path);
	free(path);
	return ret == 0;
}

static bool try_build_id(struct kb_elf *elf, const char *symfs)
{
	char hex[2 * KB_BUILD_ID_MAX + 1];
	uint32_t i;

	if (elf->build_id.length < 2)
		return false;
	for (i = 0; i < elf->build_id.length; i++)
		snprintf(hex + 2 * i, 3, "%02x", elf->build_id.bytes[i]);
	return try(elf, "%s" DEBUG_ROOT "/.build-id/%.2s/%s.debug", symfs, hex, hex + 2);
}

static bool try_debuglink(struct kb_elf *elf, const char *symfs, const char *path)
{
	const char *slash = strrchr(path, '/'), *link = elf->debuglink;
	int length = slash ? slash - path : 0;

	if (!link[0])
		return false;
	return try(elf, "%s%.*s/%s", symfs, length, path, link) ||
	       try(elf, "%s%.*s/.debug/%s", symfs, length, path, link) ||
	       try(elf, "%s" DEBUG_ROOT "%.*s/%s", symfs, length, path, link);
}

bool kb_debugfile_add(struct kb_elf *elf, const char *symfs, const char *path)
{
	return try_build_id(elf, symfs) || try_debuglink(elf, symfs, path);
}
