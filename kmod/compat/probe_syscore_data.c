// SPDX-License-Identifier: GPL-2.0-only
/*
 * 6.19 added an argument to the syscore callbacks and another struct to register them. A late 6.12
 * has both, too.
 */
#include <linux/syscore_ops.h>

static int suspend(void *data)
{
	return 0;
}

static __maybe_unused void compat(struct syscore *syscore)
{
	static const struct syscore_ops ops = { .suspend = suspend };

	syscore->ops = &ops;
	register_syscore(syscore);
}
