// SPDX-License-Identifier: MIT
/* Stripped programs get their symbols back from their debug files, and from no other. */
#include <stdlib.h>
#include <unistd.h>

#include "../lib/tap.h"
#include "sym/debugfile.h"
#include "sym/elf.h"

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

static void test_minidebug(void)
{
	if (!run("cd $D && cp full1 bin/mini && objcopy --strip-debug full1 mini.elf &&"
		 "rm -r usr/lib/debug/.build-id && xz -k mini.elf && strip bin/mini &&"
		 "objcopy --add-section .gnu_debugdata=mini.elf.xz bin/mini")) {
		tap_skip("symbols_packed_in_the_program_are_found", "no xz");
		return;
	}
	tap_ok(finds_secret("/bin/mini"), "symbols_packed_in_the_program_are_found");
	run("cd $D && head -c 700 mini.elf.xz >cut.xz && cp bin/with bin/mini &&"
	    "objcopy --add-section .gnu_debugdata=cut.xz bin/mini");
	tap_ok(!finds_secret("/bin/mini"), "damaged_packed_symbols_are_no_error");
	run("cd $D && head -c 40000000 /dev/zero >zero && xz zero && cp bin/with bin/mini &&"
	    "objcopy --add-section .gnu_debugdata=zero.xz bin/mini");
	tap_ok(!finds_secret("/bin/mini"), "packed_nonsense_is_no_error");
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
	run("rm -r $D");
	return tap_done();
}
