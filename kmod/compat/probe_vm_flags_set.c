// SPDX-License-Identifier: GPL-2.0-only
/* 6.3 (bc292ab00f6c) made vma->vm_flags const and added functions that change it. */
#include <linux/mm.h>

static __maybe_unused void compat(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_DONTEXPAND);
	vm_flags_clear(vma, VM_MAYWRITE);
}
