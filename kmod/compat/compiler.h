/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_COMPAT_COMPILER_H
#define KBARMAN_COMPAT_COMPILER_H

/*
 * A variable of a probe that is written before it is read, but not all of it. Kernels with
 * CONFIG_INIT_STACK_ALL_ZERO would clear all of it each time. Only compilers with this attribute
 * build such kernels.
 */
#if __has_attribute(__uninitialized__)
#define KBARMAN_UNINITIALIZED	__attribute__((__uninitialized__))
#else
#define KBARMAN_UNINITIALIZED
#endif

#endif /* KBARMAN_COMPAT_COMPILER_H */
