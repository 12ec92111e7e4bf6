/* SPDX-License-Identifier: MIT */
/* The two forms of text: heads of metrics, and their lines. */
#ifndef KB_LIB_EXPORT_OPENMETRICS_PUT_H
#define KB_LIB_EXPORT_OPENMETRICS_PUT_H

#include <kbarman/openmetrics.h>

struct kb_om_put {
	struct kb_out *out;
	enum kb_openmetrics_form form;
	const char *name;		/* of the metric whose lines come */
	const char *suffix;		/* of its lines: "_total" */
};

enum kb_om_type { KB_OM_COUNTER, KB_OM_GAUGE, KB_OM_HISTOGRAM, KB_OM_INFO };

/* Begin a metric. @unit NULL: it has none, else @name ends with it. @help: a sentence. */
void kb_om_head(struct kb_om_put *put, const char *name, enum kb_om_type type, const char *unit,
		const char *help);

/*
 * A line: its name with @more behind it (NULL: nothing), then pairs of a label and its text, which
 * NULL ends, then the number. A pair whose text is NULL is left out.
 */
void kb_om_line(struct kb_om_put *put, const char *more, const char *const *labels, uint64_t value,
		unsigned int digits);

#endif
