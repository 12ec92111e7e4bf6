/* SPDX-License-Identifier: MIT */
/* Unwind rows and segments of the file of a mapping. */
#ifndef KB_LIB_SYM_UNWIND_FILE_H
#define KB_LIB_SYM_UNWIND_FILE_H

#include "sym/tables/elf_data.h"
#include "sym/unwind/place.h"

struct kb_unwind_file {
	struct kb_unwind_rows rows;	/* of any machine: the file says which one */
	struct kb_elf_segment *segments;
	uint32_t nr_segments;
};

/*
 * Read the file of @place, which may be hostile (question.h). It may take as long as a large file
 * needs to be read. A file that is damaged has the rows that could be read. Returns 0; what
 * kb_unwind_place_open() or kb_elf_unwind_fd() return; or an error of a decoder. Then @file is
 * empty, and @err has a sentence that names the file.
 */
int kb_unwind_file_load(struct kb_unwind_file *file, const struct kb_unwind_place *place,
			struct kb_error *err);
void kb_unwind_file_release(struct kb_unwind_file *file);

#endif
