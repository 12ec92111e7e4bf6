/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * KBARMAN_SYSCORE(NAME, SUSPEND, RESUME) defines NAME, which kbarman_syscore_register() takes. The
 * parameter list of the callbacks SUSPEND and RESUME is (KBARMAN_SYSCORE_ARGUMENT).
 */
#ifndef KBARMAN_COMPAT_SYSCORE_H
#define KBARMAN_COMPAT_SYSCORE_H

#include <linux/syscore_ops.h>

#ifdef KBARMAN_HAVE_SYSCORE_DATA
#define KBARMAN_SYSCORE_ARGUMENT	void *unused
#define KBARMAN_SYSCORE(name, before, after)	\
	static const struct syscore_ops name##_ops = { .suspend = (before), .resume = (after) }; \
	static struct syscore name = { .ops = &name##_ops }
#define kbarman_syscore_register	register_syscore
#define kbarman_syscore_unregister	unregister_syscore
#else
#define KBARMAN_SYSCORE_ARGUMENT	void
#define KBARMAN_SYSCORE(name, before, after)	\
	static struct syscore_ops name = { .suspend = (before), .resume = (after) }
#define kbarman_syscore_register	register_syscore_ops
#define kbarman_syscore_unregister	unregister_syscore_ops
#endif

#endif /* KBARMAN_COMPAT_SYSCORE_H */
