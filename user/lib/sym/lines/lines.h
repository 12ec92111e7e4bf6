/* SPDX-License-Identifier: MIT */
/*
 * sym/lines/: source lines and inlined functions of an address, by DWARF, of which libdw reads the
 * parts.
 *
 * File, line and inlined functions of an address, from the DWARF of one file. The file may be
 * hostile: invalid parts are left out, and the work for an address is limited.
 */
#ifndef KB_LIB_SYM_LINES_LINES_H
#define KB_LIB_SYM_LINES_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/error.h>

#define KB_LINES_DEPTH	64	/* nested inlined functions; further inner ones are left out */

struct kb_lines;

struct kb_lines_frame {
	const char *function;	/* linkage name, else name in the source; NULL: the function
				 * itself, not an inlined one */
	const char *file;	/* "" where unknown */
	uint32_t line;		/* 0 where unknown */
};

/*
 * Read the DWARF of @path. -ENOSYS: libdw is not installed; -ENODATA: the file has no DWARF, or
 * none that can be read; other errors are those of open(2) and of memory.
 */
int kb_lines_open(struct kb_lines **out, const char *path, struct kb_error *err);
void kb_lines_close(struct kb_lines *lines);

/*
 * Find the frames at @address of the file, innermost first. Returns their number, at least 1,
 * and exactly 1 if @inlined is false. Strings live as long as @lines.
 */
uint32_t kb_lines_find(struct kb_lines *lines, uint64_t address, bool inlined,
		       struct kb_lines_frame frames[KB_LINES_DEPTH + 1]);

#endif
