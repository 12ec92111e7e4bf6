/* SPDX-License-Identifier: MIT */
/*
 * libdw, opened when lines are first needed, so a machine that only records does not need it.
 * Functions are called through the table, with the types of <elfutils/libdw.h>.
 */
#ifndef KB_LIB_SYM_LINES_LIBDW_H
#define KB_LIB_SYM_LINES_LIBDW_H

#if !__has_include(<elfutils/libdw.h>)
#error "elfutils/libdw.h is missing: run scripts/setup, or install libdw-dev (elfutils-devel)"
#endif
#include <elfutils/libdw.h>

#define KB_LIBDW_FUNCTIONS(F)						\
	F(dwarf_attr_integrate) F(dwarf_begin_elf) F(dwarf_child)	\
	F(dwarf_dieoffset) F(dwarf_diename) F(dwarf_end)		\
	F(dwarf_filesrc) F(dwarf_formstring) F(dwarf_formudata)		\
	F(dwarf_get_units) F(dwarf_getsrc_die) F(dwarf_getsrcfiles)	\
	F(dwarf_haspc) F(dwarf_lineno) F(dwarf_linesrc) F(dwarf_ranges)	\
	F(dwarf_siblingof) F(dwarf_tag)

struct kb_libdw {
#define KB_LIBDW_MEMBER(name)	__typeof__(&name) name;
	KB_LIBDW_FUNCTIONS(KB_LIBDW_MEMBER)
#undef KB_LIBDW_MEMBER
};

/* NULL: libdw is not installed. */
const struct kb_libdw *kb_libdw(void);

#endif
