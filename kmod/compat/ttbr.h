/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_COMPAT_TTBR_H
#define KBARMAN_COMPAT_TTBR_H

#include <asm/pgtable.h>
#include <asm/sysreg.h>

/* What is in arm64's TTBR0_EL1 beside an address. */
#ifdef KBARMAN_HAVE_TTBRX_FIELDS
#define KBARMAN_TTBR_ASID	TTBRx_EL1_ASID_MASK
#define KBARMAN_TTBR_CNP	TTBRx_EL1_CnP
#else
#define KBARMAN_TTBR_ASID	TTBR_ASID_MASK
#define KBARMAN_TTBR_CNP	TTBR_CNP_BIT
#endif

#endif /* KBARMAN_COMPAT_TTBR_H */
