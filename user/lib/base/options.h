/* SPDX-License-Identifier: MIT */
/*
 * Structs of options grow. Callers say the size of the struct that they were built with: what is
 * after it is zero, the default. What this library does not know must be zero.
 */
#ifndef KB_LIB_BASE_OPTIONS_H
#define KB_LIB_BASE_OPTIONS_H

#include <stddef.h>

#include <kbarman/error.h>

/*
 * Fill @known, a struct of @size bytes that begins with its size, from what the caller has
 * given, or NULL. -EINVAL: the caller's size can't be right, or an option is not known.
 */
int kb_options_take(void *known, size_t size, const void *given, struct kb_error *err);

#define KB_OPTIONS(known, given, err)	kb_options_take(known, sizeof(*(known)), given, err)

#endif
