/* SPDX-License-Identifier: MIT */
/* Lengths of time as people write them: everywhere the same units. */
#ifndef KB_LIB_BASE_DURATION_H
#define KB_LIB_BASE_DURATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest one: as many days as one can reach in signed ns. */
#define KB_DURATION_MAX	((uint64_t)INT64_MAX)

/* The room for what kb_duration_text() writes. */
#define KB_DURATION_TEXT	32

/*
 * Parses a decimal number, which may have a fraction, and its unit: ns, us, ms, s, m, h or d. A number
 * without a unit is in units of @unit_ns; if that is 0, it must have one. *@ns is rounded to the next
 * ns. False: that is no length of time, or a longer one than KB_DURATION_MAX.
 */
bool kb_duration_parse(const char *text, uint64_t unit_ns, uint64_t *ns);

/* The same for the first @length bytes. */
bool kb_duration_parse_part(const char *text, size_t length, uint64_t unit_ns, uint64_t *ns);

/* Writes @ns with the largest unit in which it is a whole number, as in "500ms". Returns @text. */
const char *kb_duration_text(char text[KB_DURATION_TEXT], uint64_t ns);

#endif
