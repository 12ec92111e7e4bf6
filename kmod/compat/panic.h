/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_COMPAT_PANIC_H
#define KBARMAN_COMPAT_PANIC_H

#include <linux/kernel.h>
#ifdef KBARMAN_HAVE_PANIC_NOTIFIER
#include <linux/panic_notifier.h>
#endif

#endif /* KBARMAN_COMPAT_PANIC_H */
