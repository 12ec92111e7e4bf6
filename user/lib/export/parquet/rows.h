/* SPDX-License-Identifier: MIT */
/*
 * Rows of a table, column by column in memory, until there are enough for a group of a Parquet file.
 * They come roughly by time and are written sorted by time.
 */
#ifndef KB_LIB_EXPORT_PARQUET_ROWS_H
#define KB_LIB_EXPORT_PARQUET_ROWS_H

#include "export/parquet/tables.h"

struct kb_rows_column {
	struct kb_parquet_column is;
	uint8_t *values, *missing;
	uint64_t *ends;			/* of texts and lists */
	size_t nr;			/* of texts: bytes; of lists: values */
	size_t max, max_missing, max_ends;	/* bytes; rows */
};

struct kb_rows {
	struct kb_rows_column columns[KB_PARQUET_COLUMNS];
	uint32_t nr_columns;
	uint64_t nr;			/* rows that are complete in all columns */
	bool no_memory;
};

void kb_rows_init(struct kb_rows *rows, const struct kb_parquet_table *table);
void kb_rows_release(struct kb_rows *rows);

/* Bytes of what is in them, and of the memory that they have. */
uint64_t kb_rows_bytes(const struct kb_rows *rows);
uint64_t kb_rows_memory(const struct kb_rows *rows);

/*
 * Room for @nr more values of column @at, of its type, behind those that it has. Each column gets
 * its values of all new rows, then rows->nr grows. NULL if @nr is 0, or `no_memory`.
 */
void *kb_rows_room(struct kb_rows *rows, uint32_t at, size_t nr);

/* Which values of the next @nr rows are missing: zeros to be filled. NULL as above. */
uint8_t *kb_rows_missing(struct kb_rows *rows, uint32_t at, size_t nr);

/* Of lists and texts: where each of the next @nr rows ends in the values of the column. */
uint64_t *kb_rows_ends(struct kb_rows *rows, uint32_t at, size_t nr);

/* Sort the rows by the first column, write them as a group, and forget them. 0 or an error. */
int kb_rows_write(struct kb_rows *rows, struct kb_parquet *to, const struct kb_text *names,
		  uint32_t nr_names);

#endif
