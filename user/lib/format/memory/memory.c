// SPDX-License-Identifier: MIT
/* The first bytes of a file say which form it has; raw memory is one range. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/memory/inside.h"
#include "format/memory/memory.h"

#define BUFFER		(1U << 20)
#define HEAD		18U		/* first bytes, up to the type of an ELF file */

struct kb_memory {
	struct kb_memory_file file, flat;	/* flat: what makes it, if it is flattened */
	struct kb_memory_ranges ranges;
	struct kb_kdump *kdump;		/* NULL: it is ranges */
};

static int open_file(struct kb_memory_file *file, const char *path, struct kb_error *err)
{
	struct stat st;
	off_t size;

	/* A FIFO would wait for a writer. */
	file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (file->fd < 0 || fstat(file->fd, &st))
		return kb_error_set(err, -errno, KB_NO_OFFSET, "can't open %s: %s", path,
				    strerror(errno));
	file->name = strdup(path);
	if (!file->name)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "%s: out of memory", path);
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return kb_memory_refuse(file, "is neither a file nor a block device", err);
	size = S_ISREG(st.st_mode) ? st.st_size : lseek(file->fd, 0, SEEK_END);
	file->size = size > 0 ? (uint64_t)size : 0;
	return 0;
}

static void close_file(struct kb_memory_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->name);
	free(file->buffer);
	free(file->pieces.rows);
}

static bool begins(const uint8_t head[HEAD], const char *magic)
{
	return memcmp(head, magic, strlen(magic)) == 0;
}

bool kb_memory_is(const char *path)
{
	struct kb_memory_file file = { 0 };
	uint8_t head[HEAD] = { 0 };
	struct stat st;
	bool opened;

	/* Who writes into a pipe must not see that somebody opens it and goes. */
	if (stat(path, &st) || (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode)))
		return false;
	opened = !open_file(&file, path, NULL) && kb_memory_pread(&file, 0, head, sizeof(head), NULL) > 0;
	close_file(&file);
	if (begins(head, ELFMAG))
		return head[head[EI_DATA] == ELFDATA2MSB ? HEAD - 1 : HEAD - 2] == ET_CORE;
	return opened && (begins(head, KB_MEMORY_LIME) || begins(head, "KDUMP   ") ||
			  begins(head, KB_MEMORY_FLAT));
}

static int read_headers(struct kb_memory *memory, struct kb_error *err)
{
	const struct kb_memory_file *file = &memory->file;
	uint8_t head[HEAD] = { 0 };
	ssize_t got = kb_memory_pread(file, 0, head, sizeof(head), err);

	if (got < 0)
		return (int)got;
	if (begins(head, ELFMAG))
		return kb_memory_elf(&memory->ranges, file, err);
	if (begins(head, KB_MEMORY_LIME))
		return kb_memory_lime(&memory->ranges, file, err);
	if (begins(head, "KDUMP   "))
		return kb_kdump_open(&memory->kdump, file, err);
	return kb_memory_refuse(file, "is no memory: neither an ELF core, nor of LiME, nor of "
				      "makedumpfile", err);
}

/* What of the file's own form is in it is its bytes from here on. */
static int open_flattened(struct kb_memory *memory, struct kb_error *err)
{
	struct kb_memory_file *file = &memory->file;
	uint8_t head[HEAD] = { 0 };
	ssize_t got = kb_memory_pread(file, 0, head, sizeof(head), err);

	if (got < 0 || !begins(head, KB_MEMORY_FLAT))
		return got < 0 ? (int)got : 0;
	memory->flat = *file;
	return kb_memory_flat(file, &memory->flat, err);
}

/* @ret: of what opened the file. */
static int read_memory(struct kb_memory **out, struct kb_memory *memory, uint64_t base, int ret,
		       struct kb_error *err)
{
	struct kb_memory_file *file = &memory->file;

	if (!ret && base == KB_MEMORY_NO_BASE)
		ret = open_flattened(memory, err);
	if (!ret) {
		file->room = file->size < BUFFER ? (size_t)file->size : BUFFER - 1;
		file->room = (file->room | (KB_MEMORY_PAGE - 1)) + 1;
		file->buffer = malloc(file->room);
		if (!file->buffer)
			ret = kb_memory_exhausted(file, err);
	}
	if (!ret && base == KB_MEMORY_NO_BASE)
		ret = read_headers(memory, err);
	else if (!ret)
		ret = kb_memory_add(&memory->ranges, file, base, file->size, 0, err);
	if (!ret)
		ret = kb_memory_order(&memory->ranges, file, err);
	if (ret)
		kb_memory_close(memory);
	else
		*out = memory;
	return ret;
}

int kb_memory_open(struct kb_memory **out, const char *path, uint64_t base, struct kb_error *err)
{
	struct kb_memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "%s: out of memory", path);
	return read_memory(out, memory, base, open_file(&memory->file, path, err), err);
}

int kb_memory_take(struct kb_memory **out, int fd, const char *name, uint64_t base, uint64_t size,
		   struct kb_error *err)
{
	struct kb_memory *memory = calloc(1, sizeof(*memory));
	char *its = strdup(name);

	if (!memory || !its) {
		close(fd);
		free(memory);
		free(its);
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "%s: out of memory", name);
	}
	memory->file = (struct kb_memory_file){ .fd = fd, .name = its, .size = size };
	return read_memory(out, memory, base, 0, err);
}

void kb_memory_close(struct kb_memory *memory)
{
	if (!memory)
		return;
	kb_kdump_close(memory->kdump);
	free(memory->ranges.rows);
	close_file(&memory->file);
	free(memory);
}

uint64_t kb_memory_bytes(const struct kb_memory *memory)
{
	return memory->kdump ? kb_kdump_bytes(memory->kdump) : memory->ranges.bytes;
}

int kb_memory_find(struct kb_memory *memory, const uint64_t magics[KB_MEMORY_MAGICS],
		   uint64_t *physical, struct kb_error *err)
{
	if (memory->kdump)
		return kb_kdump_find(memory->kdump, magics, physical, err);
	return kb_memory_find_in(&memory->ranges, &memory->file, magics, physical, err);
}

int kb_memory_read(struct kb_memory *memory, uint64_t physical, void *to, size_t bytes,
		   struct kb_error *err)
{
	/* No machine has memory there. */
	if (bytes > UINT64_MAX - physical) {
		memset(to, 0, bytes);
		return 0;
	}
	if (memory->kdump)
		return kb_kdump_read(memory->kdump, physical, to, bytes, err);
	return kb_memory_read_of(&memory->ranges, &memory->file, physical, to, bytes, err);
}
