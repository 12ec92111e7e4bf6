// SPDX-License-Identifier: GPL-2.0-only
/* Not every architecture that has kprobes says where a function's arguments are. */
#include <linux/ptrace.h>

unsigned long compat(struct pt_regs *regs);
unsigned long compat(struct pt_regs *regs)
{
	return regs_get_kernel_argument(regs, 0);
}
