/* SPDX-License-Identifier: MIT */
/*
 * format/parquet/: Apache Parquet: groups of rows become pages (encode.h), which are compressed
 * (pack.h), and the file says what it has (meta.h, in thrift.h). It writes only.
 *
 * Writes Apache Parquet: a file of one table, in groups of rows. In a group each column is a page of
 * its own, compressed, with its least and largest value and the number of missing ones, by which
 * readers skip groups. Numbers are deltas to the one before, or rows of a dictionary if that is
 * shorter. Source: parquet.thrift and README of parquet-format 2.12.
 */
#ifndef KB_LIB_FORMAT_PARQUET_PARQUET_H
#define KB_LIB_FORMAT_PARQUET_PARQUET_H

#include <stdint.h>

#include <kbarman/out.h>
#include <kbarman/text.h>

#include "format/parquet/column.h"
#include "format/parquet/pack.h"

/* The values of a column in a group of rows. */
struct kb_parquet_values {
	const void *values;	/* one a row, also for a row whose value is missing */
	const uint8_t *missing;	/* optional: not 0 where a row has no value; NULL: nowhere */
	const uint64_t *ends;	/* TEXT: where the text of each row ends in `values`, in bytes;
				 * lists: number of values up to the end of each row */
};

/* What the writers of several files share, one at a time: memory for a group, the compressor. */
struct kb_parquet_work;

/* Errors are those of kb_parquet_pack_create(). */
int kb_parquet_work_create(struct kb_parquet_work **out, enum kb_parquet_codec codec);
void kb_parquet_work_destroy(struct kb_parquet_work *work);

struct kb_parquet;

/*
 * Begin a file with @nr_columns @columns. @work, @columns and @out must live as long as the writer.
 * Returns 0 or -ENOMEM.
 */
int kb_parquet_create(struct kb_parquet **out, struct kb_parquet_work *work, struct kb_out *to,
		      const struct kb_parquet_column *columns, uint32_t nr_columns);
void kb_parquet_destroy(struct kb_parquet *parquet);

/*
 * Write @rows rows, at least one, from @values, one for each column. @sorted: the column by which
 * they are sorted, smallest first, or KB_PARQUET_UNSORTED. Columns of names refer to @names.
 * Memory is a few times that of @values. Returns 0 or the first error.
 */
int kb_parquet_group(struct kb_parquet *parquet, uint64_t rows,
		     const struct kb_parquet_values *values, uint32_t sorted,
		     const struct kb_text *names, uint32_t nr_names);

/* Write the end of the file, and flush. Returns 0 or the first error. */
int kb_parquet_finish(struct kb_parquet *parquet);

#endif
