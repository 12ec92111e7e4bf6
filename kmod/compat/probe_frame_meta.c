// SPDX-License-Identifier: GPL-2.0-only
/* 6.14 (c2c6b27b5aa1) has arm64's entry code say what saved registers are of. */
#include <linux/ptrace.h>
#include <asm/stacktrace/frame.h>

static __maybe_unused u64 compat(const struct pt_regs *regs)
{
	return regs->stackframe.type == FRAME_META_TYPE_PT_REGS;
}
