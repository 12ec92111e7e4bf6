// SPDX-License-Identifier: MIT
/* Maps of code that was made at run time. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/tap.h"
#include "sym/perfmap.h"

static const char text[] =
	"1000 100 first\n"
	"0x2000 0x80 Lfunction;with blanks and (signs)\n"
	"3000 1000 old code\n"
	"3400 100 new code\n"
	"1000 40 first, compiled again\n"
	"nonsense\n"
	"5000 zz broken\n"
	"5000 0 empty\n"
	"6000 10\n"
	"7000 10 still being writ";

static const char *name_at(const struct kb_symtab *symtab, uint64_t address)
{
	struct kb_symtab_hit hit;

	kb_symtab_find(symtab, address, &hit);
	return hit.symbol ? kb_symtab_name(symtab, hit.symbol) : NULL;
}

static void check(const struct kb_symtab *symtab)
{
	tap_is_string(name_at(symtab, 0x1010), "first, compiled again", "the_newest_code_counts");
	tap_is_string(name_at(symtab, 0x1050), NULL, "its_end_is_its_own");
	tap_is_string(name_at(symtab, 0x207f), "Lfunction;with blanks and (signs)",
		      "names_may_have_blanks");
	tap_is_string(name_at(symtab, 0x2080), NULL, "sizes_are_hexadecimal");
	tap_is_string(name_at(symtab, 0x3450), "new code", "newer_code_inside_counts");
	tap_is_string(name_at(symtab, 0x3500), "old code", "older_code_around_it_stays");
	tap_is_string(name_at(symtab, 0x5000), NULL, "broken_lines_are_left_out");
	tap_is_string(name_at(symtab, 0x7000), NULL, "an_unfinished_line_is_left_out");
}

static void test_files(void)
{
	char directory[] = "/tmp/kbarman-perfmap-XXXXXX", path[128];
	struct kb_symtab symtab = { 0 };
	FILE *file;

	if (!mkdtemp(directory))
		exit(2);
	tap_is(kb_perfmap_read(&symtab, directory, 77), -2, "a_missing_map_is_told");
	snprintf(path, sizeof(path), "%s/tmp", directory);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/tmp/perf-77.map", directory);
	file = fopen(path, "w");
	fputs(text, file);
	fclose(file);
	tap_is(kb_perfmap_read(&symtab, directory, 77), 0, "a_map_is_found_by_process");
	tap_is_string(name_at(&symtab, 0x3450), "new code", "a_map_is_read");
	kb_symtab_release(&symtab);
	unlink(path);
	tap_ok(symlink("/proc/kallsyms", path) == 0 && kb_perfmap_read(&symtab, directory, 77) < 0,
	       "links_are_not_followed");
	unlink(path);
	tap_ok(mkfifo(path, 0600) == 0 && kb_perfmap_read(&symtab, directory, 77) < 0,
	       "a_fifo_does_not_block");
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	rmdir(directory);
}

int main(void)
{
	struct kb_symtab symtab = { 0 };

	tap_is(kb_perfmap_parse(&symtab, text, sizeof(text) - 1), 0, "a_map_is_parsed");
	check(&symtab);
	kb_symtab_release(&symtab);
	test_files();
	return tap_done();
}
