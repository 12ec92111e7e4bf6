/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_COMPAT_FILE_H
#define KBARMAN_COMPAT_FILE_H

#include <linux/fs.h>

/* The path of what a user mapped, not of the file below that backs it. */
static inline const struct path *kbarman_file_path(struct file *file)
{
#ifdef KBARMAN_HAVE_FILE_USER_PATH
	return file_user_path(file);
#else
	return &file->f_path;
#endif
}

#endif /* KBARMAN_COMPAT_FILE_H */
