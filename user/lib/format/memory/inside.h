/* SPDX-License-Identifier: MIT */
/* What the readers share: an open file, and ranges of memory that it has as they were. */
#ifndef KB_LIB_FORMAT_MEMORY_INSIDE_H
#define KB_LIB_FORMAT_MEMORY_INSIDE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <kbarman/error.h>

#define KB_MEMORY_ZEROS		UINT64_MAX	/* in place of an offset: the bytes are zeros */

struct kb_memory_range {
	uint64_t physical, bytes;	/* it ends below 2^64 */
	uint64_t offset;		/* in the file, which has all bytes; or KB_MEMORY_ZEROS */
};

/* After kb_memory_order() they are in order, with nothing in common. */
struct kb_memory_ranges {
	struct kb_memory_range *rows;
	size_t nr, max;
	uint64_t bytes;			/* of all that the file has */
};

struct kb_memory_file {
	int fd;
	char *name;		/* for messages */
	uint64_t size;
	uint8_t *buffer;
	size_t room;		/* of it, a multiple of KB_MEMORY_PAGE */
	const struct kb_memory_file *flat;	/* has the bytes of this file in pieces; NULL */
	struct kb_memory_ranges pieces;		/* "physical" is an offset in this file */
};

/*
 * Read @bytes at @offset. Returns how many there are: fewer only where the file ends; or a negative
 * errno.
 */
ssize_t kb_memory_pread(const struct kb_memory_file *file, uint64_t offset, void *to, size_t bytes,
			struct kb_error *err);

/*
 * Where in @bytes at @data, from @from on, the first page is that begins with one of @magics in either byte order;
 * @bytes if none does.
 */
size_t kb_memory_page_with(const uint8_t *data, size_t from, size_t bytes, const uint64_t *magics);

/* Each says why the file can't be read, and returns the code. */
int kb_memory_damaged(const struct kb_memory_file *file, const char *what, struct kb_error *err);
int kb_memory_refuse(const struct kb_memory_file *file, const char *what, struct kb_error *err);
int kb_memory_exhausted(const struct kb_memory_file *file, struct kb_error *err);

/* Add what the file has of @bytes at @offset. Returns 0 or -ENOMEM. */
int kb_memory_add(struct kb_memory_ranges *ranges, const struct kb_memory_file *file,
		  uint64_t physical, uint64_t bytes, uint64_t offset, struct kb_error *err);
int kb_memory_add_zeros(struct kb_memory_ranges *ranges, const struct kb_memory_file *file,
			uint64_t physical, uint64_t bytes, struct kb_error *err);

/*
 * Where ranges overlap, the one that begins first has the bytes; of two that begin at one place, the
 * one that is behind the other in the file. Returns 0, or -EBADMSG if they nevertheless have more
 * bytes than the file.
 */
int kb_memory_order(struct kb_memory_ranges *ranges, const struct kb_memory_file *file,
		    struct kb_error *err);

/* As kb_memory_find() and kb_memory_read(). What is read ends below 2^64. */
int kb_memory_find_in(const struct kb_memory_ranges *ranges, const struct kb_memory_file *file,
		      const uint64_t *magics, uint64_t *physical, struct kb_error *err);
int kb_memory_read_of(const struct kb_memory_ranges *ranges, const struct kb_memory_file *file,
		      uint64_t physical, void *to, size_t bytes, struct kb_error *err);

/* Add the ranges that a file of this form has. Returns 0 or a negative errno. */
#define KB_MEMORY_LIME		"EMiL"	/* a number, in little-endian order */
int kb_memory_elf(struct kb_memory_ranges *ranges, const struct kb_memory_file *file,
		  struct kb_error *err);
int kb_memory_lime(struct kb_memory_ranges *ranges, const struct kb_memory_file *file,
		   struct kb_error *err);

/*
 * Make @file, which is empty, of @flat, a file in the flattened form that lives as long as @file.
 * Returns 0 or a negative errno.
 */
#define KB_MEMORY_FLAT		"makedumpfile"
int kb_memory_flat(struct kb_memory_file *file, const struct kb_memory_file *flat,
		   struct kb_error *err);

/* As those of memory.h. @file lives as long as the result. What is read ends below 2^64. */
struct kb_kdump;

int kb_kdump_open(struct kb_kdump **out, const struct kb_memory_file *file, struct kb_error *err);
void kb_kdump_close(struct kb_kdump *kdump);
uint64_t kb_kdump_bytes(const struct kb_kdump *kdump);
int kb_kdump_find(struct kb_kdump *kdump, const uint64_t *magics, uint64_t *physical,
		  struct kb_error *err);
int kb_kdump_read(struct kb_kdump *kdump, uint64_t physical, void *to, size_t bytes,
		  struct kb_error *err);

#endif
