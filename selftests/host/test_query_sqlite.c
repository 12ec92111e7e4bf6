// SPDX-License-Identifier: MIT
/* What query/sqlite.h says of SQLite is what its own header says. */
#include <stddef.h>

#include "query/sqlite.h"

#if __has_include(<sqlite3.h>)
#include <sqlite3.h>
#endif

#include "../lib/tap.h"

#ifdef SQLITE_VERSION

#define SAME(ours, member, theirs, their)							\
	tap_is(offsetof(ours, member), offsetof(theirs, their), #ours "_has_" #member "_at_its_place")

static void structs_are_those_of_sqlite(void)
{
	SAME(struct sql_index_info, nr_constraints, sqlite3_index_info, nConstraint);
	SAME(struct sql_index_info, constraints, sqlite3_index_info, aConstraint);
	SAME(struct sql_index_info, usage, sqlite3_index_info, aConstraintUsage);
	SAME(struct sql_index_info, text, sqlite3_index_info, idxStr);
	SAME(struct sql_index_info, free_text, sqlite3_index_info, needToFreeIdxStr);
	SAME(struct sql_index_info, ordered, sqlite3_index_info, orderByConsumed);
	SAME(struct sql_index_info, cost, sqlite3_index_info, estimatedCost);
	SAME(struct sql_index_info, rows, sqlite3_index_info, estimatedRows);
	SAME(struct sql_index_info, columns, sqlite3_index_info, colUsed);
	SAME(struct sql_constraint, op, struct sqlite3_index_constraint, op);
	SAME(struct sql_constraint, usable, struct sqlite3_index_constraint, usable);
	tap_is(sizeof(struct sql_constraint), sizeof(struct sqlite3_index_constraint),
	       "constraints_are_as_long");
	tap_is(sizeof(struct sql_usage), sizeof(struct sqlite3_index_constraint_usage),
	       "usages_are_as_long");
	SAME(struct sql_vtab, message, sqlite3_vtab, zErrMsg);
	tap_is(sizeof(struct sql_cursor), sizeof(sqlite3_vtab_cursor), "cursors_are_as_long");
	SAME(struct sql_module, connect, sqlite3_module, xConnect);
	SAME(struct sql_module, best_index, sqlite3_module, xBestIndex);
	SAME(struct sql_module, disconnect, sqlite3_module, xDisconnect);
	SAME(struct sql_module, filter, sqlite3_module, xFilter);
	SAME(struct sql_module, column, sqlite3_module, xColumn);
	SAME(struct sql_module, rowid, sqlite3_module, xRowid);
	tap_ok(sizeof(struct sql_module) >= sizeof(sqlite3_module), "modules_are_not_shorter");
}

static void files_are_those_of_sqlite(void)
{
	SAME(struct sql_file_methods, read, sqlite3_io_methods, xRead);
	SAME(struct sql_file_methods, size, sqlite3_io_methods, xFileSize);
	SAME(struct sql_file_methods, check_lock, sqlite3_io_methods, xCheckReservedLock);
	SAME(struct sql_file_methods, characteristics, sqlite3_io_methods, xDeviceCharacteristics);
	SAME(struct sql_vfs, file_bytes, sqlite3_vfs, szOsFile);
	SAME(struct sql_vfs, name, sqlite3_vfs, zName);
	SAME(struct sql_vfs, open, sqlite3_vfs, xOpen);
	SAME(struct sql_vfs, full_path, sqlite3_vfs, xFullPathname);
	SAME(struct sql_vfs, libraries, sqlite3_vfs, xDlOpen);
	SAME(struct sql_vfs, random, sqlite3_vfs, xRandomness);
	SAME(struct sql_vfs, time, sqlite3_vfs, xCurrentTime);
	SAME(struct sql_vfs, last_error, sqlite3_vfs, xGetLastError);
}

static void numbers_are_those_of_sqlite(void)
{
	static const int pairs[][2] = {
		{ SQL_OK, SQLITE_OK }, { SQL_ERROR, SQLITE_ERROR }, { SQL_NOMEM, SQLITE_NOMEM },
		{ SQL_INTERRUPT, SQLITE_INTERRUPT }, { SQL_IOERR, SQLITE_IOERR },
		{ SQL_NOTFOUND, SQLITE_NOTFOUND }, { SQL_FULL, SQLITE_FULL },
		{ SQL_CANTOPEN, SQLITE_CANTOPEN }, { SQL_ROW, SQLITE_ROW }, { SQL_DONE, SQLITE_DONE },
		{ SQL_IOERR_SHORT_READ, SQLITE_IOERR_SHORT_READ },
		{ SQL_INTEGER, SQLITE_INTEGER }, { SQL_FLOAT, SQLITE_FLOAT }, { SQL_TEXT, SQLITE_TEXT },
		{ SQL_BLOB, SQLITE_BLOB }, { SQL_NULL, SQLITE_NULL },
		{ SQL_OPEN_READWRITE, SQLITE_OPEN_READWRITE }, { SQL_OPEN_MEMORY, SQLITE_OPEN_MEMORY },
		{ SQL_OPEN_NOMUTEX, SQLITE_OPEN_NOMUTEX }, { SQL_UTF8, SQLITE_UTF8 },
		{ SQL_DETERMINISTIC, SQLITE_DETERMINISTIC }, { SQL_INNOCUOUS, SQLITE_INNOCUOUS },
		{ SQL_VTAB_INNOCUOUS, SQLITE_VTAB_INNOCUOUS },
		{ SQL_DBCONFIG_DEFENSIVE, SQLITE_DBCONFIG_DEFENSIVE },
		{ SQL_EQ, SQLITE_INDEX_CONSTRAINT_EQ }, { SQL_GT, SQLITE_INDEX_CONSTRAINT_GT },
		{ SQL_LE, SQLITE_INDEX_CONSTRAINT_LE }, { SQL_LT, SQLITE_INDEX_CONSTRAINT_LT },
		{ SQL_GE, SQLITE_INDEX_CONSTRAINT_GE },
		{ SQL_ASK_PRAGMA, SQLITE_PRAGMA }, { SQL_ASK_ATTACH, SQLITE_ATTACH },
		{ SQL_ASK_DETACH, SQLITE_DETACH }, { SQL_ASK_CREATE_VTABLE, SQLITE_CREATE_VTABLE },
		{ SQL_ASK_DROP_VTABLE, SQLITE_DROP_VTABLE }, { SQL_ASK_FUNCTION, SQLITE_FUNCTION },
		{ SQL_ALLOW, SQLITE_OK }, { SQL_DENY, SQLITE_DENY },
		{ SQL_LIMIT_LENGTH, SQLITE_LIMIT_LENGTH },
		{ SQL_LIMIT_SQL_LENGTH, SQLITE_LIMIT_SQL_LENGTH },
		{ SQL_LIMIT_ATTACHED, SQLITE_LIMIT_ATTACHED },
		{ SQL_LIMIT_LIKE_PATTERN_LENGTH, SQLITE_LIMIT_LIKE_PATTERN_LENGTH },
		{ SQL_LIMIT_WORKER_THREADS, SQLITE_LIMIT_WORKER_THREADS },
	};
	int wrong = 0;

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		wrong += pairs[i][0] != pairs[i][1];
	tap_is(wrong, 0, "numbers_are_those_of_sqlite");
}

int main(void)
{
	structs_are_those_of_sqlite();
	files_are_those_of_sqlite();
	numbers_are_those_of_sqlite();
	return tap_done();
}

#else

int main(void)
{
	printf("ok 1 - structs_are_those_of_sqlite # SKIP there is no sqlite3.h here\n1..1\n");
	return 0;
}

#endif
