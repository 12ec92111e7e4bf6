// SPDX-License-Identifier: GPL-2.0-only
#include <linux/dcache.h>
#include <linux/err.h>
#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "compat/file.h"
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

/*
 * "kbarman.file=MAJOR:MINOR:INODE:SIZE:MTIME:". Inode numbers are used again, and overlayfs gives a
 * file a new inode when it copies the file up. Size and time of the last change belong to the
 * contents.
 */
static unsigned int image_print_file(char *buffer, struct file *file)
{
	const struct inode *inode = kbarman_file_inode(file);
	/*
	 * A writer may change the time at this moment. The file is a different one then, whichever
	 * time is read.
	 */
	struct timespec64 mtime = data_race(kbarman_inode_mtime(inode));

	/* Memory files on internal mounts have no path by which a reader could find them. */
	if (inode->i_sb->s_flags & SB_NOUSER)
		return 0;
	return scnprintf(buffer, KBARMAN_FILE_BYTES, "kbarman.file=%u:%u:%llu:%llu:%llu:",
			 MAJOR(inode->i_sb->s_dev), MINOR(inode->i_sb->s_dev),
			 (u64)inode->i_ino, i_size_read(inode),
			 (u64)mtime.tv_sec * NSEC_PER_SEC + mtime.tv_nsec);
}

/* A mapping whose path can't be determined is kept, and named KBARMAN_IMAGE_UNKNOWN. */
struct kbarman_image *kbarman_image_of(struct kbarman_spaces *spaces,
				       const struct kbarman_mapping *from)
{
	char front[KBARMAN_FILE_BYTES], *path;
	unsigned int length;

	if (!from->file)
		return image_get(spaces, from->name, 0);
	path = d_path(kbarman_file_path(from->file), spaces->path_buffer + KBARMAN_FILE_BYTES,
		      PATH_MAX);
	if (IS_ERR(path))
		return image_get(spaces, KBARMAN_IMAGE_UNKNOWN, 0);
	length = image_print_file(front, from->file);
	return image_get(spaces, memcpy(path - length, front, length), length);
}

void kbarman_mapping_init(struct kbarman_mapping *mapping, struct vm_area_struct *vma)
{
	const char *name = NULL;

	*mapping = (struct kbarman_mapping) {
		.start = vma->vm_start,
		.end = vma->vm_end,
		.offset = (u64)vma->vm_pgoff << PAGE_SHIFT,
		.file = vma->vm_file,
	};
	if (mapping->file)
		return;
	if (vma->vm_ops && vma->vm_ops->name)
		name = vma->vm_ops->name(vma);
	strscpy(mapping->name, name ?: "//anon", sizeof(mapping->name));
}
