// SPDX-License-Identifier: GPL-2.0-only
/* 6.8 (def3ae83da02) separated the path that a user sees from the path of a backing file. */
#include <linux/fs.h>

static __maybe_unused const struct path *compat(struct file *file)
{
	return file_user_path(file);
}
