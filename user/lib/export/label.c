// SPDX-License-Identifier: MIT
/* Labels are made in one pass over the bytes, without allocations. */
#include <endian.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text/eight.h"
#include "base/text/utf8.h"
#include "export/label.h"

static char plain_byte(uint8_t byte)
{
	if (byte < 0x20 || byte == 0x7f)
		return ' ';
	return byte == '"' ? '\'' : byte == '\\' ? '/' : (char)byte;
}

/* Whether 8 bytes can be copied unchanged, as most bytes of most names can. */
static bool is_simple(uint64_t bytes, bool plain)
{
	return plain ? kb_eight_simple(bytes) : !kb_eight_zero(bytes);
}

/* Store the low @length bytes of @bytes where no more room is left. */
static void put_few(char *to, size_t length, uint64_t bytes)
{
	uint32_t low = htole32((uint32_t)bytes), high;

	if (length >= 4) {
		high = htole32((uint32_t)(bytes >> 8 * (length - 4)));
		memcpy(to, &low, 4);
		memcpy(to + length - 4, &high, 4);
		return;
	}
	to[0] = (char)bytes;
	to[length / 2] = (char)(bytes >> 8 * (length / 2));
	to[length - 1] = (char)(bytes >> 8 * (length - 1));
}

size_t kb_label(char *to, size_t room, const char *from, size_t length, bool plain)
{
	const char *at = from, *end = from + length;
	char *out, *limit = to + room, character[4];

	if (length - 1 < 7 && length <= room) {
		uint64_t bytes = kb_eight_of_few(from, length);

		if (is_simple(bytes, plain)) {
			put_few(to, length, bytes);
			return length;
		}
	}
	/* 8 bytes at a time; the last step overlaps bytes that were done already */
	while (length >= 8 && length <= room && at < end) {
		uint64_t bytes;

		if (end - at < 8)
			at = end - 8;
		memcpy(&bytes, at, 8);
		if (!is_simple(bytes, plain))
			break;
		memcpy(to + (at - from), &bytes, 8);
		at += 8;
	}
	out = to + (at - from);
	while (at < end && out < limit) {
		size_t taken, size;
		uint32_t code;

		if (!((uint8_t)*at & 0x80) && (*at || plain)) {
			*out++ = plain ? plain_byte((uint8_t)*at) : *at;
			at++;
			continue;
		}
		taken = kb_utf8_next(at, (size_t)(end - at), &code);
		if (!code)
			code = KB_UTF8_REPLACEMENT;
		size = kb_utf8_put(character, code);
		if ((size_t)(limit - out) < size)
			break;
		memcpy(out, character, size);
		out += size;
		at += taken;
	}
	return (size_t)(out - to);
}

size_t kb_label_cut(const char *text, size_t length, size_t max)
{
	if (length <= max)
		return length;
	while (max && ((uint8_t)text[max] & 0xc0) == 0x80)
		max--;
	return max;
}

const char *kb_label_object(const struct kb_waits_row *row, char text[KB_LABEL_OBJECT])
{
	uint32_t major = row->device >> 20, minor = row->device & 0xfffff;
	const char *kind = kb_object_name(row->object);
	int length = 0;

	*text = '\0';
	if (row->others || (row->name && row->object != KB_OBJECT_PIPE))
		return text;
	switch (row->object) {
	case KB_OBJECT_FILE:
		snprintf(text, KB_LABEL_OBJECT, "file %" PRIu32 ":%" PRIu32 " inode %" PRIu64, major, minor,
			 row->value);
		break;
	case KB_OBJECT_DEVICE:
		snprintf(text, KB_LABEL_OBJECT, "device %" PRIu32 ":%" PRIu32, major, minor);
		break;
	case KB_OBJECT_PIPE:
	case KB_OBJECT_SOCKET:
	case KB_OBJECT_ANON:
		snprintf(text, KB_LABEL_OBJECT, "%s %" PRIu64, kind, row->value);
		break;
	case KB_OBJECT_FUTEX:
		snprintf(text, KB_LABEL_OBJECT, "0x%" PRIx64 " of process %" PRIu32, row->value, row->pid);
		break;
	case KB_OBJECT_MUTEX:
	case KB_OBJECT_SEMAPHORE:
	case KB_OBJECT_RWSEM_READ:
	case KB_OBJECT_RWSEM_WRITE:
		length = snprintf(text, KB_LABEL_OBJECT, "Linux's %s", kind);
		if (row->value)
			snprintf(text + length, KB_LABEL_OBJECT - (size_t)length, " 0x%" PRIx64, row->value);
		break;
	case KB_OBJECT_FAULT:
		length = snprintf(text, KB_LABEL_OBJECT, "page fault");
		if (row->value)
			snprintf(text + length, KB_LABEL_OBJECT - (size_t)length, " at 0x%" PRIx64, row->value);
		break;
	}
	return text;
}
