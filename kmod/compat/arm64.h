/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_COMPAT_ARM64_H
#define KBARMAN_COMPAT_ARM64_H

#include <linux/kernel.h>
#include <linux/ptrace.h>
#include <linux/uaccess.h>
#include <asm/pgtable.h>
#include <asm/sysreg.h>

/*
 * The registers that arm64's entry code saved together with the frame record at @frame, which is
 * zero, if they are those of interrupted code of the kernel. NULL: they are not, or this kernel
 * has the record say itself where that code was.
 */
static inline const struct pt_regs *kbarman_frame_regs(unsigned long frame)
{
#ifdef KBARMAN_HAVE_FRAME_META
	const struct frame_record_meta *record = (const void *)frame;
	u64 type;

	if (!copy_from_kernel_nofault(&type, &record->type, sizeof(type)) &&
	    type == FRAME_META_TYPE_PT_REGS)
		return container_of(record, struct pt_regs, stackframe);
#endif
	return NULL;
}

/* What is in arm64's TTBR0_EL1 beside an address. */
#ifdef KBARMAN_HAVE_TTBRX_FIELDS
#define KBARMAN_TTBR_ASID	TTBRx_EL1_ASID_MASK
#define KBARMAN_TTBR_CNP	TTBRx_EL1_CnP
#else
#define KBARMAN_TTBR_ASID	TTBR_ASID_MASK
#define KBARMAN_TTBR_CNP	TTBR_CNP_BIT
#endif

#endif /* KBARMAN_COMPAT_ARM64_H */
