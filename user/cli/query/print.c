// SPDX-License-Identifier: MIT
/*
 * Rows as text. The forms with columns of one width keep the first rows to measure them, and print the
 * others with the same widths, so an answer may have any length.
 */
#include <stdlib.h>
#include <string.h>

#include <kbarman/out.h>

#include "base/array.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "cli/query/print.h"
#include "query/sqlite.h"

#define MEASURED_ROWS	1000
#define MEASURED_BYTES	(16U << 20)
#define WIDEST		400	/* characters of a column; longer values stick out */

static const struct {
	const char *word;
	enum query_mode mode;
} modes[] = {
	{ "list", QUERY_MODE_LIST },	{ "csv", QUERY_MODE_CSV },
	{ "tabs", QUERY_MODE_TABS },	{ "json", QUERY_MODE_JSON },
	{ "line", QUERY_MODE_LINE },	{ "column", QUERY_MODE_COLUMN },
	{ "table", QUERY_MODE_TABLE },	{ "box", QUERY_MODE_BOX },
	{ "markdown", QUERY_MODE_MARKDOWN },
};

bool query_mode_find(const char *word, enum query_mode *mode)
{
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (!strcmp(modes[i].word, word)) {
			*mode = modes[i].mode;
			return true;
		}
	}
	return false;
}

const char *query_mode_words(void)
{
	return "list, csv, tabs, json, line, column, table, box, markdown";
}

/* ---- one value ---- */

struct text {
	char *bytes;
	size_t length, room;
	size_t width;		/* characters */
};

/* Names come from files and must not control the terminal. */
static bool set_text(struct text *text, const char *bytes, size_t length)
{
	if (!KB_ARRAY_ROOM(text->bytes, text->room, length + 1) || !text->bytes)
		return false;
	text->length = kb_utf8_shown(text->bytes, bytes, length);
	text->bytes[text->length] = '\0';
	text->width = 0;
	for (size_t i = 0; i < text->length; i++)
		text->width += (text->bytes[i] & 0xc0) != 0x80;
	return true;
}

/* Column @i of the current row. False: no memory. */
static bool take_value(struct sqlite3_stmt *stmt, int i, const struct query_format *format,
		       struct text *text)
{
	const char *bytes = (const char *)kb_sql.column_text(stmt, i);

	if (kb_sql.column_type(stmt, i) == SQL_NULL)
		return set_text(text, format->nothing, strlen(format->nothing));
	return bytes && set_text(text, bytes, (size_t)kb_sql.column_bytes(stmt, i));
}

static bool take_name(struct sqlite3_stmt *stmt, int i, const struct query_format *format,
		      struct text *text)
{
	const char *name = kb_sql.column_name(stmt, i);

	(void)format;
	return name && set_text(text, name, strlen(name));
}

/* ---- forms without widths ---- */

/* As in RFC 4180, but lines end with a newline alone. */
static void put_csv(const struct text *text, FILE *out)
{
	if (!strpbrk(text->bytes, ",\"\n\r ") && text->length == strlen(text->bytes)) {
		fwrite(text->bytes, 1, text->length, out);
		return;
	}
	putc('"', out);
	for (size_t i = 0; i < text->length; i++) {
		if (text->bytes[i] == '"')
			putc('"', out);
		putc(text->bytes[i], out);
	}
	putc('"', out);
}

typedef bool (*take)(struct sqlite3_stmt *stmt, int i, const struct query_format *format,
		     struct text *text);

static bool put_separated(struct sqlite3_stmt *stmt, const struct query_format *format, FILE *out,
			  take take, struct text *text)
{
	const char *separator = format->separator ? format->separator :
				format->mode == QUERY_MODE_CSV ? "," :
				format->mode == QUERY_MODE_TABS ? "\t" : "|";
	int nr = kb_sql.column_count(stmt);

	for (int i = 0; i < nr; i++) {
		if (!take(stmt, i, format, text))
			return false;
		if (i)
			fputs(separator, out);
		if (format->mode == QUERY_MODE_CSV)
			put_csv(text, out);
		else
			fwrite(text->bytes, 1, text->length, out);
	}
	putc('\n', out);
	return true;
}

static bool put_lines(struct sqlite3_stmt *stmt, const struct query_format *format, FILE *out,
		      struct text *text, bool first)
{
	int nr = kb_sql.column_count(stmt), widest = 5;

	for (int i = 0; i < nr; i++) {
		if (!take_name(stmt, i, format, text))
			return false;
		if ((int)text->width > widest)
			widest = (int)text->width;
	}
	if (!first)
		putc('\n', out);
	for (int i = 0; i < nr; i++) {
		if (!take_name(stmt, i, format, text))
			return false;
		fprintf(out, "%*s%s = ", widest - (int)text->width, "", text->bytes);
		if (!take_value(stmt, i, format, text))
			return false;
		fwrite(text->bytes, 1, text->length, out);
		putc('\n', out);
	}
	return true;
}

/* The name of a column is any text. */
static void put_json_value(struct sqlite3_stmt *stmt, int i, struct kb_json *json)
{
	kb_json_string(json, NULL, kb_sql.column_name(stmt, i));
	kb_out_bytes(json->out, ":", 1);
	json->comma = false;
	switch (kb_sql.column_type(stmt, i)) {
	case SQL_INTEGER:
		kb_json_i64(json, NULL, kb_sql.column_int64(stmt, i));
		break;
	case SQL_FLOAT:
		kb_json_double(json, NULL, kb_sql.column_double(stmt, i));
		break;
	case SQL_NULL:
		kb_json_string(json, NULL, NULL);
		break;
	default:
		kb_json_text(json, NULL, (const char *)kb_sql.column_text(stmt, i),
			     (size_t)kb_sql.column_bytes(stmt, i));
	}
}

static int write_file(void *context, const void *data, size_t size)
{
	return fwrite(data, 1, size, context) == size ? 0 : -1;
}

/* An array with an object for each row, a row a line; nothing if there is no row. */
static int print_json(struct sqlite3_stmt *stmt, FILE *out)
{
	int nr = kb_sql.column_count(stmt), ret = kb_sql.step(stmt);
	struct kb_json json = { 0 };

	if (ret != SQL_ROW)
		return ret;
	if (kb_out_function(&json.out, write_file, out))
		return SQL_NOMEM;
	for (const char *before = "["; ret == SQL_ROW; before = ",\n") {
		kb_out_printf(json.out, "%s", before);
		json.comma = false;
		kb_json_object(&json, NULL);
		for (int i = 0; i < nr; i++)
			put_json_value(stmt, i, &json);
		kb_json_object_end(&json);
		if (kb_out_error(json.out))
			break;
		ret = kb_sql.step(stmt);
	}
	kb_out_printf(json.out, "]\n");
	kb_out_flush(json.out);
	kb_out_destroy(json.out);
	return ret;
}

/* ---- forms with widths ---- */

/* The lines of a form: left, between, right of the values, and what lines between are made of. */
struct frame {
	const char *left, *between, *right;	/* of a row */
	const char *top[4], *middle[4], *bottom[4];	/* left, fill, between, right; NULL: none */
	bool always;		/* the header is part of the form */
};

static const struct frame *frame_of(enum query_mode mode)
{
	static const struct frame column = { "", "  ", "", { NULL }, { "", "-", "  ", "" }, { NULL }, false };
	static const struct frame table = {
		"| ", " | ", " |", { "+-", "-", "-+-", "-+" }, { "+-", "-", "-+-", "-+" },
		{ "+-", "-", "-+-", "-+" }, true,
	};
	static const struct frame box = {
		"│ ", " │ ", " │", { "┌─", "─", "─┬─", "─┐" }, { "├─", "─", "─┼─", "─┤" },
		{ "└─", "─", "─┴─", "─┘" }, true,
	};
	static const struct frame markdown = {
		"| ", " | ", " |", { NULL }, { "|-", "-", "-|-", "-|" }, { NULL }, true,
	};

	return mode == QUERY_MODE_TABLE ? &table : mode == QUERY_MODE_BOX ? &box :
	       mode == QUERY_MODE_MARKDOWN ? &markdown : &column;
}

struct grid {
	const struct frame *frame;
	FILE *out;
	int nr;			/* columns */
	size_t *widths;
	bool *numbers;		/* align these to the right */
};

static void put_rule(const struct grid *grid, const char *const parts[4])
{
	if (!parts[0])
		return;
	fputs(parts[0], grid->out);
	for (int i = 0; i < grid->nr; i++) {
		if (i)
			fputs(parts[2], grid->out);
		for (size_t n = 0; n < grid->widths[i]; n++)
			fputs(parts[1], grid->out);
	}
	fprintf(grid->out, "%s\n", parts[3]);
}

static void put_cell(const struct grid *grid, int i, const struct text *text, bool right)
{
	int blanks = text->width < grid->widths[i] ? (int)(grid->widths[i] - text->width) : 0;
	bool last = i == grid->nr - 1 && !grid->frame->right[0];

	fputs(i ? grid->frame->between : grid->frame->left, grid->out);
	if (right)
		fprintf(grid->out, "%*s", blanks, "");
	fwrite(text->bytes, 1, text->length, grid->out);
	if (!right && !last)
		fprintf(grid->out, "%*s", blanks, "");
	if (i == grid->nr - 1)
		fprintf(grid->out, "%s\n", grid->frame->right);
}

static bool put_names(const struct grid *grid, struct sqlite3_stmt *stmt,
		      const struct query_format *format, struct text *text)
{
	put_rule(grid, grid->frame->top);
	if (!format->headers && !grid->frame->always)
		return true;
	for (int i = 0; i < grid->nr; i++) {
		if (!take_name(stmt, i, format, text))
			return false;
		put_cell(grid, i, text, grid->numbers[i]);
	}
	put_rule(grid, grid->frame->middle);
	return true;
}

/* The rows that are measured, one value behind the other. */
struct measured {
	struct text *cells;
	size_t nr, room;
	size_t bytes;
};

static bool is_number(int type)
{
	return type == SQL_INTEGER || type == SQL_FLOAT;
}

static void widen(struct grid *grid, int i, size_t width)
{
	if (width > WIDEST)
		width = WIDEST;
	if (width > grid->widths[i])
		grid->widths[i] = width;
}

static bool measure_row(struct measured *measured, struct grid *grid, struct sqlite3_stmt *stmt,
			const struct query_format *format)
{
	for (int i = 0; i < grid->nr; i++) {
		int type = kb_sql.column_type(stmt, i);
		struct text *cell;

		if (!KB_ARRAY_ROOM(measured->cells, measured->room, measured->nr + 1))
			return false;
		cell = &measured->cells[measured->nr];
		*cell = (struct text){ 0 };
		measured->nr++;
		if (!take_value(stmt, i, format, cell))
			return false;
		measured->bytes += cell->length;
		grid->numbers[i] &= is_number(type) || type == SQL_NULL;
		widen(grid, i, cell->width);
	}
	return true;
}

static void release(struct measured *measured)
{
	for (size_t i = 0; i < measured->nr; i++)
		free(measured->cells[i].bytes);
	free(measured->cells);
}

static bool begin_grid(struct grid *grid, struct sqlite3_stmt *stmt,
		       const struct query_format *format, struct text *text)
{
	grid->widths = calloc((size_t)grid->nr + 1, sizeof(*grid->widths));
	grid->numbers = calloc((size_t)grid->nr + 1, sizeof(*grid->numbers));
	if (!grid->widths || !grid->numbers)
		return false;
	for (int i = 0; i < grid->nr; i++) {
		grid->numbers[i] = true;
		if (!take_name(stmt, i, format, text))
			return false;
		if (format->headers || grid->frame->always)
			widen(grid, i, text->width);
	}
	return true;
}

static int print_rest(struct grid *grid, struct sqlite3_stmt *stmt,
		      const struct query_format *format, struct text *text, int ret)
{
	for (; ret == SQL_ROW && !ferror(grid->out); ret = kb_sql.step(stmt)) {
		for (int i = 0; i < grid->nr; i++) {
			bool right = grid->numbers[i] && is_number(kb_sql.column_type(stmt, i));

			if (!take_value(stmt, i, format, text))
				return SQL_NOMEM;
			put_cell(grid, i, text, right);
		}
	}
	put_rule(grid, grid->frame->bottom);
	return ret;
}

static int print_grid(struct sqlite3_stmt *stmt, const struct query_format *format, FILE *out,
		      struct text *text)
{
	struct grid grid = {
		.frame = frame_of(format->mode), .out = out, .nr = kb_sql.column_count(stmt),
	};
	struct measured measured = { 0 };
	int ret = begin_grid(&grid, stmt, format, text) ? kb_sql.step(stmt) : SQL_NOMEM;
	size_t rows = 0;
	bool any = ret == SQL_ROW;

	for (; ret == SQL_ROW && rows < MEASURED_ROWS && measured.bytes < MEASURED_BYTES; rows++)
		ret = measure_row(&measured, &grid, stmt, format) ? kb_sql.step(stmt) : SQL_NOMEM;
	if (any && !put_names(&grid, stmt, format, text))
		ret = SQL_NOMEM;
	for (size_t i = 0; measured.cells && grid.numbers && i < rows * (size_t)grid.nr; i++)
		put_cell(&grid, (int)(i % (size_t)grid.nr), &measured.cells[i],
			 grid.numbers[i % (size_t)grid.nr]);
	release(&measured);
	if (any && ret != SQL_NOMEM)
		ret = print_rest(&grid, stmt, format, text, ret);
	free(grid.widths);
	free(grid.numbers);
	return ret;
}

/* ---- all of them ---- */

static int print_rows(struct sqlite3_stmt *stmt, const struct query_format *format, FILE *out,
		      struct text *text)
{
	int ret = kb_sql.step(stmt);

	for (bool first = true; ret == SQL_ROW && !ferror(out); first = false) {
		if (first && format->headers && format->mode != QUERY_MODE_LINE &&
		    !put_separated(stmt, format, out, take_name, text))
			return SQL_NOMEM;
		if (!(format->mode == QUERY_MODE_LINE ?
		      put_lines(stmt, format, out, text, first) :
		      put_separated(stmt, format, out, take_value, text)))
			return SQL_NOMEM;
		ret = kb_sql.step(stmt);
	}
	return ret;
}

int query_print(struct sqlite3_stmt *stmt, const struct query_format *format, FILE *out)
{
	struct text text = { 0 };
	int ret;

	switch (format->mode) {
	case QUERY_MODE_JSON:
		ret = print_json(stmt, out);
		break;
	case QUERY_MODE_COLUMN:
	case QUERY_MODE_TABLE:
	case QUERY_MODE_BOX:
	case QUERY_MODE_MARKDOWN:
		ret = print_grid(stmt, format, out, &text);
		break;
	default:
		ret = print_rows(stmt, format, out, &text);
	}
	free(text.bytes);
	return ret;
}
