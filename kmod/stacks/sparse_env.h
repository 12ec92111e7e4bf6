/* SPDX-License-Identifier: GPL-2.0-only */
/* What sparse.h needs of the kernel. In user space a test includes its own file first. */
#ifndef KBARMAN_SPARSE_ENV_H
#define KBARMAN_SPARSE_ENV_H

#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/nospec.h>
#include <linux/string.h>
#include <linux/types.h>

#endif /* KBARMAN_SPARSE_ENV_H */
