// SPDX-License-Identifier: MIT
/*
 * ELF symbols against nm(1), byte by byte over the whole text of programs that are
 * compiled here in every shape a linker makes; and what happens to files that are
 * no ELF files or damaged ones.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/tap.h"
#include "sym/elf/elf.h"

static char directory[] = "/tmp/kbarman-elf-XXXXXX";

static const char source[] =
	"#include <stdio.h>\n"
	"#define F(n) __attribute__((noinline, noclone)) int n(int x)\n"
	"static F(local_one) { return x * 3 + 1; }\n"
	"F(global_two) { int i, s = 0; for (i = 0; i < x; i++) s += local_one(i) ^ i; return s; }\n"
	"__attribute__((weak)) F(weak_three) { return x / 7; }\n"
	"extern int alias_of_two(int) __attribute__((alias(\"global_two\")));\n"
	"__attribute__((aligned(256))) F(aligned_four) { return global_two(x) + weak_three(x); }\n"
	"__asm__(\".text\\n.globl label_five\\nlabel_five:\\n nop\\n nop\\n nop\\n\");\n"
	"__attribute__((section(\".text.elsewhere\"))) F(elsewhere_six) { return x - 9; }\n";
static const char main_source[] =
	"int aligned_four(int), elsewhere_six(int);\n"
	"int main(int c, char **v) { (void)v; return aligned_four(c) + elsewhere_six(c); }\n";

struct row {
	uint64_t address, size;
	char name[256];
};

struct truth {
	struct row rows[32768];
	unsigned int nr;
};

static void write_file(const char *name, const void *data, size_t size)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	if (!file || fwrite(data, 1, size, file) != size || fclose(file))
		abort();
}

static bool run(const char *format, const char *a, const char *b)
{
	char command[1024];

	snprintf(command, sizeof(command), format, a, b);
	return system(command) == 0;
}

static void read_nm(const char *path, const char *options, struct truth *truth)
{
	char command[512], line[1024];
	FILE *nm;

	snprintf(command, sizeof(command), "nm %s -S --defined-only %s 2>/dev/null", options, path);
	nm = popen(command, "r");
	while (nm && fgets(line, sizeof(line), nm)) {
		struct row *row = &truth->rows[truth->nr];
		char type = '?', name[256] = "";
		int used = 0;

		row->size = 0;
		if (sscanf(line, "%" SCNx64 " %n", &row->address, &used) < 1)
			continue;
		if (sscanf(line + used, "%" SCNx64 " %c %255[^@\n]", &row->size, &type, name) < 3 &&
		    sscanf(line + used, "%c %255[^@\n]", &type, name) < 2)
			continue;
		if (!strchr("tTwWi", type) || name[0] == '$' || truth->nr + 1 == 32768)
			continue;
		/* nm prints W for weak data without a type, too. Newer static glibcs have this. */
		if (strcmp(name, "_.stapsdt.base") == 0)
			continue;
		strcpy(row->name, name);
		truth->nr++;
	}
	if (nm)
		pclose(nm);
}

/*
 * Is @name right for @address? NULL is, where nothing with a size covers it. Stubs of shared
 * libraries are not nm's: see test_sym_plt.
 */
static bool is_right(const struct truth *truth, uint64_t address, const char *name)
{
	uint64_t sized = 0, label = 0;
	bool covered = false, labelled = false, named = false;
	unsigned int i;

	if (name && strstr(name, "@plt"))
		name = NULL;
	for (i = 0; i < truth->nr; i++) {
		const struct row *row = &truth->rows[i];

		if (row->address > address)
			continue;
		if (!row->size && (!labelled || row->address >= label)) {
			label = row->address;
			labelled = true;
		}
		if (address - row->address < row->size && (!covered || row->address >= sized)) {
			sized = row->address;
			covered = true;
		}
	}
	for (i = 0; name && i < truth->nr; i++) {
		const struct row *row = &truth->rows[i];

		if (row->address == (covered ? sized : label) && strcmp(row->name, name) == 0)
			named = true;
	}
	return named || (!name && !covered);
}

static void check_against_nm(const char *path, const char *options, const char *name)
{
	static struct truth truth;
	struct kb_error err = { 0 };
	struct kb_elf elf;
	uint64_t low = UINT64_MAX, high = 0, address, checked = 0, wrong = 0, named = 0;
	unsigned int i;

	truth.nr = 0;
	read_nm(path, options, &truth);
	if (kb_elf_load(&elf, path, &err)) {
		tap_ok(false, name);
		tap_note("%s", err.text);
		return;
	}
	for (i = 0; i < truth.nr; i++) {
		if (truth.rows[i].address < low)
			low = truth.rows[i].address;
		if (truth.rows[i].address + truth.rows[i].size > high)
			high = truth.rows[i].address + truth.rows[i].size;
	}
	/* Large ones: every symbol's first and last byte, and the bytes around. */
	for (i = 0; i < truth.nr && high - low > 20000; i += 1 + truth.nr / 500) {
		const struct row *row = &truth.rows[i];
		uint64_t at[] = { row->address - 1, row->address, row->address + row->size / 2,
				  row->address + row->size - 1, row->address + row->size };
		unsigned int k;

		for (k = 0; k < 5; k++) {
			struct kb_symtab_hit hit;

			kb_symtab_find(&elf.symbols, at[k], &hit);
			wrong += !is_right(&truth, at[k], hit.symbol ?
					   kb_symtab_name(&elf.symbols, hit.symbol) : NULL);
			checked++;
			named += !!hit.symbol;
		}
	}
	for (address = low - 4; address < high + 4 && high - low <= 20000; address++) {
		struct kb_symtab_hit hit;
		const char *found;

		kb_symtab_find(&elf.symbols, address, &hit);
		found = hit.symbol ? kb_symtab_name(&elf.symbols, hit.symbol) : NULL;
		if (!is_right(&truth, address, found) && !wrong++)
			tap_note("0x%" PRIx64 " is not %s", address, found ? found : "nothing");
		checked++;
		named += !!found;
	}
	if (!tap_ok(!wrong && checked > 40 && named > 20, name))
		tap_note("%" PRIu64 " of %" PRIu64 " wrong", wrong, checked);
	tap_note("%u symbols, %" PRIu64 " addresses, %" PRIu64 " named", truth.nr, checked, named);
	kb_elf_release(&elf);
}

struct shape {
	const char *name;	/* of the promise; NULL ends */
	const char *file;
	const char *flags;
	const char *nm;		/* options */
	const char *after;	/* a command on the file */
};

static const struct shape shapes[] = {
	{ "no_pie_agrees_with_nm", "exec", "-no-pie", "" , NULL },
	{ "pie_agrees_with_nm", "pie", "-fPIE -pie", "", NULL },
	{ "unoptimized_agrees_with_nm", "o0", "-O0", "", NULL },
	{ "shared_library_agrees_with_nm", "lib.so", "-fPIC -shared", "", NULL },
	{ "sections_of_their_own_agree_with_nm", "sections",
	  "-ffunction-sections -Wl,-z,separate-code", "", NULL },
	{ "one_segment_agrees_with_nm", "oneseg", "-Wl,-z,noseparate-code", "", NULL },
	{ "rdynamic_stripped_agrees_with_nm", "dyn", "-rdynamic", "-D", "strip" },
	{ "static_pie_agrees_with_nm", "static-pie", "-static-pie", "", NULL },
	{ "static_agrees_with_nm", "static", "-static", "", NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static void test_shapes(const char *compiler, bool native)
{
	const struct shape *shape;
	char path[256], what[512], name[128];

	for (shape = shapes; shape->name; shape++) {
		snprintf(name, sizeof(name), "%s%s", native ? "" : "arm64_", shape->name);
		snprintf(path, sizeof(path), "%s/%s%s", directory, native ? "" : "arm64-",
			 shape->file);
		snprintf(what, sizeof(what), "%s -O1 %s %s/f.c %s/m.c", compiler, shape->flags,
			 directory, directory);
		if (!run("%s -o %s 2>/dev/null", what, path)) {
			tap_skip(name, "the compiler can't make it");
			continue;
		}
		if (shape->after && native)
			run("%s %s", shape->after, path);
		else if (shape->after)
			run("aarch64-linux-gnu-%s %s", shape->after, path);
		check_against_nm(path, shape->nm, name);
	}
}

/* Every function of @whole has a name in @path, the same file without symbols: that of its place. */
static bool all_have_names(const char *path, const char *whole)
{
	struct kb_error err;
	unsigned int nr = 0, wrong = 0;
	struct kb_elf elf, all;

	if (kb_elf_load(&all, whole, &err))
		return false;
	if (kb_elf_read(&elf, path, &err) || kb_elf_sort(&elf, kb_text("lib"))) {
		kb_elf_release(&all);
		return false;
	}
	for (uint32_t i = 0; i < all.symbols.nr_symbols; i++) {
		const struct kb_symtab_symbol *symbol = &all.symbols.symbols[i];
		const char *name = kb_symtab_name(&all.symbols, symbol), *found = "nothing";
		struct kb_symtab_hit hit;
		char want[64];

		/* what crt1.o and its friends have is not of one form; real functions have a size */
		if (strncmp(name, "local_", 6) && strncmp(name, "global_", 7) &&
		    strncmp(name, "elsewhere_", 10) && strcmp(name, "main") &&
		    strcmp(name, "_start") && strcmp(name, "_init"))
			continue;
		snprintf(want, sizeof(want), "lib+0x%llx", (unsigned long long)symbol->start);
		kb_symtab_find(&elf.symbols, symbol->start, &hit);
		if (hit.symbol)
			found = kb_symtab_name(&elf.symbols, hit.symbol);
		nr++;
		if (strcmp(found, want) && strcmp(found, name) && !wrong++)
			tap_note("%s is called %s, not %s", name, found, want);
	}
	kb_elf_release(&elf);
	kb_elf_release(&all);
	return nr >= 4 && !wrong;
}

/* Stripped programs of every machine for which there is a compiler. */
static void test_names_of_stripped(void)
{
	static const char *const machines[] = {
		"", "i686-linux-gnu-", "aarch64-linux-gnu-", "arm-linux-gnueabihf-",
		"s390x-linux-gnu-", "riscv64-linux-gnu-",
	};
	char path[256], whole[256], promise[128], command[1024];

	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		snprintf(promise, sizeof(promise), "functions_of_a_stripped_program_have_names: %s",
			 machines[i][0] ? machines[i] : "of this machine");
		snprintf(whole, sizeof(whole), "%s/whole", directory);
		snprintf(path, sizeof(path), "%s/bare", directory);
		snprintf(command, sizeof(command),
			 "cd %s && %sgcc -O1 -fasynchronous-unwind-tables f.c m.c -o whole 2>&1 && "
			 "%sstrip -o bare whole 2>&1", directory, machines[i], machines[i]);
		if (system(command))
			tap_skip(promise, "there is no such compiler");
		else
			tap_ok(all_have_names(path, whole), promise);
	}
}

/* Whether a stripped library with this soname, and maybe a library that it needs, has a _start. */
static bool has_start(const char *soname, const char *libraries)
{
	char path[256], command[1024];
	struct kb_elf elf;
	bool found = false;

	snprintf(path, sizeof(path), "%s/loader", directory);
	snprintf(command, sizeof(command),
		 "cd %s && echo 'int begin(int x) { return x + 3; }' >l.c && "
		 "gcc -shared -nostdlib -s -fPIC -fvisibility=hidden -O1 -Wl,-e,begin "
		 "-Wl,-soname,%s -o loader l.c -Wl,--no-as-needed %s",
		 directory, soname, libraries);
	if (system(command) || kb_elf_read(&elf, path, NULL) || kb_elf_sort(&elf, kb_text("lib")))
		return false;
	for (uint32_t i = 0; i < elf.symbols.nr_symbols; i++)
		found |= !strcmp(kb_symtab_name(&elf.symbols, &elf.symbols.symbols[i]), "_start");
	kb_elf_release(&elf);
	return found;
}

static void test_loader(void)
{
	tap_ok(has_start("ld-test.so.1", ""), "the_loader_has_a_start");
	tap_ok(!has_start("ld-test.so.1", "-lc"), "what_needs_libraries_is_no_loader");
	tap_ok(!has_start("libtest.so.1", ""), "a_library_has_none");
}

static void test_stripped(void)
{
	char path[256];
	struct kb_error err;
	struct kb_elf elf;

	snprintf(path, sizeof(path), "%s/stripped", directory);
	if (!run("cp %s/pie %s", directory, path) || !run("strip %s%s", path, ""))
		abort();
	tap_is(kb_elf_load(&elf, path, &err), 0, "a_stripped_program_is_no_error");
	tap_ok(elf.nr_segments >= 2, "a_stripped_program_has_segments");
	kb_elf_release(&elf);
}

/* File offset and address differ between segments: both ways must agree with objdump's. */
static void test_segments(void)
{
	char path[256], command[512], line[256];
	struct kb_error err;
	struct kb_elf elf;
	unsigned int nr = 0, wrong = 0;
	FILE *readelf;

	snprintf(path, sizeof(path), "%s/pie", directory);
	if (kb_elf_load(&elf, path, &err)) {
		tap_ok(false, "segments_relate_offsets_to_addresses");
		return;
	}
	snprintf(command, sizeof(command), "readelf -SW %s", path);
	readelf = popen(command, "r");
	while (readelf && fgets(line, sizeof(line), readelf)) {
		uint64_t address, offset, size;
		char name[64], type[64];

		if (sscanf(line, " [ %*u] %63s %63s %" SCNx64 " %" SCNx64 " %" SCNx64, name, type,
			   &address, &offset, &size) != 5 &&
		    sscanf(line, " [%*u] %63s %63s %" SCNx64 " %" SCNx64 " %" SCNx64, name, type,
			   &address, &offset, &size) != 5)
			continue;
		if (address && strcmp(type, "NOBITS") != 0 && size) {
			const struct kb_elf_segment *segment = kb_elf_segment_at(&elf, offset);

			nr++;
			wrong += !segment || segment->vaddr + (offset - segment->offset) != address;
		}
	}
	if (readelf)
		pclose(readelf);
	if (!tap_ok(nr > 10 && !wrong, "segments_relate_offsets_to_addresses"))
		tap_note("%u of %u sections wrong", wrong, nr);
	tap_ok(!kb_elf_segment_at(&elf, UINT64_MAX), "an_offset_outside_is_in_no_segment");
	kb_elf_release(&elf);
}

static void test_refused(void)
{
	char path[256];
	struct kb_error err = { 0 };
	struct kb_elf elf;

	snprintf(path, sizeof(path), "%s/none", directory);
	tap_is(kb_elf_load(&elf, path, &err), -ENOENT, "a_missing_file_is_said_to_be_missing");
	tap_ok(strstr(err.text, path), "messages_name_the_file");

	write_file("text", "hello\n", 6);
	snprintf(path, sizeof(path), "%s/text", directory);
	tap_is(kb_elf_load(&elf, path, &err), -ENOEXEC, "text_is_no_elf_file");
	write_file("empty", "", 0);
	snprintf(path, sizeof(path), "%s/empty", directory);
	tap_is(kb_elf_load(&elf, path, &err), -ENOEXEC, "an_empty_file_is_no_elf_file");
	tap_is(kb_elf_load(&elf, directory, &err), -ENOEXEC, "a_directory_is_no_elf_file");
	tap_is(kb_elf_load(&elf, "/dev/zero", &err), -ENOEXEC, "a_device_is_not_read");
	snprintf(path, sizeof(path), "%s/fifo", directory);
	if (mkfifo(path, 0600) == 0)
		tap_is(kb_elf_load(&elf, path, &err), -ENOEXEC, "a_fifo_does_not_block");
	snprintf(path, sizeof(path), "%s/f.o", directory);
	if (run("gcc -c %s/f.c -o %s", directory, path))
		tap_is(kb_elf_load(&elf, path, &err), -ENOEXEC, "an_object_file_is_refused");
}

/* Every cut and thousands of flipped bytes: an error or symbols, nothing else. */
static void test_damaged(void)
{
	static uint8_t image[1 << 20], copy[1 << 20];
	char path[256];
	unsigned int i, loaded = 0;
	struct kb_error err;
	struct kb_elf elf;
	size_t size;
	FILE *file;

	snprintf(path, sizeof(path), "%s/exec", directory);
	file = fopen(path, "r");
	size = file ? fread(image, 1, sizeof(image), file) : 0;
	if (file)
		fclose(file);
	srand(3);
	snprintf(path, sizeof(path), "%s/damaged", directory);
	for (i = 0; i < 3000 && size > 1000; i++) {
		size_t cut = i % 3 ? size : rand() % size;
		unsigned int k, flips = i % 3 ? 1 + rand() % 8 : 0;

		memcpy(copy, image, size);
		for (k = 0; k < flips; k++) {
			/* where headers and tables are: the first KiB and the last 8 */
			size_t back = (size_t)rand() % 8192 % size;
			size_t at = rand() & 1 ? (size_t)rand() % 1024 : size - 1 - back;

			copy[at] = rand();
		}
		write_file("damaged", copy, cut);
		if (kb_elf_load(&elf, path, &err) == 0) {
			struct kb_symtab_hit hit;

			loaded++;
			kb_symtab_find(&elf.symbols, rand(), &hit);
			kb_elf_segment_at(&elf, rand());
		}
		kb_elf_release(&elf);
	}
	if (!tap_ok(size > 1000 && loaded > 10 && loaded < 3000, "damaged_files_are_survived"))
		tap_note("%u of 3000 loaded", loaded);
}

int main(void)
{
	if (!mkdtemp(directory))
		return 2;
	write_file("f.c", source, sizeof(source) - 1);
	write_file("m.c", main_source, sizeof(main_source) - 1);
	test_shapes("gcc", true);
	test_shapes("aarch64-linux-gnu-gcc", false);
	test_stripped();
	test_loader();
	test_names_of_stripped();
	test_segments();
	test_refused();
	test_damaged();
	run("rm -r %s%s", directory, "");
	return tap_done();
}
