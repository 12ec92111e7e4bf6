// SPDX-License-Identifier: GPL-2.0-only
/* 6.8 (def3ae83da02) separated the path that a user sees from the path of a backing file. */
#include <linux/fs.h>

const struct path *compat(struct file *file);
const struct path *compat(struct file *file)
{
	return file_user_path(file);
}
