// SPDX-License-Identifier: GPL-2.0-only
#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "maps/code_bounds.h"
#include "maps/space.h"

/* Add @mapping to the counts of @space (@sign is 1), or remove it (@sign is -1). */
static void space_account(struct kbarman_space *space, const struct kbarman_known *mapping,
			  int sign)
{
	const size_t bytes = KBARMAN_MEMORY_OF(sizeof(*mapping));

	space->nr_mappings += sign;
	space->bytes += sign * (bytes + mapping->image->bytes);
	list_move_tail(&space->size, &space->all->sizes[fls_long(space->bytes)]);
	space->all->nr_bytes += sign * bytes;
}

struct kbarman_known *kbarman_space_mapping_behind(const struct kbarman_space *space,
						   unsigned long address)
{
	struct rb_node *node = space->mappings.rb_node;
	struct kbarman_known *found = NULL;

	while (node) {
		struct kbarman_known *mapping = rb_entry(node, struct kbarman_known, node);

		if (address < mapping->end) {
			found = mapping;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

static void known_insert(struct kbarman_space *space, struct kbarman_known *mapping)
{
	struct rb_node **link = &space->mappings.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		if (mapping->start < rb_entry(parent, struct kbarman_known, node)->start)
			link = &parent->rb_left;
		else
			link = &parent->rb_right;
	}
	rb_link_node(&mapping->node, parent, link);
	rb_insert_color(&mapping->node, &space->mappings);
	list_add_tail(&mapping->age, &space->by_age);
	space_account(space, mapping, 1);
	kbarman_code_bounds_include(space->all->bounds, space->mm, mapping->start, mapping->end);
}

static void known_free(struct kbarman_space *space, struct kbarman_known *mapping)
{
	rb_erase(&mapping->node, &space->mappings);
	list_del(&mapping->age);
	space_account(space, mapping, -1);
	kbarman_image_put(space->all, mapping->image);
	kfree(mapping);
}

void kbarman_space_want_walk(struct kbarman_space *space, u64 since)
{
	if (!list_empty(&space->pending))
		return;
	space->walk_since = since;
	space->walk_at = 0;
	list_add_tail(&space->pending, &space->all->to_walk);
}

void kbarman_space_distrust(struct kbarman_space *space, u64 timestamp)
{
	space->complete = false;
	space->gap = true;
	if (!list_empty(&space->processes))
		kbarman_space_want_walk(space, timestamp);
}

/*
 * Takes over the caller's reference to @image. Returns NULL if there is no memory, which is
 * counted.
 */
static struct kbarman_known *known_add(struct kbarman_space *space, struct kbarman_image *image,
				       u64 timestamp, unsigned long start, unsigned long end,
				       u64 offset)
{
	struct kbarman_known *mapping = kmalloc(sizeof(*mapping), GFP_KERNEL);

	if (!mapping) {
		kbarman_image_put(space->all, image);
		kbarman_space_distrust(space, timestamp);
		kbarman_spaces_out_of_memory(space->all);
		return NULL;
	}
	*mapping = (struct kbarman_known) {
		.image = image,
		.timestamp = timestamp,
		.start = start,
		.end = end,
		.offset = offset,
	};
	known_insert(space, mapping);
	return mapping;
}

static void space_drop_oldest(struct kbarman_space *space)
{
	known_free(space, list_first_entry(&space->by_age, struct kbarman_known, age));
	space->trimmed = true;
	kbarman_spaces_out_of_memory(space->all);
}

/*
 * The address space with the most bytes, or one with more than half as many. NULL if none has any.
 */
static struct kbarman_space *spaces_large_one(struct kbarman_spaces *spaces)
{
	int size;

	for (size = ARRAY_SIZE(spaces->sizes) - 1; size > 0; size--)
		if (!list_empty(&spaces->sizes[size]))
			return list_first_entry(&spaces->sizes[size], struct kbarman_space, size);
	return NULL;
}

/*
 * Drops half of the mappings of a large address space at once: other address spaces may be as
 * large.
 */
static void spaces_keep_to_limit(struct kbarman_spaces *spaces)
{
	struct kbarman_space *large;
	unsigned int count;

	while (spaces->nr_bytes > KBARMAN_MAX_BYTES && (large = spaces_large_one(spaces)))
		for (count = DIV_ROUND_UP(large->nr_mappings, 2); count; count--) {
			space_drop_oldest(large);
			cond_resched();
		}
}

/* True if @mapping already has all of [start, end) with this image and offset. */
static bool known_covers(const struct kbarman_known *mapping, const struct kbarman_image *image,
			 unsigned long start, unsigned long end, u64 offset)
{
	return mapping->start <= start && end <= mapping->end && mapping->image == image &&
	       mapping->offset + (start - mapping->start) == offset;
}

/* Remove [start, end) from @mapping, which may keep a part on either side. */
static void known_cut(struct kbarman_space *space, struct kbarman_known *mapping,
		      unsigned long start, unsigned long end)
{
	if (mapping->start < start && end < mapping->end) {
		mapping->image->users++;
		known_add(space, mapping->image, mapping->timestamp, end, mapping->end,
			  mapping->offset + (end - mapping->start));
	}
	if (mapping->start < start) {
		mapping->end = start;
	} else if (end < mapping->end) {
		mapping->offset += end - mapping->start;
		mapping->start = end;
	} else {
		known_free(space, mapping);
	}
}

void kbarman_space_map(struct kbarman_space *space, const struct kbarman_mapping *from,
		       u64 timestamp)
{
	struct kbarman_image *image = kbarman_image_of(space->all, from);
	struct kbarman_known *mapping;
	struct rb_node *next;
	struct kbarman_process *process;

	if (!image) {
		kbarman_space_distrust(space, timestamp);
		kbarman_spaces_out_of_memory(space->all);
		return;
	}
	for (mapping = kbarman_space_mapping_behind(space, from->start);
	     mapping && mapping->start < from->end;
	     mapping = rb_entry_safe(next, struct kbarman_known, node)) {
		if (known_covers(mapping, image, from->start, from->end, from->offset)) {
			kbarman_image_put(space->all, image);
			return;
		}
		next = rb_next(&mapping->node);
		/* A walk also finds mappings that were made after the time that it assigns. */
		timestamp = max(timestamp, mapping->timestamp);
		known_cut(space, mapping, from->start, from->end);
		cond_resched();
	}
	if (space->nr_mappings >= KBARMAN_MAX_MAPPINGS)
		space_drop_oldest(space);
	mapping = known_add(space, image, timestamp, from->start, from->end, from->offset);
	if (!mapping)
		return;
	list_for_each_entry(process, &space->processes, node) {
		kbarman_process_add_row(process, mapping);
		kbarman_process_renew_rows(process);
	}
	spaces_keep_to_limit(space->all);
}

bool kbarman_space_is_complete(const struct kbarman_space *space)
{
	return space->complete && list_empty(&space->pending);
}

void kbarman_space_copy(struct kbarman_space *to, struct kbarman_space *from, u64 timestamp)
{
	struct kbarman_known *mapping;

	to->complete = kbarman_space_is_complete(from);
	to->trimmed = from->trimmed;
	list_for_each_entry(mapping, &from->by_age, age) {
		if (!kbarman_spaces_step(to->all)) {
			to->complete = false;
			break;
		}
		mapping->image->users++;
		known_add(to, mapping->image, timestamp, mapping->start, mapping->end,
			  mapping->offset);
	}
	spaces_keep_to_limit(to->all);
}

void kbarman_space_free_mappings(struct kbarman_space *space)
{
	struct kbarman_known *mapping, *next;

	list_for_each_entry_safe(mapping, next, &space->by_age, age) {
		known_free(space, mapping);
		cond_resched();
	}
}
