/* SPDX-License-Identifier: MIT */
/*
 * The kernel's symbols, from text in the format of /proc/kallsyms: lines of "ADDRESS TYPE NAME"
 * and, in modules, "\t[MODULE]". The text may be compressed with gzip.
 */
#ifndef KB_LIB_SYM_TABLES_KALLSYMS_H
#define KB_LIB_SYM_TABLES_KALLSYMS_H

#include <stddef.h>
#include <stdint.h>

#include <kbarman/barman.h>
#include <kbarman/error.h>

#include "sym/tables/symtab.h"

#define KB_KERNEL_IMAGE	"[kernel.kallsyms]"

struct kb_kallsyms {
	struct kb_symtab symbols;	/* by address; sorted; group = index into images */
	char **images;			/* KB_KERNEL_IMAGE and "[MODULE]"s */
	uint32_t nr_images, max_images;
	uint64_t lowest;		/* address of code */
	uint64_t stext;			/* address of _stext; 0: not in the text */
};

/*
 * Read @path. A module's code ends where the row of @header that has it ends, or, in
 * /proc/kallsyms, the module itself. Where neither is known (@header may be NULL), its last function
 * ends with its page. -EACCES: the addresses are hidden (all zero); -ENODATA: not in this format; other
 * errors are those of open(2) and of memory.
 */
int kb_kallsyms_load(struct kb_kallsyms *kallsyms, const struct kb_header *header,
		     const char *path, struct kb_error *err);

/* The same for @size bytes at @text; @path is its name in messages. */
int kb_kallsyms_parse(struct kb_kallsyms *kallsyms, const struct kb_header *header,
		      const char *text, size_t size, const char *path, struct kb_error *err);

void kb_kallsyms_release(struct kb_kallsyms *kallsyms);

#endif
