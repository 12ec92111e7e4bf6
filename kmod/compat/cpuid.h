/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_COMPAT_CPUID_H
#define KBARMAN_COMPAT_CPUID_H

#ifdef KBARMAN_HAVE_CPUID_API
#include <asm/cpuid/api.h>
#else
#include <asm/processor.h>
#endif

#endif /* KBARMAN_COMPAT_CPUID_H */
