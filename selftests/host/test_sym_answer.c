// SPDX-License-Identifier: MIT
/*
 * Answers of a decoder, honest and other ones; and the library's readers with a decoder that is
 * this process, so that all of their bytes go through an answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/tap.h"
#include "sym/elf/elf.h"
#include "sym/image/decode.h"
#include "sym/jit/jitdump_file.h"
#include "sym/jit/perfmap.h"
#include "sym/names/demangle.h"
#include "sym/question/answer.h"

struct bytes {
	const uint8_t *at;
	size_t left, piece;
};

static ssize_t some(void *context, void *to, size_t size)
{
	struct bytes *bytes = context;

	if (size > bytes->piece)
		size = bytes->piece;
	if (size > bytes->left)
		size = bytes->left;
	memcpy(to, bytes->at, size);
	bytes->at += size;
	bytes->left -= size;
	return size;
}

static int read_back(struct kb_elf *found, const uint8_t *data, size_t size, size_t piece)
{
	struct bytes bytes = { data, size, piece };

	return kb_answer_read(found, some, &bytes);
}

/* ---- an answer that is written here ---- */

static struct image {
	struct kb_answer_head head;
	struct kb_answer_segment segments[2];
	struct kb_answer_symbol symbols[3];
	char names[16];
	struct kb_answer_symbol functions[2];
	char function_names[7];
} __attribute__((packed)) good = {
	.head = {
		.magic = KB_ANSWER_MAGIC, .flags = KB_ANSWER_SYMTAB, .nr_segments = 2, .nr_symbols = 3,
		.nr_stubs = 1, .build_id_length = 20, .names_length = 16, .debuglink = "a.debug",
		.nr_functions = 2, .function_names_length = 7,
	},
	.segments = { { 0, 0, 10, 0 }, { 0x1000, 0x2000, 0x100, 1 } },
	.symbols = {
		{ 0x2000, 0x10, 4, KB_RANK_GLOBAL, 0 },
		{ 0x2010, UINT64_MAX, 3, KB_RANK_LOCAL, 1 },
		{ UINT64_MAX - 1, 1, 6, KB_RANK_WEAK, 0 },
	},
	.names = "main\0two\0third!",
	.functions = {
		{ 0x3000, 0x10, 0, KB_RANK_NAMELESS, 0 },
		{ 0x3010, 0x20, 5, KB_RANK_LOCAL, 0 },
	},
	.function_names = "\0_init",
};

static int read_image(struct kb_elf *found, const struct image *image)
{
	return read_back(found, (const uint8_t *)image, sizeof(*image), SIZE_MAX);
}

static bool is_empty(const struct kb_elf *found)
{
	static const struct kb_elf none;

	return memcmp(found, &none, sizeof(none)) == 0;
}

#define REFUSED(change, name) do {						\
	struct image image = good;						\
										\
	change;									\
	tap_ok(read_image(&found, &image) == -EPROTO && is_empty(&found), name);\
} while (0)

static void test_lies(void)
{
	struct kb_elf found;
	size_t size;
	bool all = true;

	if (tap_is(read_image(&found, &good), 0, "a_good_answer_is_taken")) {
		tap_is(found.symbols.nr_symbols, 3, "all_symbols_are_taken");
		tap_is_string(kb_symtab_name(&found.symbols, &found.symbols.symbols[2]), "third!",
			      "names_are_those_of_their_symbols");
		tap_is(found.functions.nr_symbols, 2, "all_functions_are_taken");
		tap_is(kb_elf_sort(&found, kb_text("lib")), 0, "they_can_be_sorted");
		kb_elf_release(&found);
	}
	REFUSED(image.head.magic++, "another_magic_is_refused");
	REFUSED(image.head.code = 1, "a_code_that_is_no_error_is_refused");
	REFUSED(image.head.code = -EPERM, "an_error_that_no_decoder_has_is_refused");
	REFUSED(image.head.flags = 4, "unknown_flags_are_refused");
	REFUSED(image.head.nr_segments = KB_ELF_MAX_SEGMENTS + 1, "too_many_segments_are_refused");
	REFUSED(image.head.nr_symbols = KB_SYMTAB_MAX + 1, "too_many_symbols_are_refused");
	REFUSED(image.head.nr_symbols = 4, "symbols_that_are_not_there_are_refused");
	REFUSED(image.head.nr_stubs = 4, "more_stubs_than_symbols_are_refused");
	REFUSED(image.head.build_id_length = KB_BUILD_ID_MAX + 1, "a_long_build_id_is_refused");
	REFUSED(image.head.names_length = UINT32_MAX, "too_long_names_are_refused");
	REFUSED(image.head.names_length = 15, "names_without_an_end_are_refused");
	REFUSED(strcpy(image.head.debuglink, "../../x"), "a_debuglink_into_a_folder_is_refused");
	REFUSED(memset(image.head.debuglink, 'x', 256), "a_debuglink_without_an_end_is_refused");
	REFUSED(image.segments[0].size = 0, "an_empty_segment_is_refused");
	REFUSED(image.segments[1].size = UINT64_MAX, "a_segment_beyond_the_end_is_refused");
	REFUSED(image.segments[1].executable = 2, "another_truth_is_refused");
	REFUSED(image.symbols[0].size = 0, "an_empty_symbol_is_refused");
	REFUSED(image.symbols[2].size = 2, "a_symbol_beyond_the_end_is_refused");
	REFUSED(image.symbols[1].start = UINT64_MAX, "a_symbol_at_the_end_is_refused");
	REFUSED(image.symbols[0].rank = KB_RANK_BOUNDARY, "a_boundary_is_refused");
	REFUSED(image.symbols[0].rank = KB_RANK_GLOBAL + 1, "another_rank_is_refused");
	REFUSED(image.symbols[1].open = 2, "another_kind_of_symbol_is_refused");
	REFUSED(image.symbols[0].name_length = 0, "a_symbol_without_a_name_is_refused");
	REFUSED(image.symbols[0].name_length = UINT32_MAX, "a_name_beyond_all_is_refused");
	REFUSED(image.symbols[2].name_length = 5, "names_that_are_left_over_are_refused");
	REFUSED(image.names[4] = 'x', "a_name_that_goes_on_is_refused");
	REFUSED(image.names[0] = '\0', "an_empty_name_is_refused");
	REFUSED(image.names[15] = 'x', "a_last_name_without_an_end_is_refused");
	REFUSED(image.symbols[1].rank = KB_RANK_NAMELESS, "a_symbol_without_rank_is_refused");
	REFUSED(image.head.nr_codes = 2, "code_that_is_not_that_of_symbols_is_refused");
	REFUSED(image.head.nr_codes = 3, "code_that_is_not_there_is_refused");
	REFUSED(image.head.nr_lines = KB_JIT_MAX_LINES + 1, "too_many_lines_are_refused");
	REFUSED(image.head.nr_lines = 1, "lines_that_are_not_there_are_refused");
	REFUSED(image.head.files_length = KB_JIT_MAX_TEXT + 1ULL, "too_long_files_are_refused");
	REFUSED(image.head.nr_functions = KB_SYMTAB_MAX + 1, "too_many_functions_are_refused");
	REFUSED(image.head.nr_functions = 1, "functions_that_are_left_over_are_refused");
	REFUSED(image.head.function_names_length = UINT32_MAX, "too_long_names_of_functions_are_refused");
	REFUSED(image.functions[0].size = 0, "an_empty_function_is_refused");
	REFUSED(image.functions[0].rank = KB_RANK_LOCAL, "a_rank_without_a_name_is_refused");
	REFUSED(image.functions[1].rank = KB_RANK_NAMELESS, "a_name_without_rank_is_refused");
	REFUSED(image.functions[1].rank = KB_RANK_BOUNDARY, "a_boundary_as_function_is_refused");
	REFUSED(image.function_names[0] = 'x', "a_name_that_goes_on_in_another_is_refused");
	REFUSED(image.function_names[1] = '\0', "an_empty_name_of_a_function_is_refused");

	for (size = 0; size < sizeof(good); size++)
		all &= read_back(&found, (uint8_t *)&good, size, SIZE_MAX) == -EPROTO &&
		       is_empty(&found);
	tap_ok(all, "an_answer_that_is_cut_anywhere_is_refused");
	{
		uint8_t more[sizeof(good) + 1] = { 0 };

		memcpy(more, &good, sizeof(good));
		tap_is(read_back(&found, more, sizeof(more), SIZE_MAX), -EPROTO,
		       "an_answer_that_goes_on_is_refused");
	}
	{
		struct kb_answer_head head = { .magic = KB_ANSWER_MAGIC, .code = -EBADMSG };

		tap_is(read_back(&found, (uint8_t *)&head, sizeof(head), SIZE_MAX), -EBADMSG,
		       "an_error_is_passed_on");
	}
}

/* ---- whole ways ---- */

static uint32_t asked;
static size_t piece_size;

/* A kb_decoder. */
static int decode_here(void *context, const struct kb_question *question, int fd, const char *label,
		       struct kb_elf *found)
{
	int answer = memfd_create("answer", 0), ret;
	struct stat st;
	uint8_t *data;

	(void)label;
	asked++;
	kb_decode_by(NULL, NULL);
	ret = kb_decode_answer(question, fd, answer);
	kb_decode_by(decode_here, context);
	if (ret || fstat(answer, &st))
		exit(2);
	data = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, answer, 0);
	ret = read_back(found, data, st.st_size, piece_size);
	munmap(data, st.st_size);
	close(answer);
	return ret;
}

static bool are_same_symbols(const struct kb_symtab *a, const struct kb_symtab *b)
{
	if (a->nr_symbols != b->nr_symbols)
		return false;
	for (uint32_t i = 0; i < a->nr_symbols; i++) {
		const struct kb_symtab_symbol *x = &a->symbols[i], *y = &b->symbols[i];

		if (x->start != y->start || x->size != y->size || x->rank != y->rank ||
		    strcmp(kb_symtab_name(a, x), kb_symtab_name(b, y)))
			return false;
	}
	return true;
}

static bool are_same(const struct kb_elf *a, const struct kb_elf *b)
{
	if (a->nr_segments != b->nr_segments ||
	    memcmp(a->segments, b->segments, a->nr_segments * sizeof(*a->segments)) ||
	    memcmp(&a->build_id, &b->build_id, sizeof(a->build_id)) ||
	    a->nr_stubs != b->nr_stubs || a->has_symtab != b->has_symtab ||
	    a->has_dwarf != b->has_dwarf || strcmp(a->debuglink, b->debuglink))
		return false;
	return are_same_symbols(&a->symbols, &b->symbols) &&
	       are_same_symbols(&a->functions, &b->functions);
}

static void test_elf(void)
{
	struct kb_elf here, there;
	struct kb_error err;

	if (kb_elf_load(&here, "/proc/self/exe", &err)) {
		tap_ok(false, "this_program_is_read");
		return;
	}
	kb_decode_by(decode_here, NULL);
	for (piece_size = 1; piece_size <= 1 << 20; piece_size <<= 10) {
		if (tap_is(kb_elf_load(&there, "/proc/self/exe", &err), 0, "it_is_read_elsewhere")) {
			tap_ok(here.functions.nr_symbols > 10 && are_same(&here, &there),
			       "it_is_the_same_elsewhere");
			kb_elf_release(&there);
		}
	}
	tap_is(kb_elf_load(&there, "/etc/passwd", &err), -ENOEXEC, "text_is_no_elf_file_elsewhere");
	tap_ok(strstr(err.text, "/etc/passwd is neither"), "the_message_names_the_file");
	asked = 0;
	tap_is(kb_elf_load(&there, "/dev/zero", &err), -ENOEXEC, "a_device_is_refused");
	tap_is(asked, 0, "a_device_is_not_handed_over");
	tap_is(kb_elf_check_dwarf(&here, "/proc/self/exe"), -ENODATA, "lines_are_not_read_here");
	/* with itself for a debug file: each symbol is there twice, until they are sorted */
	tap_is(kb_elf_read(&there, "/proc/self/exe", &err), 0, "it_is_read_again");
	tap_is(kb_elf_add_debug(&there, "/proc/self/exe"), here.build_id.length ? 0 : -ESTALE,
	       "a_debug_file_is_read_elsewhere");
	tap_ok(kb_symtab_sort(&there.symbols) == 0 && are_same(&here, &there),
	       "its_symbols_are_added");
	there.build_id.bytes[0] ^= 1;
	tap_is(kb_elf_add_debug(&there, "/proc/self/exe"), -ESTALE,
	       "that_of_another_file_is_refused_elsewhere");
	kb_elf_release(&there);
	kb_decode_by(NULL, NULL);
	kb_elf_release(&here);
}

static void test_perfmap(void)
{
	char directory[] = "/tmp/kbarman-answer-XXXXXX", path[128];
	struct kb_symtab symtab = { 0 };
	struct kb_symtab_hit hit;
	FILE *file;

	if (!mkdtemp(directory))
		exit(2);
	snprintf(path, sizeof(path), "%s/tmp", directory);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/tmp/perf-77.map", directory);
	file = fopen(path, "w");
	fputs("1000 100 first\n2000 80 second, older\n2000 80 second, newer\n", file);
	fclose(file);
	kb_decode_by(decode_here, NULL);
	asked = 0;
	tap_is(kb_perfmap_read(&symtab, directory, 77), 0, "a_map_is_read_elsewhere");
	tap_is(asked, 1, "a_map_is_handed_over");
	kb_decode_by(NULL, NULL);
	kb_symtab_find(&symtab, 0x2010, &hit);
	tap_is_string(hit.symbol ? kb_symtab_name(&symtab, hit.symbol) : NULL, "second, newer",
		      "what_was_read_is_found");
	kb_symtab_release(&symtab);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	rmdir(directory);
}

/* ---- jitdumps ---- */

static struct jit_image {
	struct kb_answer_head head;
	struct kb_answer_symbol symbols[2];
	char names[8];
	struct kb_jit_code codes[2];
	struct kb_jit_line lines[2];
	char files[5];
} __attribute__((packed)) good_jit = {
	.head = {
		.magic = KB_ANSWER_MAGIC, .nr_symbols = 2, .names_length = 8, .nr_codes = 2,
		.nr_lines = 2, .files_length = 5,
	},
	.symbols = {
		{ 0x2000, 0x10, 3, KB_RANK_GLOBAL, 0 },
		{ 0x2000, 0x20, 3, KB_RANK_GLOBAL, 0 },
	},
	.names = "old\0new",
	.codes = { { 10, 20, 0, 2, 0, 0 }, { 30, KB_JIT_FOREVER, 2, 0, 0, 0 } },
	.lines = { { 0, 1, 0 }, { 8, 2, 0 } },
	.files = "a.js",
};

#define JIT_REFUSED(change, name) do {							\
	struct jit_image image = good_jit;						\
											\
	change;										\
	tap_ok(read_back(&found, (uint8_t *)&image, sizeof(image), SIZE_MAX) == -EPROTO &&	\
	       is_empty(&found), name);							\
} while (0)

static void test_jit_lies(void)
{
	struct kb_elf found;
	struct kb_jit_hit hit;
	bool all = true;

	if (tap_is(read_back(&found, (uint8_t *)&good_jit, sizeof(good_jit), SIZE_MAX), 0,
		   "a_good_answer_with_code_is_taken")) {
		tap_is(kb_jit_index(&found.jit, &found.symbols), 0, "its_code_can_be_searched");
		kb_jit_find(&found.jit, &found.symbols, 0x2008, 15, &hit);
		tap_ok(hit.symbol && !strcmp(kb_symtab_name(&found.symbols, hit.symbol), "old") &&
		       kb_jit_line_at(&found.jit, hit.code, 8)->line == 2, "its_code_is_found");
		kb_elf_release(&found);
	}
	JIT_REFUSED(image.codes[0].nr_lines = 3, "lines_that_no_code_has_are_refused");
	JIT_REFUSED(image.codes[1].first_line = UINT32_MAX, "lines_behind_the_end_are_refused");
	JIT_REFUSED(image.lines[1].file = 5, "a_file_behind_the_end_is_refused");
	JIT_REFUSED(image.files[4] = 'x', "a_file_without_an_end_is_refused");
	JIT_REFUSED(image.symbols[0].open = 1, "code_without_a_size_is_refused");
	JIT_REFUSED(image.head.files_length = 0, "lines_without_files_are_refused");
	for (size_t size = 0; size < sizeof(good_jit); size++)
		all &= read_back(&found, (uint8_t *)&good_jit, size, SIZE_MAX) == -EPROTO &&
		       is_empty(&found);
	tap_ok(all, "an_answer_with_code_that_is_cut_anywhere_is_refused");
}

static void put_load(FILE *file, uint64_t time, uint64_t start, uint64_t index, const char *name)
{
	uint32_t head[] = { 0, 16 + 40 + strlen(name) + 1 }, ids[] = { 77, 77 };
	uint64_t place[] = { start, start, 0x10, index };

	fwrite(head, sizeof(head), 1, file);
	fwrite(&time, sizeof(time), 1, file);
	fwrite(ids, sizeof(ids), 1, file);
	fwrite(place, sizeof(place), 1, file);
	fwrite(name, strlen(name) + 1, 1, file);
}

static void test_jitdump(void)
{
	char directory[] = "/tmp/kbarman-answer-XXXXXX", path[128];
	uint32_t header[10] = { 0x4a695444, 1, 40, 62, 0, 77 };
	struct kb_map row = { .task_id = 77, .image = path };
	struct kb_elf elf = { 0 };
	struct kb_jit_hit hit;
	FILE *file;

	if (!mkdtemp(directory))
		exit(2);
	snprintf(path, sizeof(path), "%s/jit-77.dump", directory);
	file = fopen(path, "w");
	fwrite(header, sizeof(header), 1, file);
	put_load(file, 10, 0x2000, 1, "older");
	put_load(file, 20, 0x2000, 2, "newer");
	fclose(file);
	kb_decode_by(decode_here, NULL);
	asked = 0;
	tap_is(kb_jitdump_file_read(&elf, "", &row, NULL), 0, "a_jitdump_is_read_elsewhere");
	tap_is(asked, 1, "a_jitdump_is_handed_over");
	kb_jit_find(&elf.jit, &elf.symbols, 0x2008, 15, &hit);
	tap_is_string(hit.symbol ? kb_symtab_name(&elf.symbols, hit.symbol) : NULL, "older",
		      "times_come_through_an_answer");
	kb_elf_release(&elf);
	file = fopen(path, "w");
	fputs("this is text, and it is longer than the header of a dump", file);
	fclose(file);
	tap_ok(kb_jitdump_file_read(&elf, "", &row, NULL) == -ENOEXEC && is_empty(&elf),
	       "text_is_no_jitdump_elsewhere");
	kb_decode_by(NULL, NULL);
	unlink(path);
	rmdir(directory);
}

static void test_names(void)
{
	static const char rust[] = "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE";
	struct kb_demangler demangler = { 0 };
	char *text, *wanted = kb_demangle(&demangler, rust), longest[2000];

	kb_decode_by(decode_here, NULL);
	text = kb_demangle(&demangler, rust);
	tap_is_string(text, wanted, "a_name_is_demangled_elsewhere");
	free(text);
	text = kb_demangle(&demangler, "_Zx");
	tap_is_string(text, NULL, "a_name_that_is_none_stays");
	free(text);
	asked = 0;
	text = kb_demangle(&demangler, "_start");
	tap_ok(!text && !asked, "nobody_is_asked_for_a_plain_name");
	free(text);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	memcpy(longest, "_Z", 2);
	text = kb_demangle(&demangler, longest);
	tap_ok(!text && !asked, "nobody_is_asked_for_an_endless_name");
	free(text);
	kb_decode_by(NULL, NULL);
	kb_demangler_release(&demangler);
	free(wanted);
}

/* ---- threads ---- */

static int answering, most_answering;

/* A kb_decoder that takes a while. */
static int decode_slowly(void *context, const struct kb_question *question, int fd,
			 const char *label, struct kb_elf *found)
{
	int now = __atomic_add_fetch(&answering, 1, __ATOMIC_SEQ_CST);

	(void)context;
	(void)question;
	(void)fd;
	(void)label;
	(void)found;
	if (now > most_answering)
		most_answering = now;
	usleep(1000);
	__atomic_sub_fetch(&answering, 1, __ATOMIC_SEQ_CST);
	return -EIO;
}

static void *ask_often(void *context)
{
	const struct kb_question question = { .what = KB_QUESTION_NAME };
	struct kb_elf found;

	for (int i = 0; i < 50; i++)
		kb_decode_elsewhere(&question, -1, "", &found, NULL);
	return context;
}

static void test_threads(void)
{
	pthread_t threads[4];

	kb_decode_by(decode_slowly, NULL);
	for (size_t i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, ask_often, NULL))
			exit(2);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	kb_decode_by(NULL, NULL);
	tap_is(most_answering, 1, "a_decoder_answers_one_thread_at_a_time");
}

int main(void)
{
	piece_size = SIZE_MAX;
	test_lies();
	test_elf();
	piece_size = SIZE_MAX;
	test_perfmap();
	test_jit_lies();
	test_jitdump();
	test_names();
	test_threads();
	return tap_done();
}
