// SPDX-License-Identifier: GPL-2.0-only
#include <linux/jhash.h>
#include <linux/log2.h>
#include <linux/numa.h>
#include <linux/overflow.h>
#include <linux/random.h>

#include "capture/memory.h"
#include "capture/rows.h"

bool kbarman_rows_create(struct kbarman_rows *rows, u32 size, bool by_key)
{
	rows->size = size;
	rows->bits = by_key ? max(ilog2(size), 1) : 0;
	rows->buckets = kbarman_memory_pages(sizeof(*rows->buckets) << rows->bits, NUMA_NO_NODE);
	rows->next = kbarman_memory_pages(array_size(size, sizeof(*rows->next)), NUMA_NO_NODE);
	rows->until = kbarman_memory_pages(array_size(size, sizeof(*rows->until)), NUMA_NO_NODE);
	rows->payer = kbarman_memory_pages(size, NUMA_NO_NODE);
	return rows->buckets && rows->next && rows->until && rows->payer;
}

void kbarman_rows_free(struct kbarman_rows *rows)
{
	kbarman_memory_free(rows->payer);
	kbarman_memory_free(rows->until);
	kbarman_memory_free(rows->next);
	kbarman_memory_free(rows->buckets);
}

u64 kbarman_rows_bytes(u32 count)
{
	const struct kbarman_rows *rows;

	return (u64)count * (sizeof(*rows->buckets) + sizeof(*rows->next) +
			     sizeof(*rows->until) + sizeof(*rows->payer));
}

void kbarman_rows_reset(struct kbarman_rows *rows)
{
	memset(rows->buckets, 0, sizeof(*rows->buckets) << rows->bits);
	rows->seed = get_random_u32();
	rows->empty = 0;
}

u32 *kbarman_rows_bucket(struct kbarman_rows *rows, u32 id, u64 address)
{
	u32 hash = jhash_3words(id, lower_32_bits(address), upper_32_bits(address),
				rows->seed);

	return &rows->buckets[hash >> (32 - rows->bits)];
}

void kbarman_rows_link(struct kbarman_rows *rows, u32 *bucket, u32 row)
{
	rows->next[row] = *bucket;
	*bucket = row + 1;
}

void kbarman_rows_unlink(struct kbarman_rows *rows, u32 *bucket, u32 row)
{
	while (*bucket && *bucket != row + 1)
		bucket = &rows->next[*bucket - 1];
	if (*bucket)
		*bucket = rows->next[row];
}

s64 kbarman_rows_take(struct kbarman_rows *rows, u32 count)
{
	u32 row;

	if (!rows->empty)
		return count < rows->size ? count : -1;
	row = rows->empty - 1;
	rows->empty = rows->next[row];
	return row;
}

void kbarman_rows_give(struct kbarman_rows *rows, u32 row)
{
	rows->next[row] = rows->empty;
	rows->empty = row + 1;
}
