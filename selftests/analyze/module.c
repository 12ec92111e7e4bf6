// SPDX-License-Identifier: GPL-2.0-only
/*
 * What each checker of the kernel must find: `make analyze` fails where one of them has
 * nothing to say of this file. Never built.
 */
#include <linux/slab.h>

int twice(int *number)
{
	int *copy = kmalloc(sizeof(*copy), GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	*copy = *number;
	kfree(copy);
	return *copy * 2;
}
