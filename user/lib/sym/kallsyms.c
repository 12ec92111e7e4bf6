// SPDX-License-Identifier: MIT
/*
 * Only code gives names. Data symbols are kept as boundaries, so that the last function of a
 * section does not extend over what follows. The text has no sizes: a symbol ends where the
 * next one begins, or, at a module's end, with its page.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/array.h"
#include "sym/kallsyms.h"

#define MAX_TEXT	(512U << 20)	/* bytes; real ones have 10 to 30 MiB */

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

static int add_line(struct kb_kallsyms *kallsyms, const struct line *line)
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
	return kb_symtab_add(&kallsyms->symbols, line->address, 0, KB_SYMTAB_NO_LIMIT, line->name,
			     rank == KB_RANK_BOUNDARY ? 0 : line->name_length, rank, group);
}

/* Add all lines; counts those that have the right format. */
static int add_lines(struct kb_kallsyms *kallsyms, const char *text, size_t size, size_t *good)
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
		ret = add_line(kallsyms, &line);
		if (ret)
			return ret;
	}
	return 0;
}

int kb_kallsyms_parse(struct kb_kallsyms *kallsyms, const char *text, size_t size,
		      const char *path, struct kb_error *err)
{
	static const struct line kernel = {
		.module = KB_KERNEL_IMAGE,
		.module_length = sizeof(KB_KERNEL_IMAGE) - 1,
	};
	uint32_t group;
	size_t good;
	int ret;

	*kallsyms = (struct kb_kallsyms) { .lowest = UINT64_MAX };
	ret = find_image(kallsyms, &kernel, &group);
	if (!ret)
		ret = add_lines(kallsyms, text, size, &good);
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

int kb_kallsyms_load(struct kb_kallsyms *kallsyms, const char *path, struct kb_error *err)
{
	size_t size = 0;
	char *text = NULL;
	int ret;

	*kallsyms = (struct kb_kallsyms) { 0 };
	ret = read_text(path, &text, &size, err);
	if (!text)
		return ret;
	ret = kb_kallsyms_parse(kallsyms, text, size, path, err);
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
