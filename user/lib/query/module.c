// SPDX-License-Identifier: MIT
/* See module.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/module.h"

int query_add_table(struct kb_query *query, const struct query_kind *kind, const void *table,
		    const char *name, const char *columns, const char *what, struct kb_error *err)
{
	struct query_told *told = &query->tables[query->nr_tables];

	*told = (struct query_told){
		.query = query, .kind = kind, .table = table, .name = name, .what = what,
	};
	if (asprintf(&told->declaration, "CREATE TABLE %s(%s)", name, columns) < 0)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	query->nr_tables++;
	if (kb_sql.create_module_v2(query->db, name, &kind->module, told, NULL))
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "%s", kb_sql.errmsg(query->db));
	return 0;
}

int query_connect(struct sqlite3 *db, void *aux, int argc, const char *const *argv,
		  struct sql_vtab **out, char **message)
{
	const struct query_told *told = aux;
	int ret = kb_sql.declare_vtab(db, told->declaration);
	struct query_vtab *vtab;

	(void)argc;
	(void)argv;
	(void)message;
	if (ret)
		return ret;
	kb_sql.vtab_config(db, SQL_VTAB_INNOCUOUS);
	vtab = calloc(1, sizeof(*vtab));
	if (!vtab)
		return SQL_NOMEM;
	vtab->told = told;
	*out = &vtab->base;
	return SQL_OK;
}

int query_disconnect(struct sql_vtab *vtab)
{
	free(vtab);
	return SQL_OK;
}

int query_open(struct sql_vtab *vtab, struct sql_cursor **out)
{
	struct query_cursor *cursor;

	cursor = calloc(1, ((struct query_vtab *)vtab)->told->kind->cursor_bytes);
	if (!cursor)
		return SQL_NOMEM;
	cursor->eof = true;
	*out = &cursor->base;
	return SQL_OK;
}

int query_close(struct sql_cursor *base)
{
	struct query_cursor *cursor = (struct query_cursor *)base;
	const struct query_kind *kind = query_told_of(cursor)->kind;

	if (kind->end)
		kind->end(cursor);
	free(cursor);
	return SQL_OK;
}

/* What SQLite is to know of a call that returned @ret: 1, 0 at the end, or a negative errno. */
static int say(struct query_cursor *cursor, int ret)
{
	struct sql_vtab *vtab = cursor->base.vtab;
	const char *text;

	cursor->eof = !ret;
	if (kb_likely(ret >= 0))
		return SQL_OK;
	if (ret == -EINTR)
		return SQL_INTERRUPT;
	if (ret == -ENOMEM)
		return SQL_NOMEM;
	text = cursor->err.text[0] ? kb_error_text(&cursor->err) : strerror(-ret);
	vtab->message = kb_sql.malloc64(strlen(text) + 1);
	if (vtab->message)
		memcpy(vtab->message, text, strlen(text) + 1);
	return SQL_ERROR;
}

/* Go to the next row of this file, or of one behind it. 1, 0 or a negative errno. */
static int find_row(struct query_cursor *cursor)
{
	const struct query_told *told = query_told_of(cursor);
	int ret = told->kind->step(cursor, &cursor->err);

	while (kb_unlikely(!ret) && cursor->file + 1 < told->query->nr_files) {
		cursor->file++;
		ret = told->kind->begin(cursor, &cursor->err);
		if (!ret)
			ret = told->kind->step(cursor, &cursor->err);
	}
	return ret;
}

int query_filter(struct sql_cursor *base, int number, const char *plan, int argc,
		 struct sqlite3_value **argv)
{
	struct query_cursor *cursor = (struct query_cursor *)base;
	const struct query_kind *kind = query_told_of(cursor)->kind;
	int ret = 0;

	(void)number;
	cursor->file = 0;
	cursor->err = (struct kb_error){ 0 };
	if (kind->ask)
		ret = kind->ask(cursor, plan, argc, argv, &cursor->err);
	if (!ret)
		ret = kind->begin(cursor, &cursor->err);
	return say(cursor, ret < 0 ? ret : find_row(cursor));
}

int query_next(struct sql_cursor *base)
{
	struct query_cursor *cursor = (struct query_cursor *)base;

	return say(cursor, find_row(cursor));
}

int query_eof(struct sql_cursor *base)
{
	return ((const struct query_cursor *)base)->eof;
}

int query_rowid(struct sql_cursor *base, long long *id)
{
	const struct query_cursor *cursor = (const struct query_cursor *)base;

	*id = (long long)((uint64_t)cursor->file << 32 | (cursor->row & UINT32_MAX));
	return SQL_OK;
}
