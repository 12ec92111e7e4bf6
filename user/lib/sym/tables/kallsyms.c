// SPDX-License-Identifier: MIT
/*
 * Only code gives names. Data symbols are kept as boundaries, so that the last function of a
 * section does not extend over what follows. The text has no sizes: a symbol ends where the
 * next one begins, or with the module's code.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/array.h"
#include "base/bisect.h"
#include "sym/tables/kallsyms.h"

#define MAX_TEXT	(512U << 20)	/* bytes; real ones have 10 to 30 MiB */

#define MAX_PROGRAM	(64U << 10)	/* bytes of a BPF program, whose size nobody says */

/* The code of a module. */
struct range {
	uint64_t start, end;
};

struct ranges {
	struct range *all;		/* by address */
	size_t nr, max;
};

struct line {
	uint64_t address;
	char type;
	const char *name, *module;
	size_t name_length, module_length;	/* module_length 0: the kernel's */
};

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

static const char *skip_word(const char *at, const char *end)
{
	while (at < end && *at != ' ' && *at != '\t')
		at++;
	return at;
}

static bool parse_address(const char *at, const char *end, uint64_t *address)
{
	if (at == end || end - at > 16)
		return false;
	for (*address = 0; at < end; at++) {
		if (!isxdigit((unsigned char)*at))
			return false;
		*address = *address << 4 | (*at <= '9' ? *at - '0' : (*at | 32) - 'a' + 10);
	}
	return true;
}

static bool parse_line(struct line *line, const char *at, const char *end)
{
	const char *word = skip_word(at, end);

	if (!parse_address(at, word, &line->address))
		return false;
	at = skip_blanks(word, end);
	word = skip_word(at, end);
	if (word - at != 1)
		return false;
	line->type = *at;

	line->name = skip_blanks(word, end);
	at = skip_word(line->name, end);
	line->name_length = at - line->name;
	line->module = skip_blanks(at, end);
	line->module_length = skip_word(line->module, end) - line->module;
	return line->name_length > 0;
}

/* The group of a line's image. Lines of one module are adjacent. */
static int find_image(struct kb_kallsyms *kallsyms, const struct line *line, uint32_t *group)
{
	const char *last = kallsyms->nr_images ? kallsyms->images[kallsyms->nr_images - 1] : "";

	if (!line->module_length) {
		*group = 0;
		return 0;
	}
	*group = kallsyms->nr_images - 1;
	if (strlen(last) == line->module_length &&
	    memcmp(last, line->module, line->module_length) == 0)
		return 0;

	if (!KB_ARRAY_ROOM(kallsyms->images, kallsyms->max_images, kallsyms->nr_images + 1))
		return -ENOMEM;
	kallsyms->images[kallsyms->nr_images] = strndup(line->module, line->module_length);
	if (!kallsyms->images[kallsyms->nr_images])
		return -ENOMEM;
	*group = kallsyms->nr_images++;
	return 0;
}

/* Names that separate code from data, and labels of the assembler. */
static bool names_nothing(const struct line *line)
{
	return (line->name[0] == '$' && line->name_length > 1 && strchr("adtx", line->name[1])) ||
	       (line->name_length > 2 && memcmp(line->name, ".L", 2) == 0);
}

static int compare_ranges(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

static int add_range(struct ranges *ranges, uint64_t start, uint64_t length)
{
	if (length > UINT64_MAX - start)
		return 0;
	if (!KB_ARRAY_ROOM(ranges->all, ranges->max, ranges->nr + 1))
		return -ENOMEM;
	ranges->all[ranges->nr++] = (struct range) { start, start + length };
	return 0;
}

/* The modules that are loaded now; what can't be read is left out. */
static int add_live(struct ranges *ranges)
{
	FILE *file = fopen("/proc/modules", "re");
	uint64_t size, address;
	int ret = 0;

	/* NAME SIZE REFCOUNT USERS STATE ADDRESS, and maybe flags */
	while (file && !ret && fscanf(file, "%*s %" SCNu64 " %*s %*s %*s %" SCNx64 "%*[^\n]", &size,
				      &address) == 2)
		ret = add_range(ranges, address, size);
	if (file)
		fclose(file);
	return ret;
}

static int find_ranges(struct ranges *ranges, const struct kb_header *header, bool live)
{
	int ret = live ? add_live(ranges) : 0;

	for (uint32_t i = 0; header && i < header->nr_maps && !ret; i++)
		if (!header->maps[i].task_id)
			ret = add_range(ranges, header->maps[i].base_address,
					header->maps[i].length);
	if (ranges->nr)
		qsort(ranges->all, ranges->nr, sizeof(*ranges->all), compare_ranges);
	return ret;
}

/* Where the function of @line ends at the latest. */
static uint64_t limit_of(const struct ranges *ranges, const struct line *line)
{
	size_t i;

	if (line->module_length == 5 && memcmp(line->module, "[bpf]", 5) == 0)
		return line->address < UINT64_MAX - MAX_PROGRAM ? line->address + MAX_PROGRAM :
								  KB_SYMTAB_NO_LIMIT;
	i = KB_BISECT(k, 0, line->module_length ? ranges->nr : 0,
		      ranges->all[k].start <= line->address);
	return i && line->address < ranges->all[i - 1].end ? ranges->all[i - 1].end :
							     KB_SYMTAB_NO_LIMIT;
}

static int add_line(struct kb_kallsyms *kallsyms, const struct ranges *ranges,
		    const struct line *line)
{
	enum kb_symtab_rank rank;
	uint32_t group;
	int ret;

	switch (line->type) {
	case 't':
		rank = KB_RANK_LOCAL;
		break;
	case 'T':
		rank = KB_RANK_GLOBAL;
		break;
	case 'w':
	case 'W':
		rank = KB_RANK_WEAK;
		break;
	case 'a':
	case 'A':		/* a number, not an address */
		return 0;
	default:
		rank = KB_RANK_BOUNDARY;
		break;
	}
	if (!line->address || names_nothing(line))
		return 0;
	ret = find_image(kallsyms, line, &group);
	if (ret)
		return ret;
	if (rank != KB_RANK_BOUNDARY && line->address < kallsyms->lowest)
		kallsyms->lowest = line->address;
	if (!group && line->name_length == 6 && memcmp(line->name, "_stext", 6) == 0)
		kallsyms->stext = line->address;
	return kb_symtab_add(&kallsyms->symbols, line->address, 0,
			     rank == KB_RANK_BOUNDARY ? KB_SYMTAB_NO_LIMIT :
							limit_of(ranges, line),
			     line->name, rank == KB_RANK_BOUNDARY ? 0 : line->name_length, rank, group);
}

/* Add all lines; counts those that have the right format. */
static int add_lines(struct kb_kallsyms *kallsyms, const struct ranges *ranges, const char *text,
		     size_t size, size_t *good)
{
	const char *end = text + size, *newline;
	struct line line;
	int ret;

	for (*good = 0; text < end; text = newline + 1) {
		newline = memchr(text, '\n', end - text);
		if (!newline)
			newline = end;
		if (!parse_line(&line, text, newline))
			continue;
		++*good;
		ret = add_line(kallsyms, ranges, &line);
		if (ret)
			return ret;
	}
	return 0;
}

int kb_kallsyms_parse(struct kb_kallsyms *kallsyms, const struct kb_header *header,
		      const char *text, size_t size, const char *path, struct kb_error *err)
{
	static const struct line kernel = {
		.module = KB_KERNEL_IMAGE,
		.module_length = sizeof(KB_KERNEL_IMAGE) - 1,
	};
	struct ranges ranges = { 0 };
	uint32_t group;
	size_t good;
	int ret;

	*kallsyms = (struct kb_kallsyms) { .lowest = UINT64_MAX };
	ret = find_ranges(&ranges, header, strcmp(path, "/proc/kallsyms") == 0);
	if (!ret)
		ret = find_image(kallsyms, &kernel, &group);
	if (!ret)
		ret = add_lines(kallsyms, &ranges, text, size, &good);
	free(ranges.all);
	if (!ret && !good)
		ret = kb_error_set(err, -ENODATA, KB_NO_OFFSET,
				   "%s is not in the format of /proc/kallsyms", path);
	else if (!ret && kallsyms->lowest == UINT64_MAX)
		ret = kb_error_set(err, -EACCES, KB_NO_OFFSET, "%s has no addresses: the kernel "
				   "hid them from the user who read it; record as root, or set "
				   "kernel.kptr_restrict=0", path);
	else if (!ret && kb_symtab_sort(&kallsyms->symbols))
		ret = -ENOMEM;
	if (ret == -ENOMEM || ret == -EFBIG)
		kb_error_set(err, ret, KB_NO_OFFSET, "%s has more symbols than memory can hold",
			     path);
	if (ret)
		kb_kallsyms_release(kallsyms);
	return ret;
}

/* Read all of @path, decompressed. Files in /proc do not have their real size. */
static int read_text(const char *path, char **text, size_t *size, struct kb_error *err)
{
	size_t max = 1 << 20;
	char *grown;
	gzFile file;
	int nr = 0;

	errno = 0;
	file = gzopen(path, "re");
	if (!file)
		return kb_error_set(err, errno ? -errno : -ENOMEM, KB_NO_OFFSET,
				    "%s can't be read: %s", path, strerror(errno));
	do {
		*size += nr;
		if (*size * 2 > max || !*text) {
			max *= 2;
			grown = max > MAX_TEXT ? NULL : realloc(*text, max);
			if (!grown) {
				gzclose(file);
				free(*text);
				*text = NULL;
				return kb_error_set(err, -EFBIG, KB_NO_OFFSET,
						    "%s is too large for symbols of a kernel", path);
			}
			*text = grown;
		}
		nr = gzread(file, *text + *size, max - *size);
	} while (nr > 0);
	gzclose(file);
	if (nr == 0)
		return 0;
	free(*text);
	*text = NULL;
	return kb_error_set(err, -EIO, KB_NO_OFFSET, "%s can't be read to its end", path);
}

int kb_kallsyms_load(struct kb_kallsyms *kallsyms, const struct kb_header *header,
		     const char *path, struct kb_error *err)
{
	size_t size = 0;
	char *text = NULL;
	int ret;

	*kallsyms = (struct kb_kallsyms) { 0 };
	ret = read_text(path, &text, &size, err);
	if (!text)
		return ret;
	ret = kb_kallsyms_parse(kallsyms, header, text, size, path, err);
	free(text);
	return ret;
}

void kb_kallsyms_release(struct kb_kallsyms *kallsyms)
{
	uint32_t i;

	for (i = 0; i < kallsyms->nr_images; i++)
		free(kallsyms->images[i]);
	free(kallsyms->images);
	kb_symtab_release(&kallsyms->symbols);
	*kallsyms = (struct kb_kallsyms) { 0 };
}
