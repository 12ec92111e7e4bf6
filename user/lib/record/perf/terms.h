/* SPDX-License-Identifier: MIT */
/* PMU/TERM,TERM=VALUE,…/: terms become the config words of an event. */
#ifndef KB_LIB_RECORD_PERF_TERMS_H
#define KB_LIB_RECORD_PERF_TERMS_H

#include <kbarman/perf_events.h>

struct kb_term_parser {
	const char *sysfs;
	const char *element;		/* element of the list, for error texts */
	struct kb_error *err;
};

/* Fill the error: "event 'ELEMENT': why". Returns @code. */
int kb_terms_fail(const struct kb_term_parser *p, int code, const char *why);

/* The result for a term that is neither a field of the PMU nor one of the generic terms. */
#define KB_NO_SUCH_TERM	1

/* Apply the fields that the PMU's events/NAME lists. KB_NO_SUCH_TERM: there is no such event. */
int kb_terms_alias(const struct kb_term_parser *p, struct kb_perf_event *event, const char *pmu,
		   const char *name);

/* One FIELD or FIELD=VALUE; cut in two. */
int kb_terms_field(const struct kb_term_parser *p, struct kb_perf_event *event, const char *pmu,
		   char *term);

#endif
