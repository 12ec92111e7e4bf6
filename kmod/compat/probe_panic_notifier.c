// SPDX-License-Identifier: GPL-2.0-only
/* 5.14 (f39650de687e) moved it out of <linux/kernel.h>. */
#include <linux/panic_notifier.h>

static __maybe_unused struct atomic_notifier_head *compat(void)
{
	return &panic_notifier_list;
}
