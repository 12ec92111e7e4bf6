/* SPDX-License-Identifier: MIT */
/*
 * Places of all parts of a Barman header with given word size and table sizes, for reader and
 * writer. Structs are packed. Only the store parameters are aligned, to 8 bytes.
 */
#ifndef KB_LIB_FORMAT_BARMAN_PLACES_H
#define KB_LIB_FORMAT_BARMAN_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include <uapi/barman_v2.h>

#define BARMAN_MAGIC_32		UINT64_C(0x4241524d414e3332)	/* "BARMAN32" */
#define BARMAN_MAGIC_64		UINT64_C(0x4241524d414e3634)	/* "BARMAN64" */

/* Offsets of the fixed part. */
#define BARMAN_AT_MAGIC			0
#define BARMAN_AT_VERSION		8
#define BARMAN_AT_HEADER_LENGTH		12
#define BARMAN_AT_STORE_TYPE		16
#define BARMAN_AT_TARGET_NAME		20
#define BARMAN_AT_LAST_TIMESTAMP	24
#define BARMAN_AT_SAMPLE_RATE		32
#define BARMAN_AT_CONFIG		36
#define BARMAN_AT_CLOCK			60
#define BARMAN_AT_STRING_LENGTH		92
#define BARMAN_AT_STRINGS		96

#define BARMAN_STORE_BYTES		40	/* the text says 36 for 32-bit captures */
#define BARMAN_TASK_BYTES		16
#define BARMAN_CHART_BYTES		7
#define BARMAN_SERIES_BYTES		31

/*
 * A linear capture that is written to a pipe can't contain its length: its buffer length and
 * write offset are this value, and total_written is 0. Its data end with the file.
 */
#define BARMAN_OPEN_END			UINT64_C(0x7ffffffffffffff0)

/* Addresses of one call chain, at most. */
#define BARMAN_CHAIN_MAX		65536U

/* Limits that keep computed sizes from overflowing. */
#define BARMAN_CORES_MAX		65536U
#define BARMAN_PMU_COUNTERS_MAX		65536U
#define BARMAN_CUSTOM_MAX		65536U	/* charts, and series */

struct barman_shape {
	unsigned int word;		/* 4 or 8 */
	uint32_t max_cores, max_task_infos, max_mmap_layout, max_pmu_counters;
	uint32_t max_string_table_length;
	uint32_t num_charts, num_series;
};

/* A missing table has the place of what follows it. */
struct barman_places {
	uint64_t pmus, pmu_bytes;
	uint64_t tasks;			/* num_task_entries; its rows are 4 bytes after */
	uint64_t maps, map_bytes;	/* num_mmap_layout_entries; bytes of a row */
	uint64_t charts;		/* num_custom_charts */
	uint64_t series;		/* the rows */
	uint64_t store;
	uint64_t end;			/* of the store parameters, 40 bytes long */
};

static inline void barman_places(struct barman_places *p, const struct barman_shape *s)
{
	p->pmus = BARMAN_AT_STRINGS + (uint64_t)s->max_string_table_length;
	p->pmu_bytes = 20 + s->word + 4 * (uint64_t)s->max_pmu_counters;
	p->tasks = p->pmus + p->pmu_bytes * s->max_cores;
	p->maps = p->tasks;
	if (s->max_task_infos)
		p->maps += 4 + BARMAN_TASK_BYTES * (uint64_t)s->max_task_infos;
	p->map_bytes = (s->max_task_infos ? 12 : 0) + 3 * s->word + 4;
	p->charts = p->maps;
	if (s->max_mmap_layout)
		p->charts += 4 + p->map_bytes * s->max_mmap_layout;
	p->series = p->charts;
	if (s->num_series)
		p->series += 4 + BARMAN_CHART_BYTES * (uint64_t)s->num_charts;
	p->store = p->series;
	if (s->num_series)
		p->store += BARMAN_SERIES_BYTES * (uint64_t)s->num_series;
	p->store = (p->store + 7) & ~UINT64_C(7);
	p->end = p->store + BARMAN_STORE_BYTES;
}

#endif
