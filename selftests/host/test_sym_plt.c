// SPDX-License-Identifier: MIT
/* Stubs of shared libraries are called what objdump(1) calls them, however linked. */
#include <stdlib.h>
#include <unistd.h>

#include "../lib/tap.h"
#include "sym/elf/elf.h"

static char directory[] = "/tmp/kbarman-plt-XXXXXX";

static const char source[] =
	"static int one(int n) { return n + 1; }\n"
	"static int (*which(void))(int) { return one; }\n"
	"__attribute__((visibility(\"hidden\"), ifunc(\"which\"))) int chosen(int);\n"
	"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
	"int main(int c, char **v)\n"
	"{\n"
	"	int (*volatile taken)(const char *) = puts;\n"
	"	printf(\"%s\", v[0]); puts(v[0]); free(malloc(c)); taken(getenv(\"HOME\"));\n"
	"	return strlen(v[0]) + chosen(atoi(v[0]));\n"
	"}\n";

static const char *name_at(const struct kb_elf *elf, uint64_t address)
{
	struct kb_symtab_hit hit;

	kb_symtab_find(&elf->symbols, address, &hit);
	return hit.symbol ? kb_symtab_name(&elf->symbols, hit.symbol) : "";
}

/* A program of @source at @path; false and a skipped @promise without a compiler that can. */
static bool build(const char *tools, const char *flags, char *path, size_t size, const char *promise)
{
	char command[512];

	snprintf(path, size, "%s/a.out", directory);
	snprintf(command, sizeof(command), "%sgcc -O1 -fno-builtin %s -o %s %s/a.c 2>/dev/null",
		 tools, flags, path, directory);
	if (!system(command))
		return true;
	tap_skip(promise, "the compiler can't make it");
	return false;
}

/* All stubs that objdump shows are ours, and others are not. */
static void check(const char *tools, const char *flags, const char *promise)
{
	unsigned int i, stubs = 0, ours = 0, wrong = 0;
	char command[512], line[512], name[256], path[64];
	struct kb_error err = { 0 };
	unsigned long long address;
	struct kb_elf elf;
	FILE *objdump;

	if (!build(tools, flags, path, sizeof(path), promise))
		return;
	if (!tap_is(kb_elf_load(&elf, path, &err), 0, "the_file_is_read"))
		return;
	snprintf(command, sizeof(command), "%sobjdump -d %s", tools, path);
	objdump = popen(command, "r");
	while (objdump && fgets(line, sizeof(line), objdump)) {
		if (sscanf(line, "%llx <%255[^>]>:", &address, name) != 2 || !strstr(name, "@plt") ||
		    strchr(name, '-'))
			continue;
		stubs++;
		for (i = 0; i < 8; i++)
			wrong += strcmp(name_at(&elf, address + i), name) != 0;
	}
	if (objdump)
		pclose(objdump);
	for (i = 0; i < elf.symbols.nr_symbols; i++)
		ours += strstr(kb_symtab_name(&elf.symbols, &elf.symbols.symbols[i]), "@plt") != NULL;
	if (!tap_ok(stubs >= 5 && ours == stubs && !wrong, promise))
		tap_note("%u stubs, %u ours, %u bytes wrong", stubs, ours, wrong);
	kb_elf_release(&elf);
}

/* Where the stub of @slot is: objdump says where jumps go, and what arm64 loads by two lines. */
static unsigned long long stub_of(const char *path, const char *tools, unsigned long long slot)
{
	unsigned long long address, page = 0, offset, to, begin = 0, found = 0;
	char command[512], line[512];
	FILE *objdump;

	snprintf(command, sizeof(command), "%sobjdump -d -j .plt %s", tools, path);
	objdump = popen(command, "r");
	while (objdump && fgets(line, sizeof(line), objdump)) {
		const char *jump = strstr(line, "jmp"), *adrp = strstr(line, "adrp"),
			   *ldr = strstr(line, "ldr\tx17, [x16");

		if (sscanf(line, "%llx:", &address) != 1)
			continue;
		if (jump && strchr(jump, '#') && sscanf(strchr(jump, '#') + 1, "%llx", &to) == 1 &&
		    to == slot)
			found = address;
		if (adrp && sscanf(adrp, "adrp x16, %llx", &page) == 1)
			begin = address;
		offset = 0;
		if (ldr && (sscanf(ldr, "ldr x17, [x16, #%llu", &offset), page + offset == slot))
			found = begin;
	}
	if (objdump)
		pclose(objdump);
	return found;
}

/* objdump has no names for these; the functions are those that relocations tell of. */
static void check_static(const char *tools, const char *flags, const char *promise)
{
	unsigned int nr = 0, wrong = 0;
	char command[512], line[512], name[64], path[64];
	unsigned long long slot, resolver, address;
	struct kb_error err = { 0 };
	struct kb_elf elf;
	FILE *readelf;

	if (!build(tools, flags, path, sizeof(path), promise) ||
	    !tap_is(kb_elf_load(&elf, path, &err), 0, "the_file_is_read"))
		return;
	snprintf(command, sizeof(command), "%sreadelf -rW %s", tools, path);
	readelf = popen(command, "r");
	while (readelf && fgets(line, sizeof(line), readelf)) {
		if (!strstr(line, "IRELATIV") ||
		    sscanf(line, "%llx %*s %*s %llx", &slot, &resolver) != 2)
			continue;
		nr++;
		snprintf(name, sizeof(name), "*ABS*+%#llx@plt", resolver);
		address = stub_of(path, tools, slot);
		wrong += !address || strcmp(name_at(&elf, address), name) ||
			strcmp(name_at(&elf, address + 7), name);
	}
	if (readelf)
		pclose(readelf);
	if (!tap_ok(nr >= 5 && !wrong, promise))
		tap_note("%u stubs, %u without their name", nr, wrong);
	kb_elf_release(&elf);
}

int main(void)
{
	char path[64];
	FILE *file;

	if (!mkdtemp(directory))
		return 2;
	snprintf(path, sizeof(path), "%s/a.c", directory);
	file = fopen(path, "w");
	if (!file || fputs(source, file) < 0 || fclose(file))
		return 2;
#ifdef __x86_64__
	check("", "", "lazy_stubs_have_names");
	check("", "-Wl,-z,now", "stubs_that_are_bound_at_once_have_names");
	check("", "-fcf-protection -Wl,-z,ibtplt", "stubs_of_branch_protection_have_names");
	check("", "-no-pie", "stubs_of_fixed_programs_have_names");
#endif
	check_static("", "-static", "stubs_of_static_programs_have_names");
	check_static("", "-static-pie", "stubs_of_static_pies_have_names");
	check_static("", "-static -fcf-protection -Wl,-z,ibtplt",
		     "stubs_of_protected_static_programs_have_names");
	check("aarch64-linux-gnu-", "", "arm64_stubs_have_names");
	check("aarch64-linux-gnu-", "-Wl,-z,now", "arm64_stubs_that_are_bound_at_once_have_names");
	check("aarch64-linux-gnu-", "-mbranch-protection=standard -Wl,-z,force-bti,-z,pac-plt",
	      "arm64_stubs_of_branch_protection_have_names");
	check("aarch64-linux-gnu-", "-no-pie -mbranch-protection=bti -Wl,-z,force-bti",
	      "arm64_stubs_with_landing_pads_have_names");
	check_static("aarch64-linux-gnu-", "-static", "arm64_stubs_of_static_programs_have_names");
	check("riscv64-linux-gnu-", "", "riscv64_stubs_have_names");
	check("riscv64-linux-gnu-", "-Wl,-z,now",
	      "riscv64_stubs_that_are_bound_at_once_have_names");
	check("riscv64-linux-gnu-", "-no-pie", "riscv64_stubs_of_fixed_programs_have_names");
	snprintf(path, sizeof(path), "rm -r %s", directory);
	if (system(path))
		return 2;
	return tap_done();
}
