/* SPDX-License-Identifier: MIT */
/* What a collector of OpenTelemetry profiles answers (fields.h names the version). */
#ifndef KB_LIB_EXPORT_OTLP_ANSWER_H
#define KB_LIB_EXPORT_OTLP_ANSWER_H

#include <stddef.h>
#include <stdint.h>

/* What a collector answers to a request that it took. */
struct kb_otlp_answer {
	uint64_t rejected;	/* profiles that it did not take */
	const char *text;	/* why, in the answer's own bytes, without a NUL */
	size_t length;		/* 0: it does not say */
};

/* Read an answer of status 200. Returns 0, or -EINVAL: this is no such message. */
int kb_otlp_read_answer(const void *data, size_t size, struct kb_otlp_answer *answer);

/* Read an answer of another status (google.rpc.Status): the text alone. The same results. */
int kb_otlp_read_failure(const void *data, size_t size, struct kb_otlp_answer *answer);

#endif
