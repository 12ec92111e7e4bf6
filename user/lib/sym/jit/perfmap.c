// SPDX-License-Identifier: MIT
/*
 * Everybody can write to the directory, and a container is anybody's. So links are not followed, only regular files are read,
 * and their content is used for one process only.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "sym/files/regular.h"
#include "sym/jit/perfmap.h"
#include "sym/question/question.h"

#define MAX_TEXT	(256U << 20)	/* bytes */

/* Parse a hexadecimal number, also with "0x", and the blanks after it. */
static bool take_number(const char **at, const char *end, uint64_t *number)
{
	unsigned int digits = 0;

	if (end - *at > 2 && (*at)[0] == '0' && ((*at)[1] | 32) == 'x')
		*at += 2;
	for (*number = 0; *at < end && isxdigit((unsigned char)**at); ++*at) {
		if (++digits > 16)
			return false;
		*number = *number << 4 | (**at <= '9' ? **at - '0' : (**at | 32) - 'a' + 10);
	}
	if (!digits || *at == end || **at != ' ')
		return false;
	while (*at < end && **at == ' ')
		++*at;
	return true;
}

struct entry {
	uint64_t start, end;
	uint32_t line;
	const char *name;
	size_t length;
};

struct entries {
	struct entry *all;
	size_t nr, max;
};

static int add_entry(struct entries *entries, struct entry entry)
{
	if (entries->nr == KB_SYMTAB_MAX)
		return -EFBIG;
	if (!KB_ARRAY_ROOM(entries->all, entries->max, entries->nr + 1))
		return -ENOMEM;
	entry.line = entries->nr;
	entries->all[entries->nr++] = entry;
	return 0;
}

static int compare(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->line < b->line) - (a->line > b->line);	/* newest first */
}

/*
 * Add entries ordered by address. Of entries with one start only the newest is added, and an
 * entry that begins inside a newer one is left out. The parts of an older entry around a newer
 * one stay.
 */
static int add_symbols(struct kb_symtab *symtab, struct entries *entries)
{
	uint64_t covered = 0;
	uint32_t line = 0;
	size_t i;
	int ret = 0;

	if (entries->nr)
		qsort(entries->all, entries->nr, sizeof(*entries->all), compare);
	for (i = 0; i < entries->nr && !ret; i++) {
		struct entry *entry = &entries->all[i];

		if (i && entry->start == entries->all[i - 1].start)
			continue;
		if (entry->start < covered && entry->line < line)
			continue;	/* begins inside a newer one */
		covered = entry->end;
		line = entry->line;
		ret = kb_symtab_add(symtab, entry->start, entry->end - entry->start,
				    KB_SYMTAB_NO_LIMIT, entry->name, entry->length,
				    KB_RANK_GLOBAL, 0);
	}
	return ret;
}

int kb_perfmap_parse(struct kb_symtab *symtab, const char *text, size_t size)
{
	const char *end = text + size, *newline;
	struct entries entries = { 0 };
	int ret = 0;

	for (; text < end && !ret; text = newline + 1) {
		struct entry entry = { 0 };
		const char *at = text;
		uint64_t length;

		newline = memchr(text, '\n', end - text);
		if (!newline)
			break;		/* still being written */
		if (!take_number(&at, newline, &entry.start) ||
		    !take_number(&at, newline, &length) || at == newline || !*at || !length ||
		    length > UINT64_MAX - entry.start)
			continue;
		entry.end = entry.start + length;
		entry.name = at;
		entry.length = strnlen(at, newline - at);
		ret = add_entry(&entries, entry);
	}
	if (!ret)
		ret = add_symbols(symtab, &entries);
	free(entries.all);
	return ret ? ret : kb_symtab_sort(symtab);
}

static int read_text(int fd, char **text, size_t *size)
{
	size_t max = 1 << 16;
	ssize_t nr = 0;
	char *grown;

	*text = NULL;
	*size = 0;
	do {
		*size += nr;
		if (!*text || *size == max) {
			max *= 2;
			if (max > MAX_TEXT)
				return -EFBIG;
			grown = realloc(*text, max);
			if (!grown)
				return -ENOMEM;
			*text = grown;
		}
		nr = read(fd, *text + *size, max - *size);
	} while (nr > 0);
	return nr ? -errno : 0;
}

int kb_perfmap_read_fd(struct kb_symtab *symtab, int fd)
{
	char *text = NULL;
	size_t size = 0;
	int ret = read_text(fd, &text, &size);

	if (!ret)
		ret = kb_perfmap_parse(symtab, text, size);
	free(text);
	return ret;
}

static int read_elsewhere(struct kb_symtab *symtab, int fd, const char *path)
{
	const struct kb_question question = { .what = KB_QUESTION_PERFMAP };
	struct kb_elf found = { 0 };
	int ret = kb_decode_elsewhere(&question, fd, path, &found, NULL);

	if (ret)
		return ret;
	*symtab = found.symbols;
	found.symbols = (struct kb_symtab) { 0 };
	kb_elf_release(&found);		/* what it was not asked for */
	return kb_symtab_sort(symtab);
}

/* The number that the process has for itself, in the innermost of its namespaces. 0: it is not there. */
static uint32_t own_number(uint32_t pid)
{
	char path[32], line[256], *last;
	uint32_t number = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	status = fopen(path, "re");
	if (!status)
		return 0;
	while (!number && fgets(line, sizeof(line), status)) {
		if (strncmp(line, "NSpid:", 6) != 0)
			continue;
		last = strrchr(line, '\t');
		number = last ? (uint32_t)strtoul(last, NULL, 10) : 0;
	}
	fclose(status);
	return number;
}

/* @name below @folder, whose descriptor is closed. Who made it may be anybody, so a link is not followed. */
static int step(int folder, const char *name, int flags)
{
	int fd = folder < 0 ? -1 : openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC | flags);

	if (folder >= 0)
		close(folder);
	return fd;
}

/*
 * The map of a process in a container: there is a folder /tmp of its own, and another number in the
 * name. It has to be a regular file of the process's user. Returns a descriptor or a negative errno.
 */
static int open_inside(uint32_t pid)
{
	char path[64], name[32];
	struct stat process, file;
	int place, fd = -ENOENT;

	snprintf(name, sizeof(name), "perf-%u.map", own_number(pid));
	snprintf(path, sizeof(path), "/proc/%u", pid);
	if (stat(path, &process))
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%u/root", pid);
	place = step(step(open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), "tmp", O_DIRECTORY), name, 0);
	if (place < 0)
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	if (!fstat(place, &file) && (file.st_uid == process.st_uid || !file.st_uid) && S_ISREG(file.st_mode))
		fd = kb_open_regular(path, 0);
	close(place);
	return fd;
}

int kb_perfmap_read(struct kb_symtab *symtab, const char *symfs, uint32_t pid)
{
	char *path;
	int fd, ret;

	if (asprintf(&path, "%s/tmp/perf-%u.map", symfs, pid) < 0)
		return -ENOMEM;
	fd = kb_open_regular(path, O_NOFOLLOW);
	if (fd == -ENOENT && !*symfs)
		fd = open_inside(pid);
	ret = fd < 0 ? fd : kb_decodes_elsewhere() ? read_elsewhere(symtab, fd, path) :
		kb_perfmap_read_fd(symtab, fd);
	if (fd >= 0)
		close(fd);
	free(path);
	return ret;
}
