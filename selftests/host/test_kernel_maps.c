// SPDX-License-Identifier: MIT
/* The kernel's text and modules, from files as /proc has them; and lists of CPUs. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include <kbarman/cpulist.h>
#include <kbarman/kernel_maps.h>

#include "../lib/tap.h"

static char proc[] = "/tmp/kbarman-proc.XXXXXX";
static struct kb_error error;
static struct kb_kernel_maps maps;

static void put(const char *name, const char *content)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	file = fopen(path, "w");
	if (!file || fputs(content, file) < 0 || fclose(file))
		exit(1);
}

static bool map_is(unsigned int i, uint64_t base, uint64_t length, const char *image)
{
	const struct kb_kernel_map *map = &maps.maps[i];

	return i < maps.nr && map->base_address == base && map->length == length &&
	       !strcmp(map->image, image);
}

static void kernel_and_modules(void)
{
	static const char symbols[] =
		"ffffffc008000000 t _head\n"
		"ffffffc008010000 T _stext\n"
		"ffffffc008010000 T do_one\n"
		"ffffffc008a10000 D _etext\n"
		"ffffffc000b21000 t probe_it\t[xfs]\n";
	char *copied = NULL;
	size_t length = 0;
	FILE *copy = open_memstream(&copied, &length);

	put("kallsyms", symbols);
	put("modules",
	    "xfs 1000 2 - Live 0xffffffc000b21000\n"
	    "ext4 958464 1 jbd2,mbcache, Live 0xffffffc000a0a000 (OE)\n"
	    "hidden 4096 0 - Live 0x0000000000000000\n"
	    "nonsense\n"
	    "huge 18446744073709551615 0 - Live 0xffffffc000b30000\n"
	    "big 999999999 0 - Live 0xffffffc000b40000\n");
	tap_is(kb_kernel_maps_read(&maps, proc, copy, &error), 0, "kallsyms_and_modules_are_read");
	fclose(copy);
	tap_ok(maps.nr == 4 && !maps.hidden &&
	       map_is(3, 0xffffffc008010000, 0xa00000, "[kernel.kallsyms]") &&
	       map_is(0, 0xffffffc000a0a000, 958464, "[ext4]") &&
	       map_is(1, 0xffffffc000b21000, 1000, "[xfs]"), "ranges_are_in_order_of_address");
	tap_ok(map_is(2, 0xffffffc000b40000, 999999999 < 0x74d0000 ? 999999999 : 0x74d0000, "[big]"),
	       "ranges_end_where_the_next_begins");
	tap_is_string(copied, symbols, "the_side_file_is_as_kallsyms");
	free(copied);
	kb_kernel_maps_free(&maps);
}

static void hidden_addresses(void)
{
	char *copied = NULL;
	size_t length = 0;
	FILE *copy = open_memstream(&copied, &length);

	put("kallsyms", "0000000000000000 T _stext\n0000000000000000 T _etext\n");
	put("modules", "xfs 1000 2 - Live 0x0000000000000000\n");
	tap_ok(!kb_kernel_maps_read(&maps, proc, copy, &error) && maps.hidden && !maps.nr,
	       "hidden_addresses_are_noticed");
	fclose(copy);
	tap_is(length, 0, "and_not_written_to_a_side_file");
	free(copied);
	kb_kernel_maps_free(&maps);
	put("kallsyms", "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\n"
			"ffffffff82000000 T _etext\n");
	tap_ok(!kb_kernel_maps_read(&maps, proc, NULL, &error) && !maps.hidden && maps.nr == 1 &&
	       map_is(0, 0xffffffff81000000, 0x1000000, "[kernel.kallsyms]"),
	       "some_zeros_are_not_hidden_addresses");
	kb_kernel_maps_free(&maps);
	tap_ok(kb_kernel_maps_read(&maps, "/nowhere", NULL, &error) == -ENOENT &&
	       strstr(error.text, "/nowhere/kallsyms"), "a_missing_kallsyms_is_named");
}

static void later_modules(void)
{
	static const char old[] = "ffffffc008010000 T _stext\nffffffc008a10000 T _etext\n"
				  "ffffffc000b21000 t probe_it\t[xfs]\n";
	static const char new[] = "ffffffc000c21000 t new_one\t[newmod]\n"
				  "ffffffc000c21010 t other [x]\t[newmod]\n";
	char *copied = NULL, both[512];
	size_t length = 0;
	FILE *copy = open_memstream(&copied, &length);

	put("kallsyms", old);
	put("modules", "xfs 1000 2 - Live 0xffffffc000b21000\n");
	kb_kernel_maps_read(&maps, proc, NULL, &error);
	tap_is(kb_kernel_maps_append_new(&maps, proc, copy, &error), 0, "no_new_module_adds_nothing");
	snprintf(both, sizeof(both), "%s%s", old, new);
	put("kallsyms", both);
	put("modules", "newmod 4096 0 - Live 0xffffffc000c21000\n"
		       "xfs 1000 2 - Live 0xffffffc000b21000\n");
	tap_is(kb_kernel_maps_append_new(&maps, proc, copy, &error), 1, "new_modules_are_found");
	fclose(copy);
	tap_is_string(copied, new, "and_their_symbols_appended");
	free(copied);
	kb_kernel_maps_free(&maps);
}

static void cpu_lists(void)
{
	static uint64_t words[KB_CPU_WORDS];

	tap_ok(kb_cpulist_parse(words, "0-3,8", 16, &error) == 1 && words[0] == 0x10f,
	       "lists_of_cpus_are_read");
	tap_ok(kb_cpulist_parse(words, "64,0-1,130", 200, &error) == 3 && words[0] == 3 &&
	       words[1] == 1 && words[2] == 4, "cpus_beyond_64_too");
	tap_ok(kb_cpulist_parse(words, "5", 5, &error) == -EINVAL &&
	       strstr(error.text, "no CPU 5"), "a_cpu_that_does_not_exist_is_named");
	tap_ok(kb_cpulist_parse(words, "", 8, &error) == -EINVAL &&
	       kb_cpulist_parse(words, "1,", 8, &error) == -EINVAL &&
	       kb_cpulist_parse(words, "-1", 8, &error) == -EINVAL &&
	       kb_cpulist_parse(words, "3-1", 8, &error) == -EINVAL &&
	       kb_cpulist_parse(words, "1 2", 8, &error) == -EINVAL &&
	       kb_cpulist_parse(words, "0-99999999999999999999", 8, &error) == -EINVAL,
	       "other_texts_are_refused");
}

int main(void)
{
	char command[64];
	int ret;

	if (!mkdtemp(proc))
		return 1;
	kernel_and_modules();
	hidden_addresses();
	later_modules();
	cpu_lists();
	snprintf(command, sizeof(command), "rm -r %s", proc);
	ret = tap_done();
	return system(command) ? 1 : ret;
}
