/* SPDX-License-Identifier: MIT */
/*
 * format/memory/: the physical memory of a machine, out of a file that survived a crash: ELF cores
 * of 32 and 64 bits in both byte orders (elf.c), LiME (lime.c), makedumpfile's compressed form
 * (kdump.c), and raw memory (memory.c); each but the last one also flattened (flat.c). No form knows
 * what is in the memory.
 *
 * The files are hostile, and often unfinished. What a file has is read. What it lacks, and pages
 * that are damaged, count as memory that is not there. The file is never mapped. It costs 1 MiB
 * and some pages, 24 bytes for each segment or piece whose header it has, and 8 for each 512 of a
 * bitmap.
 */
#ifndef KB_LIB_FORMAT_MEMORY_MEMORY_H
#define KB_LIB_FORMAT_MEMORY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/error.h>

#define KB_MEMORY_NO_BASE	UINT64_MAX	/* the file says where its bytes were in memory */
#define KB_MEMORY_PAGE		4096U		/* bytes; larger pages begin with such a one */

struct kb_memory;

/* Whether @path begins as a file of these forms does. False also for what can't be read. */
bool kb_memory_is(const char *path);

/*
 * Open @path, a file or a block device. @base: KB_MEMORY_NO_BASE, or it is raw memory from this
 * physical address on. Returns 0 or a negative errno: -ENOTSUP for a form that is none of these,
 * -EBADMSG for damaged headers.
 */
int kb_memory_open(struct kb_memory **out, const char *path, uint64_t base, struct kb_error *err);

/*
 * The same with @fd, which pread() reads and @memory closes, also on an error: @size bytes of raw memory from @base on.
 * @name: for the texts of errors.
 */
int kb_memory_take(struct kb_memory **out, int fd, const char *name, uint64_t base, uint64_t size,
		   struct kb_error *err);

/* @memory may be NULL. */
void kb_memory_close(struct kb_memory *memory);

/* How many bytes of memory the file has, as its headers and its size say. */
uint64_t kb_memory_bytes(const struct kb_memory *memory);

/*
 * Find the first page (at a multiple of KB_MEMORY_PAGE) at or behind *@physical whose first eight
 * bytes are one of @magics, in either byte order. Returns 1 and sets *@physical; 0 if there is none; or a
 * negative errno: of a read, or -ENOTSUP for a page of a compression that is not known.
 */
#define KB_MEMORY_MAGICS	2U

int kb_memory_find(struct kb_memory *memory, const uint64_t magics[KB_MEMORY_MAGICS],
		   uint64_t *physical, struct kb_error *err);

/*
 * Copy the @bytes of memory at @physical. Returns 1; 0 if the file does not have all of them: then
 * those that it lacks are zeros; or a negative errno as kb_memory_find().
 */
int kb_memory_read(struct kb_memory *memory, uint64_t physical, void *to, size_t bytes,
		   struct kb_error *err);

#endif
