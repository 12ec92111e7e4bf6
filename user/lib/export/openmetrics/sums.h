/* SPDX-License-Identifier: MIT */
/*
 * export/openmetrics/: sums of a capture that only grow, as metrics for Prometheus.
 *
 * The sums behind OpenMetrics: numbers that only grow, in memory whose size depends on limits and
 * not on captures.
 */
#ifndef KB_LIB_EXPORT_OPENMETRICS_SUMS_H
#define KB_LIB_EXPORT_OPENMETRICS_SUMS_H

#include <kbarman/openmetrics.h>
#include <kbarman/tiles.h>

#define KB_OM_BOUNDS	22	/* of the histograms; above the last one: +Inf */
#define KB_OM_TEXT	64	/* bytes of a label, with its NUL */

/* Upper bounds in ns, and as OpenMetrics writes them in seconds. */
extern const uint64_t kb_om_bounds[KB_OM_BOUNDS];
extern const char *const kb_om_bound_texts[KB_OM_BOUNDS];

struct kb_om_times {
	uint64_t count, sum_ns;
	uint64_t buckets[KB_OM_BOUNDS + 1];	/* each without those before it */
};

struct kb_om_cpu {
	bool seen;
	uint64_t records, wakeups, migrations;
	uint64_t switches[2];			/* by enum kb_switch_reason */
	uint64_t tile_ns[KB_TILE_KINDS];
	uint64_t unread_ns;			/* overwritten before it was read */
	struct kb_om_times waits[2];		/* woken, preempted */
};

/* A row whose labels a capture has chosen. */
struct kb_om_row {
	uint32_t a, b;				/* see struct kb_om_sums */
	bool other;				/* of all that found no row */
	char text[KB_OM_TEXT];			/* printable */
	uint64_t values[4];
};

struct kb_om_rows {
	struct kb_om_row *rows;
	uint32_t nr, room, most;		/* most: without the one for all others */
};

enum { KB_OM_COUNT, KB_OM_NS, KB_OM_DEEP, KB_OM_SHALLOW };	/* of values[] */

struct kb_om_sums {
	uint32_t nr_cpus;			/* with a row; then one for all others */
	struct kb_om_cpu *cpus;			/* nr_cpus + 1 */
	struct kb_om_rows handlers;		/* a: enum kb_tile_kind */
	struct kb_om_rows idle;			/* a: CPU, b: state + 1, text: its name */
	struct kb_om_rows lost, stopped;	/* a: CPU, text: the reason */
	struct kb_om_rows missed;		/* text: what */
	uint64_t written, overwritten;		/* records */
	uint64_t gaps, cut, unexplained, unsure;
	uint64_t captures, damaged;
	struct kb_openmetrics_cost cost;
};

struct kb_openmetrics;
const struct kb_om_sums *kb_openmetrics_sums(const struct kb_openmetrics *metrics);

int kb_om_sums_init(struct kb_om_sums *sums, uint32_t cpus, uint32_t rows);
void kb_om_sums_release(struct kb_om_sums *sums);

/* The row of @core, or its number. */
static inline uint32_t kb_om_cpu_number(const struct kb_om_sums *sums, uint32_t core)
{
	return core < sums->nr_cpus ? core : sums->nr_cpus;
}

static inline struct kb_om_cpu *kb_om_cpu(struct kb_om_sums *sums, uint32_t core)
{
	struct kb_om_cpu *cpu = &sums->cpus[kb_om_cpu_number(sums, core)];

	cpu->seen = true;
	return cpu;
}

void kb_om_times_add(struct kb_om_times *times, uint64_t ns);

/*
 * The number of the row with these labels, which is made if there is room, else that of the row for
 * all others. @text may be any bytes, and is cut. UINT32_MAX without memory.
 */
uint32_t kb_om_rows_get(struct kb_om_rows *rows, uint32_t a, uint32_t b, const char *text,
			size_t length);

#endif
