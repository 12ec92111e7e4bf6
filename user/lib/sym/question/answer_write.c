// SPDX-License-Identifier: MIT
/* The other half is answer.c. Many symbols are sent with one system call. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/whole.h"
#include "sym/question/answer.h"

#define ROWS	1024U		/* symbols that are sent at once */
#define PIECE	(64U << 10)	/* bytes of names that are sent at once */

static uint64_t length_of_names(const struct kb_symtab *symtab)
{
	uint64_t length = 0;
	uint32_t i;

	for (i = 0; i < symtab->nr_symbols; i++)
		length += strlen(kb_symtab_name(symtab, &symtab->symbols[i])) + 1;
	return length;
}

static int put_head(int fd, int code, const struct kb_elf *found)
{
	struct kb_answer_head head = { .magic = KB_ANSWER_MAGIC, .code = code };

	if (!code) {
		head.flags = (found->has_symtab ? KB_ANSWER_SYMTAB : 0) |
			     (found->has_dwarf ? KB_ANSWER_DWARF : 0);
		head.nr_segments = found->nr_segments;
		head.nr_symbols = found->symbols.nr_symbols;
		head.nr_stubs = found->nr_stubs;
		head.debuglink_crc = found->debuglink_crc;
		head.build_id_length = found->build_id.length;
		head.nr_functions = found->functions.nr_symbols;
		head.names_length = length_of_names(&found->symbols);
		head.function_names_length = length_of_names(&found->functions);
		head.stext = found->stext;
		head.nr_codes = found->jit.nr_codes;
		head.nr_lines = found->jit.nr_lines;
		head.files_length = found->jit.files_length;
		head.jit_unwind_length = found->jit.unwind_length;
		head.jit_end = found->jit.end;
		head.unwind_size = found->unwind.header ? found->unwind.header->size : 0;
		memcpy(head.build_id, found->build_id.bytes, sizeof(head.build_id));
		memcpy(head.debuglink, found->debuglink, sizeof(head.debuglink));
	}
	return kb_write_whole(fd, &head, sizeof(head));
}

static int put_segments(int fd, const struct kb_elf *found)
{
	struct kb_answer_segment rows[KB_ELF_MAX_SEGMENTS];
	uint32_t i;

	for (i = 0; i < found->nr_segments; i++)
		rows[i] = (struct kb_answer_segment) {
			.offset = found->segments[i].offset,
			.vaddr = found->segments[i].vaddr,
			.size = found->segments[i].size,
			.executable = found->segments[i].executable,
		};
	return kb_write_whole(fd, rows, found->nr_segments * sizeof(*rows));
}

static int put_symbols(int fd, const struct kb_symtab *symtab)
{
	struct kb_answer_symbol rows[ROWS];
	uint32_t i, nr = 0;
	int ret = 0;

	for (i = 0; i < symtab->nr_symbols && !ret; i++) {
		const struct kb_symtab_symbol *symbol = &symtab->symbols[i];

		rows[nr++] = (struct kb_answer_symbol) {
			.start = symbol->start,
			.size = symbol->size,
			.name_length = strlen(kb_symtab_name(symtab, symbol)),
			.rank = symbol->rank,
			.open = symbol->open,
		};
		if (nr == ROWS || i + 1 == symtab->nr_symbols) {
			ret = kb_write_whole(fd, rows, nr * sizeof(*rows));
			nr = 0;
		}
	}
	return ret;
}

static int put_names(int fd, const struct kb_symtab *symtab)
{
	char *piece = malloc(PIECE);
	size_t used = 0;
	uint32_t i;
	int ret = piece ? 0 : -ENOMEM;

	for (i = 0; i < symtab->nr_symbols && !ret; i++) {
		const char *name = kb_symtab_name(symtab, &symtab->symbols[i]);
		size_t length = strlen(name) + 1;

		if (used + length > PIECE) {
			ret = kb_write_whole(fd, piece, used);
			used = 0;
		}
		if (!ret && length > PIECE) {
			ret = kb_write_whole(fd, name, length);
		} else {
			memcpy(piece + used, name, length);
			used += length;
		}
	}
	if (!ret)
		ret = kb_write_whole(fd, piece, used);
	free(piece);
	return ret;
}

static int put_table(int fd, const struct kb_symtab *symtab)
{
	int ret = put_symbols(fd, symtab);

	return ret ? ret : put_names(fd, symtab);
}

static int put_jit(int fd, const struct kb_jit *jit)
{
	int ret = kb_write_whole(fd, jit->codes, jit->nr_codes * sizeof(*jit->codes));

	ret = ret ?: kb_write_whole(fd, jit->lines, jit->nr_lines * sizeof(*jit->lines));
	ret = ret ?: kb_write_whole(fd, jit->files, jit->files_length);
	return ret ?: kb_write_whole(fd, jit->unwind, jit->unwind_length);
}

int kb_answer_write(int fd, int code, const struct kb_elf *found)
{
	int ret = put_head(fd, code, found);

	if (ret || code)
		return ret;
	ret = put_segments(fd, found);
	if (!ret)
		ret = put_table(fd, &found->symbols);
	if (!ret)
		ret = put_table(fd, &found->functions);
	if (!ret && found->unwind.header)
		ret = kb_write_whole(fd, found->unwind.header, found->unwind.header->size);
	return ret ? ret : put_jit(fd, &found->jit);
}
