/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_COMPAT_ARGUMENT_H
#define KBARMAN_COMPAT_ARGUMENT_H

#include <linux/ftrace.h>
#include <linux/ptrace.h>

/*
 * Where ftrace is called from the first bytes of a function, a kernel that can't probe its calls
 * refuses a kprobe there. Then the instruction behind these bytes is the function's first one.
 */
#if defined(CONFIG_RISCV) && defined(CONFIG_DYNAMIC_FTRACE)
#define KBARMAN_ENTRY_BYTES	MCOUNT_INSN_SIZE
#endif

/* Argument @n, 0 to 3, of a function. A kprobe at the function's first instruction got @regs. */
#if defined(CONFIG_S390)
/* s390's regs_get_kernel_argument() calls a function that is not exported to modules. */
#define kbarman_argument(regs, n)	((regs)->gprs[2 + (n)])
#elif defined(CONFIG_ARM)
#define kbarman_argument(regs, n)	((regs)->uregs[n])
#elif defined(KBARMAN_HAVE_KERNEL_ARGUMENT)
#define kbarman_argument(regs, n)	regs_get_kernel_argument(regs, n)
#endif
/* Not defined on other architectures. Code that needs it must check. */

#endif /* KBARMAN_COMPAT_ARGUMENT_H */
