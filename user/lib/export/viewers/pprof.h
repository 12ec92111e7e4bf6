/* SPDX-License-Identifier: MIT */
/* The export pprof, for who wants to know what is in the profile as well. */
#ifndef KB_LIB_EXPORT_VIEWERS_PPROF_H
#define KB_LIB_EXPORT_VIEWERS_PPROF_H

#include <kbarman/export.h>

struct kb_pprof_sums {
	uint64_t samples, waits;
};

/* Does what run() of a struct kb_export does. Fills @sums if the result is not negative. */
int kb_pprof_run(struct kb_trace *trace, const struct kb_export_options *options,
		 struct kb_out *out, struct kb_pprof_sums *sums, struct kb_error *err);

#endif
