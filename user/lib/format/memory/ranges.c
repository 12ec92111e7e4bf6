// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bisect.h"
#include "format/memory/inside.h"
#include "format/memory/memory.h"
#include "format/wire.h"

ssize_t kb_memory_pread(const struct kb_memory_file *file, uint64_t offset, void *to, size_t bytes,
			struct kb_error *err)
{
	size_t got = 0;
	ssize_t n = 1;

	if (offset >= file->size)
		return 0;
	if (bytes > file->size - offset)
		bytes = (size_t)(file->size - offset);
	if (file->flat) {
		int ret = kb_memory_read_of(&file->pieces, file->flat, offset, to, bytes, err);

		return ret < 0 ? ret : (ssize_t)bytes;
	}
	while (n && got < bytes) {
		n = pread(file->fd, (uint8_t *)to + got, bytes - got, (off_t)(offset + got));
		if (n < 0 && errno != EINTR)
			return kb_error_set(err, -errno, offset + got, "can't read %s: %s",
					    file->name, strerror(errno));
		got += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)got;
}

size_t kb_memory_page_with(const uint8_t *data, size_t from, size_t bytes, const uint64_t *magics)
{
	for (; from + sizeof(*magics) <= bytes; from += KB_MEMORY_PAGE) {
		uint64_t word = kb_load64(data + from, false), turned = kb_load64(data + from, true);

		for (unsigned int i = 0; i < KB_MEMORY_MAGICS; i++)
			if (word == magics[i] || turned == magics[i])
				return from;
	}
	return bytes;
}

int kb_memory_damaged(const struct kb_memory_file *file, const char *what, struct kb_error *err)
{
	return kb_error_set(err, -EBADMSG, KB_NO_OFFSET, "%s is damaged: %s", file->name, what);
}

int kb_memory_refuse(const struct kb_memory_file *file, const char *what, struct kb_error *err)
{
	return kb_error_set(err, -ENOTSUP, KB_NO_OFFSET, "%s %s", file->name, what);
}

int kb_memory_exhausted(const struct kb_memory_file *file, struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "%s: out of memory", file->name);
}

static int add_range(struct kb_memory_ranges *ranges, const struct kb_memory_file *file,
		     uint64_t physical, uint64_t bytes, uint64_t offset, struct kb_error *err)
{
	if (bytes > UINT64_MAX - physical)
		bytes = UINT64_MAX - physical;
	if (!bytes)
		return 0;
	if (!KB_ARRAY_ROOM(ranges->rows, ranges->max, ranges->nr + 1))
		return kb_memory_exhausted(file, err);
	ranges->rows[ranges->nr++] = (struct kb_memory_range) { physical, bytes, offset };
	return 0;
}

int kb_memory_add(struct kb_memory_ranges *ranges, const struct kb_memory_file *file,
		  uint64_t physical, uint64_t bytes, uint64_t offset, struct kb_error *err)
{
	uint64_t most = offset < file->size ? file->size - offset : 0;

	return add_range(ranges, file, physical, bytes < most ? bytes : most, offset, err);
}

int kb_memory_add_zeros(struct kb_memory_ranges *ranges, const struct kb_memory_file *file,
			uint64_t physical, uint64_t bytes, struct kb_error *err)
{
	return add_range(ranges, file, physical, bytes, KB_MEMORY_ZEROS, err);
}

static int by_address(const void *left, const void *right)
{
	const struct kb_memory_range *a = left, *b = right;

	if (a->physical != b->physical)
		return a->physical < b->physical ? -1 : 1;
	/* So zeros are last. */
	return a->offset + 1 > b->offset + 1 ? -1 : a->offset != b->offset;
}

int kb_memory_order(struct kb_memory_ranges *ranges, const struct kb_memory_file *file,
		    struct kb_error *err)
{
	uint64_t end = 0;
	size_t nr = 0;

	if (ranges->nr)
		qsort(ranges->rows, ranges->nr, sizeof(*ranges->rows), by_address);
	for (size_t i = 0; i < ranges->nr; i++) {
		struct kb_memory_range range = ranges->rows[i];
		uint64_t common = end > range.physical ? end - range.physical : 0;

		if (common >= range.bytes)
			continue;
		range.physical += common;
		range.bytes -= common;
		end = range.physical + range.bytes;
		if (range.offset != KB_MEMORY_ZEROS) {
			range.offset += common;
			/* Else many of the same bytes made a small file a search of years. */
			if (range.bytes > file->size - ranges->bytes)
				return kb_memory_damaged(file, "its segments have more bytes than "
							 "it", err);
			ranges->bytes += range.bytes;
		}
		ranges->rows[nr++] = range;
	}
	ranges->nr = nr;
	return 0;
}

static uint64_t end_of(const struct kb_memory_range *range)
{
	return range->physical + range->bytes;
}

/* The number of the first range that ends behind @physical. */
static size_t first_behind(const struct kb_memory_ranges *ranges, uint64_t physical)
{
	return KB_BISECT(i, 0, ranges->nr, end_of(&ranges->rows[i]) <= physical);
}

static int find(const struct kb_memory_range *range, const struct kb_memory_file *file,
		const uint64_t *magics, uint64_t *physical, struct kb_error *err)
{
	uint64_t at = *physical > range->physical ? *physical : range->physical, left;
	size_t part = KB_MEMORY_PAGE, found;
	ssize_t got;

	if (range->offset == KB_MEMORY_ZEROS || at > UINT64_MAX - KB_MEMORY_PAGE)
		return 0;
	at = (at + KB_MEMORY_PAGE - 1) / KB_MEMORY_PAGE * KB_MEMORY_PAGE;
	while (at < end_of(range)) {
		left = end_of(range) - at;
		got = kb_memory_pread(file, range->offset + (at - range->physical), file->buffer,
				      left < part ? (size_t)left : part, err);
		if (got < 0)
			return (int)got;
		found = kb_memory_page_with(file->buffer, 0, (size_t)got, magics);
		if (found < (size_t)got) {
			*physical = at + found;
			return 1;
		}
		if (left <= part)
			break;
		at += part;
		/* It begins small: where each page is one of many, little is read again. */
		part = 2 * part < file->room ? 2 * part : file->room;
	}
	return 0;
}

int kb_memory_find_in(const struct kb_memory_ranges *ranges, const struct kb_memory_file *file,
		      const uint64_t *magics, uint64_t *physical, struct kb_error *err)
{
	int ret = 0;

	for (size_t i = first_behind(ranges, *physical); !ret && i < ranges->nr; i++)
		ret = find(&ranges->rows[i], file, magics, physical, err);
	return ret;
}

int kb_memory_read_of(const struct kb_memory_ranges *ranges, const struct kb_memory_file *file,
		      uint64_t physical, void *to, size_t bytes, struct kb_error *err)
{
	uint64_t end = physical + bytes, there = 0;

	memset(to, 0, bytes);
	for (size_t i = first_behind(ranges, physical);
	     i < ranges->nr && ranges->rows[i].physical < end; i++) {
		const struct kb_memory_range *range = &ranges->rows[i];
		uint64_t from = physical > range->physical ? physical : range->physical;
		uint64_t until = end < end_of(range) ? end : end_of(range);
		ssize_t got = (ssize_t)(until - from);

		if (range->offset != KB_MEMORY_ZEROS)
			got = kb_memory_pread(file, range->offset + (from - range->physical),
					      (uint8_t *)to + (from - physical), (size_t)got, err);
		if (got < 0)
			return (int)got;
		there += (uint64_t)got;
	}
	return there == bytes;
}
