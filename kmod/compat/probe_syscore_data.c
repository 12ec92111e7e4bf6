// SPDX-License-Identifier: GPL-2.0-only
/* 6.19 gave the callbacks of the system's core an argument, and their list another struct. */
#include <linux/syscore_ops.h>

static int suspend(void *data)
{
	return 0;
}

static const struct syscore_ops ops = { .suspend = suspend };
static struct syscore probe = { .ops = &ops };

void compat(void);
void compat(void)
{
	register_syscore(&probe);
}
