// SPDX-License-Identifier: MIT
/*
 * Memory comes out of each form of a dump as it was: one memory, written in all forms. Files that
 * are cut off or damaged give what they have, and no more.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "format/memory/memory.h"
#include "format/wire.h"
#include "format/zstd.h"

#include "../lib/tap.h"

#define MAGIC		0x0102030405060708U
#define OTHER		0x1112131415161718U
#define PAGE		KB_MEMORY_PAGE
#define PAGES		48U	/* three pages of 64 KiB, of which the second one is no memory */
#define HOLE		16U
#define HOLE_END	32U

static const uint64_t magics[KB_MEMORY_MAGICS] = { OTHER, MAGIC };
static uint8_t memory[PAGES * PAGE];

/* ---- files ---- */

struct form {
	const char *name;
	int (*write)(const struct form *form);
	unsigned int word, page;
	bool swap;
	uint32_t flag;		/* the compression of a kdump */
	int (*flattened)(const struct form *form);
};

static uint8_t file[1U << 20];
static size_t length;

static void put(const struct form *form, uint64_t value, unsigned int size)
{
	for (unsigned int i = 0; i < size; i++)
		file[length++] = (uint8_t)(value >> 8 * (form->swap ? size - 1 - i : i));
}

static void put_bytes(const void *bytes, size_t size)
{
	memcpy(file + length, bytes, size);
	length += size;
}

static void put_zeros_until(size_t end)
{
	memset(file + length, 0, end - length);
	length = end;
}

static void put_elf_header(const struct form *form, unsigned int nr)
{
	unsigned int word = form->word;
	uint8_t ident[EI_NIDENT] = { 0x7f, 'E', 'L', 'F', word / 4, form->swap ? 2 : 1, 1 };

	length = 0;
	put_bytes(ident, sizeof(ident));
	put(form, ET_CORE, 2);
	put(form, 62, 2);
	put(form, 1, 4);
	put(form, 0, word);
	put(form, word == 8 ? 64 : 52, word);
	put(form, 512, word);
	put(form, 0, 4);
	put(form, word == 8 ? 64 : 52, 2);
	put(form, word == 8 ? 56 : 32, 2);
	put(form, nr, 2);
	put(form, word == 8 ? 64 : 40, 2);
	put(form, 0, 4);
}

static void put_segment(const struct form *form, uint64_t physical, uint64_t offset,
			uint64_t bytes)
{
	put(form, PT_LOAD, 4);
	if (form->word == 8)
		put(form, 7, 4);
	put(form, offset, form->word);
	put(form, 0xc0000000 + physical, form->word);
	put(form, physical, form->word);
	put(form, bytes, form->word);
	put(form, bytes, form->word);
	if (form->word == 4)
		put(form, 7, 4);
	put(form, 0, form->word);
}

/* The second half of the memory is first; two segments have parts of the first one in common. */
static int write_elf(const struct form *form)
{
	size_t second = 1000 + HOLE * PAGE;

	put_elf_header(form, 5);
	put_segment(form, UINT64_MAX, 1000, PAGE);
	put_segment(form, HOLE_END * PAGE, second, (PAGES - HOLE_END) * PAGE);
	put_segment(form, 3 * PAGE + 8, 1000 + 3 * PAGE + 8, (HOLE - 3) * PAGE - 8);
	put_segment(form, 0, 1000, 8 * PAGE);
	put_segment(form, HOLE * PAGE, 1000, 0);
	put_zeros_until(1000);
	put_bytes(memory, HOLE * PAGE);
	put_bytes(memory + HOLE_END * PAGE, (PAGES - HOLE_END) * PAGE);
	return 0;
}

static void put_range(const struct form *form, unsigned int first, unsigned int end)
{
	put(form, 0x4c694d45, 4);
	put(form, 1, 4);
	put(form, first * PAGE, 8);
	put(form, end * PAGE - 1, 8);
	put(form, 0, 8);
	put_bytes(memory + first * PAGE, (end - first) * PAGE);
}

static int write_lime(const struct form *form)
{
	length = 0;
	put_range(form, 0, HOLE);
	put_range(form, HOLE_END, PAGES);
	return 0;
}

static int write_raw(const struct form *form)
{
	(void)form;
	length = 0;
	put_bytes(memory, sizeof(memory));
	return 0;
}

static size_t pack(const struct form *form, const uint8_t *page, uint8_t *packed)
{
	uLongf size = form->page;
	void *context;

	if (form->flag == 0x20) {
		context = kb_zstd()->createCCtx();
		size = kb_zstd()->compressCCtx(context, packed, size, page, form->page, 1);
		kb_zstd()->freeCCtx(context);
	} else if (!form->flag || compress2(packed, &size, page, form->page, 1) != Z_OK) {
		size = form->page;
	}
	return size < form->page ? size : form->page;
}

/* The bits behind those of all pages are set. */
static int write_kdump(const struct form *form)
{
	unsigned int page = form->page, per = page / PAGE, nr = PAGES / per;
	size_t bits = 3 * (size_t)page, data = 4 * (size_t)page + 24 * (size_t)nr;

	length = 0;
	put_bytes("KDUMP   ", 8);
	put(form, 6, 4);
	put_zeros_until(form->word == 8 ? 424 : 412);
	put(form, form->flag, 4);
	put(form, page, 4);
	put(form, 1, 4);		/* pages of the second header */
	put(form, 2, 4);		/* and of both bitmaps */
	put(form, form->word == 8 ? 1 : nr, 4);
	put_zeros_until(page + 96);
	put(form, form->word == 8 ? nr : 0, 8);
	put_zeros_until(data);
	length = 4 * (size_t)page;
	for (unsigned int i = 0; i < 64; i++) {
		size_t size;

		if (i * per >= HOLE && i * per < HOLE_END)
			continue;
		file[bits + i / 8] |= (uint8_t)(1U << i % 8);
		if (i >= nr)
			continue;
		size = pack(form, memory + i * page, file + data);
		if (size == page)
			memcpy(file + data, memory + i * page, page);
		put(form, data, 8);
		put(form, size, 4);
		put(form, size < page ? form->flag : 0, 4);
		put(form, 0, 8);
		data += size;
	}
	length = data;
	return 0;
}

static void put_piece(uint64_t place, const uint8_t *bytes, size_t size)
{
	static const struct form big = { .swap = true };

	put(&big, place, 8);
	put(&big, size, 8);
	put_bytes(bytes, size);
}

/* Of two pieces the second one is first, and what is zero is in none. */
static int write_flattened(const struct form *form)
{
	static const uint8_t zeros[1000];
	static uint8_t whole[sizeof(file)];
	const size_t most = sizeof(zeros);
	size_t size;

	if (form->flattened(form))
		return 1;
	size = length;
	memcpy(whole, file, size);
	length = 0;
	put_bytes("makedumpfile\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1", 32);
	put_zeros_until(PAGE);
	for (size_t i = 0; i <= size / most + 1; i++) {
		size_t place = (i ^ 1) * most, bytes = place < size ? size - place : 0;

		bytes = bytes < most ? bytes : most;
		if (memcmp(whole + place, zeros, bytes) != 0)
			put_piece(place, whole + place, bytes);
	}
	memset(file + length, 0xff, 16);
	length += 16;
	return 0;
}

static const struct form forms[] = {
	{ "elf_64_little", write_elf, .word = 8 },
	{ "elf_64_big", write_elf, .word = 8, .swap = true },
	{ "elf_32_little", write_elf, .word = 4 },
	{ "elf_32_big", write_elf, .word = 4, .swap = true },
	{ "lime", write_lime, .swap = false },
	{ "raw", write_raw, .swap = false },
	{ "kdump_64_little", write_kdump, .word = 8, .page = PAGE, .flag = 1 },
	{ "kdump_64_big", write_kdump, .word = 8, .page = PAGE, .flag = 1, .swap = true },
	{ "kdump_32_little", write_kdump, .word = 4, .page = PAGE, .flag = 1 },
	{ "kdump_32_big", write_kdump, .word = 4, .page = PAGE, .flag = 1, .swap = true },
	{ "kdump_plain", write_kdump, .word = 8, .page = PAGE },
	{ "kdump_large_pages", write_kdump, .word = 8, .page = 16 * PAGE, .flag = 1 },
	{ "kdump_zstd", write_kdump, .word = 8, .page = PAGE, .flag = 0x20 },
	{ "kdump_flattened", write_flattened, .word = 8, .page = PAGE, .flag = 1, .flattened = write_kdump },
	{ "elf_flattened", write_flattened, .word = 8, .flattened = write_elf },
};

#define FORMS		(sizeof(forms) / sizeof(forms[0]))
#define ELF		(&forms[0])
#define LIME		(&forms[4])
#define RAW		(&forms[5])
#define KDUMP		(&forms[6])
#define PLAIN		(&forms[10])
#define FLATTENED	(&forms[13])

/* ---- reading ---- */

static int fd;
static char path[64];
static struct kb_error error;

static struct kb_memory *open_file(uint64_t base)
{
	struct kb_memory *opened = NULL;

	error.code = 0;
	if (ftruncate(fd, 0) || pwrite(fd, file, length, 0) != (ssize_t)length)
		abort();
	return kb_memory_open(&opened, path, base, &error) ? NULL : opened;
}

static uint64_t base_of(const struct form *form)
{
	return form == RAW ? 0 : KB_MEMORY_NO_BASE;
}

/* The pages that are found, a bit each; a page that is not where the memory has it is bit 63. */
static uint64_t find_all(struct kb_memory *opened)
{
	uint64_t found = 0;

	for (uint64_t at = 0; kb_memory_find(opened, magics, &at, &error) == 1; at += PAGE)
		found |= (uint64_t)1 << (at % PAGE || at / PAGE >= PAGES ? 63 : at / PAGE);
	return found;
}

/* Reads @bytes at @physical: the result, or -1 if that or the bytes are not those of the memory. */
static int read_right(struct kb_memory *opened, const struct form *form, uint64_t physical,
		      size_t bytes)
{
	static uint8_t got[PAGES * PAGE];
	int ret = kb_memory_read(opened, physical, got, bytes, &error);
	bool whole = true;

	for (size_t i = 0; i < bytes; i++) {
		uint64_t page = (physical + i) / PAGE;
		bool there = page < PAGES && (form == RAW || page < HOLE || page >= HOLE_END) &&
			     physical + i >= physical;

		if (got[i] != (there ? memory[physical + i] : 0))
			return -1;
		whole &= there;
	}
	return ret == whole ? ret : -1;
}

#define FOUND		((uint64_t)1 << 0 | 1 << 5 | (uint64_t)1 << (PAGES - 1))

static void promise(const struct form *form, bool good, const char *what)
{
	char name[96];

	snprintf(name, sizeof(name), "%s_%s", form->name, what);
	tap_ok(good, name);
}

static void try_form(const struct form *form)
{
	struct kb_memory *opened;
	bool right;
	uint64_t at = 5 * PAGE + 1;

	if (form->write(form)) {
		tap_skip(form->name, "no libzstd");
		return;
	}
	opened = open_file(base_of(form));
	if (!opened) {
		promise(form, false, "is_opened");
		tap_note("%s", kb_error_text(&error));
		return;
	}
	promise(form, kb_memory_is(path) == (form != RAW), "is_recognized");
	promise(form, find_all(opened) == FOUND, "is_searched_in_both_byte_orders_up_to_its_end");
	right = kb_memory_find(opened, magics, &at, &error) == 1 && at == (PAGES - 1) * PAGE;
	promise(form, right, "is_searched_from_an_address_on");
	right = kb_memory_bytes(opened) == PAGE * (form == RAW ? PAGES : PAGES - HOLE_END + HOLE);
	promise(form, right, "tells_how_much_memory_it_has");
	right = read_right(opened, form, 1, 1) == 1 &&
		read_right(opened, form, 77, 3 * PAGE) == 1 &&
		read_right(opened, form, (PAGES - 1) * PAGE, PAGE) == 1;
	promise(form, right, "is_read_as_it_was");
	right = read_right(opened, form, 0, sizeof(memory)) == (form == RAW) &&
		read_right(opened, form, (PAGES - 1) * PAGE + 9, PAGE) == 0 &&
		read_right(opened, form, 1U << 30, PAGE) == 0 &&
		read_right(opened, form, UINT64_MAX - 5, 100) == 0;
	promise(form, right, "has_zeros_where_it_has_no_memory");
	kb_memory_close(opened);
}

/* Whether all that is found or read in a part of a file is in the whole one as well. */
static bool is_part(struct kb_memory *opened)
{
	static uint8_t got[PAGES * PAGE];

	if (find_all(opened) & ~FOUND || kb_memory_read(opened, 0, got, sizeof(got), &error) < 0)
		return false;
	for (size_t i = 0; i < sizeof(got); i++)
		if (got[i] && got[i] != memory[i])
			return false;
	return true;
}

static void try_cuts(const struct form *form)
{
	unsigned int wrong = 0, some = 0;
	struct kb_memory *opened;
	size_t whole;

	if (form->write(form))
		return;
	whole = length;
	for (length = 0; length < whole; length += length < 8192 ? 61 : 1999) {
		opened = open_file(base_of(form));
		wrong += opened && !is_part(opened);
		some += opened && find_all(opened) & 1 && find_all(opened) != FOUND;
		wrong += !opened && (error.code == 0 || !*kb_error_text(&error));
		kb_memory_close(opened);
	}
	length = whole;
	promise(form, !wrong && some, "that_is_cut_off_gives_what_is_there");
}

/* Each byte of the headers is damaged; what comes out need not be right. */
static void try_damage(const struct form *form)
{
	static const uint8_t values[] = { 0, 0x7f, 0xff };
	uint8_t got[100];

	size_t from = form->flattened ? PAGE : 0;

	if (form == RAW || form->write(form))
		return;
	if (form->page <= PAGE && !from)
		length = 8 * PAGE;
	for (size_t i = from; i < from + 512; i += i > 16 && form->write == write_kdump && i < 400 ? 32 : 1)
		for (size_t k = 0; k < sizeof(values); k++) {
			uint8_t before = file[i];
			struct kb_memory *opened;

			file[i] = values[k];
			opened = open_file(KB_MEMORY_NO_BASE);
			if (opened) {
				find_all(opened);
				kb_memory_read(opened, PAGE - 50, got, sizeof(got), &error);
			}
			kb_memory_close(opened);
			file[i] = before;
		}
	promise(form, true, "whose_headers_are_damaged_is_survived");
}

/* ---- what only one form has ---- */

static bool is_refused(int code, const char *text)
{
	struct kb_memory *opened = open_file(KB_MEMORY_NO_BASE);
	bool good = !opened && error.code == code && strstr(kb_error_text(&error), text);

	if (!good)
		tap_note("%d %s", opened ? 0 : error.code, opened ? "" : kb_error_text(&error));
	kb_memory_close(opened);
	return good;
}

static void try_elf(void)
{
	static uint8_t got[PAGES * PAGE];
	struct kb_memory *opened;

	write_elf(ELF);
	file[56] = file[57] = 0xff;
	put_zeros_until(length + 7);
	memcpy(file + 40, &(uint64_t) { length }, 8);
	put_zeros_until(length + 44);
	put(ELF, 5, 4);
	opened = open_file(KB_MEMORY_NO_BASE);
	tap_ok(opened && find_all(opened) == FOUND, "more_segments_than_16_bits_hold_are_read");
	kb_memory_close(opened);

	file[length - 1] = 0xff;
	opened = open_file(KB_MEMORY_NO_BASE);
	tap_ok(opened || error.code == -EBADMSG, "headers_behind_the_end_are_not_looked_for");
	kb_memory_close(opened);

	write_elf(ELF);
	memcpy(file + 64 + 4 * 56 + 40, &(uint64_t) { (HOLE_END - HOLE) * PAGE }, 8);
	opened = open_file(KB_MEMORY_NO_BASE);
	tap_ok(opened && find_all(opened) == FOUND && kb_memory_bytes(opened) == PAGE * (PAGES - HOLE_END + HOLE) &&
	       kb_memory_read(opened, 0, got, sizeof(got), &error) == 1 &&
	       memcmp(got, memory, HOLE * PAGE) == 0 && !got[HOLE * PAGE] &&
	       memcmp(got + HOLE * PAGE, got + HOLE * PAGE + 1, (HOLE_END - HOLE) * PAGE - 1) == 0 &&
	       memcmp(got + HOLE_END * PAGE, memory + HOLE_END * PAGE, (PAGES - HOLE_END) * PAGE) == 0,
	       "zeros_that_segments_have_behind_the_bytes_of_the_file_are_there");
	kb_memory_close(opened);

	put_elf_header(ELF, 2);
	put_segment(ELF, 0, 1000, PAGE);
	put_segment(ELF, 0, 1000 + PAGE, PAGE);
	put_zeros_until(1000 + 2 * PAGE);
	tap_ok(is_refused(-ENOTSUP, "core of a process"), "the_core_of_a_process_is_refused");

	put_elf_header(ELF, 3000);
	for (unsigned int i = 0; i < 3000; i++)
		put_segment(ELF, (uint64_t)i << 32, 0, UINT32_MAX);
	tap_ok(is_refused(-EBADMSG, "damaged"), "many_segments_of_the_same_bytes_are_refused");

	put_elf_header(ELF, 2);
	put_segment(ELF, 0, 1000, PAGE);
	put_segment(ELF, 0x4c30cf400000, 1000, 0xffffb3cf72e10000);
	put_zeros_until(1000 + PAGE);
	tap_ok(is_refused(-EBADMSG, "'_text'"), "a_segment_behind_all_addresses_is_refused");

	write_elf(ELF);
	file[54] = 31;
	tap_ok(is_refused(-EBADMSG, "damaged"), "segments_with_headers_of_no_size_are_refused");

	write_elf(ELF);
	file[16] = ET_EXEC;
	tap_ok(is_refused(-ENOTSUP, "no core") && !kb_memory_is(path), "a_program_is_refused");
}

static void try_lime(void)
{
	struct kb_memory *opened;

	write_lime(LIME);
	file[32 + HOLE * PAGE] ^= 1;
	opened = open_file(KB_MEMORY_NO_BASE);
	tap_ok(opened && find_all(opened) == (1 | 1 << 5), "lime_is_read_up_to_the_damage");
	kb_memory_close(opened);

	write_lime(LIME);
	memset(file + 16, 0xff, 8);
	opened = open_file(KB_MEMORY_NO_BASE);
	tap_ok(opened && kb_memory_bytes(opened) == length - 32, "lime_of_all_addresses_is_read");
	kb_memory_close(opened);
	file[15] = 0xff;
	file[23] = 0;
	tap_ok(is_refused(-EBADMSG, "damaged"), "lime_that_ends_before_it_begins_is_refused");
}

static void try_kdump(void)
{
	struct kb_memory *opened;
	uint8_t row[16], got[8];
	uint64_t at = 0;

	write_kdump(KDUMP);
	file[4 * PAGE + 24 * 5] ^= 0x40;	/* page 5 is elsewhere */
	memcpy(row, file + 4 * PAGE + 24, sizeof(row));
	file[kb_load64(row, KB_SWAP_LE) + kb_load32(row + 8, KB_SWAP_LE) - 1] ^= 1;
	file[4 * PAGE + 24 * 31 + 10] = 1;	/* the last page has more bytes than a page */
	put_zeros_until(length + 70000);
	opened = open_file(KB_MEMORY_NO_BASE);
	tap_is(opened ? find_all(opened) : 0, 1, "pages_that_are_damaged_are_passed");
	tap_is(opened ? kb_memory_read(opened, PAGE, got, 8, &error) : -1, 0,
	       "a_page_with_a_wrong_checksum_is_not_there");
	kb_memory_close(opened);

	write_kdump(PLAIN);
	memset(file + 4 * PAGE, 0, 8);
	opened = open_file(KB_MEMORY_NO_BASE);
	tap_is(opened ? kb_memory_read(opened, 0, got, 8, &error) : -1, 0,
	       "a_page_that_was_not_written_is_not_there");
	kb_memory_close(opened);

	write_kdump(KDUMP);
	file[4 * PAGE + 12] = 2;
	opened = open_file(KB_MEMORY_NO_BASE);
	tap_ok(opened && kb_memory_find(opened, magics, &at, &error) == -ENOTSUP &&
	       strstr(kb_error_text(&error), "makedumpfile -c"), "lzo_says_what_to_do");
	kb_memory_close(opened);

	write_kdump(KDUMP);
	file[PAGE + 12] = 1;
	tap_ok(is_refused(-ENOTSUP, "makedumpfile --reassemble"),
	       "a_part_of_a_dump_says_what_to_do");

	write_kdump(KDUMP);
	file[PAGE + 101] = 1;
	tap_ok(is_refused(-EBADMSG, "bitmap"), "more_pages_than_bits_are_refused");

}

static void try_flattened(void)
{
	struct kb_memory *opened;
	uint8_t header[500];

	/* As makedumpfile makes room for headers. */
	write_flattened(FLATTENED);
	memcpy(header, file + PAGE + 16, sizeof(header));
	memset(file + PAGE + 16, 0, sizeof(header));
	length -= 16;
	put_piece(2 * PAGE, memory, 0);
	put_piece(0, header, sizeof(header));
	opened = open_file(KB_MEMORY_NO_BASE);
	tap_ok(opened && find_all(opened) == FOUND, "of_two_pieces_of_a_place_the_last_is_taken");
	kb_memory_close(opened);

	write_flattened(FLATTENED);
	length -= 16;
	put_piece((uint64_t)1 << 40, memory, 1);
	tap_ok(is_refused(-EBADMSG, "damaged"), "pieces_that_are_too_far_apart_are_refused");

	length = PAGE;
	tap_ok(is_refused(-ENOTSUP, "is no memory"), "a_flattened_dump_of_no_piece_is_refused");
}

static void try_others(void)
{
	struct kb_memory *opened = NULL;

	length = 0;
	tap_ok(is_refused(-ENOTSUP, "is no memory") && !kb_memory_is(path),
	       "an_empty_file_is_refused");
	tap_is(kb_memory_open(&opened, "/dev/null", 0, &error), -ENOTSUP,
	       "a_device_of_no_blocks_is_refused");
	tap_is(kb_memory_open(&opened, "/nowhere", 0, &error), -ENOENT,
	       "a_file_that_is_not_there_is_told");

	write_raw(RAW);
	opened = open_file(7 * PAGE + 8);
	tap_ok(opened && find_all(opened) == 0, "only_the_begins_of_pages_count");
	kb_memory_close(opened);
	opened = open_file(UINT64_MAX - PAGE);
	tap_ok(opened && kb_memory_bytes(opened) == PAGE, "raw_memory_ends_where_addresses_do");
	kb_memory_close(opened);
	tap_ok(!kb_memory_take(&opened, dup(fd), "taken", PAGE, 6 * PAGE, &error) &&
	       find_all(opened) == (1 << 1 | 1 << 6), "a_descriptor_has_as_much_memory_as_is_said");
	kb_memory_close(opened);
	opened = open_file(UINT64_MAX - 100);
	tap_ok(opened && find_all(opened) == 0, "behind_the_last_page_is_none");
	kb_memory_close(opened);
}

static void fill_memory(void)
{
	uint64_t magic = MAGIC, other = OTHER;
	uint32_t random = 1;

	for (size_t i = 0; i < sizeof(memory); i++) {
		random = random * 1103515245 + 12345;
		memory[i] = (uint8_t)(i / PAGE % 3 ? i / 100 : random >> 16);
	}
	memcpy(memory, &magic, sizeof(magic));
	memcpy(memory + (PAGES - 1) * PAGE, &other, sizeof(other));
	magic = __builtin_bswap64(magic);
	memcpy(memory + 5 * PAGE, &magic, sizeof(magic));
}

int main(void)
{
	fd = memfd_create("memory", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fill_memory();
	for (size_t i = 0; i < FORMS; i++) {
		try_form(&forms[i]);
		try_cuts(&forms[i]);
		try_damage(&forms[i]);
	}
	try_elf();
	try_lime();
	try_kdump();
	try_flattened();
	try_others();
	close(fd);
	return tap_done();
}
