/* SPDX-License-Identifier: MIT */
/* Where requests begin and end, as kbarman/path.h has it. */
#ifndef KB_LIB_ANALYSIS_LATENCY_REQUEST_ENDS_H
#define KB_LIB_ANALYSIS_LATENCY_REQUEST_ENDS_H

#include <kbarman/names.h>
#include <kbarman/path.h>

struct kb_request_end {
	const char *text;	/* as it was given */
	bool is_call;
	char *pattern;		/* the caller's to free; of a mark or of the call's name */
	bool has_first, same_first; /* its first argument is that one; or that of the other end */
	uint64_t first;
};

/* Parse @text, which must live as long as @end. Returns 0, -EINVAL with a sentence, or -ENOMEM. */
int kb_request_end_parse(struct kb_request_end *end, const char *text, struct kb_error *err);

/* Whether @event, a mark or a system call, is one of @end. */
bool kb_request_end_is(const struct kb_request_end *end, const struct kb_event *event,
		       const struct kb_names *names);

#endif
