/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All that string_table.c and shares.c use of the kernel. User-space builds compile the same two
 * files: they include a header of their own first, which has the same include guard.
 */
#ifndef KBARMAN_TABLE_ENV_H
#define KBARMAN_TABLE_ENV_H

#include <linux/bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/barrier.h>

#endif /* KBARMAN_TABLE_ENV_H */
