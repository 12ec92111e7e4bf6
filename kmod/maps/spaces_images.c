// SPDX-License-Identifier: GPL-2.0-only
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "maps/mapping.h"
#include "maps/space.h"

#define FILE_BYTES	104	/* most bytes in front of a path */

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

struct kbarman_image *kbarman_image_of(struct kbarman_spaces *spaces,
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

void kbarman_image_put(struct kbarman_spaces *spaces, struct kbarman_image *image)
{
	if (--image->users)
		return;
	hlist_del(&image->node);
	spaces->nr_bytes -= image->bytes;
	kfree(image);
}
