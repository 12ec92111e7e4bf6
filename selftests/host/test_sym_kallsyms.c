// SPDX-License-Identifier: MIT
/* Kernel symbols from text: what answers, where it ends, and what is refused. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "../lib/tap.h"
#include "sym/tables/kallsyms.h"

static const char text[] =
	"0000000000000000 A fixed_percpu_data\n"
	"0000000000014000 d percpu_thing\n"
	"ffffffff81000000 T _stext\n"
	"ffffffff81000000 T startup_64\n"
	"ffffffff81000100 t local_function\n"
	"ffffffff81000180 W weak_function\n"
	"ffffffff81000200 T _etext\n"
	"ffffffff81000200 D some_data\n"
	"ffffffffc0001010 t probe\t[module_a]\n"
	"ffffffffc0001010 t $x\t[module_a]\n"
	"ffffffffc0001100 t .Llabel\t[module_a]\n"
	"ffffffffc0001800 t last_of_a\t[module_a]\n"
	"ffffffffc0003f00 t last_of_c\t[module_c]\n"
	"ffffffffc0005000 t first_of_b\t[module_b]\n"
	"ffffffffc0009000 t bpf_prog_1234_test\t[bpf]\n";

static const char *name_at(const struct kb_kallsyms *kallsyms, uint64_t address,
			   const char **image)
{
	struct kb_symtab_hit hit;

	kb_symtab_find(&kallsyms->symbols, address, &hit);
	if (!hit.symbol)
		return NULL;
	if (image)
		*image = kallsyms->images[hit.symbol->group];
	return kb_symtab_name(&kallsyms->symbols, hit.symbol);
}

static void test_text(void)
{
	struct kb_map rows[] = {	/* the other modules have none */
		{ .task_id = 7, .base_address = 0xffffffffc0001000, .length = 0x3000 },
		{ .base_address = 0xffffffffc0003000, .length = 0x1d00 },
	};
	const struct kb_header header = { .maps = rows, .nr_maps = 2 };
	struct kb_error err = { 0 };
	struct kb_kallsyms kallsyms;
	const char *image = NULL;

	if (!tap_is(kb_kallsyms_parse(&kallsyms, &header, text, sizeof(text) - 1, "test", &err), 0,
		    "the_format_is_read"))
		return;
	tap_is_string(name_at(&kallsyms, 0xffffffff81000010, &image), "startup_64",
		      "aliases_have_fewest_underscores");
	tap_is_string(image, "[kernel.kallsyms]", "the_kernel_is_an_image");
	tap_is_string(name_at(&kallsyms, 0xffffffff8100017f, NULL), "local_function",
		      "a_function_goes_up_to_the_next");
	tap_is_string(name_at(&kallsyms, 0xffffffff81000180, NULL), "weak_function",
		      "weak_ones_count");
	tap_is_string(name_at(&kallsyms, 0x14010, NULL), NULL, "data_does_not_answer");
	tap_is_string(name_at(&kallsyms, 0xffffffffc0001011, &image), "probe",
		      "mapping_symbols_do_not_answer");
	tap_is_string(image, "[module_a]", "modules_are_images");
	tap_is_string(name_at(&kallsyms, 0xffffffffc0001200, NULL), "probe",
		      "labels_of_the_assembler_do_not_answer");
	tap_is_string(name_at(&kallsyms, 0xffffffffc0001fff, NULL), "last_of_a",
		      "the_last_of_a_module_fills_its_page_where_its_size_is_not_known");
	tap_is_string(name_at(&kallsyms, 0xffffffffc0002000, NULL), NULL,
		      "the_last_of_a_module_ends_with_its_page_then");
	tap_is_string(name_at(&kallsyms, 0xffffffffc0005001, &image), "first_of_b",
		      "the_next_module_answers");
	tap_is_string(image, "[module_b]", "the_next_module_is_its_own");
	tap_is_string(name_at(&kallsyms, 0xffffffffc0004cff, NULL), "last_of_c",
		      "the_last_of_a_module_goes_up_to_its_end");
	tap_is_string(name_at(&kallsyms, 0xffffffffc0004d00, NULL), NULL,
		      "the_last_of_a_module_ends_with_the_module");
	tap_is_string(name_at(&kallsyms, 0xffffffffc0009fff + 0x1000, NULL), "bpf_prog_1234_test",
		      "a_bpf_program_may_be_longer_than_a_page");
	tap_is_string(name_at(&kallsyms, 0xffffffffc0019000, NULL), NULL, "but_not_endless");
	name_at(&kallsyms, 0xffffffffc0009001, &image);
	tap_is_string(image, "[bpf]", "bpf_programs_are_found");
	tap_ok(kallsyms.lowest == 0xffffffff81000000, "code_begins_where_it_does");
	kb_kallsyms_release(&kallsyms);
}

static int parse(const char *some, struct kb_error *err)
{
	struct kb_kallsyms kallsyms;
	int ret = kb_kallsyms_parse(&kallsyms, NULL, some, strlen(some), "FILE", err);

	kb_kallsyms_release(&kallsyms);
	return ret;
}

static void test_refused(void)
{
	struct kb_error err = { 0 };

	tap_is(parse("0000000000000000 T a\n0000000000000000 t b\n", &err), -EACCES,
	       "hidden_addresses_are_told");
	tap_ok(strstr(err.text, "FILE") && strstr(err.text, "kptr_restrict"),
	       "and_what_to_do_about_it");
	tap_is(parse("hello\nworld\n", &err), -ENODATA, "another_format_is_refused");
	tap_is(parse("", &err), -ENODATA, "an_empty_file_is_refused");
	tap_is(parse("ffffffff81000000 T a", &err), 0, "the_last_line_may_be_cut");
	tap_is(parse("fffffffff81000000 T a\n", &err), -ENODATA, "17_digits_are_refused");
}

static void test_files(void)
{
	char path[] = "/tmp/kbarman-kallsyms-XXXXXX";
	int fd = mkstemp(path);
	struct kb_kallsyms kallsyms;
	struct kb_error err = { 0 };
	gzFile file = gzdopen(fd, "w");
	struct kb_symtab_hit hit;

	gzwrite(file, text, sizeof(text) - 1);
	gzclose(file);
	tap_is(kb_kallsyms_load(&kallsyms, NULL, path, &err), 0, "a_packed_file_is_read");
	tap_is_string(name_at(&kallsyms, 0xffffffff81000190, NULL), "weak_function",
		      "a_packed_file_answers");
	kb_kallsyms_release(&kallsyms);
	unlink(path);
	tap_is(kb_kallsyms_load(&kallsyms, NULL, path, &err), -ENOENT, "a_missing_file_is_told");

	if (kb_kallsyms_load(&kallsyms, NULL, "/proc/kallsyms", &err)) {
		tap_skip("this_kernels_symbols_are_read", err.text);
		return;
	}
	kb_symtab_find(&kallsyms.symbols, kallsyms.lowest, &hit);
	if (!tap_ok(kallsyms.symbols.nr_symbols > 10000 && hit.symbol,
		    "this_kernels_symbols_are_read"))
		tap_note("%u symbols", kallsyms.symbols.nr_symbols);
	kb_kallsyms_release(&kallsyms);
}

static void test_damaged(void)
{
	char copy[sizeof(text)];
	struct kb_error err;
	unsigned int i, good = 0;

	srand(5);
	for (i = 0; i < 20000; i++) {
		struct kb_kallsyms kallsyms;
		unsigned int k, flips = 1 + rand() % 20;

		memcpy(copy, text, sizeof(text));
		for (k = 0; k < flips; k++)
			copy[rand() % (sizeof(text) - 1)] = rand() % 4 ? rand() % 128 : '\n';
		good += kb_kallsyms_parse(&kallsyms, NULL, copy, rand() % sizeof(text), "x", &err) == 0;
		name_at(&kallsyms, 0xffffffff81000000 + rand() % 1024, NULL);
		kb_kallsyms_release(&kallsyms);
	}
	tap_ok(good > 1000, "damaged_text_is_survived");
}

int main(void)
{
	test_text();
	test_refused();
	test_files();
	test_damaged();
	return tap_done();
}
