// SPDX-License-Identifier: GPL-2.0-only
/* One address space: the names of what is mapped, the rows of its processes, and its mappings. */
#include <linux/bitops.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "capture/capture.h"
#include "capture/tables.h"
#include "maps/code_bounds.h"
#include "maps/space.h"
#include "ring/clock.h"
#include "session.h"

#define FILE_BYTES	104	/* most bytes in front of a path */

/* ---- images ---- */

static bool file_is(const struct kbarman_mapped_file *file,
		    const struct kbarman_mapped_file *other)
{
	if (!file->known || !other->known)
		return file->known == other->known;
	return file->inode == other->inode && file->mtime == other->mtime &&
	       file->size == other->size && file->major == other->major &&
	       file->minor == other->minor;
}

static bool image_is_of(const struct kbarman_image *image, const struct kbarman_mapping *from)
{
	return image->length - image->name_at == from->length &&
	       file_is(&image->file, &from->file) &&
	       !memcmp(image->name + image->name_at, from->name, from->length);
}

/* "kbarman.file=MAJOR:MINOR:INODE:SIZE:MTIME:" */
static unsigned int image_print_file(char *buffer, const struct kbarman_mapped_file *file)
{
	return file->known ? scnprintf(buffer, FILE_BYTES,
				       "kbarman.file=%u:%u:%llu:%llu:%llu:", file->major,
				       file->minor, file->inode, file->size, file->mtime) : 0;
}

static struct kbarman_image *image_new(const struct kbarman_mapping *from)
{
	char file[FILE_BYTES];
	unsigned int name_at = image_print_file(file, &from->file);
	struct kbarman_image *image;
	size_t size = struct_size(image, name, name_at + from->length + 1);

	image = kmalloc(size, GFP_KERNEL);
	if (!image)
		return NULL;
	image->users = 0;
	image->bytes = KBARMAN_MEMORY_OF(size);
	image->file = from->file;
	image->length = name_at + from->length;
	image->name_at = name_at;
	memcpy(image->name, file, name_at);
	memcpy(image->name + name_at, from->name, from->length);
	image->name[image->length] = '\0';
	return image;
}

static struct kbarman_image *image_of(struct kbarman_spaces *spaces,
				       const struct kbarman_mapping *from)
{
	u64 hash = siphash(from->name, from->length, &spaces->salt);
	struct kbarman_image *image;
	struct hlist_head *bucket;

	if (from->file.known)
		hash ^= siphash_2u64(from->file.inode, from->file.mtime, &spaces->salt);
	bucket = &spaces->images[hash_64(hash, KBARMAN_IMAGE_BITS)];
	hlist_for_each_entry(image, bucket, node)
		if (image_is_of(image, from))
			goto found;
	image = image_new(from);
	if (!image)
		return NULL;
	hlist_add_head(&image->node, bucket);
	spaces->nr_bytes += image->bytes;
found:
	image->users++;
	return image;
}

static void image_put(struct kbarman_spaces *spaces, struct kbarman_image *image)
{
	if (--image->users)
		return;
	hlist_del(&image->node);
	spaces->nr_bytes -= image->bytes;
	kfree(image);
}

/* ---- processes and their rows ---- */

void kbarman_process_end_rows(struct kbarman_process *process)
{
	struct kbarman_space *space = process->space;

	if (space->all->capture->collector) {
		space->rows -= process->rows;
		space->all->nr_rows -= process->rows;
	}
	process->rows = 0;
}

/*
 * True if @space may have @count more rows. An address space has at most as many rows as are free.
 * A session of chosen processes has no such limit.
 */
static bool space_may_have_rows(struct kbarman_space *space, u32 count)
{
	const struct kbarman_spaces *spaces = space->all;
	const u32 all = spaces->capture->layout.max_maps;

	return spaces->session->tasks ||
	       (u64)spaces->nr_rows + space->rows + 2 * count <= all + 1;
}

static void process_make_row(struct kbarman_process *process, u64 timestamp, u64 start, u64 length,
			     u64 offset, const char *image, size_t image_length, size_t name_at)
{
	struct kbarman_spaces *spaces = process->space->all;

	if (!kbarman_spaces_step(spaces) || !space_may_have_rows(process->space, 1)) {
		kbarman_header_miss(spaces->capture, KBARMAN_MISSED_MAP, 1);
		return;
	}
	if (kbarman_tables_add_map(spaces->capture, timestamp, KBARMAN_USER_UNWANTED,
				   process->id, start, length, offset, image, image_length,
				   name_at))
		return;
	process->rows++;
	process->space->rows++;
	spaces->nr_rows++;
}

static void process_add_row(struct kbarman_process *process, const struct kbarman_known *mapping)
{
	process_make_row(process, max(mapping->timestamp, process->since), mapping->start,
			 mapping->end - mapping->start, mapping->offset, mapping->image->name,
			 mapping->image->length, mapping->image->name_at);
}

void kbarman_process_add_rows(struct kbarman_process *process)
{
	struct kbarman_known *mapping;

	list_for_each_entry(mapping, &process->space->by_age, age)
		process_add_row(process, mapping);
}

/*
 * For overwrite mode, where rows can be used again. Ends all rows of @process and makes new rows for
 * what is mapped now, so that rows of former mappings end. A process thus has at most twice the rows
 * that it needs, and some, however long it runs and maps.
 */
static void process_renew_rows(struct kbarman_process *process)
{
	struct kbarman_space *space = process->space;
	struct kbarman_capture *capture = space->all->capture;
	u64 now;

	if (!capture->collector || process->rows <= 2 * space->nr_mappings + 64 ||
	    !space_may_have_rows(space, space->nr_mappings))
		return;
	now = kbarman_clock();
	kbarman_tables_end_maps(capture, now, process->id);
	kbarman_process_end_rows(process);
	process->since = now;
	kbarman_process_add_rows(process);
}

void kbarman_process_hide_rows(struct kbarman_process *process)
{
	process_make_row(process, process->since - 1, 0, process->space->mm->task_size, 0,
			 KBARMAN_IMAGE_UNKNOWN, strlen(KBARMAN_IMAGE_UNKNOWN), 0);
}

void kbarman_process_free(struct kbarman_process *process)
{
	kbarman_process_end_rows(process);
	xa_erase(&process->space->all->processes, process->id);
	list_del(&process->node);
	kfree(process);
}

/* ---- mappings ---- */

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
	image_put(space->all, mapping->image);
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
		image_put(space->all, image);
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
	struct kbarman_image *image = image_of(space->all, from);
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
			image_put(space->all, image);
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
		process_add_row(process, mapping);
		process_renew_rows(process);
	}
	spaces_keep_to_limit(space->all);
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
