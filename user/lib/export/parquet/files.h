/* SPDX-License-Identifier: MIT */
/*
 * Files of a folder that many captures fill: TABLE/host=HOST/hour=HOUR/NAME.parquet. A file has a
 * hidden, temporary name until all files of the capture are complete.
 */
#ifndef KB_LIB_EXPORT_PARQUET_FILES_H
#define KB_LIB_EXPORT_PARQUET_FILES_H

#include <kbarman/error.h>

#include "base/table.h"
#include "export/parquet/tables.h"

struct kb_parquet_file {
	struct kb_parquet *parquet;	/* NULL: the file is not open */
	struct kb_out *out;
	struct kb_parquet_column columns[KB_PARQUET_COLUMNS];
	char *temporary, *path;
	int fd;
};

struct kb_parquet_files {
	const char *directory;
	char *host, *name;		/* as parts of paths */
	struct kb_parquet_work *work;
	struct kb_table written;	/* number of files by table and hour */
	struct kb_parquet_done {
		char *temporary, *path;	/* temporary NULL: it has its name */
	} *done;
	size_t nr_done, max_done;
};

/* @directory must live as long as @files. Returns 0 or a negative errno and @err. Release it in any case. */
int kb_parquet_files_init(struct kb_parquet_files *files, const char *directory, const char *host,
			  const char *name, enum kb_parquet_codec codec, struct kb_error *err);

/* Removes all files that do not have their names yet. */
void kb_parquet_files_release(struct kb_parquet_files *files);

/* Begin the next file of table @number for @hour, counted since 1970. 0 or a negative errno and @err. */
int kb_parquet_files_open(struct kb_parquet_files *files, struct kb_parquet_file *file,
			  uint32_t number, int64_t hour, struct kb_error *err);

/* Complete it, on the disk. */
int kb_parquet_files_close(struct kb_parquet_files *files, struct kb_parquet_file *file,
			   struct kb_error *err);

/* Give up a file that may be open. */
void kb_parquet_files_abandon(struct kb_parquet_file *file);

/* Give all files their names. A file of the same name is replaced. */
int kb_parquet_files_commit(struct kb_parquet_files *files, struct kb_error *err);

#endif
