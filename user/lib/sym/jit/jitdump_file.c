// SPDX-License-Identifier: MIT
/*
 * Everybody can write to most places of dumps. But the process itself has mapped its dump, and the
 * recording knows which file that was. Links are not followed, and only regular files are read. The
 * process goes on writing, so size and time of the file do not count.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sym/files/file_id.h"
#include "sym/files/regular.h"
#include "sym/jit/jitdump.h"
#include "sym/jit/jitdump_file.h"
#include "sym/question/question.h"

bool kb_is_jitdump(const char *path)
{
	const char *slash = path[0] == '/' ? strrchr(path, '/') : NULL;
	size_t digits;

	if (!slash || strncmp(slash, "/jit-", 5) != 0)
		return false;
	digits = strspn(slash + 5, "0123456789");
	return digits && strcmp(slash + 5 + digits, ".dump") == 0;
}

/* On another disk or in another tree the file has another inode. */
static bool fits(int fd, const char *symfs, struct kb_text wanted)
{
	char id[KB_FILE_ID];

	if (symfs[0] || !wanted.length || !kb_file_id_of(fd, id))
		return true;
	return kb_file_id_same_inode(kb_text(id), wanted) || kb_file_id_alike(kb_text(id), wanted);
}

/* @path is freed. */
static int open_fitting(char *path, const char *symfs, struct kb_text wanted)
{
	int fd = path ? kb_open_regular(path, O_NOFOLLOW) : -ENOMEM;

	free(path);
	if (fd < 0 || fits(fd, symfs, wanted))
		return fd;
	close(fd);
	return -ESTALE;
}

int kb_jitdump_open(const char *symfs, const struct kb_map *row)
{
	int first, fd;
	char *path;

	if (asprintf(&path, "%s%s", symfs, row->image) < 0)
		return -ENOMEM;
	first = open_fitting(path, symfs, row->file);
	if (first >= 0)
		return first;
	/* A folder of files without their paths, or a container. */
	if (symfs[0] ? asprintf(&path, "%s%s", symfs, strrchr(row->image, '/')) < 0 :
	    asprintf(&path, "/proc/%u/root%s", row->task_id, row->image) < 0)
		return -ENOMEM;
	fd = open_fitting(path, symfs, row->file);
	return fd < 0 ? first : fd;
}

static int read_dump(struct kb_elf *elf, int fd, const char *path, struct kb_error *err)
{
	const struct kb_question question = { .what = KB_QUESTION_JITDUMP };
	int ret;

	if (kb_decodes_elsewhere())
		return kb_decode_elsewhere(&question, fd, path, elf, err);
	ret = kb_jitdump_read_fd(&elf->jit, &elf->symbols, fd);
	return ret ? kb_error_set(err, ret, KB_NO_OFFSET, "%s %s", path, ret == -ENOEXEC ?
				  "is no jitdump" : "can't be read") : 0;
}

int kb_jitdump_file_read(struct kb_elf *elf, const char *symfs, const struct kb_map *row,
			 struct kb_error *err)
{
	int fd = kb_jitdump_open(symfs, row), ret;

	if (fd < 0)
		return kb_error_set(err, fd, KB_NO_OFFSET, fd == -ESTALE ?
				    "%s%s is not the jitdump that was recorded: names of code that "
				    "was made at run time are missing" :
				    "%s%s can't be read: names of code that was made at run time "
				    "are missing", symfs, row->image);
	ret = read_dump(elf, fd, row->image, err);
	close(fd);
	if (!ret && (elf->symbols.nr_symbols != elf->jit.nr_codes ||
		     kb_jit_index(&elf->jit, &elf->symbols)))
		ret = kb_error_set(err, -EFBIG, KB_NO_OFFSET, "%s has too much code", row->image);
	if (ret)
		kb_elf_release(elf);
	return ret;
}
