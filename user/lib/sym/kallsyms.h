/* SPDX-License-Identifier: MIT */
/*
 * The kernel's symbols, from text in the format of /proc/kallsyms: lines of
 * "ADDRESS TYPE NAME" and, for what is not of the kernel itself, "\t[MODULE]".
 * The text may be compressed with gzip.
 */
#ifndef KBARMAN_SYM_KALLSYMS_H
#define KBARMAN_SYM_KALLSYMS_H

#include <stddef.h>
#include <stdint.h>

#include <kbarman/error.h>

#include "sym/symtab.h"

#define KB_KERNEL_IMAGE	"[kernel.kallsyms]"

struct kb_kallsyms {
	struct kb_symtab symbols;	/* by address; sorted; group = index into images */
	char **images;			/* KB_KERNEL_IMAGE and "[MODULE]"s */
	uint32_t nr_images, max_images;
	uint64_t lowest;		/* address of code */
	uint64_t stext;			/* where _stext is; 0: it does not say */
};

/*
 * Read @path. -EACCES: the addresses are hidden (all zero); -ENODATA: it is not in
 * the format; errors of open(2) and memory as they are.
 */
int kb_kallsyms_load(struct kb_kallsyms *kallsyms, const char *path, struct kb_error *err);

/* The same for @size bytes at @text; @path is what messages call it. */
int kb_kallsyms_parse(struct kb_kallsyms *kallsyms, const char *text, size_t size,
		      const char *path, struct kb_error *err);

void kb_kallsyms_release(struct kb_kallsyms *kallsyms);

#endif
