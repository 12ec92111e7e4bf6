// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/text/utf8.h"
#include "cli/query/shell.h"
#include "query/sqlite.h"

#define WORDS_MOST	8
#define READ_DEPTH	8	/* of files that read files */

/* ---- Ctrl-C ends a question, not the shell ---- */

static struct kb_query *volatile running;
static volatile sig_atomic_t interrupts;

static void interrupt(int number)
{
	if (running)
		kb_query_interrupt(running);
	/* a question that does not end by that */
	if (++interrupts > 2) {
		signal(number, SIG_DFL);
		raise(number);
	}
}

static void listen_to_interrupts(void)
{
	struct sigaction action = { .sa_handler = interrupt };

	sigaction(SIGINT, &action, NULL);
}

/* ---- statements ---- */

static int print(struct query_shell *shell, struct sqlite3_stmt *stmt)
{
	int ret = query_print(stmt, &shell->format, shell->out);

	if (fflush(shell->out) || ferror(shell->out)) {
		if (errno == EPIPE)
			shell->quit = true;	/* the reader has ended, as in `| head` */
		else
			return cli_fail("can't write: %s", strerror(errno));
		return CLI_OK;
	}
	return ret == SQL_DONE ? CLI_OK :
	       cli_fail("%s", kb_sql.errmsg(kb_query_db(shell->query)));
}

/* Once `ns` was a length here, a moment in Python, and one since 1970 in Parquet. */
static int say_refused(const char *why)
{
	const char *front = "no such column: ", *name = strstr(why, front), *dot;

	name = name ? name + strlen(front) : "";
	dot = strrchr(name, '.');
	if (strcasecmp(dot ? dot + 1 : name, "ns"))
		return cli_fail("%s", why);
	return cli_fail("%s: a moment is at_ns, its end end_ns, a length duration_ns", why);
}

/* One statement of @text; *@text is set behind it. */
static int run_one(struct query_shell *shell, const char **text)
{
	struct sqlite3 *db = kb_query_db(shell->query);
	struct sqlite3_stmt *stmt = NULL;
	int status;

	if (kb_sql.prepare_v2(db, *text, -1, &stmt, text))
		return say_refused(kb_sql.errmsg(db));
	if (!stmt)
		return CLI_OK;		/* blanks and comments */
	status = print(shell, stmt);
	kb_sql.finalize(stmt);
	return status;
}

static int run_statements(struct query_shell *shell, const char *text)
{
	int64_t begun = kb_clock_ms();
	int status = CLI_OK;

	kb_query_ready(shell->query);
	interrupts = 0;
	running = shell->query;
	listen_to_interrupts();
	while (*text && !status && !shell->quit)
		status = run_one(shell, &text);
	running = NULL;
	cli_progress_clear();
	if (shell->timer)
		fprintf(shell->out, "Run Time: %.3f s\n", (double)(kb_clock_ms() - begun) / 1e3);
	return status;
}

/* ---- commands ---- */

static int say_usage(const char *usage)
{
	return cli_fail("usage: %s", usage);
}

static int do_help(struct query_shell *shell, char **words);

static int do_mode(struct query_shell *shell, char **words)
{
	if (!words[1] || !query_mode_find(words[1], &shell->format.mode))
		return cli_fail(".mode: give one of %s", query_mode_words());
	shell->mode_set = true;
	/* what SQLite's shell does: these have a header unless it was switched off */
	if (!shell->headers_set)
		shell->format.headers = shell->format.mode >= QUERY_MODE_COLUMN;
	return CLI_OK;
}

static bool parse_switch(const char *word, bool *on)
{
	if (!word || (strcmp(word, "on") && strcmp(word, "off")))
		return false;
	*on = !strcmp(word, "on");
	return true;
}

static int do_headers(struct query_shell *shell, char **words)
{
	shell->headers_set = true;
	return parse_switch(words[1], &shell->format.headers) ? CLI_OK : say_usage(".headers on|off");
}

static int do_timer(struct query_shell *shell, char **words)
{
	return parse_switch(words[1], &shell->timer) ? CLI_OK : say_usage(".timer on|off");
}

static int set_string(char **kept, const char **used, const char *word)
{
	free(*kept);
	*kept = strdup(word);
	*used = *kept;
	return *kept ? CLI_OK : cli_fail("out of memory");
}

static int do_separator(struct query_shell *shell, char **words)
{
	if (!words[1])
		return say_usage(".separator TEXT");
	return set_string(&shell->separator, &shell->format.separator, words[1]);
}

static int do_nullvalue(struct query_shell *shell, char **words)
{
	int status = set_string(&shell->nothing, &shell->format.nothing, words[1] ? words[1] : "");

	if (status)
		shell->format.nothing = "";
	return status;
}

/* Ends the file of .output, if there is one. */
static int end_file(struct query_shell *shell)
{
	int status = CLI_OK;

	if (shell->file.path)
		status = cli_output_commit(&shell->file);
	shell->out = stdout;
	return status;
}

static int do_output(struct query_shell *shell, char **words)
{
	int status = end_file(shell);

	if (status || !words[1] || !strcmp(words[1], "stdout"))
		return status;
	if (!shell->may_write)
		return cli_fail(".output: give the name of the file with -o");
	if (strchr(words[1], '/'))
		return cli_fail(".output %s: a file in this folder, without '/'", words[1]);
	status = cli_output_open(&shell->file, words[1]);
	if (!status)
		shell->out = shell->file.stream;
	return status;
}

static int do_quit(struct query_shell *shell, char **words)
{
	(void)words;
	shell->quit = true;
	return CLI_OK;
}

static int do_read(struct query_shell *shell, char **words)
{
	FILE *in = words[1] && shell->depth < READ_DEPTH ? fopen(words[1], "re") : NULL;
	int status;

	if (!words[1])
		return say_usage(".read FILE");
	if (!in)
		return cli_fail("can't read %s: %s", words[1],
				shell->depth < READ_DEPTH ? strerror(errno) : "too deep");
	shell->depth++;
	status = query_shell_loop(shell, in, false);
	shell->depth--;
	fclose(in);
	return status;
}

/* Names of counters are in declarations, and must not control the terminal. */
static void put_line(const struct query_shell *shell, const char *text, const char *what)
{
	size_t length = strlen(text);
	char *shown = malloc(length + 1);

	if (shown)
		fprintf(shell->out, "%.*s%s%s\n", (int)kb_utf8_shown(shown, text, length), shown,
			what ? "; -- " : "", what ? what : "");
	free(shown);
}

/* The names of views and of tables that the user has made, or their declarations. */
static int list_schema(struct query_shell *shell, const char *column, const char *name)
{
	struct sqlite3_stmt *stmt;
	char *text;
	int ret;

	if (asprintf(&text, "SELECT %s FROM sqlite_master WHERE sql IS NOT NULL AND "
		     "(?1 IS NULL OR name = ?1 COLLATE NOCASE) ORDER BY type, name", column) < 0)
		return cli_fail("out of memory");
	ret = kb_sql.prepare_v2(kb_query_db(shell->query), text, -1, &stmt, NULL);
	free(text);
	if (ret)
		return cli_fail("%s", kb_sql.errmsg(kb_query_db(shell->query)));
	if (name)
		kb_sql.bind_text(stmt, 1, name, -1, SQL_TRANSIENT);
	while (kb_sql.step(stmt) == SQL_ROW)
		put_line(shell, (const char *)kb_sql.column_text(stmt, 0) ?: "", NULL);
	kb_sql.finalize(stmt);
	return CLI_OK;
}

static int do_tables(struct query_shell *shell, char **words)
{
	struct kb_query_table table;

	(void)words;
	for (unsigned int i = 0; kb_query_table(shell->query, i, &table); i++)
		fprintf(shell->out, "%s\n", table.name);
	return list_schema(shell, "name", NULL);
}

static int do_schema(struct query_shell *shell, char **words)
{
	struct kb_query_table table;

	for (unsigned int i = 0; kb_query_table(shell->query, i, &table); i++)
		if (!words[1] || !strcasecmp(words[1], table.name))
			put_line(shell, table.declaration, table.what);
	/* the comment of a view of ours stands behind it, too */
	return list_schema(shell, "replace(rtrim(sql, char(10)), ' -- ', '; -- ') || "
			   "iif(instr(sql, ' -- '), '', ';')", words[1]);
}

static const struct command {
	const char *name, *arguments, *help;
	int (*run)(struct query_shell *shell, char **words);
} commands[] = {
	{ ".exit", "", "end", do_quit },
	{ ".headers", "on|off", "print the names of the columns", do_headers },
	{ ".help", "", "print this list", do_help },
	{ ".mode", "MODE", "list, csv, tabs, json, line, column, table, box, markdown", do_mode },
	{ ".nullvalue", "TEXT", "print TEXT for NULL", do_nullvalue },
	{ ".output", "[FILE]", "write answers to FILE in this folder; without FILE to the screen",
	  do_output },
	{ ".quit", "", "end", do_quit },
	{ ".read", "FILE", "run the questions in FILE", do_read },
	{ ".schema", "[TABLE]", "print the columns of all tables, or of one", do_schema },
	{ ".separator", "TEXT", "print TEXT between columns (list, csv, tabs)", do_separator },
	{ ".tables", "", "print the names of the tables and views", do_tables },
	{ ".timer", "on|off", "print how long an answer takes", do_timer },
};

static int do_help(struct query_shell *shell, char **words)
{
	(void)words;
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(shell->out, "%-10s %-8s %s\n", commands[i].name, commands[i].arguments,
			commands[i].help);
	fprintf(shell->out, "Everything else is SQL, up to a semicolon.\n");
	return CLI_OK;
}

/* "\t" and "\n" in a word, as in SQLite's shell. */
static void unescape(char *word)
{
	char *to = word;

	for (; *word; word++) {
		if (word[0] == '\\' && (word[1] == 't' || word[1] == 'n' || word[1] == '\\')) {
			word++;
			*to++ = *word == 't' ? '\t' : *word == 'n' ? '\n' : '\\';
		} else {
			*to++ = *word;
		}
	}
	*to = '\0';
}

/* Split @line into words; quotes hold blanks. The words are in @line. */
static void split(char *line, char *words[WORDS_MOST])
{
	unsigned int nr = 0;

	memset(words, 0, WORDS_MOST * sizeof(*words));
	for (line += strspn(line, " \t\r\n"); *line && nr < WORDS_MOST - 1;
	     line += strspn(line, " \t\r\n")) {
		char quote = *line == '"' || *line == '\'' ? *line++ : '\0';

		words[nr++] = line;
		line += quote ? strcspn(line, (char[]){ quote, '\0' }) : strcspn(line, " \t\r\n");
		if (*line)
			*line++ = '\0';
		if (quote != '\'')
			unescape(words[nr - 1]);
	}
}

static int run_command(struct query_shell *shell, const char *text)
{
	struct cli_nearest nearest = { 0 };
	char *words[WORDS_MOST], *line = strdup(text);
	int status = CLI_IMPOSSIBLE;

	if (!line)
		return cli_fail("out of memory");
	split(line, words);
	nearest.word = words[0];
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		cli_nearest_try(&nearest, commands[i].name);
		if (!strcmp(words[0], commands[i].name)) {
			status = commands[i].run(shell, words);
			fflush(shell->out);
			free(line);
			return status;
		}
	}
	if (nearest.name)
		cli_fail("no command %s: did you mean %s?", words[0], nearest.name);
	else
		cli_fail("no command %s: .help lists them", words[0]);
	free(line);
	return status;
}

int query_shell_run(struct query_shell *shell, const char *text)
{
	text += strspn(text, " \t\r\n");
	return *text == '.' ? run_command(shell, text) : run_statements(shell, text);
}

/* ---- lines ---- */

struct question {
	char *text;
	size_t length, room;
};

static bool append(struct question *question, const char *line)
{
	size_t more = strlen(line);

	if (!KB_ARRAY_ROOM(question->text, question->room, question->length + more + 1))
		return false;
	memcpy(question->text + question->length, line, more + 1);
	question->length += more;
	return true;
}

static bool is_empty(const struct question *question)
{
	return !question->length || strspn(question->text, " \t\r\n;") == question->length;
}

static void ask(bool prompt, const struct question *question)
{
	if (!prompt)
		return;
	fputs(is_empty(question) ? "kbarman> " : "    ...> ", stdout);
	fflush(stdout);
}

/* A line of @in; NULL at its end. Ctrl-C begins the question anew. */
static char *next_line(FILE *in, bool prompt, struct question *question, char **line, size_t *room)
{
	for (;;) {
		interrupts = 0;
		ask(prompt, question);
		if (getline(line, room, in) >= 0)
			return *line;
		if (!prompt || errno != EINTR || feof(in))
			return NULL;
		clearerr(in);
		question->length = 0;
		putchar('\n');
	}
}

int query_shell_loop(struct query_shell *shell, FILE *in, bool prompt)
{
	struct question question = { 0 };
	char *line = NULL;
	size_t room = 0;
	int status = CLI_OK;

	if (prompt)
		listen_to_interrupts();
	errno = 0;
	while (!shell->quit && next_line(in, prompt, &question, &line, &room)) {
		if (is_empty(&question) && *line == '.') {
			status = query_shell_run(shell, line);
		} else if (!append(&question, line)) {
			status = cli_fail("out of memory");
			break;
		} else if (!is_empty(&question) && kb_sql.complete(question.text)) {
			status = query_shell_run(shell, question.text);
			question.length = 0;
		}
		/* a file of questions ends at the first mistake */
		if (status && !prompt)
			break;
		errno = 0;
	}
	if (!is_empty(&question) && !shell->quit && !(status && !prompt))
		status = query_shell_run(shell, question.text);
	else if (prompt && !shell->quit)
		putchar('\n');
	free(question.text);
	free(line);
	return prompt ? CLI_OK : status;
}

int query_shell_close(struct query_shell *shell)
{
	int status = end_file(shell);

	free(shell->separator);
	free(shell->nothing);
	return status;
}
