// SPDX-License-Identifier: GPL-2.0-only
/* 5.11 (dd3b614f858d) renamed what asks whether a mapping may be split. */
#include <linux/mm.h>

static int refuse(struct vm_area_struct *vma, unsigned long address)
{
	return -EINVAL;
}

static __maybe_unused const struct vm_operations_struct *compat(void)
{
	static const struct vm_operations_struct operations = { .may_split = refuse };

	return &operations;
}
