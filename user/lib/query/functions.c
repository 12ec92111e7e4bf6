// SPDX-License-Identifier: MIT
/* median(x) and percentile(x, p), which SQLite lacks: x is one of the numbers, none in between. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "query/query_inside.h"

struct numbers {
	double *rows;
	size_t nr, max;
	double part;		/* percent */
	bool whole, failed;	/* all of them are whole; there is no memory */
};

static void add(struct sqlite3_context *context, int argc, struct sqlite3_value **argv)
{
	struct numbers *numbers = kb_sql.aggregate_context(context, sizeof(*numbers));
	const struct kb_query *query = kb_sql.user_data(context);
	int type = kb_sql.value_numeric_type(argv[0]);

	if (!numbers || numbers->failed) {
		kb_sql.result_error_nomem(context);
		return;
	}
	if (type != SQL_INTEGER && type != SQL_FLOAT)
		return;
	if (!numbers->nr)
		numbers->whole = true;
	if ((query->memory && numbers->nr >= query->memory / sizeof(*numbers->rows)) ||
	    !KB_ARRAY_ROOM(numbers->rows, numbers->max, numbers->nr + 1)) {
		numbers->failed = true;
		return;
	}
	numbers->whole &= type == SQL_INTEGER;
	numbers->part = argc > 1 ? kb_sql.value_double(argv[1]) : 50;
	numbers->rows[numbers->nr++] = kb_sql.value_double(argv[0]);
}

static int compare(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* The smallest number of which so many percent of all are not larger. */
static double choose(const struct numbers *numbers)
{
	double place = numbers->part / 100 * (double)numbers->nr;
	size_t i = (size_t)place;

	/* the place is rounded up, and counts from 1 on */
	if ((double)i == place && i)
		i--;
	return numbers->rows[i < numbers->nr ? i : numbers->nr - 1];
}

static void put(struct sqlite3_context *context, double value, bool whole)
{
	if (whole && value < 9e15 && value > -9e15)
		kb_sql.result_int64(context, (long long)value);
	else
		kb_sql.result_double(context, value);
}

static void finish(struct sqlite3_context *context)
{
	struct numbers *numbers = kb_sql.aggregate_context(context, 0);

	if (!numbers)
		return;
	if (numbers->failed) {
		kb_sql.result_error_nomem(context);
	} else if (numbers->nr && !(numbers->part >= 0 && numbers->part <= 100)) {
		kb_sql.result_error(context, "percentile(x, p): p is from 0 to 100", -1);
	} else if (numbers->nr) {
		qsort(numbers->rows, numbers->nr, sizeof(*numbers->rows), compare);
		put(context, choose(numbers), numbers->whole);
	}
	free(numbers->rows);
	*numbers = (struct numbers){ 0 };
}

int query_add_functions(struct kb_query *query, struct kb_error *err)
{
	int flags = SQL_UTF8 | SQL_DETERMINISTIC | SQL_INNOCUOUS;

	if (kb_sql.create_function_v2(query->db, "median", 1, flags, query, NULL, add, finish,
				      NULL) ||
	    kb_sql.create_function_v2(query->db, "percentile", 2, flags, query, NULL, add,
				      finish, NULL))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	return 0;
}
