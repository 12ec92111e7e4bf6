// SPDX-License-Identifier: MIT
/* SQLite is opened once and never closed. */
#include <dlfcn.h>
#include <pthread.h>

#include "query/sqlite.h"

struct kb_sql kb_sql;
static bool is_there;

static void open_library(void)
{
	void *library = dlopen("libsqlite3.so.0", RTLD_LAZY | RTLD_LOCAL);

	if (!library)
		return;
	is_there = true;
#define TAKE(result, name, arguments)						\
	*(void **)&kb_sql.name = dlsym(library, "sqlite3_" #name);		\
	is_there &= kb_sql.name != NULL;
	KB_SQL_FUNCTIONS(TAKE)
#undef TAKE
	/* cppcheck-suppress resourceLeak ; it stays open */
}

bool kb_sql_open(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, open_library);
	return is_there;
}
