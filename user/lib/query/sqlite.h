/* SPDX-License-Identifier: MIT */
/*
 * SQLite, opened when the first question comes, so a machine that only records does not need it, and
 * a build needs no header of it. The few types and numbers here are those of <sqlite3.h>, which
 * SQLite never changes; a test compares them. They are called as there, behind the table of functions:
 * sqlite3_step() is kb_sql.step().
 */
#ifndef KB_LIB_QUERY_SQLITE_H
#define KB_LIB_QUERY_SQLITE_H

#include <stdbool.h>
#include <stdint.h>

struct sqlite3;
struct sqlite3_stmt;
struct sqlite3_value;
struct sqlite3_context;

enum {
	SQL_OK = 0, SQL_ERROR = 1, SQL_NOMEM = 7, SQL_INTERRUPT = 9, SQL_IOERR = 10,
	SQL_NOTFOUND = 12, SQL_FULL = 13, SQL_CANTOPEN = 14, SQL_ROW = 100, SQL_DONE = 101,
	SQL_IOERR_SHORT_READ = SQL_IOERR | 2 << 8,
};

enum { SQL_INTEGER = 1, SQL_FLOAT, SQL_TEXT, SQL_BLOB, SQL_NULL };	/* types of values */

enum {
	SQL_OPEN_READWRITE = 0x2, SQL_OPEN_MEMORY = 0x80, SQL_OPEN_NOMUTEX = 0x8000,
	SQL_UTF8 = 1, SQL_DETERMINISTIC = 0x800, SQL_INNOCUOUS = 0x200000,
	SQL_VTAB_INNOCUOUS = 2,
	SQL_DBCONFIG_DEFENSIVE = 1010,
};

/* What a virtual table may be asked for: operators of its constraints. */
enum { SQL_EQ = 2, SQL_GT = 4, SQL_LE = 8, SQL_LT = 16, SQL_GE = 32 };

/* What an authorizer is asked, and what it says. */
enum {
	SQL_ASK_PRAGMA = 19, SQL_ASK_ATTACH = 24, SQL_ASK_DETACH = 25, SQL_ASK_CREATE_VTABLE = 29,
	SQL_ASK_DROP_VTABLE = 30, SQL_ASK_FUNCTION = 31,
	SQL_ALLOW = 0, SQL_DENY = 1,
};

enum {
	SQL_LIMIT_LENGTH = 0, SQL_LIMIT_SQL_LENGTH = 1, SQL_LIMIT_ATTACHED = 7,
	SQL_LIMIT_LIKE_PATTERN_LENGTH = 8, SQL_LIMIT_WORKER_THREADS = 11,
};

#define SQL_STATIC	((void (*)(void *))0)
#define SQL_TRANSIENT	((void (*)(void *))-1)

struct sql_index_info {
	int nr_constraints;
	struct sql_constraint {
		int column;
		unsigned char op, usable;
		int term;
	} *constraints;
	int nr_orders;
	struct sql_order {
		int column;
		unsigned char descending;
	} *orders;
	struct sql_usage {
		int argument;		/* 1 for the first argument of filter(); 0: none */
		unsigned char omit;
	} *usage;
	int number;			/* these two go to filter() */
	char *text;
	int free_text;			/* by SQLite */
	int ordered;
	double cost;
	long long rows;
	int flags;
	uint64_t columns;		/* a bit for each one that is used */
};

struct sql_module;

struct sql_vtab {
	const struct sql_module *module;
	int references;
	char *message;			/* of malloc64() */
};

struct sql_cursor {
	struct sql_vtab *vtab;
};

struct sql_module {
	int version;
	int (*create)(struct sqlite3 *db, void *aux, int argc, const char *const *argv,
		      struct sql_vtab **vtab, char **message);
	int (*connect)(struct sqlite3 *db, void *aux, int argc, const char *const *argv,
		       struct sql_vtab **vtab, char **message);
	int (*best_index)(struct sql_vtab *vtab, struct sql_index_info *info);
	int (*disconnect)(struct sql_vtab *vtab);
	int (*destroy)(struct sql_vtab *vtab);
	int (*open)(struct sql_vtab *vtab, struct sql_cursor **cursor);
	int (*close)(struct sql_cursor *cursor);
	int (*filter)(struct sql_cursor *cursor, int number, const char *text, int argc,
		      struct sqlite3_value **argv);
	int (*next)(struct sql_cursor *cursor);
	int (*eof)(struct sql_cursor *cursor);
	int (*column)(struct sql_cursor *cursor, struct sqlite3_context *context, int column);
	int (*rowid)(struct sql_cursor *cursor, long long *rowid);
	void *others[12];		/* for tables that are written to, and for indexes of them */
};

struct sql_vfs;

/* An open file, and the files that SQLite may use. */
struct sql_file {
	const struct sql_file_methods *methods;
};

struct sql_file_methods {
	int version;
	int (*close)(struct sql_file *file);
	int (*read)(struct sql_file *file, void *data, int bytes, long long offset);
	int (*write)(struct sql_file *file, const void *data, int bytes, long long offset);
	int (*truncate)(struct sql_file *file, long long size);
	int (*sync)(struct sql_file *file, int flags);
	int (*size)(struct sql_file *file, long long *size);
	int (*lock)(struct sql_file *file, int how);
	int (*unlock)(struct sql_file *file, int how);
	int (*check_lock)(struct sql_file *file, int *locked);
	int (*control)(struct sql_file *file, int what, void *argument);
	int (*sector_size)(struct sql_file *file);
	int (*characteristics)(struct sql_file *file);
	void *others[6];		/* of later versions */
};

struct sql_vfs {
	int version;
	int file_bytes;			/* of its struct sql_file */
	int path_bytes;			/* longest path */
	struct sql_vfs *next;		/* SQLite's */
	const char *name;
	void *data;
	int (*open)(struct sql_vfs *vfs, const char *path, struct sql_file *file, int flags,
		    int *out_flags);
	int (*remove)(struct sql_vfs *vfs, const char *path, int sync);
	int (*access)(struct sql_vfs *vfs, const char *path, int flags, int *out);
	int (*full_path)(struct sql_vfs *vfs, const char *path, int bytes, char *out);
	void *libraries[4];		/* for opening libraries: none */
	int (*random)(struct sql_vfs *vfs, int bytes, char *out);
	int (*sleep)(struct sql_vfs *vfs, int us);
	int (*time)(struct sql_vfs *vfs, double *days);
	int (*last_error)(struct sql_vfs *vfs, int bytes, char *out);
	void *others[4];		/* of later versions */
};

/* The functions: their result, name and arguments. */
#define KB_SQL_FUNCTIONS(F)							\
	F(int, open_v2, (const char *, struct sqlite3 **, int, const char *))	\
	F(int, close_v2, (struct sqlite3 *))					\
	F(int, prepare_v2, (struct sqlite3 *, const char *, int, struct sqlite3_stmt **, \
			    const char **))					\
	F(int, step, (struct sqlite3_stmt *))					\
	F(int, finalize, (struct sqlite3_stmt *))				\
	F(int, bind_text, (struct sqlite3_stmt *, int, const char *, int, void (*)(void *))) \
	F(int, column_count, (struct sqlite3_stmt *))				\
	F(const char *, column_name, (struct sqlite3_stmt *, int))		\
	F(int, column_type, (struct sqlite3_stmt *, int))			\
	F(long long, column_int64, (struct sqlite3_stmt *, int))		\
	F(double, column_double, (struct sqlite3_stmt *, int))			\
	F(const unsigned char *, column_text, (struct sqlite3_stmt *, int))	\
	F(int, column_bytes, (struct sqlite3_stmt *, int))			\
	F(const char *, errmsg, (struct sqlite3 *))				\
	F(int, exec, (struct sqlite3 *, const char *,				\
		      int (*)(void *, int, char **, char **), void *, char **))	\
	F(void, interrupt, (struct sqlite3 *))					\
	F(int, complete, (const char *))					\
	F(int, limit, (struct sqlite3 *, int, int))				\
	F(int, db_config, (struct sqlite3 *, int, ...))				\
	F(int, set_authorizer, (struct sqlite3 *,				\
				int (*)(void *, int, const char *, const char *, const char *, \
					const char *), void *))			\
	F(int, create_module_v2, (struct sqlite3 *, const char *, const struct sql_module *, \
				  void *, void (*)(void *)))			\
	F(int, declare_vtab, (struct sqlite3 *, const char *))			\
	F(int, vtab_config, (struct sqlite3 *, int, ...))			\
	F(const char *, vtab_collation, (struct sql_index_info *, int))		\
	F(int, create_function_v2, (struct sqlite3 *, const char *, int, int, void *, \
				    void (*)(struct sqlite3_context *, int, struct sqlite3_value **), \
				    void (*)(struct sqlite3_context *, int, struct sqlite3_value **), \
				    void (*)(struct sqlite3_context *), void (*)(void *))) \
	F(void *, aggregate_context, (struct sqlite3_context *, int))		\
	F(void *, user_data, (struct sqlite3_context *))			\
	F(void, result_int64, (struct sqlite3_context *, long long))		\
	F(void, result_double, (struct sqlite3_context *, double))		\
	F(void, result_text, (struct sqlite3_context *, const char *, int, void (*)(void *))) \
	F(void, result_error, (struct sqlite3_context *, const char *, int))	\
	F(void, result_error_nomem, (struct sqlite3_context *))			\
	F(int, value_type, (struct sqlite3_value *))				\
	F(int, value_numeric_type, (struct sqlite3_value *))			\
	F(long long, value_int64, (struct sqlite3_value *))			\
	F(double, value_double, (struct sqlite3_value *))			\
	F(const unsigned char *, value_text, (struct sqlite3_value *))		\
	F(int, vfs_register, (struct sql_vfs *, int))				\
	F(void *, malloc64, (uint64_t))						\
	F(long long, hard_heap_limit64, (long long))				\
	F(const char *, libversion, (void))

struct kb_sql {
#define KB_SQL_MEMBER(result, name, arguments)	result (*name) arguments;
	KB_SQL_FUNCTIONS(KB_SQL_MEMBER)
#undef KB_SQL_MEMBER
};

/* The functions, after kb_sql_open() has returned true. */
extern struct kb_sql kb_sql;

/* Open the library, once. False: it is not installed, or older than SQLite 3.31 (2020). */
bool kb_sql_open(void);

#endif
