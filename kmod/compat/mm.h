/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_COMPAT_MM_H
#define KBARMAN_COMPAT_MM_H

#include <linux/mm.h>

static inline void kbarman_vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
#ifdef KBARMAN_HAVE_VM_FLAGS_SET
	vm_flags_set(vma, flags);
#else
	vma->vm_flags |= flags;
#endif
}

static inline void kbarman_vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
#ifdef KBARMAN_HAVE_VM_FLAGS_SET
	vm_flags_clear(vma, flags);
#else
	vma->vm_flags &= ~flags;
#endif
}

#endif /* KBARMAN_COMPAT_MM_H */
