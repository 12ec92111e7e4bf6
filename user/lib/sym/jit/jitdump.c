// SPDX-License-Identifier: MIT
/*
 * A window of fixed size goes over the file, so memory depends on what is kept only. The bytes of
 * the code are skipped.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/table.h"
#include "base/text/utf8.h"
#include "sym/files/native.h"
#include "sym/jit/jitdump.h"
#include "unwind/compile.h"

#define MAGIC		0x4a695444U
#define HEADER		40U		/* bytes */
#define PREFIX		16U		/* of each record */
#define LOAD		40U		/* bytes before the name */
#define MOVE		48U
#define UNWINDING	24U
#define ENTRY		16U		/* of a line, before the name of its file */
#define ARCH_TIMESTAMP	1U		/* flag: times are not of CLOCK_MONOTONIC */
#define WINDOW		(64U << 10)
#define NAME_MAX_BYTES	4096U		/* of a name; the rest is left out */
#define PADDING		8U		/* fewer bytes may be after the last line */
#define ELF_HEADER	64U		/* bytes */
#define LINES_MAX	65536U		/* of one code */

enum { CODE_LOAD, CODE_MOVE, CODE_DEBUG_INFO, CODE_CLOSE, CODE_UNWINDING_INFO };

/* The newest code with an index, at least at its place. */
struct indexed {
	uint64_t index;			/* the key */
	uint32_t code;			/* + 1; 0: not known yet */
} __attribute__((aligned(8)));

struct reader {
	int fd;				/* -1: all bytes are in the window */
	const uint8_t *window;
	uint8_t *buffer;		/* the window of a file */
	uint64_t at;			/* offset of the window in the file, */
	size_t held;			/* and its bytes */
	int error;			/* of read(2) */

	uint64_t size;			/* of the file, when reading began */

	bool swapped, timed;
	bool unwinds;			/* rows are wanted, and no names */
	uint16_t machine;		/* of the code; 0: not told */
	uint8_t *frames;		/* .eh_frame of the next code, */
	size_t nr_frames;		/* and its bytes; 0: none */
	struct kb_jit *jit;
	struct kb_symtab *symbols;
	struct kb_table by_index;
	/* Lines that were read and belong to the next code at this address. */
	uint64_t lines_for;
	uint32_t first_line, nr_lines;
};

#define FRAMES_MAX	(32U << 10)	/* bytes of the .eh_frame of one code */

/* A record that is read. Offsets are those of the file. */
struct record {
	uint32_t id;
	uint64_t since;
	uint64_t at, end;		/* after the prefix, and after the record */
};

static void move_window(struct reader *reader, uint64_t offset)
{
	reader->at = offset;
	reader->held = 0;
	while (reader->held < WINDOW && !reader->error) {
		ssize_t nr = pread(reader->fd, reader->buffer + reader->held,
				   WINDOW - reader->held, (off_t)(offset + reader->held));

		if (nr < 0 && errno != EINTR)
			reader->error = -EIO;
		if (!nr)
			break;
		if (nr > 0)
			reader->held += nr;
	}
}

/* The bytes from @offset on: *@length of them, or fewer at the end of the file. */
static const uint8_t *some(struct reader *reader, uint64_t offset, size_t *length)
{
	if (reader->fd >= 0 && offset <= INT64_MAX - WINDOW &&
	    (offset < reader->at || offset + *length > reader->at + reader->held))
		move_window(reader, offset);
	if (offset < reader->at || offset - reader->at >= reader->held) {
		*length = 0;
		return NULL;
	}
	if (*length > reader->held - (offset - reader->at))
		*length = reader->held - (offset - reader->at);
	return reader->window + (offset - reader->at);
}

/* NULL: the file ends before. */
static const uint8_t *whole(struct reader *reader, uint64_t offset, size_t length)
{
	size_t there = length;
	const uint8_t *bytes = some(reader, offset, &there);

	return there == length ? bytes : NULL;
}

static uint32_t word(const struct reader *reader, const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return reader->swapped ? __builtin_bswap32(value) : value;
}

static uint64_t quad(const struct reader *reader, const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return reader->swapped ? __builtin_bswap64(value) : value;
}

/* ---- code ---- */

static int add_code(struct reader *reader, struct kb_symtab_symbol place, const char *name,
		    size_t length, struct kb_jit_code code)
{
	struct kb_jit *jit = reader->jit;

	if (jit->nr_codes == KB_JIT_MAX_CODES ||
	    length >= KB_JIT_MAX_TEXT - reader->symbols->names_length)
		return -EFBIG;
	if (!KB_ARRAY_ROOM(jit->codes, jit->max_codes, jit->nr_codes + 1))
		return -ENOMEM;
	jit->codes[jit->nr_codes++] = code;
	return kb_symtab_add(reader->symbols, place.start, place.size, KB_SYMTAB_NO_LIMIT, name,
			     length, KB_RANK_GLOBAL, 0);
}

static bool is_range(uint64_t start, uint64_t size)
{
	return size && start != UINT64_MAX && size <= UINT64_MAX - start;
}

/* The last code that has @index from now on. */
static int remember(struct reader *reader, uint64_t index)
{
	struct indexed *row = kb_table_get(&reader->by_index, &index);

	if (!row)
		return -ENOMEM;
	row->code = reader->jit->nr_codes;
	return 0;
}

/* The name of a record, from @at on. NULL: its end is not there, or not yet. */
static const char *take_name(struct reader *reader, uint64_t at, uint64_t end, size_t *length)
{
	size_t room = end - at < NAME_MAX_BYTES ? end - at : NAME_MAX_BYTES, there = room;
	const char *name = (const char *)some(reader, at, &there);

	*length = name ? strnlen(name, there) : 0;
	return name && (*length < there || there == NAME_MAX_BYTES) ? name : NULL;
}

/* The word size follows from the machine. CPython does not tell the machine. */
static void set_machine(const struct reader *reader, struct kb_unwind_sections *sections)
{
	sections->elf = reader->machine ? reader->machine :
			sizeof(void *) == 8 ? KB_NATIVE_64 : KB_NATIVE_32;
	sections->word = kb_unwind_machine(sections->elf, 8) ? 8 : 4;
	sections->big_endian = reader->swapped != KB_HOST_BIG_ENDIAN;
}

/* Rows that can't be had are missing, and nothing else. */
static int add_unwind(struct reader *reader, uint64_t size, struct kb_jit_code *code)
{
	struct kb_unwind_sections sections = {
		.high = size,
		.frames[0] = {
			.section = {
				.data = reader->frames, .size = reader->nr_frames,
				/* where perf has it in the file that it makes of the code */
				.address = (size + 7) & ~UINT64_C(7),
			},
		},
	};
	struct kb_jit *jit = reader->jit;
	struct kb_unwind_rows rows = { 0 };
	size_t length;
	int ret;

	set_machine(reader, &sections);
	ret = kb_unwind_compile(&rows, &sections, NULL);
	length = rows.header ? rows.header->size : 0;
	if (ret != -ENOMEM && length && length + 8 <= KB_JIT_MAX_UNWIND - jit->unwind_length) {
		if (!KB_ARRAY_ROOM(jit->unwind, jit->unwind_max, jit->unwind_length + length + 8)) {
			ret = -ENOMEM;
		} else {
			ret = 0;
			code->unwind = jit->unwind_length;
			code->unwind_size = length;
			memcpy(jit->unwind + jit->unwind_length, rows.header, length);
			memset(jit->unwind + jit->unwind_length + length, 0, 8);
			jit->unwind_length += (length + 7) & ~(size_t)7;
		}
	}
	kb_unwind_rows_release(&rows);
	return ret == -ENOMEM ? ret : 0;
}

/* First .eh_frame and then .eh_frame_hdr, whatever their order in the description is. */
static int take_unwinding(struct reader *reader, const struct record *record)
{
	const uint8_t *bytes = whole(reader, record->at, UNWINDING);
	uint64_t size, header;

	reader->nr_frames = 0;
	if (!bytes || !reader->unwinds)
		return 0;
	size = quad(reader, bytes);
	header = quad(reader, bytes + 8);
	if (size <= header || size - header > FRAMES_MAX ||
	    size > record->end - record->at - UNWINDING)
		return 0;
	bytes = whole(reader, record->at + UNWINDING, size - header);
	if (!bytes)
		return 0;
	if (!reader->frames)
		reader->frames = malloc(FRAMES_MAX);
	if (!reader->frames)
		return -ENOMEM;
	reader->nr_frames = size - header;
	memcpy(reader->frames, bytes, reader->nr_frames);
	return 0;
}

static int take_load(struct reader *reader, const struct record *record)
{
	const uint8_t *bytes = whole(reader, record->at, LOAD);
	struct kb_symtab_symbol place;
	struct kb_jit_code code = { .since = record->since, .until = KB_JIT_FOREVER };
	const char *name;
	uint64_t index;
	size_t length;
	int ret;

	if (!bytes)
		return 0;
	place = (struct kb_symtab_symbol) {
		.start = quad(reader, bytes + 16), .size = quad(reader, bytes + 24),
	};
	index = quad(reader, bytes + 32);
	if (!is_range(place.start, place.size))
		return 0;
	name = take_name(reader, record->at + LOAD, record->end, &length);
	if (!name)
		return 0;
	if (!length) {
		name = "[jit]";
		length = strlen(name);
	}
	if (reader->nr_lines && reader->lines_for == place.start) {
		code.first_line = reader->first_line;
		code.nr_lines = reader->nr_lines;
	}
	reader->nr_lines = 0;
	ret = reader->nr_frames ? add_unwind(reader, place.size, &code) : 0;
	reader->nr_frames = 0;
	if (reader->unwinds)
		length = 1;	/* an answer has names, and nobody asked for this one */
	ret = ret ?: add_code(reader, place, name, length, code);
	return ret ? ret : remember(reader, index);
}

/* Code that is not known can't be moved: its name is not known either. */
static int take_move(struct reader *reader, const struct record *record)
{
	const uint8_t *bytes = whole(reader, record->at, MOVE);
	struct kb_symtab_symbol place;
	const struct indexed *row;
	struct kb_jit_code code;
	char name[NAME_MAX_BYTES + 1];
	uint64_t index, old;
	int ret;

	if (!bytes)
		return 0;
	old = quad(reader, bytes + 16);
	place = (struct kb_symtab_symbol) {
		.start = quad(reader, bytes + 24), .size = quad(reader, bytes + 32),
	};
	index = quad(reader, bytes + 40);
	row = kb_table_find(&reader->by_index, &index);
	if (!row || !is_range(place.start, place.size) ||
	    reader->symbols->symbols[row->code - 1].start != old)
		return 0;
	strcpy(name, kb_symtab_name(reader->symbols, &reader->symbols->symbols[row->code - 1]));
	code = reader->jit->codes[row->code - 1];
	reader->jit->codes[row->code - 1].until = record->since;
	code.since = record->since;
	ret = add_code(reader, place, name, strlen(name), code);
	return ret ? ret : remember(reader, index);
}

/* ---- lines ---- */

static int add_line(struct reader *reader, uint64_t address, uint32_t line, const char *name,
		    size_t length)
{
	uint64_t offset = address - reader->lines_for;
	struct kb_jit *jit = reader->jit;
	int ret;

	if (offset > UINT32_MAX)
		return 0;
	/* This name says that it is the file of the row before. */
	if (jit->nr_lines && length == 1 && (uint8_t)name[0] == 0xff) {
		name = jit->files + jit->lines[jit->nr_lines - 1].file;
		length = strlen(name);
	}
	ret = kb_jit_add_line(jit, offset, line, name, length);
	reader->nr_lines += !ret;
	return ret;
}

/* V8 counts from the header of the ELF file that perf makes of the code. No line is below that. */
static void leave_out_header(struct reader *reader)
{
	struct kb_jit_line *lines = reader->jit->lines;
	uint32_t i, first = reader->first_line, end = first + reader->nr_lines;
	uint32_t least = UINT32_MAX;

	for (i = first; i < end; i++)
		if (lines[i].offset < least)
			least = lines[i].offset;
	for (i = first; i < end && least == ELF_HEADER; i++)
		lines[i].offset -= ELF_HEADER;
}

/* Whether @name is text, or says that it is the name before. */
static bool is_file(const char *name, size_t length)
{
	char shown[NAME_MAX_BYTES];

	if (length == 1 && (uint8_t)name[0] == 0xff)
		return true;
	return kb_utf8_shown(shown, name, length) == length && memcmp(shown, name, length) == 0;
}

/*
 * Node.js 20 writes bytes of freed memory instead of some names, and zeros in them: then all rows of
 * the record are wrong.
 */
static int take_lines(struct reader *reader, const struct record *record)
{
	const uint8_t *bytes = whole(reader, record->at, 16);
	uint64_t at = record->at + 16, nr, i;
	int ret = 0;

	if (!bytes)
		return 0;
	reader->lines_for = quad(reader, bytes);
	reader->first_line = reader->jit->nr_lines;
	reader->nr_lines = 0;
	nr = quad(reader, bytes + 8);
	for (i = 0; i < nr && i < LINES_MAX && !ret; i++) {
		uint64_t address;
		const char *name;
		uint32_t line;
		size_t length;

		if (record->end - at <= ENTRY)
			break;
		bytes = whole(reader, at, ENTRY);
		if (!bytes)
			break;
		address = quad(reader, bytes);
		line = word(reader, bytes + 8);
		name = take_name(reader, at + ENTRY, record->end, &length);
		if (!name || length == NAME_MAX_BYTES || !is_file(name, length))
			break;
		ret = add_line(reader, address, line <= INT32_MAX ? line : 0, name, length);
		at += ENTRY + length + 1;
	}
	if ((i < nr && i < LINES_MAX) || (i == nr && record->end - at >= PADDING)) {
		reader->jit->nr_lines = reader->first_line;
		reader->nr_lines = 0;
	}
	leave_out_header(reader);
	return ret;
}

/* ---- the file ---- */

static int take_header(struct reader *reader, uint64_t *end)
{
	const uint8_t *bytes = whole(reader, 0, HEADER);

	if (!bytes)
		return reader->error ?: -ENOEXEC;
	reader->swapped = word(reader, bytes) != MAGIC;
	*end = word(reader, bytes + 8);
	if (word(reader, bytes) != MAGIC || word(reader, bytes + 4) < 1 || *end < HEADER)
		return -ENOEXEC;
	reader->machine = word(reader, bytes + 12);
	reader->timed = !(quad(reader, bytes + 32) & ARCH_TIMESTAMP);
	return 0;
}

static int take_record(struct reader *reader, const struct record *record)
{
	switch (record->id) {
	case CODE_LOAD:
		return record->end - record->at > LOAD ? take_load(reader, record) : 0;
	case CODE_MOVE:
		return record->end - record->at >= MOVE ? take_move(reader, record) : 0;
	case CODE_DEBUG_INFO:
		return record->end - record->at >= 16 && !reader->unwinds ?
			take_lines(reader, record) : 0;
	case CODE_UNWINDING_INFO:
		return record->end - record->at >= UNWINDING ? take_unwinding(reader, record) : 0;
	}
	return 0;
}

/* A record without its length can't be skipped, so nothing after it is read. */
static int take_records(struct reader *reader, uint64_t at)
{
	const uint8_t *bytes;
	int ret = 0;

	while (!ret && (bytes = whole(reader, at, PREFIX))) {
		struct record record = {
			.id = word(reader, bytes),
			.since = reader->timed ? quad(reader, bytes + 8) : 0,
			.at = at + PREFIX,
			.end = at + word(reader, bytes + 4),
		};

		if (record.end < record.at || record.id == CODE_CLOSE ||
		    (reader->unwinds && record.end > reader->size))
			break;
		ret = take_record(reader, &record);
		at = record.end;
		/* What describes code is read again with the code. */
		if (!reader->nr_frames)
			reader->jit->end = at;
	}
	return ret ? ret : reader->error;
}

/* Read from @from on, or if it is 0, from after the header. */
static int read_all(struct reader *reader, uint64_t from)
{
	uint64_t at = 0;
	int ret = take_header(reader, &at);

	if (ret)
		return ret;
	if (from > at)
		at = from;
	reader->jit->end = at;
	kb_table_init(&reader->by_index, sizeof(struct indexed), 1);
	ret = take_records(reader, at);
	kb_table_release(&reader->by_index);
	return ret;
}

int kb_jitdump_parse(struct kb_jit *jit, struct kb_symtab *symbols, const void *data, size_t size)
{
	return read_all(&(struct reader) {
		.fd = -1, .window = data, .held = size, .jit = jit, .symbols = symbols }, 0);
}

static int read_fd(struct reader *reader, uint64_t from)
{
	struct stat st;
	int ret;

	if (fstat(reader->fd, &st))
		return -EIO;
	reader->size = (uint64_t)st.st_size;
	reader->buffer = malloc(WINDOW);
	if (!reader->buffer)
		return -ENOMEM;
	reader->window = reader->buffer;
	ret = read_all(reader, from);
	free(reader->frames);
	free(reader->buffer);
	return ret;
}

int kb_jitdump_read_fd(struct kb_jit *jit, struct kb_symtab *symbols, int fd)
{
	return read_fd(&(struct reader) { .fd = fd, .jit = jit, .symbols = symbols }, 0);
}

int kb_jitdump_unwind_fd(struct kb_jit *jit, struct kb_symtab *symbols, int fd, uint64_t from)
{
	return read_fd(&(struct reader) {
		.fd = fd, .jit = jit, .symbols = symbols, .unwinds = true }, from);
}
