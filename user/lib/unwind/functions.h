/* SPDX-License-Identifier: MIT */
/*
 * The functions that the unwind tables of a file describe. The tables may be hostile: memory and
 * time are limited by their size.
 */
#ifndef KB_LIB_UNWIND_FUNCTIONS_H
#define KB_LIB_UNWIND_FUNCTIONS_H

#include <kbarman/error.h>

#include "unwind/cies.h"
#include "unwind/exidx.h"

#define KB_UNWIND_FRAMES	3U	/* .eh_frame, .debug_frame, and that of another file */
#define KB_UNWIND_INITS		2U

struct kb_unwind_sections {
	uint16_t elf;		/* e_machine */
	uint8_t word;		/* bytes of an address */
	bool big_endian;
	uint64_t low, high;	/* the code of the file; functions elsewhere are left out */

	/* A function that several of these describe is that of the first one. */
	struct {
		struct kb_unwind_section section;
		bool debug;	/* .debug_frame */
	} frames[KB_UNWIND_FRAMES];
	struct kb_unwind_section exidx, extab;	/* 32-bit Arm; comes last */
	struct kb_unwind_section vdso;	/* the code of a vdso; other files don't have any */
	struct kb_unwind_section init[KB_UNWIND_INITS];	/* the code of .init and .fini */
	struct kb_unwind_section go;	/* .gopclntab */
};

/* Which table describes a function: a number of frames[], or one of these. */
enum kb_unwind_source {
	KB_UNWIND_EXIDX = KB_UNWIND_FRAMES,
	KB_UNWIND_HANDLERS_END,		/* where signal handlers return to */
	KB_UNWIND_INIT,			/* no table: it is known by its instructions */
	KB_UNWIND_START,		/* it has no caller */
};

struct kb_unwind_function {
	uint64_t start, end;
	uint8_t source;
	size_t at;		/* of its entry, in the section; number of an init[] */
};

struct kb_unwind_functions {
	const struct kb_unwind_sections *sections;
	const struct kb_unwind_machine *machine;
	bool swap;
	struct kb_unwind_function *rows;	/* sorted by start; none overlaps the next one */
	size_t nr, max;
	struct kb_cies cies;
	struct kb_error *err;
	int damage;		/* -EBADMSG: something could not be read; err says what first */
};

/*
 * Find the functions of @sections, which have to stay. Returns 0, also if a section is damaged;
 * -ENOTSUP: of another machine; -EFBIG: the code is larger than 4 GiB; -ENOMEM. Call
 * kb_unwind_functions_free() in any case.
 */
int kb_unwind_functions_find(struct kb_unwind_functions *functions,
			     const struct kb_unwind_sections *sections, struct kb_error *err);
void kb_unwind_functions_free(struct kb_unwind_functions *functions);

/* The section @source, one of frames[]; .ARM.exidx. */
struct kb_frames kb_unwind_frames_of(const struct kb_unwind_functions *functions,
				     unsigned int source);
struct kb_exidx kb_unwind_exidx_of(const struct kb_unwind_functions *functions);

/* The entry at @offset of a section can't be read. */
void kb_unwind_functions_damaged(struct kb_unwind_functions *functions, size_t offset,
				 const char *what);

#endif
