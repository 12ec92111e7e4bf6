/* SPDX-License-Identifier: MIT */
/*
 * File, line and inlined functions of an address, from the DWARF of one file. The file
 * may be hostile: what is out of order is left out, work for an address is bounded.
 */
#ifndef KBARMAN_SYM_LINES_H
#define KBARMAN_SYM_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/error.h>

#define KB_LINES_DEPTH	64	/* inlined functions inside each other; inner ones beyond
				 * are left out */

struct kb_lines;

struct kb_lines_frame {
	const char *function;	/* as the linker would call it, else as the source does;
				 * NULL: the function that is there, not an inlined one */
	const char *file;	/* "" where unknown */
	uint32_t line;		/* 0 where unknown */
};

/*
 * Read the DWARF of @path. -ENOSYS: libdw is not on this machine; -ENODATA: the file has
 * no DWARF, or none that can be read; errors of open(2) and memory as they are.
 */
int kb_lines_open(struct kb_lines **out, const char *path, struct kb_error *err);
void kb_lines_close(struct kb_lines *lines);

/*
 * What is at @address of the file, innermost first, and how many frames it is: at least
 * one; just one if @inlined is false. Strings live as long as @lines.
 */
uint32_t kb_lines_find(struct kb_lines *lines, uint64_t address, bool inlined,
		       struct kb_lines_frame frames[KB_LINES_DEPTH + 1]);

#endif
