/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What string_table.c and shares.c need of their surroundings. The host tests have a file of
 * this include guard of their own, so they compile the very same sources.
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
