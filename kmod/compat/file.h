/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_COMPAT_FILE_H
#define KBARMAN_COMPAT_FILE_H

#include <linux/fs.h>

/* The path that a user mapped, not the path of the file that backs it (overlayfs). */
static inline const struct path *kbarman_file_path(struct file *file)
{
#ifdef KBARMAN_HAVE_FILE_USER_PATH
	return file_user_path(file);
#else
	return &file->f_path;
#endif
}

/* The inode that /proc/PID/maps shows. */
static inline const struct inode *kbarman_file_inode(struct file *file)
{
#ifdef KBARMAN_HAVE_FILE_USER_PATH
	return d_inode(file_user_path(file)->dentry);
#else
	return file_inode(file);
#endif
}

static inline struct timespec64 kbarman_inode_mtime(const struct inode *inode)
{
#ifdef KBARMAN_HAVE_INODE_MTIME
	return inode_get_mtime(inode);
#else
	return inode->i_mtime;
#endif
}

#endif /* KBARMAN_COMPAT_FILE_H */
