/* SPDX-License-Identifier: MIT */
/*
 * What a decoder found in a file, as bytes. The decoder writes it to a pipe, and the process
 * that reads it does not trust the decoder. Both are the same program, so numbers have this
 * machine's form.
 *
 *	struct kb_answer_head
 *	struct kb_answer_segment[nr_segments]
 *	struct kb_answer_symbol[nr_symbols]
 *	the names of the symbols, in their order, each with a zero after it
 *	struct kb_answer_symbol[nr_functions], which may have empty names
 *	the names of the functions, in the same way
 *	the block of unwind rows (unwind/rows.h)
 *	struct kb_jit_code[nr_codes], one for each symbol of a jitdump
 *	struct kb_jit_line[nr_lines]
 *	the names of the lines' files
 *	blocks of unwind rows of the code
 */
#ifndef KB_LIB_SYM_QUESTION_ANSWER_H
#define KB_LIB_SYM_QUESTION_ANSWER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sym/tables/elf_data.h"

#define KB_ANSWER_MAGIC	0x6b62616eU

enum {
	KB_ANSWER_SYMTAB	= 1,		/* kb_elf.has_symtab */
	KB_ANSWER_DWARF		= 2,		/* kb_elf.has_dwarf */
};

struct kb_answer_head {
	uint32_t magic;
	int32_t code;		/* negative errno: nothing follows, and all other fields are 0 */
	uint32_t flags;
	uint32_t nr_segments, nr_symbols, nr_stubs;
	uint32_t debuglink_crc;
	uint32_t build_id_length;
	uint32_t nr_functions;
	uint32_t nr_codes;	/* of a jitdump: nr_symbols; else 0 */
	uint64_t names_length, function_names_length;
	uint64_t stext;
	uint64_t unwind_size;	/* 0: no rows */
	uint64_t nr_lines, files_length, jit_unwind_length, jit_end;
	uint8_t build_id[KB_BUILD_ID_MAX];
	char debuglink[256];
};

struct kb_answer_segment {
	uint64_t offset, vaddr, size;
	uint64_t executable;
};

struct kb_answer_symbol {
	uint64_t start, size;	/* size of an open symbol: its limit */
	uint32_t name_length;	/* without the zero */
	uint16_t rank;
	uint16_t open;
};

/* Write what was found, or @code. Returns 0 or a negative errno of write(2). */
int kb_answer_write(int fd, int code, const struct kb_elf *found);

/*
 * Reads the next bytes of an answer, up to @size, to @to. Returns their number; 0 at the end;
 * or a negative errno.
 */
typedef ssize_t (*kb_answer_bytes)(void *context, void *to, size_t size);

/*
 * Read an answer to its end. Returns 0; the error in the answer (-ENOEXEC, -EBADMSG, -EFBIG,
 * -ENOMEM, -ENOTSUP, -ESTALE, -EIO); -EPROTO if kb_answer_write() can't have written it; or the
 * error of @bytes. After an error @found is empty. Its symbols are not sorted. Memory and time are
 * limited by what was read, and time also by @bytes.
 */
int kb_answer_read(struct kb_elf *found, kb_answer_bytes bytes, void *context);

#endif
