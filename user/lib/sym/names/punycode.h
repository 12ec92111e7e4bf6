/* SPDX-License-Identifier: MIT */
/* Identifiers outside of ASCII, as Rust mangles them: Punycode (RFC 3492) with '_' for '-'. */
#ifndef KB_LIB_SYM_NAMES_PUNYCODE_H
#define KB_LIB_SYM_NAMES_PUNYCODE_H

#include <stddef.h>

#define KB_PUNYCODE_MAX		256U	/* characters; longer identifiers are refused */
#define KB_PUNYCODE_BYTES	(4 * KB_PUNYCODE_MAX)

/*
 * Decode @length bytes at @code to UTF-8 in @text, which gets no NUL. Returns the number of bytes;
 * 0: this is no Punycode, or too long.
 */
size_t kb_punycode_decode(char text[KB_PUNYCODE_BYTES], const char *code, size_t length);

#endif
