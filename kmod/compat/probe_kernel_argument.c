// SPDX-License-Identifier: GPL-2.0-only
/* Some architectures with kprobes do not have regs_get_kernel_argument(). */
#include <linux/ptrace.h>

static __maybe_unused unsigned long compat(struct pt_regs *regs)
{
	return regs_get_kernel_argument(regs, 0);
}
