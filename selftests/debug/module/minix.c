// SPDX-License-Identifier: GPL-2.0-only
/*
 * A module that does nothing. A VM test loads a module of Debian's with this name, to see that the
 * load is recorded. The debug kernels are built without modules of their own.
 */
#include <linux/module.h>

static int __init minix_init(void)
{
	return 0;
}

static void __exit minix_exit(void)
{
}

module_init(minix_init);
module_exit(minix_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Nothing, for a test that loads a module");
