/* SPDX-License-Identifier: MIT */
/*
 * Errors as text. Functions of the library return 0 or a negative errno. Those that take a
 * struct kb_error put one sentence into it. The sentence names the file or table, the byte
 * offset if there is one, and what to do. The library itself never prints.
 *
 *	struct kb_error err;
 *
 *	if (kb_barman_open(&barman, path, &err))
 *		errx(1, "%s", kb_error_text(&err));
 */
#ifndef KBARMAN_ERROR_H
#define KBARMAN_ERROR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KB_NO_OFFSET	UINT64_MAX

/* The caller owns it. It needs no initialization, may be copied, and holds nothing to free. */
struct kb_error {
	int code;		/* negative errno, 0 = none */
	uint32_t whole;		/* internal: where kb_error_text() finds a long sentence; 0: all of
				 * it is in `text` */
	uint64_t offset;	/* byte offset in the input; KB_NO_OFFSET if there is none */
	char text[256];		/* NUL-terminated; a sentence that is longer is cut */
};

/* Fill @err, which may be NULL. Returns @code, so that a caller can return the result. */
int kb_error_set(struct kb_error *err, int code, uint64_t offset, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * The whole sentence of @err, of any length. Call it in the thread that filled @err. The string
 * holds as long as @err is not changed and this thread fills at most 63 other errors with
 * sentences that do not fit into `text`; after these, the result is `text`.
 */
const char *kb_error_text(const struct kb_error *err);

#ifdef __cplusplus
}
#endif

#endif
