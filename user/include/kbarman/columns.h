/* SPDX-License-Identifier: MIT */
/*
 * A capture as tables of columns: arrays of numbers that numpy, Arrow and the like take as they
 * are. A walk over the records fills them, in parts of any size, so memory need not grow with the
 * capture.
 *
 *	struct kb_columns_options options = {
 *		.size = sizeof(options), .tables = "switches.at_ns switches.tid",
 *	};
 *	int switches = kb_columns_find("switches", &ns_at, "at_ns");
 *	struct kb_columns_part *part = NULL;
 *
 *	if (kb_columns_create(&columns, trace, &options, &err))
 *		errx(1, "%s", kb_error_text(&err));
 *	while (kb_columns_next(columns, 100000, UINT64_MAX, &part, &err) > 0) {
 *		uint64_t rows = kb_columns_rows(part, switches);
 *		struct kb_column_values ns;
 *
 *		if (kb_columns_values(part, switches, ns_at, &ns))
 *			add_times(ns.values, rows);
 *	}
 *	kb_columns_part_free(part);
 *	kb_columns_destroy(columns);
 *
 * kb_columns_tables() tells which tables and columns there are. Rows of records stand in the order
 * of the capture. Rows of times (runs, idle, gaps, interrupts) stand in the order of their
 * ends.
 */
#ifndef KBARMAN_COLUMNS_H
#define KBARMAN_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/error.h>
#include <kbarman/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What a column has, and the type of its values. The letters are those of Python's module struct,
 * in the byte order and the sizes of this machine.
 */
enum kb_column_type {
	KB_COLUMN_BOOL	= '?',	/* a byte, 0 or 1 */
	KB_COLUMN_U8	= 'B',	/* with words: a number of a word */
	KB_COLUMN_U32	= 'I',
	KB_COLUMN_I32	= 'i',
	KB_COLUMN_U64	= 'Q',
	KB_COLUMN_I64	= 'q',
	KB_COLUMN_F64	= 'd',
	KB_COLUMN_TEXT	= 's',	/* valid UTF-8 of any length: offsets, and bytes */
	KB_COLUMN_LIST32 = 'l',	/* any number of uint32_t: offsets, and values */
	KB_COLUMN_LIST64 = 'L',	/* any number of uint64_t */
};

struct kb_column {
	const char *name;
	const char *about;	/* what it says, in which unit */
	enum kb_column_type type;
	const char *const *words;	/* NULL: it is a number; else nr_words words, and every
					 * value is below that */
	uint32_t nr_words;
};

struct kb_column_table {
	const char *name;
	const char *about;
	const struct kb_column *columns;
	uint32_t nr_columns;
};

/* All tables; sets @nr to their number. Tables and columns are called by their index there. */
const struct kb_column_table *kb_columns_tables(uint32_t *nr);

/*
 * The index of table @table; -1: there is none. With @column not NULL *@index becomes the index of
 * this column, or UINT32_MAX. Names that columns had before work until version 1.0: `ns` is at_ns.
 */
int kb_columns_find(const char *table, uint32_t *index, const char *column);

struct kb_columns_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	/*
	 * Which tables: words with blanks between them. TABLE is all its columns but `frames`;
	 * TABLE.COLUMN is that column. `frames` takes the symbols of the trace, which are looked
	 * for when the columns are created. NULL: none.
	 */
	const char *tables;
};

struct kb_columns;
struct kb_columns_part;

/*
 * Go to the first record of @trace, which must live as long as the columns; nothing else reads the
 * trace meanwhile. Returns 0; -EINVAL for a table or a column that there is not; the errors of
 * kb_trace_rewind() and of kb_trace_symbolizer(). kb_columns_destroy() frees the columns, which may
 * be NULL; parts live on.
 */
int kb_columns_create(struct kb_columns **out, struct kb_trace *trace,
		      const struct kb_columns_options *options, struct kb_error *err);
void kb_columns_destroy(struct kb_columns *columns);

/*
 * Read the next records: at most @records, and no more once their rows take @bytes. Sets *@part to
 * their rows. If *@part is not NULL before, the call takes that part back, and its memory may be
 * used again; so pass NULL to keep a part, which kb_columns_part_free() frees.
 *
 * Returns 1; 0 at the end, then *@part is NULL; or a negative errno: -ENOMEM, or once at the end if
 * records are damaged, after all whole records were delivered. The first part is there even
 * without records, and has the tables that are not of records. The last one has what was still open at
 * the end.
 */
int kb_columns_next(struct kb_columns *columns, uint64_t records, uint64_t bytes,
		    struct kb_columns_part **part, struct kb_error *err);

/* The values of a column. They live as long as the part, and nobody changes them. */
struct kb_column_values {
	const void *values;	/* nr_values of them */
	uint64_t nr_values;	/* numbers: one a row; text: bytes */
	uint64_t room;		/* bytes at `values`, a power of two; behind the values stands
				 * anything */
	const int64_t *offsets;	/* text and lists, else NULL: where each row begins in `values`,
				 * and one more, where the last one ends */
	uint64_t offsets_room;	/* bytes at `offsets`, as above */
};

/* The number of records that were read for @part. */
uint64_t kb_columns_records(const struct kb_columns_part *part);

/* The number of rows of a table; 0 also if it was not asked for. */
uint64_t kb_columns_rows(const struct kb_columns_part *part, uint32_t table);

/* False: there is no such column, or it was not asked for. */
bool kb_columns_values(const struct kb_columns_part *part, uint32_t table, uint32_t column,
		       struct kb_column_values *out);

/*
 * A part is freed when all who hold it have freed it. Any thread may do so. @part may be NULL.
 * kb_columns_part_hold() returns @part.
 */
struct kb_columns_part *kb_columns_part_hold(struct kb_columns_part *part);
void kb_columns_part_free(struct kb_columns_part *part);

#ifdef __cplusplus
}
#endif

#endif
