// SPDX-License-Identifier: GPL-2.0-only
/*
 * A module that does nothing, under the name of one of Debian's that a VM test loads to see
 * that it is recorded: the debug kernels are made without any.
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
