/* SPDX-License-Identifier: MIT */
#ifndef KB_CLI_QUERY_LINES_H
#define KB_CLI_QUERY_LINES_H

#include "query/query.h"

/* A kb_query_make_lines: what `kbarman report --json` prints of a trace. @context is not used. */
int query_make_lines(void *context, enum kb_query_lines which, struct kb_trace *trace,
		     struct kb_out *out, struct kb_error *err);

#endif
