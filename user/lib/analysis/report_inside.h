/* SPDX-License-Identifier: MIT */
/* A report in the making: report.c begins and ends it, report_read.c feeds it with the records. */
#ifndef KB_LIB_ANALYSIS_REPORT_INSIDE_H
#define KB_LIB_ANALYSIS_REPORT_INSIDE_H

#include <kbarman/report.h>

#include "analysis/calltree.h"
#include "analysis/carry.h"
#include "analysis/hot.h"
#include "analysis/offcpu.h"
#include "analysis/rotated.h"
#include "analysis/sample_queue.h"
#include "analysis/sched.h"
#include "analysis/stops.h"
#include "analysis/trace_inside.h"
#include "analysis/wanted.h"

struct reading {
	struct kb_report shown;		/* the results; the first member */
	struct kb_report_options how;
	bool filters;			/* not all samples are wanted: */
	struct kb_wanted wanted;

	struct kb_trace *trace;
	const struct kb_header *header;
	const struct kb_tasks *tasks;
	const struct kb_names *names;
	struct kb_symbolizer *symbolizer;

	struct kb_sample_queue samples;	/* samples that wait for their symbols */
	struct kb_spots spots;
	struct kb_hot *by_sort, *by_tid;	/* samples with a PC */
	struct kb_hot *counts;		/* all samples, by task; NULL: no samples without a PC */
	struct kb_count_sets *sets;	/* of counters of one sample */
	struct kb_rotated *rotated;	/* NULL: no counter takes turns */
	struct kb_carry *carry;		/* NULL: no samples without a PC */
	struct kb_calltree *tree;	/* NULL: not asked for */
	struct kb_sched *sched;
	struct kb_tiles *tiles;		/* NULL: there was no wakeup yet */
	struct kb_offcpu *offcpu;
	struct kb_stops *stops;
	struct kb_stop *stop_rows;
	struct report_core {
		uint64_t latest;	/* timestamp of its last record */
		bool seen;
	} *cores;			/* max_cores */
	struct full_share {
		struct kb_share share;	/* of a sample that has all counters of its core */
		bool known;
	} *full;			/* max_cores */
	uint32_t cycles, instructions;	/* ids of these counters, UINT32_MAX: not counted */
};

/* There are samples without PC. Returns 0 or -ENOMEM. */
int report_begin_counts(struct reading *reading);

/* Read all records, and say in `shown` whether some are damaged. Returns 0 or -ENOMEM. */
int report_read(struct reading *reading, struct kb_error *err);

#endif
