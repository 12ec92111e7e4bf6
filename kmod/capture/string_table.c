// SPDX-License-Identifier: GPL-2.0-only
#include "capture/string_table.h"

#define STRING_ORDER	0x0f
#define STRING_FREE	0x10	/* a free block begins here */
#define STRING_USED	0x20	/* a string begins here */

u32 kbarman_strings_buckets(u32 bytes)
{
	return roundup_pow_of_two(max(bytes / KBARMAN_STRING_UNIT / 4, 1024U));
}

/* ---- blocks ---- */

static void blocks_push(struct kbarman_strings *strings, u32 unit, u32 order)
{
	struct kbarman_string *block = &strings->blocks[unit];

	block->state = STRING_FREE | order;
	block->previous = 0;
	block->next = strings->free[order];
	if (block->next)
		strings->blocks[block->next - 1].previous = unit + 1;
	strings->free[order] = unit + 1;
}

static void blocks_unlink(struct kbarman_strings *strings, u32 unit, u32 order)
{
	struct kbarman_string *block = &strings->blocks[unit];

	if (block->previous)
		strings->blocks[block->previous - 1].next = block->next;
	else
		strings->free[order] = block->next;
	if (block->next)
		strings->blocks[block->next - 1].previous = block->previous;
	block->state = 0;
}

/* The smallest free block that fits is halved as often as it can be; the lowest part is used. */
static s64 blocks_take(struct kbarman_strings *strings, u32 order)
{
	u32 larger, unit;

	for (larger = order; larger < KBARMAN_STRING_ORDERS; larger++)
		if (strings->free[larger])
			break;
	if (larger == KBARMAN_STRING_ORDERS)
		return -ENOSPC;
	unit = strings->free[larger] - 1;
	blocks_unlink(strings, unit, larger);
	while (larger > order) {
		larger--;
		blocks_push(strings, unit + (1U << larger), larger);
	}
	strings->used += 1U << order;
	return unit;
}

static void blocks_give(struct kbarman_strings *strings, u32 unit, u32 order)
{
	strings->used -= 1U << order;
	for (; order < KBARMAN_STRING_ORDERS - 1; order++) {
		u32 buddy = unit ^ (1U << order);

		if (buddy >= strings->units ||
		    strings->blocks[buddy].state != (STRING_FREE | order))
			break;
		blocks_unlink(strings, buddy, order);
		unit = min(unit, buddy);
	}
	blocks_push(strings, unit, order);
}

void kbarman_strings_init(struct kbarman_strings *strings, char *table, u32 bytes, u32 *end,
			  bool grows)
{
	const u32 largest = 1U << (KBARMAN_STRING_ORDERS - 1);
	u32 unit, order;

	strings->table = table;
	strings->end = end;
	strings->grows = grows;
	strings->units = bytes / KBARMAN_STRING_UNIT;
	strings->used = 0;
	memset(strings->free, 0, sizeof(strings->free));
	get_random_bytes(&strings->key, sizeof(strings->key));
	*end = 0;
	if (grows)
		return;

	/* Small blocks at the end would be used first: the table would be long at once. */
	if (strings->units >= 4 * largest)
		strings->units -= strings->units % largest;
	/* From the end to the start: the block that is pushed last is used first. */
	unit = strings->units;
	for (order = 0; order < KBARMAN_STRING_ORDERS - 1; order++)
		if (unit & (1U << order)) {
			unit -= 1U << order;
			blocks_push(strings, unit, order);
		}
	while (unit) {
		unit -= largest;
		blocks_push(strings, unit, order);
	}
}

/* ---- strings ---- */

struct kbarman_text kbarman_strings_text(const struct kbarman_strings *strings, const char *bytes,
					 size_t length)
{
	return (struct kbarman_text) {
		.bytes = bytes,
		.length = length,
		.hash = siphash(bytes, length, &strings->key),
	};
}

static u32 *strings_bucket(const struct kbarman_strings *strings, u32 hash)
{
	return &strings->buckets[hash & strings->mask];
}

static char *string_text(const struct kbarman_strings *strings, u32 unit)
{
	return strings->table + unit * KBARMAN_STRING_UNIT;
}

/* The unit of @text, or -ENOENT. */
static s64 strings_find(const struct kbarman_strings *strings, const struct kbarman_text *text)
{
	u32 next = *strings_bucket(strings, text->hash);

	while (next) {
		const struct kbarman_string *block = &strings->blocks[next - 1];

		if (block->hash == text->hash && block->length == text->length &&
		    !memcmp(string_text(strings, next - 1), text->bytes, text->length))
			return next - 1;
		next = block->next;
	}
	return -ENOENT;
}

s64 kbarman_strings_find(const struct kbarman_strings *strings, const struct kbarman_text *text)
{
	s64 unit = strings_find(strings, text);

	return unit < 0 ? unit : unit * KBARMAN_STRING_UNIT;
}

static u32 length_order(size_t length)
{
	return length < KBARMAN_STRING_UNIT ? 0 : ilog2(length / KBARMAN_STRING_UNIT) + 1;
}

u32 kbarman_strings_units(const struct kbarman_strings *strings, size_t length)
{
	return strings->grows ? length / KBARMAN_STRING_UNIT + 1 : 1U << length_order(length);
}

u32 kbarman_strings_part(const struct kbarman_strings *strings, u32 offset)
{
	const struct kbarman_string *block = &strings->blocks[offset / KBARMAN_STRING_UNIT];

	return (KBARMAN_STRING_UNIT << (block->state & STRING_ORDER)) / max(block->refs, 1U);
}

/* Take room for a string of @length bytes: returns its unit, or -ENOSPC. */
static s64 strings_take_room(struct kbarman_strings *strings, size_t length)
{
	u32 unit = strings->used, units = kbarman_strings_units(strings, length);

	if (!strings->grows)
		return length_order(length) < KBARMAN_STRING_ORDERS ?
			       blocks_take(strings, length_order(length)) : -ENOSPC;
	if (!kbarman_strings_has_room(strings, units))
		return -ENOSPC;
	strings->used += units;
	return unit;
}

s64 kbarman_strings_get(struct kbarman_strings *strings, const struct kbarman_text *text,
			u8 payer)
{
	u32 *bucket = strings_bucket(strings, text->hash), offset;
	s64 unit = strings_find(strings, text);
	struct kbarman_string *block;

	if (unit >= 0) {
		strings->blocks[unit].refs++;
		return unit * KBARMAN_STRING_UNIT;
	}
	unit = strings_take_room(strings, text->length);
	if (unit < 0)
		return unit;
	block = &strings->blocks[unit];
	block->state = STRING_USED | (strings->grows ? 0 : length_order(text->length));
	block->refs = 1;
	block->hash = text->hash;
	block->length = text->length;
	block->payer = payer;
	block->next = *bucket;
	*bucket = unit + 1;

	offset = unit * KBARMAN_STRING_UNIT;
	memcpy(strings->table + offset, text->bytes, text->length);	/* the NUL is there */
	if (*strings->end < offset + text->length + 1) {
		smp_wmb();	/* the bytes before the length */
		WRITE_ONCE(*strings->end, offset + text->length + 1);
	}
	return offset;
}

u32 kbarman_strings_put(struct kbarman_strings *strings, u32 offset, u8 *payer)
{
	u32 unit = offset / KBARMAN_STRING_UNIT, order, *link;
	struct kbarman_string *block = &strings->blocks[unit];

	if (WARN_ON_ONCE(unit >= strings->units || !(block->state & STRING_USED)))
		return 0;
	if (--block->refs || strings->grows)
		return 0;
	link = strings_bucket(strings, block->hash);
	while (*link != unit + 1)
		link = &strings->blocks[*link - 1].next;
	*link = block->next;
	memset(string_text(strings, unit), 0, block->length);
	*payer = block->payer;
	order = block->state & STRING_ORDER;
	blocks_give(strings, unit, order);
	return 1U << order;
}
