/* SPDX-License-Identifier: MIT */
/* Fills rows of the tables of tables.h from parts of kbarman/columns.h. */
#ifndef KB_LIB_EXPORT_PARQUET_FILL_H
#define KB_LIB_EXPORT_PARQUET_FILL_H

#include <kbarman/columns.h>

#include "export/parquet/names.h"
#include "export/parquet/rows.h"

/* A table of kbarman/columns.h in the part that is read now. */
struct kb_filled_from {
	uint32_t table;			/* its index; UINT32_MAX: there is none */
	const struct kb_column *kinds[KB_PARQUET_COLUMNS];
	struct kb_column_values values[KB_PARQUET_COLUMNS];	/* of the columns of the file */
	struct kb_column_values unless[KB_PARQUET_COLUMNS];
	uint64_t rows;
};

/* What the values of numbers are: numbers of names, by number. */
struct kb_numbered {
	uint32_t *names;
	uint32_t nr;
	size_t max;
};

struct kb_parquet_fill {
	struct kb_name_pool pool;
	struct kb_task_names tasks;
	struct kb_numbered symbols, images, labels;	/* of functions; KB_NAME_NONE: not known */
	struct kb_numbered handlers, series, events;
	struct kb_numbered first_events;		/* by CPU */
	int64_t unix_base;		/* ns since 1970 at 0 of the capture */
	int64_t start, end;		/* of the capture, ns as recorded */
	uint64_t records;
	uint32_t capture;		/* the number of its name */
	const int64_t *waits;		/* of the switches of this part; -1: not known */
	bool no_memory;
};

void kb_parquet_fill_init(struct kb_parquet_fill *fill);
void kb_parquet_fill_release(struct kb_parquet_fill *fill);

/* The tables that kb_parquet_fill_names() needs, for kb_columns_options. */
#define KB_PARQUET_FILL_TABLES	"tasks functions handlers series_names events"

/* Take the names that @part has: call it for each part first. */
void kb_parquet_fill_names(struct kb_parquet_fill *fill, const struct kb_columns_part *part);

/* Find where the columns of @table come from in @part. False: it has no rows there. */
bool kb_parquet_fill_from(struct kb_filled_from *from, const struct kb_parquet_table *table,
			  const struct kb_columns_part *part);

/* The time of a row, ns since 1970, which is its first column. */
int64_t kb_parquet_fill_time(const struct kb_parquet_fill *fill, const struct kb_parquet_table *table,
			     const struct kb_filled_from *from, uint64_t row);

/* Append @nr rows from @row on to @rows. */
void kb_parquet_fill_rows(struct kb_parquet_fill *fill, const struct kb_parquet_table *table,
			  const struct kb_filled_from *from, uint64_t row, uint64_t nr,
			  struct kb_rows *rows);

#endif
