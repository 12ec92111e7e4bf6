/* SPDX-License-Identifier: MIT */
/*
 * The recorder's insides, shared by its files:
 *
 *	recorder.c		rings -> merge -> writer, from create to finish
 *	recorder_tables.c	the header's tables, and what is told as facts
 *	recorder_insert.c	records that do not come from the kernel
 */
#ifndef KB_LIB_RECORDER_INSIDE_H
#define KB_LIB_RECORDER_INSIDE_H

#include <kbarman/barman.h>
#include <kbarman/merge.h>
#include <kbarman/recorder.h>

#include "frozen.h"
#include "insert.h"

struct ring {
	struct kb_mapped mapped;
	unsigned int cpu;
	int source;			/* of the merge; -1 = not read yet */
	uint64_t consumed;
	uint64_t records;		/* of it in the file */
	bool has_pmu;			/* its PMU entry was written */
};

struct kb_recorder {
	struct kb_device *device;
	struct kb_barman_writer *writer;
	struct kb_merge *merge;
	struct ring *rings;		/* nr_rings of room for nr_cpus */
	unsigned int *ring_of_cpu;	/* index + 1; 0 = none yet */
	unsigned int *ring_of_source;	/* the same; 0 = of what is inserted */
	unsigned int nr_rings, nr_cpus;
	bool stream;
	bool synced;			/* once at least: the file is a capture */
	uint64_t watermark;
	uint64_t hold_back;		/* ticks */
	struct kb_insert insert;
	int insert_source;		/* of the merge; -1 = none yet */
	struct kbarman_clock clock;	/* for them: read now and then */
	int64_t clock_read;		/* when: CLOCK_BOOTTIME, which does not stand still */
	uint64_t clock_hz;
	uint64_t unsynced;		/* bytes of records */
	uint32_t strings_done, tasks_done, maps_done, charts_done, series_done;
	uint32_t task_facts_done;
	uint64_t first_timestamp;	/* ticks, of the records in the file; 0: none yet */
	bool is_frozen;
	struct kb_frozen frozen;	/* what the rings' views are of, if so */
	struct kb_recorder_totals totals;
};

/* Any of the maps: they share the header. */
static inline const struct kb_mapped *recorder_header(const struct kb_recorder *r)
{
	return &r->rings[0].mapped;
}

/* The sentence about an error of the file. Returns @ret. */
int recorder_write_failed(struct kb_error *err, int ret);

int recorder_set_header(struct kb_recorder *recorder);

/* Rows that have come since the last time, and what has changed; @last: all of it. */
int recorder_copy_tables(struct kb_recorder *recorder, bool last, struct kb_error *err);

/* Which threads are of one process, of rows that have come since the last time. */
int recorder_write_threads(struct kb_recorder *recorder, struct kb_error *err);

/* What is known at the end only. */
int recorder_write_facts(struct kb_recorder *recorder, struct kb_error *err);

#endif
