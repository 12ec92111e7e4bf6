// SPDX-License-Identifier: GPL-2.0-only
#include <linux/dcache.h>
#include <linux/kdev_t.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/time64.h>

#include "compat/file.h"
#include "maps/mapping.h"

#define DELETED		" (deleted)"

#ifndef DMA_BUF_MAGIC
#define DMA_BUF_MAGIC	0x444d4142
#endif

/* Put @text in front of @at, before which is @room. Returns how much is there then, or < 0. */
static int path_prepend(char **at, int room, const char *text, int length)
{
	if (length > room)
		return -ENAMETOOLONG;
	*at -= length;
	memcpy(*at, text, length);
	return room - length;
}

/*
 * A rename may change the name meanwhile: inline names in place, while others stay until the end of
 * the RCU section. Each ends with a NUL in any case, wherever its length says.
 */
static int path_prepend_name(char **at, int room, const struct dentry *dentry)
{
	char name[NAME_MAX + 1], *to = name;
	ssize_t length;

	/* A compiler that knows the size has the name looked through first, a byte at a time. */
	OPTIMIZER_HIDE_VAR(to);
	length = data_race(strscpy(to, (const char *)READ_ONCE(dentry->d_name.name),
				   sizeof(name)));
	return length < 0 ? length : path_prepend(at, room, name, length);
}

/*
 * The path inside the mount: from parent to parent, as %pD of printk() does it. d_path() takes
 * locks that sleep on PREEMPT_RT. During a rename a part may be the former one.
 */
static int path_prepend_parents(char **at, int room, const struct dentry *dentry)
{
	const struct dentry *parent;
	int names = 0;

	while (room >= 0 && (parent = READ_ONCE(dentry->d_parent)) != dentry) {
		room = path_prepend_name(at, room, dentry);
		if (room >= 0)
			room = path_prepend(at, room, "/", 1);
		dentry = parent;
		names++;
	}
	return room >= 0 && !names ? path_prepend(at, room, "/", 1) : room;
}

/* Files of internal mounts. Their names are those that d_path() gives, whose callbacks may lock. */
static int path_prepend_internal(char **at, int room, const struct dentry *dentry)
{
	static const char anon_inode[] = "anon_inode:", dma_buf[] = "/dmabuf:";

	if (dentry->d_sb->s_magic == DMA_BUF_MAGIC)
		return path_prepend(at, room, dma_buf, strlen(dma_buf));
	if (dentry->d_sb->s_magic == ANON_INODE_FS_MAGIC) {
		room = path_prepend_name(at, room, dentry);
		return room < 0 ? room : path_prepend(at, room, anon_inode, strlen(anon_inode));
	}
	room = path_prepend(at, room, DELETED, strlen(DELETED));
	if (room >= 0)
		room = path_prepend_name(at, room, dentry);
	return room < 0 ? room : path_prepend(at, room, "/", 1);
}

/* False: it does not fit. */
static bool mapping_name(struct kbarman_mapping *mapping, const struct dentry *dentry, char *buffer)
{
	char *end = buffer + PATH_MAX - 1, *at = end;
	int room = PATH_MAX - 1;

	rcu_read_lock();
	if (dentry->d_op && dentry->d_op->d_dname) {
		room = path_prepend_internal(&at, room, dentry);
	} else {
		if (data_race(d_unlinked(dentry)))
			room = path_prepend(&at, room, DELETED, strlen(DELETED));
		if (room >= 0)
			room = path_prepend_parents(&at, room, dentry);
	}
	rcu_read_unlock();
	*end = '\0';
	mapping->name = at;
	mapping->length = end - at;
	return room >= 0;
}

/*
 * Inode numbers are used again, and overlayfs gives a file a new inode when it copies the file up.
 * Size and time of the last change belong to the contents.
 */
static void mapping_file(struct kbarman_mapped_file *to, const struct inode *inode)
{
	/*
	 * A writer may change the time at this moment. The file is a different one then, whichever
	 * time is read.
	 */
	struct timespec64 mtime = data_race(kbarman_inode_mtime(inode));

	/* Memory files on internal mounts have no path by which a reader could find them. */
	if (inode->i_sb->s_flags & SB_NOUSER)
		return;
	to->known = true;
	to->major = MAJOR(inode->i_sb->s_dev);
	to->minor = MINOR(inode->i_sb->s_dev);
	to->inode = inode->i_ino;
	to->size = i_size_read(inode);
	to->mtime = (u64)mtime.tv_sec * NSEC_PER_SEC + mtime.tv_nsec;
}

void kbarman_mapping_init(struct kbarman_mapping *mapping, struct vm_area_struct *vma, char *buffer)
{
	struct file *file = vma->vm_file;
	const char *name = NULL;

	*mapping = (struct kbarman_mapping) {
		.start = vma->vm_start,
		.end = vma->vm_end,
		.offset = (u64)vma->vm_pgoff << PAGE_SHIFT,
	};
	if (!file) {
		if (vma->vm_ops && vma->vm_ops->name)
			name = vma->vm_ops->name(vma);
		name = name ?: "//anon";
	} else if (mapping_name(mapping, kbarman_file_path(file)->dentry, buffer)) {
		mapping_file(&mapping->file, kbarman_file_inode(file));
		return;
	} else {
		name = KBARMAN_IMAGE_UNKNOWN;
	}
	mapping->length = strnlen(name, PATH_MAX - 1);
	mapping->name = memcpy(buffer, name, mapping->length);
}
