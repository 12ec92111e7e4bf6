/* SPDX-License-Identifier: MIT */
/*
 * sym/jit/: code that programs made while they ran: perf maps and jitdumps, whose processes they
 * are, and what their times mean in a capture.
 *
 * The dump that a JIT compiler writes as jit-PID.dump, in the format of perf's
 * jitdump-specification.txt: a header, and records of code that was made, moved and described. The
 * header's magic number says the byte order. The file may be hostile, and its process may still
 * write it: what is whole is read up to the first record that is not.
 */
#ifndef KB_LIB_SYM_JIT_JITDUMP_H
#define KB_LIB_SYM_JIT_JITDUMP_H

#include "sym/tables/jit.h"

/*
 * Add the code of the dump that is open as @fd to @jit, and a symbol for each code to @symbols.
 * Both are empty before. Returns 0; -ENOEXEC: it is no jitdump; -EFBIG: it has too much code; -EIO
 * or -ENOMEM. After an error they have what was read, and the caller releases them.
 */
int kb_jitdump_read_fd(struct kb_jit *jit, struct kb_symtab *symbols, int fd);

/*
 * Read the dump from the offset @from on (0: its beginning; else that of jit->end after the last
 * call), with unwind rows and without names and lines. Records that are not whole yet are left for
 * the next call.
 */
int kb_jitdump_unwind_fd(struct kb_jit *jit, struct kb_symtab *symbols, int fd, uint64_t from);

/* The same as kb_jitdump_read_fd() for @size bytes. */
int kb_jitdump_parse(struct kb_jit *jit, struct kb_symtab *symbols, const void *data, size_t size);

#endif
