// SPDX-License-Identifier: MIT
/* Opens and closes a query: the captures, the database and its tables. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/barman/identity.h"
#include "query/query.h"
#include "query/query_inside.h"

static int out_of_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

/* ---- the counters that have columns ---- */

static struct query_measure *find_measure(struct kb_query *query, const char *name)
{
	struct query_measure *measure;

	for (unsigned int i = 0; i < query->nr_measures; i++)
		if (!strcasecmp(query->measures[i].name, name))
			return &query->measures[i];
	if (query->nr_measures == QUERY_MEASURES)
		return NULL;
	measure = &query->measures[query->nr_measures++];
	snprintf(measure->name, sizeof(measure->name), "%s", name);
	memset(measure->ids, 0xff, sizeof(measure->ids));
	return measure;
}

static void find_measures(struct kb_query *query, const struct query_file *file)
{
	for (uint32_t id = 0; id < kb_names_nr_counters(file->names); id++) {
		struct kb_text text = kb_names_counter(file->names, id);
		char name[sizeof(query->measures->name)];
		struct query_measure *measure;

		/* such a name hides a column: see walks.c */
		if (text.length >= sizeof(name) ||
		    (text.length > 8 && !strncasecmp(text.data, "counter ", 8)))
			continue;
		memcpy(name, text.data, text.length);
		name[text.length] = '\0';
		measure = find_measure(query, name);
		if (measure && measure->ids[file->number] == UINT32_MAX)
			measure->ids[file->number] = id;
	}
}

bool kb_query_table(const struct kb_query *query, unsigned int i, struct kb_query_table *table)
{
	if (i >= query->nr_tables)
		return false;
	*table = (struct kb_query_table){
		.name = query->tables[i].name,
		.declaration = query->tables[i].declaration,
		.what = query->tables[i].what,
	};
	return true;
}

/* ---- all of it ---- */

/* A copy would double every sum. */
static int refuse_copies(const struct kb_query *query, struct kb_error *err)
{
	struct kb_barman **captures = calloc(query->nr_files + 1, sizeof(*captures));
	unsigned int copy, of = 0;

	if (!captures)
		return out_of_memory(err);
	for (unsigned int i = 0; i < query->nr_files; i++)
		captures[i] = kb_trace_barman(query->files[i].trace);
	copy = barman_find_copy(captures, query->nr_files, &of);
	free(captures);
	if (copy == query->nr_files)
		return 0;
	return kb_error_set(err, -EEXIST, KB_NO_OFFSET, "'%s' is the same capture as '%s': give one of them",
			    query->files[copy].name, query->files[of].name);
}

static int open_files(struct kb_query *query, const struct kb_query_options *options,
		      struct kb_error *err)
{
	query->files = calloc(options->nr_files + 1, sizeof(*query->files));
	query->measures = calloc(QUERY_MEASURES, sizeof(*query->measures));
	if (!query->files || !query->measures)
		return out_of_memory(err);
	for (unsigned int i = 0; i < options->nr_files; i++) {
		struct query_file *file = &query->files[i];
		int ret;

		file->number = i;
		file->stop = &query->stop;
		query->nr_files++;
		ret = query_file_open(file, options->files[i], options->symbols, err);
		if (ret)
			return ret;
		file->name = options->names ? options->names[i] : file->path;
		find_measures(query, file);
	}
	return refuse_copies(query, err);
}

static int open_database(struct kb_query *query, struct kb_error *err)
{
	int flags = SQL_OPEN_READWRITE | SQL_OPEN_MEMORY | SQL_OPEN_NOMUTEX;

	if (query_add_vfs() || kb_sql.open_v2(":memory:", &query->db, flags, QUERY_VFS))
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "SQLite can't make a database in memory");
	return 0;
}

int kb_query_open(struct kb_query **out, const struct kb_query_options *options,
		  struct kb_error *err)
{
	struct kb_query *query;
	int ret;

	if (!kb_sql_open())
		return kb_error_set(err, -ENOSYS, KB_NO_OFFSET,
				    "SQLite can't be opened: install it (libsqlite3-0), and use "
				    "kbarman's shared build, because a static one opens no libraries");
	if (!options->nr_files || options->nr_files > KB_QUERY_FILES_MAX)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "give 1 to %d captures",
				    KB_QUERY_FILES_MAX);
	query = calloc(1, sizeof(*query));
	if (!query)
		return out_of_memory(err);
	query->make_lines = options->make_lines;
	query->context = options->context;
	query->memory = options->memory;
	ret = open_files(query, options, err) ?: open_database(query, err) ?:
	      query_add_functions(query, err) ?: query_add_walks(query, err) ?:
	      query_add_lists(query, err) ?: query_add_lines(query, err) ?:
	      query_add_path(query, err) ?: query_add_views(query, err) ?: query_limit(query, err);
	if (ret) {
		kb_query_close(query);
		return ret;
	}
	*out = query;
	return 0;
}

void kb_query_close(struct kb_query *query)
{
	if (!query)
		return;
	if (query->db)
		kb_sql.close_v2(query->db);
	for (unsigned int i = 0; i < query->nr_files; i++)
		query_file_close(&query->files[i]);
	for (unsigned int i = 0; i < query->nr_tables; i++)
		free(query->tables[i].declaration);
	free(query->measures);
	free(query->files);
	free(query);
}

struct sqlite3 *kb_query_db(const struct kb_query *query)
{
	return query->db;
}

void kb_query_interrupt(struct kb_query *query)
{
	query->stop = 1;
	kb_sql.interrupt(query->db);
}

void kb_query_ready(struct kb_query *query)
{
	query->stop = 0;
}

const struct kb_error *kb_query_damage(const struct kb_query *query, unsigned int i)
{
	return i < query->nr_files && query->files[i].damage.code ? &query->files[i].damage : NULL;
}

void kb_query_complaints(const struct kb_query *query,
			 void (*say)(void *context, const char *sentence), void *context)
{
	for (unsigned int i = 0; i < query->nr_files; i++)
		if (query->files[i].symbolizer)
			kb_symbolizer_complaints(query->files[i].symbolizer, say, context);
}
