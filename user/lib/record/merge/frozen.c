// SPDX-License-Identifier: MIT
/*
 * Rings are copied first and tables afterwards, so that every row a record refers to is in the
 * copy. The kernel reuses a row when no ring refers to it any more, but our older copy of a
 * ring may still do so. The generation shows a reuse; then everything is copied again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/merge/frozen.h"

#define TRIES	8

static int out_of_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

/* Address of the ring in a copy: behind its store, aligned as in a map. */
static uint8_t *ring_of(const void *copy)
{
	return (uint8_t *)copy + sizeof(struct bm_datastore_header_data);
}

static int copy_ring(void *copy, const struct kb_mapped *live, struct kb_error *err)
{
	struct bm_datastore_header_data *store = copy;
	size_t start, length;

	if (kb_mapped_snapshot(live, ring_of(copy), &start, &length))
		return kb_error_set(err, -EAGAIN, KB_NO_OFFSET, "a buffer is overwritten faster "
				    "than it can be copied: use larger buffers (-m), or sample "
				    "less often (-F)");
	memset(store, 0, sizeof(*store));	/* NOLINT: as many were allocated */
	store->buffer_length = live->ring_bytes;
	store->read_offset = start;
	store->write_offset = store->total_written = start + length;
	return 0;
}

static int copy_all(struct kb_frozen *frozen, struct kb_mapped **maps, struct kb_error *err)
{
	size_t header = (size_t)((const uint8_t *)maps[0]->store - (const uint8_t *)maps[0]->bytes);
	int ret = 0;

	for (unsigned int i = 0; i < frozen->nr_rings && !ret; i++)
		ret = copy_ring(frozen->rings[i], maps[i], err);
	if (!ret)
		memcpy(frozen->header, maps[0]->bytes, header);
	return ret;
}

static int allocate(struct kb_frozen *frozen, struct kb_mapped **maps, unsigned int nr)
{
	frozen->header = malloc((size_t)((const uint8_t *)maps[0]->store -
					 (const uint8_t *)maps[0]->bytes));
	frozen->rings = calloc(nr, sizeof(*frozen->rings));
	if (!frozen->header || !frozen->rings)
		return -ENOMEM;
	for (; frozen->nr_rings < nr; frozen->nr_rings++) {
		void *copy = malloc(sizeof(struct bm_datastore_header_data) +
				    maps[frozen->nr_rings]->ring_bytes);

		if (!copy)
			return -ENOMEM;
		frozen->rings[frozen->nr_rings] = copy;
	}
	return 0;
}

/* @at points into @from; get the same place in @to. */
#define MOVE(at, from, to) \
	((at) = (at) ? (const void *)((to) + ((const uint8_t *)(at) - (from))) : NULL)

static void show_copy(struct kb_mapped *m, const uint8_t *header, void *ring)
{
	const uint8_t *from = m->bytes;
	struct kb_mapped live = *m;

	MOVE(m->header, from, header);
	MOVE(m->strings, from, header);
	MOVE(m->pmus, from, header);
	MOVE(m->nr_tasks, from, header);
	MOVE(m->tasks, from, header);
	MOVE(m->nr_maps, from, header);
	MOVE(m->maps, from, header);
	MOVE(m->charts, from, header);
	MOVE(m->series, from, header);
	MOVE(m->more_tasks, from, header);
	m->store = ring;
	m->ring = ring_of(ring);
	/* The maps are unmapped already. */
	m->bytes = NULL;
	m->size = 0;
	kb_mapped_unmap(&live);
}

int kb_frozen_create(struct kb_frozen *frozen, struct kb_device *device,
		     struct kb_mapped **maps, unsigned int nr, struct kb_error *err)
{
	struct kbarman_query before, after;
	int ret;

	*frozen = (struct kb_frozen){ 0 };
	if (allocate(frozen, maps, nr))
		return out_of_memory(err);
	for (unsigned int i = 0; i < TRIES; i++) {
		ret = kb_device_query(device, &before, err) ?: copy_all(frozen, maps, err) ?:
		      kb_device_query(device, &after, err);
		if (ret)
			return ret;
		frozen->recycled = before.generation != after.generation;
		if (before.session != after.session)
			return kb_error_set(err, -ENODATA, KB_NO_OFFSET,
					    "the recording has ended, and another one begun");
		if (!frozen->recycled)
			break;
	}
	for (unsigned int i = 0; i < nr; i++)
		show_copy(maps[i], frozen->header, frozen->rings[i]);
	return 0;
}

void kb_frozen_release(struct kb_frozen *frozen)
{
	for (unsigned int i = 0; i < frozen->nr_rings; i++)
		free(frozen->rings[i]);
	free(frozen->rings);
	free(frozen->header);
	*frozen = (struct kb_frozen){ 0 };
}
