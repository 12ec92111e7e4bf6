/* SPDX-License-Identifier: MIT */
/* Names and texts of a capture in a form that other formats accept. */
#ifndef KB_LIB_EXPORT_LABEL_H
#define KB_LIB_EXPORT_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#include <kbarman/waits.h>

/*
 * Copy @from as valid UTF-8 without NULs: everything else becomes U+FFFD. With @plain also
 * replace what needs escapes in JSON: '"' by "'", '\' by '/', control characters and NULs by
 * blanks. Stops before the first character that does not fit into @room. Returns the number of
 * bytes written and adds no NUL.
 */
size_t kb_label(char *to, size_t room, const char *from, size_t length, bool plain);

/* Length of @text cut to @max bytes, not inside a character of UTF-8. */
size_t kb_label_cut(const char *text, size_t length, size_t max);

#define KB_LABEL_OBJECT	64U

/*
 * Which object it is for which @row waits, beside its name: "pipe 12". What has a name needs no number, but for a
 * pipe, whose name says who has it. Empty: its name or its call says all, or it is all others.
 */
const char *kb_label_object(const struct kb_waits_row *row, char text[KB_LABEL_OBJECT]);

#endif
