/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_COMPAT_MM_H
#define KBARMAN_COMPAT_MM_H

#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/uaccess.h>

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

/* Gives a mapping that is being made @file, of which it takes a reference. */
static inline void kbarman_vma_set_file(struct vm_area_struct *vma, struct file *file)
{
#ifdef KBARMAN_HAVE_VMA_SET_FILE
	vma_set_file(vma, file);
#else
	get_file(file);
	swap(vma->vm_file, file);
	fput(file);
#endif
}

/* Memory that the command line has reserved by name: false if there is none. */
static inline bool kbarman_reserve_mem(const char *name, phys_addr_t *start, phys_addr_t *size)
{
#ifdef KBARMAN_HAVE_RESERVE_MEM
	return reserve_mem_find_by_name(name, start, size);
#else
	return false;
#endif
}

#ifdef KBARMAN_HAVE_VM_MAY_SPLIT
#define KBARMAN_MAY_SPLIT	may_split
#else
#define KBARMAN_MAY_SPLIT	split
#endif

/* The end of what a user can have: 5.10 has that name on some machines only. */
#ifdef TASK_SIZE_MAX
#define KBARMAN_TASK_SIZE_MAX	TASK_SIZE_MAX
#else
#define KBARMAN_TASK_SIZE_MAX	TASK_SIZE_64
#endif

#endif /* KBARMAN_COMPAT_MM_H */
