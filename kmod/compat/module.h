/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_COMPAT_MODULE_H
#define KBARMAN_COMPAT_MODULE_H

#include <linux/module.h>

/* Start and length of the code of @module that stays after its init. */
static inline unsigned long kbarman_module_text(const struct module *module, unsigned long *length)
{
#ifdef KBARMAN_HAVE_MODULE_MEMORY
	*length = module->mem[MOD_TEXT].size;
	return (unsigned long)module->mem[MOD_TEXT].base;
#else
	*length = module->core_layout.text_size;
	return (unsigned long)module->core_layout.base;
#endif
}

#endif /* KBARMAN_COMPAT_MODULE_H */
