/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_COMPAT_USER_ACCESS_H
#define KBARMAN_COMPAT_USER_ACCESS_H

#include <linux/uaccess.h>

/*
 * user_access_begin() checks addresses, once for all accesses of a section. Without sections each
 * access of arm64 checks its own address.
 */
#if defined(CONFIG_ARM64) && !defined(KBARMAN_HAVE_USER_ACCESS_SECTION)
#define kbarman_user_access_begin(from, bytes)	true
#else
#define kbarman_user_access_begin(from, bytes)	user_access_begin(from, bytes)
#endif

#endif /* KBARMAN_COMPAT_USER_ACCESS_H */
