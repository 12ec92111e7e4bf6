/* SPDX-License-Identifier: MIT */
/*
 * Tables of kbarman/columns.h for whoever reads Arrow: pyarrow, polars, DuckDB and others. Nothing
 * is copied. What they get holds the part, whose memory is free when both are done with it.
 *
 *	struct ArrowSchema schema;
 *	struct ArrowArray array;
 *
 *	if (kb_arrow_part(part, table, &schema, &array) == 0)
 *		give_away(&schema, &array);
 *
 * The structs are those of Arrow's text "The Arrow C data interface", which asks everybody to define
 * them just so. A column with words becomes a dictionary, a text a large_utf8, a list a large_list,
 * a truth value a uint8.
 */
#ifndef KBARMAN_ARROW_H
#define KBARMAN_ARROW_H

#include <stdint.h>

#include <kbarman/columns.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

struct ArrowSchema {
	const char *format;
	const char *name;
	const char *metadata;
	int64_t flags;
	int64_t n_children;
	struct ArrowSchema **children;
	struct ArrowSchema *dictionary;
	void (*release)(struct ArrowSchema *schema);
	void *private_data;
};

struct ArrowArray {
	int64_t length;
	int64_t null_count;
	int64_t offset;
	int64_t n_buffers;
	int64_t n_children;
	const void **buffers;
	struct ArrowArray **children;
	struct ArrowArray *dictionary;
	void (*release)(struct ArrowArray *array);
	void *private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
	int (*get_schema)(struct ArrowArrayStream *stream, struct ArrowSchema *out);
	int (*get_next)(struct ArrowArrayStream *stream, struct ArrowArray *out);
	const char *(*get_last_error)(struct ArrowArrayStream *stream);
	void (*release)(struct ArrowArrayStream *stream);
	void *private_data;
};

#endif

/*
 * Fill @schema and @array with the rows of a table of @part, as a struct of its columns that were
 * asked for. Either may be NULL. The caller, or whom he gives them to, calls their `release`.
 * Returns 0; -ENOENT: nothing of that table was asked for; or -ENOMEM.
 */
int kb_arrow_part(struct kb_columns_part *part, uint32_t table, struct ArrowSchema *schema,
		  struct ArrowArray *array);

/* The same as a stream of one batch. */
int kb_arrow_stream(struct kb_columns_part *part, uint32_t table, struct ArrowArrayStream *stream);

/*
 * A table as a stream of batches, each read when it is asked for: kb_columns_next() with @records and
 * @bytes. So a capture of any size takes the memory of a batch. The stream takes over @columns and
 * @trace, and frees both when it is released. If records are damaged, an error follows the last batch.
 * Returns what kb_arrow_stream() returns; then nothing is taken over.
 */
int kb_arrow_reader(struct kb_columns *columns, struct kb_trace *trace, uint32_t table,
		    uint64_t records, uint64_t bytes, struct ArrowArrayStream *stream);

#ifdef __cplusplus
}
#endif

#endif
