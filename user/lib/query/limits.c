// SPDX-License-Identifier: MIT
/*
 * What questions may do. They may come from anybody, as captures may. Whoever asks reads the captures,
 * and has an empty database in memory for views and tables of their own. No file is read or written,
 * no library is opened, no other module of SQLite is used, and memory is limited.
 */
#include <errno.h>
#include <strings.h>

#include "base/array.h"
#include "query/query_inside.h"

#define TEXT_BYTES	(64 << 20)	/* of a value, and of a row */
#define QUESTION_BYTES	(1 << 20)
#define PATTERN_BYTES	1000		/* of LIKE and GLOB, whose time grows with its square */

static bool is_in(const char *word, const char *const *words, size_t nr)
{
	for (size_t i = 0; word && i < nr; i++)
		if (!strcasecmp(word, words[i]))
			return true;
	return false;
}

/* Pragmas that only tell. */
static bool tells(const char *pragma)
{
	static const char *const harmless[] = {
		"table_info", "table_xinfo", "table_list", "function_list", "module_list",
		"pragma_list", "compile_options", "collation_list", "database_list",
		"case_sensitive_like",
	};

	return is_in(pragma, harmless, ARRAY_SIZE(harmless));
}

static bool opens_files(const char *function)
{
	static const char *const refused[] = {
		"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "zipfile",
	};

	return is_in(function, refused, ARRAY_SIZE(refused));
}

static int authorize(void *context, int what, const char *first, const char *second,
		     const char *database, const char *through)
{
	(void)context;
	(void)database;
	(void)through;
	switch (what) {
	case SQL_ASK_ATTACH:	/* also VACUUM INTO */
	case SQL_ASK_DETACH:
	case SQL_ASK_CREATE_VTABLE:
	case SQL_ASK_DROP_VTABLE:
		return SQL_DENY;
	case SQL_ASK_PRAGMA:
		return tells(first) ? SQL_ALLOW : SQL_DENY;
	case SQL_ASK_FUNCTION:
		return opens_files(second) ? SQL_DENY : SQL_ALLOW;
	default:
		return SQL_ALLOW;
	}
}

int query_limit(struct kb_query *query, struct kb_error *err)
{
	/*
	 * What is sorted goes to temporary files: see vfs.c. SQLite sorts pieces as large as its cache,
	 * which is small by default: larger ones take longer, because they leave the CPU's caches.
	 */
	if (kb_sql.exec(query->db, "PRAGMA temp_store = FILE", NULL, NULL, NULL))
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "%s", kb_sql.errmsg(query->db));
	if (query->memory && query->memory <= INT64_MAX)
		kb_sql.hard_heap_limit64((long long)query->memory);
	kb_sql.limit(query->db, SQL_LIMIT_LENGTH, TEXT_BYTES);
	kb_sql.limit(query->db, SQL_LIMIT_SQL_LENGTH, QUESTION_BYTES);
	kb_sql.limit(query->db, SQL_LIMIT_ATTACHED, 0);
	kb_sql.limit(query->db, SQL_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_BYTES);
	kb_sql.limit(query->db, SQL_LIMIT_WORKER_THREADS, 0);
	kb_sql.db_config(query->db, SQL_DBCONFIG_DEFENSIVE, 1, NULL);
	kb_sql.set_authorizer(query->db, authorize, NULL);
	return 0;
}
