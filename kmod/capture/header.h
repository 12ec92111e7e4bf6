/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of a capture's header that do not grow, facts without a place in Barman, and counts.
 * The tables that grow are in tables.h.
 */
#ifndef KBARMAN_HEADER_H
#define KBARMAN_HEADER_H

#include <linux/types.h>

#include "uapi/barman_v2.h"
#include "uapi/kbarman.h"

struct kbarman_capture;

/*
 * Add the string "kbarman.KEY=VALUE"; @format makes the value. 0 or -ENOSPC (counted as missed).
 * Context: any but NMI.
 */
__printf(3, 4)
int kbarman_header_fact(struct kbarman_capture *capture, const char *key, const char *format, ...);

/*
 * What the tables are told is not older than timestamp_base from now on. Called before the first
 * record. Context: any but NMI.
 */
void kbarman_header_set_clock(struct kbarman_capture *capture,
			      const struct bm_protocol_clock_info *info);

/* What the tables were told before is as old as timestamp_base. Context: task. */
void kbarman_header_begin(struct kbarman_capture *capture);

/* Write the PMU entry of @cpu. num_counters is written last, after the fields it covers. */
void kbarman_header_set_pmu(struct kbarman_capture *capture, int cpu,
			    const struct bm_protocol_header_pmu_settings *settings);

/* Count @count facts that did not get into a table. Context: any but NMI. */
void kbarman_header_miss(struct kbarman_capture *capture, enum kbarman_miss what, u64 count);

/* Add the number of used rows and of missed facts to @stats. */
void kbarman_header_stats(struct kbarman_capture *capture, struct kbarman_stats *stats);

/* Changes when rows are emptied: for use by other rows, or because a new recording starts. */
u32 kbarman_header_generation(struct kbarman_capture *capture);
/* Write it into @tail: never one that is older than what was there. Context: any but NMI. */
void kbarman_header_sign(struct kbarman_capture *capture, struct kbarman_map_tail *tail);
/* Some rows are emptied next. Context: capture's lock held. */
void kbarman_header_next_generation(struct kbarman_capture *capture);

#endif /* KBARMAN_HEADER_H */
