// SPDX-License-Identifier: MIT
/*
 * The reader trusts nothing: each number is checked before its use, memory is allocated only
 * for bytes that were received, and no number is an address or an index into the reader's
 * memory. Names have the order of their symbols and do not share bytes, so they take no more
 * memory than was sent.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sym/answer.h"

#define ROWS	1024U		/* symbols that are sent at once */
#define PIECE	(64U << 10)	/* bytes of names that are sent at once */

/* ---- writing ---- */

static int put(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size) {
		ssize_t written = write(fd, at, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written ? -errno : -EIO;
		at += written;
		size -= written;
	}
	return 0;
}

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
		head.names_length = length_of_names(&found->symbols);
		head.stext = found->stext;
		memcpy(head.build_id, found->build_id.bytes, sizeof(head.build_id));
		memcpy(head.debuglink, found->debuglink, sizeof(head.debuglink));
	}
	return put(fd, &head, sizeof(head));
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
	return put(fd, rows, found->nr_segments * sizeof(*rows));
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
			ret = put(fd, rows, nr * sizeof(*rows));
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
			ret = put(fd, piece, used);
			used = 0;
		}
		if (!ret && length > PIECE) {
			ret = put(fd, name, length);
		} else {
			memcpy(piece + used, name, length);
			used += length;
		}
	}
	if (!ret)
		ret = put(fd, piece, used);
	free(piece);
	return ret;
}

int kb_answer_write(int fd, int code, const struct kb_elf *found)
{
	int ret = put_head(fd, code, found);

	if (ret || code)
		return ret;
	ret = put_segments(fd, found);
	if (!ret)
		ret = put_symbols(fd, &found->symbols);
	return ret ? ret : put_names(fd, &found->symbols);
}

/* ---- reading ---- */

struct reader {
	kb_answer_bytes bytes;
	void *context;
	struct kb_elf *found;
	struct kb_answer_head head;
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
	    head->names_length >= UINT32_MAX ||
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

static bool is_symbol(const struct kb_answer_symbol *row)
{
	if (row->start == UINT64_MAX || !row->name_length || row->open > 1 ||
	    row->rank < KB_RANK_LOCAL || row->rank > KB_RANK_GLOBAL)
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
static int take_symbols(struct reader *reader)
{
	struct kb_symtab *symtab = &reader->found->symbols;
	uint32_t all = reader->head.nr_symbols, nr, i;
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
			if (!is_symbol(&rows[i]) ||
			    rows[i].name_length >= reader->head.names_length - at)
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
	return at == reader->head.names_length ? 0 : -EPROTO;
}

static int take_names(struct reader *reader)
{
	struct kb_symtab *symtab = &reader->found->symbols;
	size_t all = reader->head.names_length;

	while (symtab->names_length < all) {
		size_t piece = symtab->names_length ? symtab->names_length : PIECE;
		char *grown;
		int ret;

		if (piece > all - symtab->names_length)
			piece = all - symtab->names_length;
		grown = realloc(symtab->names, symtab->names_length + piece);
		if (!grown)
			return -ENOMEM;
		symtab->names = grown;
		symtab->names_max = symtab->names_length + piece;
		ret = take(reader, symtab->names + symtab->names_length, piece);
		if (ret)
			return ret;
		symtab->names_length += piece;
	}
	return 0;
}

/* Whether each name is not empty and ends where its length says. */
static bool are_names(const struct kb_symtab *symtab)
{
	uint32_t i;

	for (i = 0; i < symtab->nr_symbols; i++) {
		uint32_t at = symtab->symbols[i].name;

		if (!symtab->names[at] || (at && symtab->names[at - 1]))
			return false;
	}
	return !symtab->names_length || !symtab->names[symtab->names_length - 1];
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
			ret = take_symbols(&reader);
		if (!ret)
			ret = take_names(&reader);
		if (!ret && !are_names(&found->symbols))
			ret = -EPROTO;
	}
	if (!ret)
		ret = take_end(&reader);
	if (!ret)
		ret = reader.head.code;
	if (ret)
		kb_elf_release(found);
	return ret;
}
