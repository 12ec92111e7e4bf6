/* SPDX-License-Identifier: MIT */
/* How many captures a query may have, and what the caller makes for it of each. */
#ifndef KB_LIB_QUERY_MAKE_LINES_H
#define KB_LIB_QUERY_MAKE_LINES_H

#include <kbarman/out.h>
#include <kbarman/symbol.h>
#include <kbarman/trace.h>

/* Reports as lines of JSON: the tables report_KIND are made of them. */
enum kb_query_lines {
	KB_QUERY_REPORT,	/* those of `report --json` */
	KB_QUERY_CALLS,		/* with its trees of calls */
	KB_QUERY_LATENCY,	/* those of `report --latency --irq --json` */
	KB_QUERY_WAITS,		/* those of `report --waits --json` */
	KB_QUERY_CLASSES,	/* those of `report --classes --json` */
	KB_QUERY_SYSCALLS,	/* those of `report --syscalls --json` */
	KB_QUERY_FAULTS,	/* those of `report --faults --json` */
	KB_QUERY_BLOCK,		/* those of `report --block --json` */
};

#define KB_QUERY_LINES	8

/* Write the lines of @which, of @trace, to @out. Returns 0 or a negative errno and @err. */
typedef int (*kb_query_make_lines)(void *context, enum kb_query_lines which, struct kb_trace *trace,
				   struct kb_out *out, struct kb_error *err);

#define KB_QUERY_FILES_MAX	128

#endif
