// SPDX-License-Identifier: MIT
/* What the files that make tables share. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "query/query_inside.h"

int query_add_module(struct kb_query *query, const char *name, const char *columns,
		     const char *what, const struct sql_module *module, void *aux,
		     struct kb_error *err)
{
	struct query_told *told;

	if (!KB_ARRAY_ROOM(query->tables, query->max_tables, query->nr_tables + 1))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	told = &query->tables[query->nr_tables];
	*told = (struct query_told){ .name = name, .what = what };
	if (asprintf(&told->declaration, "CREATE TABLE %s(%s)", name, columns) < 0)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	query->nr_tables++;
	if (kb_sql.create_module_v2(query->db, name, module, aux, NULL))
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "%s", kb_sql.errmsg(query->db));
	return 0;
}

const char *query_declaration(const struct kb_query *query, const char *name)
{
	for (unsigned int i = 0; i < query->nr_tables; i++)
		if (!strcmp(query->tables[i].name, name))
			return query->tables[i].declaration;
	return NULL;
}

int query_connect(const struct kb_query *query, struct sqlite3 *db, const char *name, size_t size,
		  struct sql_vtab **out)
{
	int ret = kb_sql.declare_vtab(db, query_declaration(query, name));

	if (ret)
		return ret;
	kb_sql.vtab_config(db, SQL_VTAB_INNOCUOUS);
	*out = calloc(1, size);
	return *out ? SQL_OK : SQL_NOMEM;
}

int query_disconnect(struct sql_vtab *vtab)
{
	free(vtab);
	return SQL_OK;
}

int query_say(struct sql_vtab *vtab, const struct kb_error *err)
{
	const char *text = err->text[0] ? kb_error_text(err) : strerror(-err->code);

	if (err->code == -EINTR)
		return SQL_INTERRUPT;
	if (err->code == -ENOMEM)
		return SQL_NOMEM;
	vtab->message = kb_sql.malloc64(strlen(text) + 1);
	if (vtab->message)
		memcpy(vtab->message, text, strlen(text) + 1);
	return SQL_ERROR;
}
