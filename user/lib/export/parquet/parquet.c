// SPDX-License-Identifier: MIT
/*
 * A capture as files of Parquet, in a folder for the captures of many machines: a table in each,
 * by machine and hour. Rows are read in parts, and kept by table and hour until they fill a group of
 * a file, so memory does not grow with the capture.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/columns.h>

#include "analysis/columns/fill.h"
#include "base/array.h"
#include "export/list.h"
#include "export/parquet/files.h"
#include "export/parquet/fill.h"
#include "export/parquet/waits.h"
#include "export/run.h"
#include "format/barman/identity.h"
#include "format/zstd.h"

#define PART_RECORDS	32768U		/* that are read at once */
#define PART_BYTES	(4U << 20)
#define GROUP_ROWS	131072U		/* most of a group */
#define GROUP_BYTES	(6U << 20)	/* the same, roughly */
#define ALL_BYTES	(20U << 20)	/* of memory for all rows that wait for a group */
#define OPEN		4U		/* files of a table that are open, each of another hour */
#define NS_OF_HOUR	3600000000000

/* What waits to be written of a table and an hour. */
struct partition {
	bool used;
	int64_t hour;
	uint64_t turn;			/* when it was last used */
	struct kb_rows rows;
	struct kb_parquet_file file;
};

struct writing {
	struct kb_parquet_fill fill;
	struct kb_parquet_waits waits;
	struct kb_parquet_files files;
	struct partition *partitions;	/* OPEN for each table */
	uint64_t turn;
	struct kb_error *err;
};

static int out_of_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

/* ---- partitions ---- */

static struct partition *partition_of(struct writing *w, uint32_t table, uint32_t i)
{
	return &w->partitions[table * OPEN + i];
}

/* Write the rows as a group, into a file that is opened if need be. */
static int flush(struct writing *w, uint32_t table, struct partition *partition)
{
	int ret = 0;

	if (!partition->rows.nr)
		return 0;
	if (!partition->file.parquet)
		ret = kb_parquet_files_open(&w->files, &partition->file, table, partition->hour, w->err);
	if (ret)
		return ret;
	ret = kb_rows_write(&partition->rows, partition->file.parquet, w->fill.pool.texts,
			    w->fill.pool.nr);
	if (ret == -ENOMEM)
		return out_of_memory(w->err);
	return ret ? kb_error_set(w->err, ret, KB_NO_OFFSET, "can't write %s: %s",
				  partition->file.path, strerror(-ret)) : 0;
}

static int finish(struct writing *w, uint32_t table, struct partition *partition)
{
	int ret = partition->used ? flush(w, table, partition) : 0;

	partition->used = false;
	kb_rows_release(&partition->rows);
	if (!ret && partition->file.parquet)
		ret = kb_parquet_files_close(&w->files, &partition->file, w->err);
	return ret;
}

/* The partition of @hour; it takes the place of the one that was not used for longest. NULL: an error. */
static struct partition *find(struct writing *w, uint32_t table, int64_t hour, int *ret)
{
	struct partition *oldest = partition_of(w, table, 0);

	for (uint32_t i = 0; i < OPEN; i++) {
		struct partition *partition = partition_of(w, table, i);

		if (partition->used && partition->hour == hour) {
			partition->turn = ++w->turn;
			return partition;
		}
		if (!partition->used || (oldest->used && partition->turn < oldest->turn))
			oldest = partition;
	}
	*ret = finish(w, table, oldest);
	if (*ret)
		return NULL;
	oldest->used = true;
	oldest->hour = hour;
	oldest->turn = ++w->turn;
	return oldest;
}

/* Write what takes most memory, and free that, until all rows fit into the memory for them. */
static int bound_memory(struct writing *w)
{
	uint32_t nr = (uint32_t)kb_nr_parquet_tables * OPEN;
	int ret = 0;

	while (!ret) {
		uint64_t all = 0, most = 0;
		uint32_t largest = 0;

		for (uint32_t i = 0; i < nr; i++) {
			uint64_t bytes = kb_rows_memory(&w->partitions[i].rows);

			all += bytes;
			if (bytes > most) {
				most = bytes;
				largest = i;
			}
		}
		if (all < ALL_BYTES)
			break;
		ret = flush(w, largest / OPEN, &w->partitions[largest]);
		kb_rows_release(&w->partitions[largest].rows);
	}
	return ret;
}

/* ---- rows ---- */

static int64_t hour_of(int64_t ns)
{
	return ns / NS_OF_HOUR - (ns % NS_OF_HOUR < 0);
}

/* Append the rows of a table in the part, as far as neighbours are of one hour at once. */
static int add_rows(struct writing *w, uint32_t number, const struct kb_columns_part *part)
{
	const struct kb_parquet_table *table = &kb_parquet_tables[number];
	struct kb_filled_from from;
	int ret = 0;

	if (!kb_parquet_fill_from(&from, table, part))
		return 0;
	for (uint64_t row = 0, end; row < from.rows && !ret; row = end) {
		int64_t hour = hour_of(kb_parquet_fill_time(&w->fill, table, &from, row));
		struct partition *partition = find(w, number, hour, &ret);
		uint64_t room;

		if (!partition)
			break;
		room = GROUP_ROWS - partition->rows.nr;
		for (end = row + 1; end < from.rows && end - row < room; end++)
			if (hour_of(kb_parquet_fill_time(&w->fill, table, &from, end)) != hour)
				break;
		kb_parquet_fill_rows(&w->fill, table, &from, row, end - row, &partition->rows);
		if (w->fill.no_memory)
			ret = out_of_memory(w->err);
		else if (partition->rows.nr >= GROUP_ROWS ||
			 kb_rows_bytes(&partition->rows) >= GROUP_BYTES)
			ret = flush(w, number, partition);
	}
	return ret;
}

static bool is_last(const struct kb_parquet_table *table)
{
	return strcmp(table->name, "captures") == 0;
}

static int add_part(struct writing *w, const struct kb_columns_part *part)
{
	int ret = 0;

	kb_parquet_fill_names(&w->fill, part);
	if (w->fill.no_memory)
		return out_of_memory(w->err);
	w->fill.waits = w->waits.ns;
	w->waits.nr = 0;
	w->fill.records += kb_columns_records(part);
	for (uint32_t i = 0; i < kb_nr_parquet_tables && !ret; i++)
		if (!is_last(&kb_parquet_tables[i]))
			ret = add_rows(w, i, part);
	return ret ?: bound_memory(w);
}

/* The table that says what the whole capture is comes last: its end must be known. */
static int add_capture(struct writing *w, const struct kb_columns_part *first)
{
	int ret = 0;

	for (uint32_t i = 0; i < kb_nr_parquet_tables && !ret; i++)
		if (is_last(&kb_parquet_tables[i]))
			ret = add_rows(w, i, first);
	return ret;
}

/* ---- reading ---- */

/* The columns that the tables come from, for kb_columns_options; NULL: no memory. */
static char *wanted_tables(void)
{
	struct kb_out *out;
	char *words = NULL;
	const void *data;
	size_t size;

	if (kb_out_memory(&out))
		return NULL;
	kb_out_printf(out, KB_PARQUET_FILL_TABLES);
	for (uint32_t i = 0; i < kb_nr_parquet_tables; i++) {
		const struct kb_parquet_table *table = &kb_parquet_tables[i];

		for (uint32_t j = 0; j < KB_PARQUET_COLUMNS && table->columns[j].name; j++) {
			const struct kb_parquet_source *source = &table->columns[j];

			if (source->from)
				kb_out_printf(out, " %s.%s", table->from, source->from);
			if (source->unless)
				kb_out_printf(out, " %s.%s", table->from, source->unless);
		}
	}
	data = kb_out_data(out, &size);
	if (!kb_out_error(out))
		words = strndup(data, size);
	kb_out_destroy(out);
	return words;
}

/* All parts. Returns 1 if the capture is damaged behind them, 0, or a negative errno. */
static int add_parts(struct writing *w, struct kb_trace *trace, struct kb_columns *columns)
{
	struct kb_columns_part *part = NULL, *first = NULL;
	int more, ret = 0;

	while (!ret) {
		more = kb_columns_next(columns, PART_RECORDS, PART_BYTES, &part, w->err);
		if (more <= 0)
			break;
		if (!first) {
			first = kb_columns_part_hold(part);
			w->fill.start = kb_trace_first(trace);
		}
		ret = add_part(w, part);
	}
	kb_columns_part_free(part);
	w->fill.end = kb_trace_last(trace);
	trace->nr_shown = w->fill.records;
	if (!ret && first)
		ret = add_capture(w, first);
	kb_columns_part_free(first);
	if (ret)
		return ret;
	return more == -ENOMEM ? more : more < 0;
}

static int finish_all(struct writing *w)
{
	int ret = 0;

	for (uint32_t i = 0; i < kb_nr_parquet_tables * OPEN && !ret; i++)
		ret = finish(w, i / OPEN, &w->partitions[i]);
	return ret;
}

static int read_all(struct writing *w, struct kb_trace *trace)
{
	struct kb_columns_options options = { .size = sizeof(options) };
	struct kb_columns *columns;
	char *wanted = wanted_tables();
	int ret, damaged;

	if (!wanted)
		return out_of_memory(w->err);
	options.tables = wanted;
	ret = kb_parquet_waits_begin(&w->waits, trace, w->err) ?:
	      kb_columns_create(&columns, trace, &options, w->err);
	free(wanted);
	if (ret)
		return ret;
	kb_columns_watch(columns, kb_parquet_waits_feed, &w->waits);
	damaged = add_parts(w, trace, columns);
	kb_columns_destroy(columns);
	if (damaged < 0)
		return damaged;
	ret = finish_all(w) ?: kb_parquet_files_commit(&w->files, w->err);
	return ret ?: damaged;
}

/* ---- the export ---- */

/* Returns whether the default has to give way. */
static bool find_codec(const struct kb_export_options *options, enum kb_parquet_codec *codec)
{
	const char *name = options->format;

	if (name && strcmp(name, "none") == 0)
		*codec = KB_PARQUET_PLAIN;
	else if ((name && strcmp(name, "gzip") == 0) || (!name && !kb_zstd()))
		*codec = KB_PARQUET_GZIP;
	else
		*codec = KB_PARQUET_ZSTD;
	return !name && !kb_zstd();
}

static int begin(struct writing *w, struct kb_trace *trace, const struct kb_export_options *options)
{
	const struct kb_header *header = kb_trace_header(trace);
	const char *host = options->host ? options->host : kb_barman_fact(kb_trace_barman(trace), "host");
	const char *name = options->name ? options->name : "capture";
	enum kb_parquet_codec codec;
	char file[2 * KB_DIGEST_BYTES + 1];
	struct barman_identity identity;
	int ret;

	if (find_codec(options, &codec))
		kb_export_say(options, "libzstd.so.1 is not installed: the files are compressed with gzip");
	if (!header->unix_base_ns)
		kb_export_say(options, "the capture does not say the time of day: its hours begin in 1970");
	/* not the name: a renamed copy is to replace its files */
	ret = barman_identify(trace->barman, &identity, w->err);
	if (ret)
		return ret;
	for (size_t i = 0; i < sizeof(identity.bytes); i++)
		snprintf(file + 2 * i, 3, "%02x", identity.bytes[i]);
	ret = kb_parquet_files_init(&w->files, options->directory,
				    host ? host : header->target_name ? header->target_name : "",
				    file, codec, w->err);
	w->fill.unix_base = header->unix_base_ns > INT64_MAX ? INT64_MAX :
						  (int64_t)header->unix_base_ns;
	w->fill.capture = kb_name_pool_add(&w->fill.pool, kb_text(name));
	w->partitions = calloc(kb_nr_parquet_tables * OPEN, sizeof(*w->partitions));
	if (!ret && (!w->partitions || w->fill.capture == KB_NAME_NONE))
		ret = out_of_memory(w->err);
	for (uint32_t i = 0; w->partitions && i < kb_nr_parquet_tables * OPEN; i++) {
		w->partitions[i].file.fd = -1;
		kb_rows_init(&w->partitions[i].rows, &kb_parquet_tables[i / OPEN]);
	}
	return ret;
}

static void release(struct writing *w)
{
	for (uint32_t i = 0; w->partitions && i < kb_nr_parquet_tables * OPEN; i++) {
		kb_parquet_files_abandon(&w->partitions[i].file);
		kb_rows_release(&w->partitions[i].rows);
	}
	free(w->partitions);
	kb_parquet_files_release(&w->files);
	kb_parquet_waits_release(&w->waits);
	kb_parquet_fill_release(&w->fill);
}

static int export_parquet(struct kb_trace *trace, const struct kb_export_options *options,
			  struct kb_out *out, struct kb_error *err)
{
	struct writing w = { .err = err };
	int ret;

	kb_parquet_fill_init(&w.fill);
	if (!options->directory)
		ret = kb_error_set(err, -EINVAL, KB_NO_OFFSET, "parquet needs a directory");
	else if (options->filter)
		ret = kb_error_set(err, -EINVAL, KB_NO_OFFSET,
				   "parquet takes whole captures: choose a part of them in a query");
	else
		ret = begin(&w, trace, options) ?: read_all(&w, trace);
	release(&w);
	return ret ?: kb_export_end(trace, out, false, err);
}

static const char *const formats[] = { "zstd", ".parquet", "gzip", ".parquet", "none", ".parquet", NULL };

const struct kb_export kb_export_parquet = {
	.name = "parquet",
	.extension = ".parquet",
	.description = "tables for DuckDB, Spark, Trino, ClickHouse …: a folder of many captures",
	.formats = formats,
	.directory = true,
	.adds = true,
	.run = export_parquet,
};
