// SPDX-License-Identifier: GPL-2.0-only
/* 6.4 (ac3b43283923) replaced a module's core_layout and init_layout by an array. */
#include <linux/module.h>

static __maybe_unused void *compat(struct module *module)
{
	return module->mem[MOD_TEXT].base;
}
