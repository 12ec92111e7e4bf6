/* SPDX-License-Identifier: MIT */
/* Finds and reads the jitdump of a process, which the process mapped to tell of it. */
#ifndef KB_LIB_SYM_JIT_JITDUMP_FILE_H
#define KB_LIB_SYM_JIT_JITDUMP_FILE_H

#include <stdbool.h>

#include <kbarman/barman.h>
#include <kbarman/error.h>

#include "sym/tables/elf_data.h"

/* Whether the path of a mapping is that of a jitdump: "/directory/jit-PID.dump". */
bool kb_is_jitdump(const char *path);

/*
 * Open the dump that @row maps, as kb_jitdump_file_read() does. Returns a descriptor or a negative
 * errno.
 */
int kb_jitdump_open(const char *symfs, const struct kb_map *row);

/*
 * Read the dump that @row maps, below @symfs ("": on this machine, where it must be the file that
 * was mapped), and make its code searchable. Returns 0; -ENOENT: it is not there; -ESTALE: another file
 * is there; or a negative errno of kb_jitdump_read_fd(). @elf is empty before, and after an error.
 */
int kb_jitdump_file_read(struct kb_elf *elf, const char *symfs, const struct kb_map *row,
			 struct kb_error *err);

#endif
