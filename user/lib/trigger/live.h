/* SPDX-License-Identifier: MIT */
/*
 * A running session as a walk over its records: what kb_trace_next() is for a capture. The trace has
 * the header of the session as it was at first, and no records.
 */
#ifndef KB_LIB_TRIGGER_LIVE_H
#define KB_LIB_TRIGGER_LIVE_H

#include "record/merge/follow.h"
#include "trigger/detector.h"

struct kb_live;

int kb_live_create(struct kb_live **out, struct kb_device *device, struct kb_error *err);
void kb_live_destroy(struct kb_live *live);	/* may be NULL */

struct kb_trace *kb_live_trace(const struct kb_live *live);
struct kb_follow *kb_live_follow(const struct kb_live *live);
const struct kb_detector_names *kb_live_names(const struct kb_live *live);

/*
 * Look for new records, tasks and CPUs. *@now: ticks. Returns 0 or a negative errno.
 */
int kb_live_look(struct kb_live *live, uint64_t *now, struct kb_error *err);

/*
 * A CPU whose counters have become known since the last call; UINT32_MAX: there is none. *@as: a CPU
 * that has the same ones and was there from the begin; UINT32_MAX: none.
 */
uint32_t kb_live_new_counters(struct kb_live *live, uint32_t *as);

/*
 * The next record up to @horizon (ticks). Where records are missing, a record of the loss comes first,
 * as the kernel would have written it. Returns 1, 0: there is none so far; or -ENOMEM.
 */
int kb_live_next(struct kb_live *live, uint64_t horizon, const struct kb_walk **walk);

#endif
