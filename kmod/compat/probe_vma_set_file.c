// SPDX-License-Identifier: GPL-2.0-only
/* 5.11 (295992fb815e) made a function of giving a new mapping another file. */
#include <linux/mm.h>

static __maybe_unused void compat(struct vm_area_struct *vma, struct file *file)
{
	vma_set_file(vma, file);
}
