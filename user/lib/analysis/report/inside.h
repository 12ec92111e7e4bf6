/* SPDX-License-Identifier: MIT */
/*
 * analysis/report/: one pass over a capture that feeds all tables of kbarman/report.h.
 *
 * A report in the making: report.c begins and ends it, read.c feeds it with the records.
 */
#ifndef KB_LIB_ANALYSIS_REPORT_INSIDE_H
#define KB_LIB_ANALYSIS_REPORT_INSIDE_H

#include <kbarman/report.h>

#include "analysis/facts/stops.h"
#include "analysis/report/last.h"
#include "analysis/samples/calltree.h"
#include "analysis/samples/carry.h"
#include "analysis/samples/hot.h"
#include "analysis/samples/offcpu.h"
#include "analysis/samples/rotated.h"
#include "analysis/samples/sample_queue.h"
#include "analysis/time/sched.h"
#include "analysis/trace/inside.h"
#include "analysis/trace/wanted.h"

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
	struct kb_last *last;		/* NULL: the recording did not end with the machine */
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
