/* SPDX-License-Identifier: MIT */
/*
 * What went wrong, for people. Functions of the library return 0 or a negative
 * errno and, where they take a struct kb_error, put one sentence into it that
 * names the file or table, the byte offset where there is one, and what to do.
 * The library itself never prints.
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
	uint64_t offset;	/* in the input, KB_NO_OFFSET where there is none */
	char text[256];		/* NUL-terminated */
};

/* Fill @err, which may be NULL; returns @code so that callers can return it. */
int kb_error_set(struct kb_error *err, int code, uint64_t offset, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#ifdef __cplusplus
}
#endif

#endif
