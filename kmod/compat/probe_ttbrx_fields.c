// SPDX-License-Identifier: GPL-2.0-only
/* Later kernels (also some 6.1.y) name the fields of arm64's TTBR0_EL1 and TTBR1_EL1 as others. */
#include <asm/sysreg.h>

static __maybe_unused u64 compat(void)
{
	return TTBRx_EL1_ASID_MASK | TTBRx_EL1_CnP;
}
