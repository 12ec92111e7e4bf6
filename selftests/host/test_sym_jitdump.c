// SPDX-License-Identifier: MIT
/* Jitdumps: code by address and time, lines, and dumps that are damaged or unfinished. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/tap.h"
#include "sym/jit/jitdump.h"
#include "sym/jit/jitdump_file.h"
#include "sym/tables/elf_data.h"

/* ---- a dump ---- */

struct dump {
	uint8_t bytes[4096];
	size_t length;
	bool swapped;
};

static void put(struct dump *dump, uint64_t value, unsigned int size)
{
	for (unsigned int i = 0; i < size; i++) {
		unsigned int byte = dump->swapped ? size - 1 - i : i;

		dump->bytes[dump->length++] = value >> (8 * byte);
	}
}

static void put_text(struct dump *dump, const char *text)
{
	strcpy((char *)dump->bytes + dump->length, text);
	dump->length += strlen(text) + 1;
}

static void begin(struct dump *dump, bool swapped, uint64_t flags)
{
	dump->length = 0;
	dump->swapped = swapped;
	put(dump, 0x4a695444, 4);
	put(dump, 1, 4);
	put(dump, 40, 4);
	put(dump, 62, 4);
	put(dump, 0, 4);
	put(dump, 77, 4);
	put(dump, 1000, 8);
	put(dump, flags, 8);
}

static void load(struct dump *dump, uint64_t time, uint64_t start, uint64_t size, uint64_t index,
		 const char *name)
{
	put(dump, 0, 4);
	put(dump, 16 + 40 + strlen(name) + 1 + 4, 4);
	put(dump, time, 8);
	put(dump, 77, 4);
	put(dump, 77, 4);
	put(dump, start, 8);
	put(dump, start, 8);
	put(dump, size, 8);
	put(dump, index, 8);
	put_text(dump, name);
	put(dump, 0x90909090, 4);	/* code; there may be fewer bytes than it has */
}

static void move(struct dump *dump, uint64_t time, uint64_t from, uint64_t to, uint64_t size,
		 uint64_t index)
{
	put(dump, 1, 4);
	put(dump, 16 + 48, 4);
	put(dump, time, 8);
	put(dump, 77, 4);
	put(dump, 77, 4);
	put(dump, to, 8);
	put(dump, from, 8);
	put(dump, to, 8);
	put(dump, size, 8);
	put(dump, index, 8);
}

static void lines(struct dump *dump, uint64_t start)
{
	put(dump, 2, 4);
	put(dump, 16 + 16 + 3 * 16 + 5 + 2 + 5, 4);
	put(dump, 0, 8);
	put(dump, start, 8);
	put(dump, 3, 8);
	put(dump, start, 8);
	put(dump, 10, 4);
	put(dump, 0, 4);
	put_text(dump, "a.js");
	put(dump, start + 8, 8);
	put(dump, 11, 4);
	put(dump, 0, 4);
	put_text(dump, "\xff");
	put(dump, start + 16, 8);
	put(dump, 5, 4);
	put(dump, 0, 4);
	put_text(dump, "b.js");
}

static void put_all(struct dump *dump, bool swapped)
{
	begin(dump, swapped, 0);
	load(dump, 2000, 0x1000, 0x100, 1, "first");
	put(dump, 4, 4);		/* unwinding info, whatever is in it */
	put(dump, 24, 4);
	put(dump, 2100, 8);
	put(dump, 0, 8);
	lines(dump, 0x2000);
	load(dump, 2200, 0x2000, 0x80, 2, "with lines");
	load(dump, 3000, 0x1000, 0x40, 3, "first, compiled again");
	move(dump, 4000, 0x2000, 0x3000, 0x80, 2);
	load(dump, 5000, 0x2000, 0x80, 4, "at the place of another");
}

/* ---- what is read of it ---- */

static int parse(struct kb_elf *elf, const struct dump *dump)
{
	int ret = kb_jitdump_parse(&elf->jit, &elf->symbols, dump->bytes, dump->length);

	return ret ? ret : kb_jit_index(&elf->jit, &elf->symbols);
}

static const char *name_at(const struct kb_elf *elf, uint64_t address, uint64_t time)
{
	struct kb_jit_hit hit;

	kb_jit_find(&elf->jit, &elf->symbols, address, time, &hit);
	if (address < hit.low || address > hit.high)
		return "an answer that does not hold where it was asked";
	return hit.symbol ? kb_symtab_name(&elf->symbols, hit.symbol) : NULL;
}

static const char *line_at(const struct kb_elf *elf, uint64_t address, uint64_t time)
{
	static char text[64];
	const struct kb_jit_line *line = NULL;
	struct kb_jit_hit hit;

	kb_jit_find(&elf->jit, &elf->symbols, address, time, &hit);
	if (hit.symbol)
		line = kb_jit_line_at(&elf->jit, hit.code, address - hit.symbol->start);
	if (!line)
		return NULL;
	snprintf(text, sizeof(text), "%s:%u", elf->jit.files + line->file, line->line);
	return text;
}

static void test_good(bool swapped)
{
	struct dump dump;
	struct kb_elf elf = { 0 };
	struct kb_jit_hit hit;

	put_all(&dump, swapped);
	tap_is(parse(&elf, &dump), 0, "a_dump_is_read");
	tap_is_string(name_at(&elf, 0x1010, 2500), "first", "code_has_its_name_while_it_is_there");
	tap_is_string(name_at(&elf, 0x1010, 3000), "first, compiled again",
		      "code_at_the_same_place_has_another_name_later");
	tap_is_string(name_at(&elf, 0x1050, 9000), "first", "older_code_around_it_stays");
	tap_is_string(name_at(&elf, 0x1010, 100), "first", "before_all_code_the_oldest_counts");
	tap_is_string(name_at(&elf, 0x1100, 2500), NULL, "behind_code_there_is_none");
	tap_is_string(name_at(&elf, 0xfff, 2500), NULL, "in_front_of_code_there_is_none");
	tap_is_string(name_at(&elf, 0x2000, 3999), "with lines", "code_is_at_its_place");
	tap_is_string(name_at(&elf, 0x3000, 4000), "with lines", "code_moves");
	tap_is_string(name_at(&elf, 0x2000, 4500), NULL, "moved_code_is_no_longer_where_it_was");
	tap_is_string(name_at(&elf, 0x2000, 5000), "at the place of another",
		      "other_code_comes_where_it_was");
	tap_is_string(line_at(&elf, 0x2007, 2500), "a.js:10", "code_has_lines");
	tap_is_string(line_at(&elf, 0x2008, 2500), "a.js:11", "a_file_is_that_of_the_line_before");
	tap_is_string(line_at(&elf, 0x207f, 2500), "b.js:5", "the_last_line_goes_to_the_end");
	tap_is_string(line_at(&elf, 0x3008, 4500), "a.js:11", "lines_move_with_their_code");
	tap_is_string(line_at(&elf, 0x2008, 5000), NULL, "lines_are_of_one_code_only");
	tap_ok(elf.symbols.symbols[3].group == 1 && elf.symbols.symbols[4].group == 4,
	       "moved_code_is_the_same_function");
	kb_jit_find(&elf.jit, &elf.symbols, 0x1050, 2500, &hit);
	tap_ok(hit.always, "the_only_code_of_a_place_is_always_there");
	kb_jit_find(&elf.jit, &elf.symbols, 0x1010, 2500, &hit);
	tap_ok(!hit.always, "code_that_is_replaced_is_not");
	kb_elf_release(&elf);
}

/* V8 adds the size of an ELF header to each address. */
static void test_header_offset(void)
{
	struct kb_elf elf = { 0 };
	struct dump dump;

	begin(&dump, false, 0);
	lines(&dump, 0x2040);
	dump.bytes[56] = 0;		/* of the code at 0x2000 */
	load(&dump, 2200, 0x2000, 0x80, 2, "of V8");
	tap_is(parse(&elf, &dump), 0, "lines_from_a_header_on_are_read");
	tap_is_string(line_at(&elf, 0x2000, 2500), "a.js:10", "the_header_does_not_count");
	tap_is_string(line_at(&elf, 0x2010, 2500), "b.js:5", "nor_for_later_lines");
	kb_elf_release(&elf);
}

static void test_bad_lines(void)
{
	static const char bad[] = { '\x01', '\xa5', '\0' };

	for (size_t i = 0; i < sizeof(bad); i++) {
		struct kb_elf elf = { 0 };
		struct dump dump;

		begin(&dump, false, 0);
		lines(&dump, 0x2000);
		dump.bytes[40 + 16 + 16 + 16 + 1] = bad[i];
		load(&dump, 2200, 0x2000, 0x80, 2, "of Node.js");
		tap_is(parse(&elf, &dump), 0, "lines_of_files_that_are_no_text_are_no_damage");
		tap_is_string(name_at(&elf, 0x2010, 2500), "of Node.js", "their_code_is_there");
		tap_is_string(line_at(&elf, 0x2010, 2500), NULL, "they_are_left_out");
		kb_elf_release(&elf);
	}
}

static void test_times(void)
{
	struct dump dump;
	struct kb_elf elf = { 0 };

	begin(&dump, false, 1);
	load(&dump, 9000, 0x1000, 0x100, 1, "old");
	load(&dump, 5000, 0x1000, 0x100, 2, "new");
	load(&dump, 5000, 0x2000, 0x100, 3, "moved");
	move(&dump, 6000, 0x2000, 0x3000, 0x100, 3);
	tap_is(parse(&elf, &dump), 0, "a_dump_with_other_times_is_read");
	tap_is_string(name_at(&elf, 0x1000, 7000), "new", "its_last_code_counts");
	tap_is_string(name_at(&elf, 0x2000, 0), NULL, "its_moved_code_is_not_where_it_was");
	tap_is_string(name_at(&elf, 0x3000, 0), "moved", "its_moved_code_is_where_it_went");
	kb_elf_release(&elf);
	begin(&dump, false, 0);
	load(&dump, 9000, 0x1000, 0x100, 1, "late");
	load(&dump, 5000, 0x1000, 0x100, 2, "early");
	tap_is(parse(&elf, &dump), 0, "a_dump_without_order_is_read");
	tap_is_string(name_at(&elf, 0x1000, 6000), "early", "times_count_not_the_order");
	tap_is_string(name_at(&elf, 0x1000, 9000), "late", "times_count_not_the_order_later");
	kb_elf_release(&elf);
}

/* ---- damage ---- */

static void test_truncated(void)
{
	struct dump dump, part;
	bool ok = true;

	put_all(&dump, false);
	for (size_t length = 0; length <= dump.length; length++) {
		struct kb_elf elf = { 0 };
		int ret;

		memset(&part, 0xa5, sizeof(part));
		memcpy(part.bytes, dump.bytes, length);
		part.length = length;
		ret = parse(&elf, &part);
		ok = ok && ret == (length < 40 ? -ENOEXEC : 0);
		if (length > 200 && !ret)
			ok = ok && !strcmp(name_at(&elf, 0x1050, 2500) ?: "", "first");
		kb_elf_release(&elf);
	}
	tap_ok(ok, "what_is_whole_of_an_unfinished_dump_is_read");
}

/* Any byte may be anything: nothing is read or kept that is not there. */
static void test_hostile(void)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	struct dump dump;
	bool ok = true;

	put_all(&dump, false);
	for (size_t i = 0; i < dump.length; i++)
		for (size_t v = 0; v < sizeof(values); v++) {
			uint8_t *exact = malloc(dump.length), was = dump.bytes[i];
			struct kb_elf elf = { 0 };

			dump.bytes[i] = values[v];
			memcpy(exact, dump.bytes, dump.length);
			if (!kb_jitdump_parse(&elf.jit, &elf.symbols, exact, dump.length))
				ok = ok && !kb_jit_index(&elf.jit, &elf.symbols) &&
				     elf.jit.nr_codes == elf.symbols.nr_symbols &&
				     elf.jit.nr_codes <= 8 && elf.jit.nr_lines <= 3;
			kb_elf_release(&elf);
			dump.bytes[i] = was;
			free(exact);
		}
	tap_ok(ok, "damage_makes_no_code");
}

static void test_claims(void)
{
	struct dump dump;
	struct kb_elf elf = { 0 };
	char name[3000];

	begin(&dump, false, 0);
	load(&dump, 2000, 0x1000, 0, 1, "empty");
	load(&dump, 2000, UINT64_MAX - 8, 9, 2, "behind the end");
	load(&dump, 2000, 0x5000, 8, 3, "");
	move(&dump, 2000, 0x9000, 0xa000, 8, 99);
	move(&dump, 2000, 0x9000, 0xa000, 8, 3);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	load(&dump, 2000, 0x6000, 8, 4, name);
	tap_is(parse(&elf, &dump), 0, "claims_that_can_not_be_are_left_out");
	tap_is(elf.jit.nr_codes, 2, "only_what_can_be_is_kept");
	tap_is_string(name_at(&elf, 0x5000, 2000), "[jit]", "code_without_a_name_gets_one");
	tap_is_string(name_at(&elf, 0x6000, 2000), name, "names_may_be_long");
	kb_elf_release(&elf);
	begin(&dump, false, 0);
	put(&dump, 0, 4);
	put(&dump, 0, 4);
	put(&dump, 0, 8);
	tap_is(parse(&elf, &dump), 0, "a_record_without_a_length_ends_the_dump");
	kb_elf_release(&elf);
}

/* ---- files ---- */

static void test_names(void)
{
	tap_ok(kb_is_jitdump("/tmp/jit-77.dump"), "a_dump_is_known_by_its_name");
	tap_ok(kb_is_jitdump("/home/a/.debug/jit/java/jit-1.dump"), "it_may_be_anywhere");
	tap_ok(!kb_is_jitdump("/tmp/jit-.dump") && !kb_is_jitdump("/tmp/jit-7.dumps") &&
	       !kb_is_jitdump("/tmp/xjit-7.dump") && !kb_is_jitdump("jit-7.dump") &&
	       !kb_is_jitdump("[anon]") && !kb_is_jitdump(""), "other_names_are_none");
}

static void write_file(const char *path, const struct dump *dump)
{
	FILE *file = fopen(path, "w");

	if (!file || fwrite(dump->bytes, 1, dump->length, file) != dump->length)
		exit(2);
	fclose(file);
}

static void test_files(void)
{
	char directory[] = "/tmp/kbarman-jitdump-XXXXXX", path[128], moved[128];
	struct kb_map row = { .task_id = 1, .image = "/var/jit-77.dump" };
	struct kb_elf elf = { 0 };
	struct dump dump;

	if (!mkdtemp(directory))
		exit(2);
	put_all(&dump, false);
	tap_is(kb_jitdump_file_read(&elf, directory, &row, NULL), -ENOENT,
	       "a_missing_dump_is_told");
	snprintf(path, sizeof(path), "%s/jit-77.dump", directory);
	write_file(path, &dump);
	tap_is(kb_jitdump_file_read(&elf, directory, &row, NULL), 0,
	       "a_dump_is_found_in_a_folder_of_files");
	tap_is_string(name_at(&elf, 0x1010, 3000), "first, compiled again", "a_file_is_read");
	kb_elf_release(&elf);
	row.image = path;
	tap_is(kb_jitdump_file_read(&elf, "", &row, NULL), 0, "a_dump_is_found_by_its_path");
	kb_elf_release(&elf);
	row.file = kb_text("1:2:3:4:5");
	tap_is(kb_jitdump_file_read(&elf, "", &row, NULL), -ESTALE,
	       "another_file_at_the_path_is_refused");
	row.file = kb_text(NULL);
	snprintf(moved, sizeof(moved), "%s/other", directory);
	tap_ok(!rename(path, moved) && !symlink(moved, path) &&
	       kb_jitdump_file_read(&elf, "", &row, NULL) == -ENOTSUP, "links_are_not_followed");
	unlink(path);
	tap_ok(!mkfifo(path, 0600) && kb_jitdump_file_read(&elf, "", &row, NULL) == -ENOTSUP,
	       "a_fifo_does_not_block");
	unlink(path);
	unlink(moved);
	rmdir(directory);
}

/* A dump that is larger than the window, whose records lie across its borders. */
static void test_large(void)
{
	struct kb_elf elf = { 0 };
	struct dump dump;
	int file = memfd_create("dump", 0);
	char name[64];
	bool ok = true;

	begin(&dump, false, 0);
	for (uint32_t i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "function %u", i);
		load(&dump, i, 0x1000 + 16 * i, 16, i, name);
		if (write(file, dump.bytes, dump.length) != (ssize_t)dump.length)
			exit(2);
		dump.length = 0;
	}
	tap_is(kb_jitdump_read_fd(&elf.jit, &elf.symbols, file), 0, "a_large_dump_is_read");
	tap_ok(!kb_jit_index(&elf.jit, &elf.symbols) && elf.jit.nr_codes == 5000,
	       "all_of_it_is_read");
	for (uint32_t i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "function %u", i);
		ok = ok && !strcmp(name_at(&elf, 0x100f + 16 * i, 6000) ?: "", name);
	}
	tap_ok(ok, "all_of_its_code_is_found");
	kb_elf_release(&elf);
	close(file);
}

/* The index against a look at all code. */
static void test_index(void)
{
	enum { CODES = 60, SPAN = 100 };
	bool ok = true;

	srandom(1);
	for (int round = 0; round < 200; round++) {
		struct kb_elf elf = { 0 };
		struct { uint64_t start, size, time; } all[CODES];
		struct dump dump;
		int nr = 1 + random() % (CODES / 2);

		begin(&dump, round & 1, 0);
		for (int i = 0; i < nr; i++) {
			char name[8];

			all[i].start = 1 + random() % SPAN;
			all[i].size = 1 + random() % (round & 2 ? SPAN : 5);
			all[i].time = 1 + random() % 50;
			snprintf(name, sizeof(name), "%d", i);
			load(&dump, all[i].time, all[i].start, all[i].size, i, name);
		}
		ok = ok && !parse(&elf, &dump);
		for (uint64_t at = 0; at < 2 * SPAN + 2; at++) {
			uint64_t time = random() % 60;
			const char *got = name_at(&elf, at, time);
			int best = -1;

			for (int i = 0; i < nr; i++) {
				bool old = all[i].time <= time, best_old;

				if (at < all[i].start || at >= all[i].start + all[i].size)
					continue;
				best_old = best >= 0 && all[best].time <= time;
				if (best < 0 || (old && (!best_old ||
							 all[i].time >= all[best].time)) ||
				    (!old && !best_old && all[i].time < all[best].time))
					best = i;
			}
			ok = ok && (got ? best >= 0 && atoi(got) == best : best < 0);
		}
		kb_elf_release(&elf);
	}
	tap_ok(ok, "the_code_of_an_address_and_time_is_found");
}

int main(void)
{
	test_good(false);
	test_good(true);
	test_header_offset();
	test_bad_lines();
	test_times();
	test_truncated();
	test_hostile();
	test_claims();
	test_names();
	test_files();
	test_large();
	test_index();
	return tap_done();
}
