/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_COMPAT_ARGUMENT_H
#define KBARMAN_COMPAT_ARGUMENT_H

#include <linux/ptrace.h>

/* Of a function that a kprobe is at the beginning of: argument @n, one of the first four. */
#if defined(CONFIG_S390)
/* Has regs_get_kernel_argument(), but it calls what modules may not. */
#define kbarman_argument(regs, n)	((regs)->gprs[2 + (n)])
#elif defined(CONFIG_ARM)
#define kbarman_argument(regs, n)	((regs)->uregs[n])
#elif defined(KBARMAN_HAVE_KERNEL_ARGUMENT)
#define kbarman_argument(regs, n)	regs_get_kernel_argument(regs, n)
#endif
/* Else not defined: what needs it must do without. */

#endif /* KBARMAN_COMPAT_ARGUMENT_H */
