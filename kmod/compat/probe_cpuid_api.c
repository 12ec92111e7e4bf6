// SPDX-License-Identifier: GPL-2.0-only
/* 6.16 gave CPUID a header of its own; 7.x has it nowhere else. */
#include <asm/cpuid/api.h>

static __maybe_unused u32 compat(void)
{
	return cpuid_eax(0);
}
