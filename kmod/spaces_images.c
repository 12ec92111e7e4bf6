// SPDX-License-Identifier: GPL-2.0-only
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "mapping.h"
#include "space.h"

static struct kbarman_image *image_get(struct kbarman_spaces *spaces, const char *name,
				       unsigned int name_at)
{
	unsigned int length = strlen(name);
	u64 hash = siphash(name, length, &spaces->salt);
	struct hlist_head *bucket = &spaces->images[hash_64(hash, KBARMAN_IMAGE_BITS)];
	struct kbarman_image *image;
	size_t size = struct_size(image, name, length + 1);

	hlist_for_each_entry(image, bucket, node)
		if (image->length == length && !memcmp(image->name, name, length))
			goto found;
	image = kmalloc(size, GFP_KERNEL);
	if (!image)
		return NULL;
	image->users = 0;
	image->bytes = KBARMAN_MEMORY_OF(size);
	image->length = length;
	image->name_at = name_at;
	memcpy(image->name, name, length + 1);
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

/* "kbarman.file=MAJOR:MINOR:INODE:SIZE:MTIME:" */
static unsigned int image_print_file(char *buffer, const struct kbarman_mapped_file *file)
{
	return scnprintf(buffer, KBARMAN_FILE_BYTES, "kbarman.file=%u:%u:%llu:%llu:%llu:",
			 file->major, file->minor, file->inode, file->size, file->mtime);
}

struct kbarman_image *kbarman_image_of(struct kbarman_spaces *spaces,
				       const struct kbarman_mapping *from)
{
	char *text = spaces->path_buffer;
	unsigned int length = from->file.known ? image_print_file(text, &from->file) : 0;

	memcpy(text + length, from->name, from->length);
	text[length + from->length] = '\0';
	return image_get(spaces, text, length);
}
