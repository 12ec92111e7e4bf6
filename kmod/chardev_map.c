// SPDX-License-Identifier: GPL-2.0-only
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nospec.h>

#include "capture/capture.h"
#include "capture/reserved.h"
#include "capture/storage.h"
#include "chardev.h"
#include "compat/mm.h"
#include "sessions/descriptor.h"

/*
 * A mapping shows a capture, not the device. Each mapping has a file of its own that holds a
 * reference to the capture. So the descriptor can be closed and the session can be configured again
 * while the mapping exists. Page faults insert the pages one by one: pages that vm_insert_page()
 * had inserted in advance would be lost for good after MADV_DONTNEED.
 *
 * This needs f_op->mmap, which Linux calls deprecated since 6.17 and does not complain of.
 * f_op->mmap_prepare can set the flags and the operations. It may also replace the file, but who
 * drops the new file if the mapping fails has changed more than once (6.17: nobody, a leak), and no
 * header shows it, so that no probe can tell. Without the replacement a mapping would hold the
 * descriptor, and closing it would not stop the session. vm_ops->mapped, which could take a
 * reference instead, does not change that.
 */
static int capture_release(struct inode *inode, struct file *file)
{
	kbarman_capture_put(file->private_data);
	return 0;
}

static const struct file_operations capture_file_operations = {
	.owner = THIS_MODULE,
	.release = capture_release,
	.llseek = noop_llseek,
};

static int vma_refuse_split(struct vm_area_struct *vma, unsigned long address)
{
	return -EINVAL;
}

static int vma_refuse_mremap(struct vm_area_struct *vma)
{
	return -EINVAL;
}

static vm_fault_t vma_fault(struct vm_fault *fault)
{
	struct kbarman_capture *capture = fault->vma->vm_file->private_data;
	u64 start = (u64)fault->vma->vm_pgoff << PAGE_SHIFT;
	unsigned long frame;
	void *memory;

	if (fault->flags & (FAULT_FLAG_WRITE | FAULT_FLAG_MKWRITE))
		return VM_FAULT_SIGBUS;
	memory = kbarman_capture_at(capture, div64_u64(start, capture->layout.map_bytes),
				    fault->address - fault->vma->vm_start);
	if (!memory)
		return VM_FAULT_SIGBUS;
	frame = kbarman_half_frame(capture->half, memory);
	if (capture->half)	/* Linux has no struct page of it */
		return vmf_insert_pfn(fault->vma, fault->address, frame);
	fault->page = pfn_to_page(frame);
	get_page(fault->page);
	return 0;
}

static const struct vm_operations_struct kbarman_vm_operations = {
	.KBARMAN_MAY_SPLIT = vma_refuse_split,
	.mremap = vma_refuse_mremap,
	.fault = vma_fault,
};

static int range_check(const struct kbarman_capture *capture, const struct vm_area_struct *vma)
{
	u64 start = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 cpu, offset;

	if (vma->vm_end - vma->vm_start != capture->layout.map_bytes)
		return -EINVAL;
	cpu = div64_u64_rem(start, capture->layout.map_bytes, &offset);
	if (offset || cpu >= capture->layout.max_cores)
		return -EINVAL;
	cpu = array_index_nospec((unsigned long)cpu, capture->layout.max_cores);
	/*
	 * The ring's memory is complete if the pointer is set. Pairs with the release in
	 * kbarman_capture_add_ring().
	 */
	if (!smp_load_acquire(&capture->rings[cpu]))
		return -EINVAL;
	return 0;
}

int kbarman_chardev_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct kbarman_capture *capture;
	struct file *shown;
	int error;

	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EPERM;
	capture = kbarman_descriptor_capture(file->private_data);
	if (!capture)
		return -ENODATA;
	if (IS_ERR(capture))
		return PTR_ERR(capture);
	/* The opener of this descriptor may have fewer rights than the session's owner. */
	error = -EPERM;
	if (capture->kernel_addresses && !file_ns_capable(file, &init_user_ns, CAP_SYSLOG))
		goto err_capture;
	error = range_check(capture, vma);
	if (error)
		goto err_capture;
	shown = anon_inode_getfile("[kbarman]", &capture_file_operations, capture, O_RDONLY);
	if (IS_ERR(shown)) {
		error = PTR_ERR(shown);
		goto err_capture;
	}
	kbarman_vma_set_file(vma, shown);
	fput(shown);
	kbarman_vm_flags_clear(vma, VM_MAYWRITE | VM_MAYEXEC);
	kbarman_vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP | (capture->half ? VM_PFNMAP : 0));
	vma->vm_ops = &kbarman_vm_operations;
	return 0;

err_capture:
	kbarman_capture_put(capture);
	return error;
}
