/* SPDX-License-Identifier: MIT */
/*
 * Captures of several machines as one trace, on one clock. A Barman capture is of one machine: its
 * records have a CPU and a task, and one fraction makes times of its ticks. So the trace is one of
 * Perfetto, whose packets have the number of a machine, or of Chrome.
 */
#ifndef KB_LIB_EXPORT_MACHINES_H
#define KB_LIB_EXPORT_MACHINES_H

#include <kbarman/export.h>

#include "analysis/facts/wall.h"

#define KB_MACHINES_MAX	200U	/* numbers of processes have 31 bits: see PROCESSES of chrome.c */

struct kb_machines {
	struct kb_trace *const *traces;
	uint32_t nr;
	struct kb_machine *machines;	/* filled by kb_machines_read() */
};

/*
 * Read the clocks of all captures; @files are their names. Returns 0, or -ENODATA, -EINVAL and a
 * sentence, also where two captures are of one recording. It changes the clocks of the traces, which tell the time of the world from then on.
 */
int kb_machines_read(struct kb_machines *machines, const char *const *files, struct kb_error *err);

/* Can captures be merged into this format? */
bool kb_machines_takes(const struct kb_export *format);

/*
 * Write all traces to @out; @number is that of the trace that is worked on. Returns what
 * kb_export_run() returns: 1 if any capture is damaged, and then @err is of the first one.
 */
int kb_machines_run(const struct kb_machines *machines, const struct kb_export *format,
		    const struct kb_export_options *options, struct kb_out *out,
		    struct kb_error *err);

/*
 * By how much two events of different machines may be apart in truth if they are at the same time in
 * the trace, in ns; KB_WALL_UNKNOWN.
 */
uint64_t kb_machines_error(const struct kb_machines *machines);

#endif
