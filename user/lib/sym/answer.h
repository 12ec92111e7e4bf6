/* SPDX-License-Identifier: MIT */
/*
 * What a decoder found in a file, as bytes: how it is told through a pipe to a process that does
 * not trust the decoder. Both are the same program: numbers are as the machine has them.
 *
 *	struct kb_answer_head
 *	struct kb_answer_segment[nr_segments]
 *	struct kb_answer_symbol[nr_symbols]
 *	the names of the symbols, in their order, each with a zero behind it
 */
#ifndef KBARMAN_SYM_ANSWER_H
#define KBARMAN_SYM_ANSWER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sym/elf.h"

#define KB_ANSWER_MAGIC	0x6b62616eU

enum {
	KB_ANSWER_SYMTAB	= 1,		/* kb_elf.has_symtab */
	KB_ANSWER_DWARF		= 2,		/* kb_elf.has_dwarf */
};

struct kb_answer_head {
	uint32_t magic;
	int32_t code;		/* negative errno: nothing follows, and all else is 0 */
	uint32_t flags;
	uint32_t nr_segments, nr_symbols, nr_stubs;
	uint32_t debuglink_crc;
	uint32_t build_id_length;
	uint64_t names_length;
	uint64_t stext;
	uint8_t build_id[KB_BUILD_ID_MAX];
	char debuglink[256];
};

struct kb_answer_segment {
	uint64_t offset, vaddr, size;
	uint64_t executable;
};

struct kb_answer_symbol {
	uint64_t start, size;	/* of an open one: its limit */
	uint32_t name_length;	/* without the zero */
	uint16_t rank;
	uint16_t open;
};

/* Write what was found, or @code. 0 or a negative errno of write(2). */
int kb_answer_write(int fd, int code, const struct kb_elf *found);

/*
 * The next bytes of an answer: up to @size of them to @to. How many; 0: it ends; or a negative
 * errno.
 */
typedef ssize_t (*kb_answer_bytes)(void *context, void *to, size_t size);

/*
 * Read an answer up to its end. 0; what it says went wrong (-ENOEXEC, -EBADMSG, -EFBIG,
 * -ENOMEM, -ESTALE, -EIO); -EPROTO if it is not what kb_answer_write() could have written; or
 * what @bytes said. @found is empty then. Its symbols are not sorted. Memory is bounded by
 * what was read, time by that and by @bytes.
 */
int kb_answer_read(struct kb_elf *found, kb_answer_bytes bytes, void *context);

#endif
