// SPDX-License-Identifier: MIT
/*
 * Reads answers; answer_write.c writes them. The reader trusts nothing: each number is checked
 * before its use, memory is allocated only for bytes that were received, and no number is an
 * address or an index into the reader's memory. Names have the order of their symbols and do not
 * share bytes, so they take no more memory than was sent.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sym/question/answer.h"

#define ROWS	1024U		/* symbols that are read at once */
#define PIECE	(64U << 10)	/* the first bytes that are read at once */

struct reader {
	kb_answer_bytes bytes;
	void *context;
	struct kb_elf *found;
	struct kb_answer_head head;
};

/* A table that is read, and what the head says of it. */
struct table {
	struct kb_symtab *symtab;
	uint32_t nr;
	uint64_t names_length;
	bool nameless;		/* names may be empty */
};

static int take(struct reader *reader, void *to, size_t size)
{
	char *at = to;

	while (size) {
		ssize_t nr = reader->bytes(reader->context, at, size);

		if (nr < 0)
			return nr;
		if (!nr || (size_t)nr > size)
			return -EPROTO;
		at += nr;
		size -= nr;
	}
	return 0;
}

static int take_end(struct reader *reader)
{
	char byte;
	ssize_t nr = reader->bytes(reader->context, &byte, 1);

	return nr < 0 ? nr : nr ? -EPROTO : 0;
}

static bool is_code(int code)
{
	switch (code) {
	case 0:
	case -EBADMSG:
	case -EFBIG:
	case -EIO:
	case -ENOEXEC:
	case -ENOMEM:
	case -ENOTSUP:
	case -ESTALE:
		return true;
	}
	return false;
}

/* Whether @name is the name of a file without a directory. */
static bool is_debuglink(const char *name, size_t size)
{
	return memchr(name, '\0', size) && !strchr(name, '/');
}

static int take_head(struct reader *reader)
{
	struct kb_answer_head *head = &reader->head;
	struct kb_elf *found = reader->found;
	int ret = take(reader, head, sizeof(*head));

	if (ret)
		return ret;
	if (head->magic != KB_ANSWER_MAGIC || !is_code(head->code) ||
	    head->flags & ~(KB_ANSWER_SYMTAB | KB_ANSWER_DWARF) ||
	    head->nr_segments > KB_ELF_MAX_SEGMENTS || head->nr_symbols > KB_SYMTAB_MAX ||
	    head->nr_stubs > head->nr_symbols || head->build_id_length > KB_BUILD_ID_MAX ||
	    head->names_length >= UINT32_MAX || head->function_names_length >= UINT32_MAX ||
	    head->nr_functions > KB_SYMTAB_MAX || head->nr_codes > KB_JIT_MAX_CODES ||
	    (head->nr_codes && head->nr_codes != head->nr_symbols) ||
	    head->nr_lines > KB_JIT_MAX_LINES || head->files_length > KB_JIT_MAX_TEXT ||
	    head->jit_unwind_length > KB_JIT_MAX_UNWIND ||
	    head->unwind_size > KB_UNWIND_SIZE_MAX ||
	    !is_debuglink(head->debuglink, sizeof(head->debuglink)))
		return -EPROTO;
	if (head->code)
		return 0;
	found->has_symtab = head->flags & KB_ANSWER_SYMTAB;
	found->has_dwarf = head->flags & KB_ANSWER_DWARF;
	found->nr_stubs = head->nr_stubs;
	found->stext = head->stext;
	found->build_id.length = head->build_id_length;
	memcpy(found->build_id.bytes, head->build_id, head->build_id_length);
	strcpy(found->debuglink, head->debuglink);
	found->debuglink_crc = head->debuglink_crc;
	return 0;
}

static int take_segments(struct reader *reader)
{
	struct kb_answer_segment rows[KB_ELF_MAX_SEGMENTS];
	uint32_t nr = reader->head.nr_segments, i;
	struct kb_elf *found = reader->found;
	int ret = take(reader, rows, nr * sizeof(*rows));

	if (ret)
		return ret;
	found->segments = calloc(nr + 1, sizeof(*found->segments));
	if (!found->segments)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		if (!rows[i].size || rows[i].size > UINT64_MAX - rows[i].offset ||
		    rows[i].executable > 1)
			return -EPROTO;
		found->segments[i] = (struct kb_elf_segment) {
			.offset = rows[i].offset,
			.vaddr = rows[i].vaddr,
			.size = rows[i].size,
			.executable = rows[i].executable,
		};
	}
	found->nr_segments = nr;
	return 0;
}

static bool is_symbol(const struct kb_answer_symbol *row, bool nameless)
{
	if (row->start == UINT64_MAX || row->open > 1 || row->rank > KB_RANK_GLOBAL ||
	    row->rank < (nameless ? KB_RANK_NAMELESS : KB_RANK_LOCAL) ||
	    (row->rank == KB_RANK_NAMELESS) != !row->name_length)
		return false;
	return row->open || (row->size && row->size <= UINT64_MAX - row->start);
}

/* Make room for @nr more symbols, which were received. The room doubles, up to @all. */
static int make_room(struct kb_symtab *symtab, uint32_t nr, uint32_t all)
{
	uint32_t max = symtab->max_symbols ? symtab->max_symbols : ROWS;
	struct kb_symtab_symbol *grown;

	if (symtab->nr_symbols + nr <= symtab->max_symbols)
		return 0;
	while (max < symtab->nr_symbols + nr)
		max *= 2;
	if (max > all)
		max = all;
	grown = reallocarray(symtab->symbols, max, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	symtab->symbols = grown;
	symtab->max_symbols = max;
	return 0;
}

/* Read symbols, with the place at which the name of each will be. */
static int take_symbols(struct reader *reader, const struct table *table)
{
	struct kb_symtab *symtab = table->symtab;
	uint32_t all = table->nr, nr, i;
	struct kb_answer_symbol rows[ROWS];
	uint64_t at = 0;
	int ret;

	for (; symtab->nr_symbols < all;) {
		nr = all - symtab->nr_symbols;
		if (nr > ROWS)
			nr = ROWS;
		ret = take(reader, rows, nr * sizeof(*rows));
		if (!ret)
			ret = make_room(symtab, nr, all);
		if (ret)
			return ret;
		for (i = 0; i < nr; i++) {
			if (!is_symbol(&rows[i], table->nameless) ||
			    rows[i].name_length >= table->names_length - at)
				return -EPROTO;
			symtab->symbols[symtab->nr_symbols++] = (struct kb_symtab_symbol) {
				.start = rows[i].start,
				.size = rows[i].size,
				.name = at,
				.id = KB_SYMTAB_NO_ID,
				.rank = rows[i].rank,
				.open = rows[i].open,
			};
			at += rows[i].name_length + 1;
		}
	}
	return at == table->names_length ? 0 : -EPROTO;
}

/* Read @all bytes to *@to, which is NULL; the caller frees it. The room doubles, up to @all. */
static int take_bytes(struct reader *reader, char **to, uint64_t all)
{
	uint64_t length = 0;
	int ret = 0;

	while (length < all && !ret) {
		uint64_t piece = length ? length : PIECE;
		char *grown;

		if (piece > all - length)
			piece = all - length;
		grown = realloc(*to, length + piece);
		if (!grown)
			return -ENOMEM;
		*to = grown;
		ret = take(reader, *to + length, piece);
		length += piece;
	}
	return ret;
}

static int take_names(struct reader *reader, const struct table *table)
{
	struct kb_symtab *symtab = table->symtab;
	int ret = take_bytes(reader, &symtab->names, table->names_length);

	if (!ret)
		symtab->names_length = symtab->names_max = table->names_length;
	return ret;
}

/* Whether each name ends where its length says, and is empty where the rank says so. */
static bool are_names(const struct kb_symtab *symtab)
{
	uint32_t i;

	for (i = 0; i < symtab->nr_symbols; i++) {
		bool nameless = symtab->symbols[i].rank == KB_RANK_NAMELESS;
		uint32_t at = symtab->symbols[i].name;

		if (!symtab->names[at] != nameless || (at && symtab->names[at - 1]))
			return false;
	}
	return !symtab->names_length || !symtab->names[symtab->names_length - 1];
}

static int take_table(struct reader *reader, const struct table *table)
{
	int ret = take_symbols(reader, table);

	if (!ret)
		ret = take_names(reader, table);
	return ret || are_names(table->symtab) ? ret : -EPROTO;
}

static int take_tables(struct reader *reader)
{
	const struct kb_answer_head *head = &reader->head;
	int ret = take_table(reader, &(struct table) {
		.symtab = &reader->found->symbols, .nr = head->nr_symbols,
		.names_length = head->names_length });

	return ret ? ret : take_table(reader, &(struct table) {
		.symtab = &reader->found->functions, .nr = head->nr_functions,
		.names_length = head->function_names_length, .nameless = true });
}

/* A block of another version is a lie as well: the decoder is the same program. */
static int take_unwind(struct reader *reader)
{
	uint64_t size = reader->head.unwind_size;
	char *block = NULL;
	int ret = take_bytes(reader, &block, size);

	if (!ret && size && kb_unwind_rows_take(&reader->found->unwind, block, size, NULL))
		ret = -EPROTO;
	if (ret)
		free(block);
	return ret;
}

/* Whether code has a range, and what is in its rows refers to nothing but other rows. */
static bool is_jit(const struct kb_jit *jit, const struct kb_symtab *symbols)
{
	uint32_t i;

	if (jit->files_length && jit->files[jit->files_length - 1])
		return false;
	for (i = 0; i < jit->nr_codes; i++)
		if (symbols->symbols[i].open || jit->codes[i].nr_lines > jit->nr_lines ||
		    jit->codes[i].first_line > jit->nr_lines - jit->codes[i].nr_lines ||
		    jit->codes[i].unwind_size > jit->unwind_length ||
		    jit->codes[i].unwind > jit->unwind_length - jit->codes[i].unwind_size)
			return false;
	for (i = 0; i < jit->nr_lines; i++)
		if (jit->lines[i].file >= jit->files_length)
			return false;
	return true;
}

static int take_jit(struct reader *reader)
{
	const struct kb_answer_head *head = &reader->head;
	struct kb_jit *jit = &reader->found->jit;
	char *codes = NULL, *lines = NULL;
	int ret;

	ret = take_bytes(reader, &codes, head->nr_codes * sizeof(*jit->codes));
	ret = ret ?: take_bytes(reader, &lines, head->nr_lines * sizeof(*jit->lines));
	jit->codes = (struct kb_jit_code *)codes;
	jit->lines = (struct kb_jit_line *)lines;
	if (ret)
		return ret;
	jit->nr_codes = jit->max_codes = head->nr_codes;
	jit->nr_lines = jit->max_lines = head->nr_lines;
	ret = take_bytes(reader, &jit->files, head->files_length);
	if (ret)
		return ret;
	jit->files_length = jit->files_max = head->files_length;
	ret = take_bytes(reader, &jit->unwind, head->jit_unwind_length);
	if (ret)
		return ret;
	jit->unwind_length = jit->unwind_max = head->jit_unwind_length;
	jit->end = head->jit_end;
	return is_jit(jit, &reader->found->symbols) ? 0 : -EPROTO;
}

int kb_answer_read(struct kb_elf *found, kb_answer_bytes bytes, void *context)
{
	struct reader reader = { .bytes = bytes, .context = context, .found = found };
	int ret;

	*found = (struct kb_elf) { 0 };
	ret = take_head(&reader);
	if (!ret && !reader.head.code) {
		ret = take_segments(&reader);
		if (!ret)
			ret = take_tables(&reader);
		if (!ret)
			ret = take_unwind(&reader);
		if (!ret)
			ret = take_jit(&reader);
	}
	if (!ret)
		ret = take_end(&reader);
	if (!ret)
		ret = reader.head.code;
	if (ret)
		kb_elf_release(found);
	return ret;
}
