// SPDX-License-Identifier: GPL-2.0-only
/* 6.7 (077c212f0344) added functions that read and set the times of an inode. */
#include <linux/fs.h>

static __maybe_unused struct timespec64 compat(const struct inode *inode)
{
	return inode_get_mtime(inode);
}
