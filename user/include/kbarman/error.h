/* SPDX-License-Identifier: MIT */
/*
 * Errors as text. Functions of the library return 0 or a negative errno. Those that take a
 * struct kb_error put one sentence into it. The sentence names the file or table, the byte
 * offset if there is one, and what to do. The library itself never prints.
 */
#ifndef KBARMAN_ERROR_H
#define KBARMAN_ERROR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KB_NO_OFFSET	UINT64_MAX

struct kb_error {
	int code;		/* negative errno, 0 = none */
	uint64_t offset;	/* byte offset in the input; KB_NO_OFFSET if there is none */
	char text[256];		/* NUL-terminated */
};

/* Fill @err, which may be NULL. Returns @code, so that a caller can return the result. */
int kb_error_set(struct kb_error *err, int code, uint64_t offset, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#ifdef __cplusplus
}
#endif

#endif
