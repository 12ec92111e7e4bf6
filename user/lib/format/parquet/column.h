/* SPDX-License-Identifier: MIT */
/* The columns of a Parquet file. */
#ifndef KB_LIB_FORMAT_PARQUET_COLUMN_H
#define KB_LIB_FORMAT_PARQUET_COLUMN_H

#include <stdbool.h>
#include <stdint.h>

/* What a column has, and what its values are in memory. */
enum kb_parquet_type {
	KB_PARQUET_BOOL,	/* uint8_t: not 0 is true */
	KB_PARQUET_I64,		/* int64_t */
	KB_PARQUET_U64,		/* uint64_t */
	KB_PARQUET_F64,		/* double */
	KB_PARQUET_TEXT,	/* bytes of UTF-8, which are mostly different */
	KB_PARQUET_NAME,	/* uint32_t, the number of one of the caller's names, UTF-8 as well */
};

struct kb_parquet_column {
	const char *name;
	enum kb_parquet_type type;
	bool optional;		/* values may be missing */
	bool list;		/* a row has any number of values; not with `optional` or TEXT */
};

#define KB_PARQUET_UNSORTED	UINT32_MAX	/* instead of the number of a column */

#endif
