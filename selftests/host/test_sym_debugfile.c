// SPDX-License-Identifier: MIT
/* Stripped programs get their symbols back from their debug files, and from no other. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/tap.h"
#include "sym/elf/elf.h"
#include "sym/elf/minidebug.h"
#include "sym/elf/unwind.h"
#include "sym/image/debugfile.h"

static char directory[] = "/tmp/kbarman-debug-XXXXXX";

/* A shell that has $D, the directory. */
static bool run(const char *commands)
{
	setenv("D", directory, 1);
	return system(commands) == 0;
}

static const char prepare[] =
	"cd $D && mkdir bin && echo 'static __attribute__((noinline)) int secret(int x)"
	" { return x * 5 + 3; } int main(int c, char **v) { (void)v; return secret(c); }' >a.c &&"
	"gcc -g -O1 -Wl,--build-id=sha1 a.c -o bin/with && cp bin/with full1 &&"
	"gcc -g -O1 -Wl,--build-id=none a.c -o bin/without && cp bin/without full2 &&"
	"gcc -g -O2 -DOTHER -Wl,--build-id=sha1 -fno-inline a.c -o other &&"
	"objcopy --only-keep-debug full1 with.dbg && objcopy --only-keep-debug full2 without.dbg &&"
	"objcopy --only-keep-debug other other.dbg &&"
	"strip bin/with && strip bin/without && objcopy --add-gnu-debuglink=without.dbg bin/without";

static const char place_by_id[] =
	"cd $D && id=$(readelf -n full1 | sed -n 's/.*Build ID: //p') &&"
	"mkdir -p usr/lib/debug/.build-id/$(echo $id | cut -c1-2) &&"
	"cp $FILE usr/lib/debug/.build-id/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-).debug";

/* Are there symbols of @name after looking for its debug file? */
static bool finds_secret(const char *name)
{
	char path[256];
	struct kb_elf elf;
	uint32_t i;
	bool found = false;

	snprintf(path, sizeof(path), "%s%s", directory, name);
	if (kb_elf_read(&elf, path, NULL))
		return false;
	kb_debugfile_add(&elf, directory, name);
	kb_symtab_sort(&elf.symbols);
	for (i = 0; i < elf.symbols.nr_symbols; i++)
		found |= !strcmp(kb_symtab_name(&elf.symbols, &elf.symbols.symbols[i]), "secret");
	kb_elf_release(&elf);
	return found;
}

/* The first @most bytes at most of a file below the folder, which the caller frees. */
static uint8_t *bytes_of(const char *name, size_t most, size_t *length)
{
	uint8_t *bytes = calloc(1, most);
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "r");
	*length = file ? fread(bytes, 1, most, file) : 0;
	if (file)
		fclose(file);
	return bytes;
}

/* Each byte of the packed section changed, one at a time: symbols and unwind rows or an error. */
static void test_damage(void)
{
	size_t size, packed, at;
	uint8_t *program = bytes_of("bin/mini", 1 << 20, &size);
	uint8_t *section = bytes_of("mini.elf.xz", 1 << 20, &packed);
	const uint8_t *begin = packed ? memmem(program, size, section, packed) : NULL;
	int fd = memfd_create("mini", 0), wrong = begin ? 0 : 1;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (pwrite(fd, program, size, 0) != (ssize_t)size)
		wrong++;
	for (at = 0; !wrong && at < packed; at++) {
		off_t offset = begin - program + (off_t)at;
		uint8_t other = section[at] ^ (1 << at % 8);
		struct kb_unwind_rows rows;
		struct kb_elf elf;

		wrong += pwrite(fd, &other, 1, offset) != 1;
		kb_elf_unwind_fd(&rows, fd, -1, path, NULL);
		kb_unwind_rows_release(&rows);
		if (!kb_elf_read(&elf, path, NULL))
			kb_elf_release(&elf);
		wrong += pwrite(fd, &section[at], 1, offset) != 1;
	}
	tap_ok(!wrong, "no_flipped_byte_of_packed_symbols_ends_the_program");
	tap_note("%zu bytes", at);
	close(fd);
	free(program);
	free(section);
}

/* 64 MiB are unpacked, and a byte more is not. */
static void test_limit(void)
{
	size_t packed, size = 0;
	uint8_t *section, *out = NULL;
	int ret;

	run("cd $D && head -c 67108864 /dev/zero | xz -1 >most.xz &&"
	    "head -c 67108865 /dev/zero | xz -1 >more.xz");
	section = bytes_of("most.xz", 1 << 20, &packed);
	ret = kb_minidebug_unpack(section, packed, &out, &size);
	free(section);
	free(out);
	if (!tap_ok(!ret && size == 64 << 20, "packed_symbols_may_have_64_mib"))
		tap_note("%d, %zu bytes", ret, size);
	section = bytes_of("more.xz", 1 << 20, &packed);
	tap_ok(kb_minidebug_unpack(section, packed, &out, &size) && !out && !size,
	       "larger_packed_symbols_are_refused");
	free(section);
}

static void test_minidebug(void)
{
	if (!run("cd $D && cp full1 bin/mini && objcopy --strip-debug full1 mini.elf &&"
		 "rm -r usr/lib/debug/.build-id && xz -k mini.elf && strip bin/mini &&"
		 "objcopy --add-section .gnu_debugdata=mini.elf.xz bin/mini")) {
		tap_skip("symbols_packed_in_the_program_are_found", "no xz");
		return;
	}
	tap_ok(finds_secret("/bin/mini"), "symbols_packed_in_the_program_are_found");
	test_damage();
	test_limit();
	run("cd $D && head -c 700 mini.elf.xz >cut.xz && cp bin/with bin/mini &&"
	    "objcopy --add-section .gnu_debugdata=cut.xz bin/mini");
	tap_ok(!finds_secret("/bin/mini"), "damaged_packed_symbols_are_no_error");
	run("cd $D && head -c 40000000 /dev/zero >zero && xz zero && cp bin/with bin/mini &&"
	    "objcopy --add-section .gnu_debugdata=zero.xz bin/mini");
	tap_ok(!finds_secret("/bin/mini"), "packed_nonsense_is_no_error");
}

/* The unwind rows of a file below the folder. */
static bool rows_of(const char *name, struct kb_unwind_rows *rows)
{
	char path[256];
	bool done;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	done = fd >= 0 && !kb_elf_unwind_fd(rows, fd, -1, path, NULL);
	close(fd);
	return done;
}

static bool same_rows(const struct kb_unwind_rows *a, const struct kb_unwind_rows *b)
{
	return a->header->size == b->header->size && !memcmp(a->header, b->header, a->header->size);
}

/* Some programs have no .eh_frame of their own. objcopy of Debian 12 packs by zstd, and its libelf can't unpack. */
static void test_packed_frames(void)
{
	static const char promise[] = "packed_debug_frame_gives_the_same_rows";
	struct kb_unwind_rows plain, none, packed;
	static const char *const forms[] = { "zlib", "zstd" };

	/* a section that does not get smaller stays as it is */
	if (!run("cd $D && cp a.c many.c && for i in $(seq 40); do echo \"int f$i(int x) { return x + $i; }\"; done"
		 " >>many.c && gcc -g -O1 -fno-asynchronous-unwind-tables -fno-unwind-tables many.c -o frames &&"
		 "objcopy --remove-section=.debug_frame frames frames.none") ||
	    !rows_of("frames", &plain) || !rows_of("frames.none", &none)) {
		tap_ok(false, promise);
		return;
	}
	for (size_t i = 0; i < 2; i++) {
		setenv("FORM", forms[i], 1);
		if (!run("cd $D && objcopy --compress-debug-sections=$FORM frames packed 2>warnings &&"
			 "! [ -s warnings ] && readelf -SW packed | grep debug_frame | grep -q ' C '")) {
			tap_skip(promise, "this objcopy does not pack .debug_frame so");
			continue;
		}
		tap_ok(!same_rows(&plain, &none) && rows_of("packed", &packed) && same_rows(&plain, &packed),
		       promise);
		kb_unwind_rows_release(&packed);
	}
	kb_unwind_rows_release(&plain);
	kb_unwind_rows_release(&none);
}

int main(void)
{
	if (!mkdtemp(directory))
		return 2;
	if (!run(prepare)) {
		tap_skip("debug_files_are_found", "the tools to make them are not there");
		return tap_done();
	}
	tap_ok(!finds_secret("/bin/with"), "a_stripped_program_has_lost_its_symbols");
	setenv("FILE", "other.dbg", 1);
	run(place_by_id);
	tap_ok(!finds_secret("/bin/with"), "a_file_with_another_build_id_is_refused");
	setenv("FILE", "with.dbg", 1);
	run(place_by_id);
	tap_ok(finds_secret("/bin/with"), "a_debug_file_is_found_by_build_id");

	tap_ok(!finds_secret("/bin/without"), "a_missing_debug_file_is_no_error");
	run("cp $D/other.dbg $D/bin/without.dbg");
	tap_ok(!finds_secret("/bin/without"), "a_file_with_another_checksum_is_refused");
	run("cp $D/without.dbg $D/bin/without.dbg");
	tap_ok(finds_secret("/bin/without"), "a_debug_file_is_found_beside_the_program");
	run("mkdir $D/bin/.debug && mv $D/bin/without.dbg $D/bin/.debug");
	tap_ok(finds_secret("/bin/without"), "a_debug_file_is_found_in_dot_debug");
	run("mkdir -p $D/usr/lib/debug/bin && mv $D/bin/.debug/without.dbg $D/usr/lib/debug/bin");
	tap_ok(finds_secret("/bin/without"), "a_debug_file_is_found_below_usr_lib_debug");
	test_minidebug();
	test_packed_frames();
	run("rm -r $D");
	return tap_done();
}
