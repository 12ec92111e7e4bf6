// SPDX-License-Identifier: MIT
/*
 * A sorted table of the ranges of all compilation units leads from an address to its unit. A
 * second such table, made when the unit is first needed, leads to the function. From there the
 * search descends through the inlined functions around the address. libdw's own
 * dwarf_getscopes() would search the whole unit each time.
 *
 * In a valid file later items of a list are at higher offsets. This is checked, because a loop
 * would never end.
 */
#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bisect.h"
#include "sym/elf/zstd_sections.h"
#include "sym/lines/libdw.h"
#include "sym/lines/lines.h"
#include "sym/question/question.h"

#define MAX_RANGES	(8U << 20)	/* of units, and of the functions of one */
#define MAX_FILE	(4ULL << 30)
#define PADDING		4096		/* zeros after the file */
#define MAX_NESTING	64		/* of functions, blocks, namespaces and classes */

struct range {
	uint64_t low, high;		/* exclusive */
	uint32_t item;			/* index of a unit, or of a function in it */
};

struct ranges {
	struct range *ranges;		/* ordered by low after sorting */
	uint32_t nr, max;
};

struct unit {
	Dwarf_Die die;			/* has the lines */
	Dwarf_Die scope;		/* has the functions; differs from die in split DWARF */
	bool scanned;
	struct ranges ranges;		/* of functions */
	Dwarf_Die *functions;
	uint32_t nr_functions, max_functions;
};

struct kb_lines {
	const struct kb_libdw *dw;
	char *image;			/* content of the file */
	size_t size;
	Elf *elf;
	struct kb_zstd_sections sections;
	Dwarf *dwarf;
	struct unit *units;
	uint32_t nr_units, max_units;
	struct ranges ranges;		/* of units */
};

/* ---- ranges ---- */

/* Make room for one more row, but not for more than MAX_RANGES. 0 or a negative errno. */
#define RESERVE(array, nr, max) \
	((nr) >= MAX_RANGES ? -EFBIG : KB_ARRAY_ROOM(array, max, (nr) + 1) ? 0 : -ENOMEM)

/* Add the ranges of @die. Returns their number or a negative errno. */
static int add_ranges(const struct kb_libdw *dw, struct ranges *ranges, Dwarf_Die *die,
		      uint32_t item)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;
	int nr = 0, ret;

	while ((at = dw->dwarf_ranges(die, at, &base, &low, &high)) > 0) {
		if (low >= high)
			continue;
		ret = RESERVE(ranges->ranges, ranges->nr, ranges->max);
		if (ret)
			return ret;
		ranges->ranges[ranges->nr++] = (struct range) { low, high, item };
		nr++;
	}
	return nr;
}

static int compare_ranges(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	if (a->low != b->low)
		return a->low < b->low ? -1 : 1;
	if (a->high != b->high)
		return a->high > b->high ? -1 : 1;
	return (a->item > b->item) - (a->item < b->item);
}

/* Of the ranges around @address the one that begins last. Only a few overlap. */
static const struct range *find_range(const struct ranges *ranges, uint64_t address)
{
	uint32_t i = KB_BISECT(k, 0, ranges->nr, ranges->ranges[k].low <= address), tries;

	for (tries = 0; i && tries < 16; tries++)
		if (address < ranges->ranges[--i].high)
			return &ranges->ranges[i];
	return NULL;
}

static void sort_ranges(struct ranges *ranges)
{
	if (ranges->nr)
		qsort(ranges->ranges, ranges->nr, sizeof(*ranges->ranges), compare_ranges);
}

/* ---- units ---- */

static int read_units(struct kb_lines *lines)
{
	const struct kb_libdw *dw = lines->dw;
	Dwarf_CU *cu = NULL, *next;
	Dwarf_Die die, split;
	int ret;

	while (dw->dwarf_get_units(lines->dwarf, cu, &next, NULL, NULL, &die, &split) == 0) {
		cu = next;
		if (!die.addr)
			continue;
		ret = add_ranges(dw, &lines->ranges, &die, lines->nr_units);
		if (ret < 0)
			return ret;
		if (!ret)
			continue;
		ret = RESERVE(lines->units, lines->nr_units, lines->max_units);
		if (ret)
			return ret;
		lines->units[lines->nr_units++] = (struct unit) {
			.die = die,
			.scope = split.addr ? split : die,
		};
	}
	sort_ranges(&lines->ranges);
	return 0;
}

/* Go to the next child; false: there are no more. */
static bool next_child(const struct kb_libdw *dw, Dwarf_Die *die)
{
	Dwarf_Off before = dw->dwarf_dieoffset(die);

	return dw->dwarf_siblingof(die, die) == 0 && dw->dwarf_dieoffset(die) > before;
}

static int add_function(const struct kb_libdw *dw, struct unit *unit, Dwarf_Die *die)
{
	int ret = add_ranges(dw, &unit->ranges, die, unit->nr_functions);

	if (ret <= 0)
		return ret;
	ret = RESERVE(unit->functions, unit->nr_functions, unit->max_functions);
	if (!ret)
		unit->functions[unit->nr_functions++] = *die;
	return ret;
}

/* Find all functions with code below @parent, at any level. */
static int scan(const struct kb_libdw *dw, struct unit *unit, Dwarf_Die *parent, int nesting)
{
	Dwarf_Die die;
	int ret = 0;

	if (nesting > MAX_NESTING || dw->dwarf_child(parent, &die) != 0)
		return 0;
	do {
		switch (dw->dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			ret = add_function(dw, unit, &die);
			if (!ret)	/* functions of local classes, and lambdas */
				ret = scan(dw, unit, &die, nesting + 1);
			break;
		case DW_TAG_lexical_block:
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
			ret = scan(dw, unit, &die, nesting + 1);
			break;
		}
	} while (!ret && next_child(dw, &die));
	return ret;
}

/* The function around @address; NULL if there is none. */
static Dwarf_Die *find_function(const struct kb_lines *lines, struct unit *unit, uint64_t address)
{
	const struct range *range;

	if (!unit->scanned) {
		unit->scanned = true;
		scan(lines->dw, unit, &unit->scope, 0);	/* without memory: use what was found */
		sort_ranges(&unit->ranges);
	}
	range = find_range(&unit->ranges, address);
	return range && range->item < unit->nr_functions ? &unit->functions[range->item] : NULL;
}

/* ---- frames ---- */

/* Turn @die into the inlined function directly below it that contains @address. */
static bool enter_inlined(const struct kb_libdw *dw, Dwarf_Die *die, uint64_t address)
{
	int steps;

	for (steps = 0; steps < 8 * KB_LINES_DEPTH; steps++) {
		bool found = false;

		if (dw->dwarf_child(die, die) != 0)
			return false;
		do
			found = dw->dwarf_haspc(die, address) == 1;
		while (!found && next_child(dw, die));
		if (!found)
			return false;
		if (dw->dwarf_tag(die) == DW_TAG_inlined_subroutine)
			return true;
	}
	return false;
}

static const char *function_name(const struct kb_libdw *dw, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name = NULL;

	if (dw->dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
	    dw->dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		name = dw->dwarf_formstring(&attribute);
	if (!name)
		name = dw->dwarf_diename(die);
	return name && *name ? name : "[inlined]";
}

static uint64_t number(const struct kb_libdw *dw, Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	return dw->dwarf_attr_integrate(die, name, &attribute) &&
	       dw->dwarf_formudata(&attribute, &value) == 0 ? value : 0;
}

/* Read where @die, an inlined function, is called. */
static void take_call_site(const struct kb_libdw *dw, Dwarf_Die *unit, Dwarf_Die *die,
			   struct kb_lines_frame *frame)
{
	uint64_t index = number(dw, die, DW_AT_call_file);
	const char *file = NULL;
	Dwarf_Files *files;
	size_t nr;

	if (dw->dwarf_getsrcfiles(unit, &files, &nr) == 0 && index < nr)
		file = dw->dwarf_filesrc(files, index, NULL, NULL);
	frame->file = file ? file : "";
	frame->line = number(dw, die, DW_AT_call_line);
}

static void take_line(const struct kb_libdw *dw, Dwarf_Die *unit, uint64_t address,
		      struct kb_lines_frame *frame)
{
	Dwarf_Line *line = dw->dwarf_getsrc_die(unit, address);
	const char *file = line ? dw->dwarf_linesrc(line, NULL, NULL) : NULL;
	int number;

	if (!file || dw->dwarf_lineno(line, &number) || number < 0)
		return;
	frame->file = file;
	frame->line = number;
}

uint32_t kb_lines_find(struct kb_lines *lines, uint64_t address, bool inlined,
		       struct kb_lines_frame frames[KB_LINES_DEPTH + 1])
{
	const struct range *range = find_range(&lines->ranges, address);
	const struct kb_libdw *dw = lines->dw;
	Dwarf_Die *function, die, chain[KB_LINES_DEPTH];
	uint32_t nr = 0, i;
	struct unit *unit;

	frames[0] = (struct kb_lines_frame) { .file = "" };
	if (!range || range->item >= lines->nr_units)
		return 1;
	unit = &lines->units[range->item];
	take_line(dw, &unit->die, address, &frames[0]);
	function = inlined ? find_function(lines, unit, address) : NULL;
	if (!function)
		return 1;
	for (die = *function; nr < KB_LINES_DEPTH && enter_inlined(dw, &die, address); nr++)
		chain[nr] = die;
	for (i = 0; i < nr; i++) {	/* the innermost function is the last of the chain */
		frames[i].function = function_name(dw, &chain[nr - 1 - i]);
		frames[i + 1].function = NULL;
		take_call_site(dw, &unit->scope, &chain[nr - 1 - i], &frames[i + 1]);
	}
	return nr + 1;
}

/* ---- files ---- */

/*
 * Read the whole file and append zeros. A mapped file that is truncated could crash the reader.
 * libdw expects that strings in sections are terminated, so the bytes after the last section
 * must be zero.
 */
static int read_file(struct kb_lines *lines, int fd, uint64_t size)
{
	ssize_t nr = 1;

	if (size > MAX_FILE)
		return -EFBIG;
	lines->image = calloc(1, size + PADDING);
	if (!lines->image)
		return -ENOMEM;
	while (lines->size < size && nr > 0) {
		nr = pread(fd, lines->image + lines->size, size - lines->size, lines->size);
		lines->size += nr > 0 ? nr : 0;
	}
	return nr < 0 ? -errno : 0;
}

/*
 * Whether the string sections end with a terminated string. Decompressed sections have no zeros
 * after them. Call it after dwarf_begin_elf(), which decompresses them.
 */
static bool strings_end(Elf *elf)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((section = elf_nextscn(elf, section))) {
		const char *name;
		Elf_Data *data;
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || (strcmp(name, ".debug_str") && strcmp(name, ".debug_line_str") &&
			      strcmp(name, ".zdebug_str") && strcmp(name, ".zdebug_line_str")))
			continue;
		data = elf_getdata(section, NULL);
		if (data && data->d_size && ((const char *)data->d_buf)[data->d_size - 1])
			return false;
	}
	return true;
}

static int open_dwarf(struct kb_lines *lines, const char *path, struct kb_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), ret;
	struct stat st;

	if (fd < 0)
		return kb_error_set(err, -errno, KB_NO_OFFSET, "%s can't be read: %s", path,
				    strerror(errno));
	ret = fstat(fd, &st) || !S_ISREG(st.st_mode) ? -ENODATA :
		read_file(lines, fd, st.st_size);
	close(fd);
	if (ret)
		return kb_error_set(err, ret, KB_NO_OFFSET, "%s can't be read: %s", path,
				    strerror(-ret));
	if (elf_version(EV_CURRENT) != EV_NONE)
		lines->elf = elf_memory(lines->image, lines->size);
	ret = lines->elf ? kb_zstd_sections_unpack(&lines->sections, lines->elf) : 0;
	if (ret)
		return kb_error_set(err, ret, KB_NO_OFFSET, "%s has no lines: %s", path,
				    ret == -ENOPKG ? "its debug information is compressed by zstd, "
						     "install the package libzstd1 or libzstd" :
				    ret == -EBADMSG ? "its debug information is damaged" :
				    "it needs more memory than there is");
	if (lines->elf)
		lines->dwarf = lines->dw->dwarf_begin_elf(lines->elf, DWARF_C_READ, NULL);
	if (!lines->dwarf)
		return kb_error_set(err, -ENODATA, KB_NO_OFFSET, "%s has no debug information",
				    path);
	if (!strings_end(lines->elf))
		return kb_error_set(err, -EBADMSG, KB_NO_OFFSET, "%s is damaged: the last string of "
				    "its debug information has no end", path);
	return 0;
}

int kb_lines_open(struct kb_lines **out, const char *path, struct kb_error *err)
{
	const struct kb_libdw *dw = kb_libdw();
	struct kb_lines *lines;
	int ret;

	if (kb_decodes_elsewhere())	/* programs with a decoder process do not use lines */
		return -ENODATA;
	if (!dw)
		return kb_error_set(err, -ENOSYS, KB_NO_OFFSET, "lines need libdw: install the "
				    "package libdw1 or elfutils-libs");
	lines = calloc(1, sizeof(*lines));
	if (!lines)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	lines->dw = dw;
	ret = open_dwarf(lines, path, err);
	if (!ret) {
		ret = read_units(lines);
		if (ret)
			kb_error_set(err, ret, KB_NO_OFFSET, "%s needs more memory than there is",
				     path);
	}
	if (ret) {
		kb_lines_close(lines);
		return ret;
	}
	*out = lines;
	return 0;
}

void kb_lines_close(struct kb_lines *lines)
{
	uint32_t i;

	if (!lines)
		return;
	for (i = 0; i < lines->nr_units; i++) {
		free(lines->units[i].ranges.ranges);
		free(lines->units[i].functions);
	}
	free(lines->units);
	free(lines->ranges.ranges);
	if (lines->dwarf)
		lines->dw->dwarf_end(lines->dwarf);
	elf_end(lines->elf);
	kb_zstd_sections_release(&lines->sections);
	free(lines->image);
	free(lines);
}
