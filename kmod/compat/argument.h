/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_COMPAT_ARGUMENT_H
#define KBARMAN_COMPAT_ARGUMENT_H

#include <linux/ptrace.h>

#if defined(CONFIG_S390)
/* Has regs_get_kernel_argument(), but it calls what modules may not. */
#define kbarman_first_argument(regs)	((regs)->gprs[2])
#elif defined(CONFIG_ARM)
#define kbarman_first_argument(regs)	((regs)->ARM_r0)
#elif defined(KBARMAN_HAVE_KERNEL_ARGUMENT)
#define kbarman_first_argument(regs)	regs_get_kernel_argument(regs, 0)
#endif
/* Else not defined: what needs it must do without. */

#endif /* KBARMAN_COMPAT_ARGUMENT_H */
