/* SPDX-License-Identifier: MIT */
/* Base64 of RFC 4648, without line ends. */
#ifndef KB_LIB_FORMAT_BASE64_H
#define KB_LIB_FORMAT_BASE64_H

#include <stddef.h>
#include <stdint.h>

#define KB_BASE64_BYTES(length)		(((length) + 2) / 3 * 4)

/*
 * Write KB_BASE64_BYTES(@length) characters to @to, without a NUL. Results of several calls
 * form one text only if all but the last @length are multiples of 3.
 */
void kb_base64(char *to, const uint8_t *from, size_t length);

/* Most bytes that a text of so many characters stands for. */
#define KB_BASE64_READ_BYTES(length)	((length) / 4 * 3)

/*
 * Write the bytes that the whole text stands for to @to, and their number to *@bytes. Returns 0, or
 * -EINVAL: this is no such text.
 */
int kb_base64_read(uint8_t *to, size_t *bytes, const char *text, size_t length);

#endif
