/* SPDX-License-Identifier: MIT */
/* A latency report on its way to people, and how all its parts print. */
#ifndef KB_LIB_EXPORT_TEXT_LATENCY_PUT_H
#define KB_LIB_EXPORT_TEXT_LATENCY_PUT_H

#include <kbarman/waits.h>

#include "export/text/report_put.h"

struct latency_text {
	struct report_text put;		/* for what prints; its `got` and `how` are NULL */
	struct kb_latency_text_options options;
	const struct kb_latency *got;
	struct kb_trace *trace;
};

static inline double latency_us(uint64_t ns)
{
	return (double)ns / 1e3;
}

/* The name of @origin, and what it is unless it is a task: "NET_RX (softirq)". */
void latency_put_origin(const struct latency_text *text, const struct kb_origin *origin,
			uint64_t ticks);

/* What @row waited for, with the name of the call: "fsync file 8:1 inode 12 (disk)". */
void latency_put_object(const struct latency_text *text, const struct kb_waits_row *row);

/* An enum kb_inferred: "[inferred: disk]". */
void latency_put_inferred(const struct latency_text *text, unsigned int inferred);

/* Whether a row with that part of @whole is not below the limit. */
bool latency_is_shown(const struct latency_text *text, uint64_t part, uint64_t whole);

/* A line that @nr rows, each a @what, are below the limit; none if @nr is 0. */
void latency_put_rest(const struct latency_text *text, uint32_t nr, const char *what);

#endif
