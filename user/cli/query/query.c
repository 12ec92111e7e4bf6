// SPDX-License-Identifier: MIT
/*
 * kbarman query: questions in SQL to captures, which are tables of SQLite (query/query.h). This
 * file reads the options and opens the captures; shell.c runs questions, print.c prints rows.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/temporary.h"
#include "base/io/whole.h"
#include "base/text/size.h"
#include "cli/base/sandbox.h"
#include "cli/base/symbols.h"
#include "cli/query/lines.h"
#include "cli/query/shell.h"
#include "query/sqlite.h"

#define MEMORY	(512ULL << 20)	/* that SQLite may use for sorting and groups */

enum {
	OPTION_CSV = 256, OPTION_JSON, OPTION_HEADER, OPTION_NOHEADER, OPTION_SEPARATOR,
	OPTION_NULLVALUE, OPTION_LINES, OPTION_MEMORY,
};

static const struct cli_option options[] = {
	{ 'i', "input", "FILE", "the same as an argument FILE" },
	{ 'f', "format", "MODE",
	  "the form of the output: list, csv, tabs, json, line, column, table,\n"
	  "box or markdown (default box on a terminal, else list)" },
	{ 'f', "mode", "MODE", NULL },
	{ OPTION_CSV, "csv", NULL, "print CSV: the same as --format csv --header" },
	{ OPTION_JSON, "json", NULL, "print JSON: the same as --format json" },
	{ OPTION_HEADER, "header", NULL, "print the names of the columns" },
	{ OPTION_NOHEADER, "noheader", NULL, "do not print them" },
	{ OPTION_SEPARATOR, "separator", "TEXT", "print TEXT between columns" },
	{ OPTION_NULLVALUE, "nullvalue", "TEXT", "print TEXT for NULL" },
	{ 'o', "output", "FILE", "write to FILE (default '-', standard output)" },
	{ OPTION_MEMORY, "memory", "SIZE",
	  "let SQLite use SIZE bytes (with K, M, G; default 512M)" },
	{ OPTION_LINES, "lines", NULL, "with lines of source files: in columns source, line" },
	SYMBOLS_OPTIONS,
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman query [OPTIONS] [FILE...] [SQL]\n"
	"\n"
	"Answer the question SQL about the captures (default kbarman.cap; '-' is standard\n"
	"input), which are tables: '.tables' as SQL lists them. Without SQL, questions are read\n"
	"from standard input.\n"
	"\n",
	.options = options,
	.column = 23,
	.tail =
	"\n"
	"Exit status: 0 there is an answer; 1 a FILE is damaged, its undamaged part was asked;\n"
	"2 there is none.\n",
};

struct query {
	const char *files[KB_QUERY_FILES_MAX];
	const char *names[KB_QUERY_FILES_MAX];
	unsigned int nr_files;
	const char *question;		/* NULL: read them */
	const char *output;		/* NULL: standard output */
	unsigned long long memory;
	struct kb_symbol_options symbols;
	struct query_shell shell;
	char copy[32];			/* the path of the copy of standard input */
};

/* ---- arguments ---- */

/* Is @word, which no file is called, a question? A name that was mistyped is none. */
static bool is_question(const char *word)
{
	if (!access(word, F_OK) || !strcmp(word, "-"))
		return false;
	return strpbrk(word, " \t\n;(") || (*word == '.' && !strchr(word, '/'));
}

static int take_file(struct query *query, const char *file)
{
	if (query->nr_files == KB_QUERY_FILES_MAX)
		return cli_fail("%d FILEs at most", KB_QUERY_FILES_MAX);
	query->files[query->nr_files++] = file;
	return CLI_OK;
}

static int take_arguments(struct query *query, int argc, char **argv)
{
	if (optind < argc && is_question(argv[argc - 1]))
		query->question = argv[--argc];
	for (; optind < argc; optind++)
		if (take_file(query, argv[optind]))
			return CLI_IMPOSSIBLE;
	if (query->nr_files)
		return CLI_OK;
	if (access(CLI_CAPTURE, F_OK) && errno == ENOENT)
		return cli_fail("there is no %s here: give the name of a capture", CLI_CAPTURE);
	query->files[query->nr_files++] = CLI_CAPTURE;
	return CLI_OK;
}

/* ---- standard input ---- */

static int copy_bytes(int to)
{
	static char buffer[1 << 16];
	ssize_t n;

	while ((n = kb_read_whole(STDIN_FILENO, buffer, sizeof(buffer))) > 0)
		if (kb_write_whole(to, buffer, (size_t)n))
			return -errno;
	return (int)n;
}

/* Tables read a capture several times. So what comes from a pipe is kept in a file without a name. */
static int keep_input(struct query *query)
{
	int fd = STDIN_FILENO;

	if (cli_is_pipe("-")) {
		fd = kb_temporary_file();
		if (fd < 0)
			return cli_fail("can't make a temporary file, set TMPDIR: %s", strerror(-fd));
		if (copy_bytes(fd))
			return cli_fail("can't keep standard input, set TMPDIR: %s", strerror(errno));
	}
	snprintf(query->copy, sizeof(query->copy), "/proc/self/fd/%d", fd);
	return CLI_OK;
}

static int find_input(struct query *query)
{
	bool kept = false;

	for (unsigned int i = 0; i < query->nr_files; i++) {
		query->names[i] = query->files[i];
		if (strcmp(query->files[i], "-"))
			continue;
		if (!query->question)
			return cli_fail("'-' is the capture, so give the question as an argument");
		if (!kept && keep_input(query))
			return CLI_IMPOSSIBLE;
		kept = true;
		query->files[i] = query->copy;
	}
	return CLI_OK;
}

/* ---- the verb ---- */

static void complain(void *context, const char *sentence)
{
	(void)context;
	cli_warn("%s", sentence);
}

/* Until now the process has all its rights; from now on it can only read, and write its output. */
static void confine(const struct query *query)
{
	cli_sandbox(&(struct cli_sandbox) {
		.inputs = query->files, .nr_inputs = (int)query->nr_files,
		.temporary = true,	/* what SQLite sorts */
		/* the shell's .output makes files in the current folder */
		.output = query->output ? query->output : query->question ? NULL : "./output",
	});
}

static int open_query(struct query *query)
{
	const struct kb_query_options how = {
		.files = query->files,
		.names = query->names,
		.nr_files = query->nr_files,
		.symbols = &query->symbols,
		.make_lines = query_make_lines,
		.memory = query->memory,
	};
	struct query_shell *shell = &query->shell;
	struct kb_error err = { 0 };

	kb_sql_open();		/* a library that this machine trusts */
	cli_progress(NULL, true);
	shell->out = stdout;
	shell->may_write = !query->question && !query->output;
	confine(query);
	if (query->output && strcmp(query->output, "-")) {
		if (cli_output_open(&shell->file, query->output))
			return CLI_IMPOSSIBLE;
		shell->out = shell->file.stream;
	}
	if (!shell->mode_set && shell->out == stdout && isatty(STDOUT_FILENO))
		shell->format.mode = QUERY_MODE_BOX;
	if (!shell->headers_set)
		shell->format.headers = shell->format.mode >= QUERY_MODE_COLUMN;
	return kb_query_open(&shell->query, &how, &err) ? cli_fail_error(&err) : CLI_OK;
}

static int ask(struct query *query)
{
	bool terminal = isatty(STDIN_FILENO);

	if (query->question)
		return query_shell_run(&query->shell, query->question);
	if (terminal && cli_verbosity() >= 0)
		printf(".tables lists the tables, .schema their columns, .help the commands, .quit "
		       "ends.\n");
	return query_shell_loop(&query->shell, stdin, terminal);
}

static int finish(struct query *query, int status)
{
	const struct kb_error *damage;
	int written;

	if (status == CLI_IMPOSSIBLE && query->shell.file.path)
		cli_output_abandon(&query->shell.file);
	written = query_shell_close(&query->shell);
	kb_query_complaints(query->shell.query, complain, NULL);
	for (unsigned int i = 0; i < query->nr_files; i++) {
		damage = kb_query_damage(query->shell.query, i);
		if (!damage)
			continue;
		cli_warn("%s: %s", query->names[i], kb_error_text(damage));
		status = status ? status : CLI_DAMAGED;
	}
	return written ? written : status;
}

static int run(struct query *query)
{
	int status = find_input(query);

	if (status)
		return status;
	signal(SIGPIPE, SIG_IGN);
	status = open_query(query);
	if (!status)
		status = finish(query, ask(query));
	cli_progress_end();
	kb_query_close(query->shell.query);
	return status;
}

static int set_mode(struct query *query, const char *word)
{
	if (!query_mode_find(word, &query->shell.format.mode))
		return cli_fail("--format %s: give one of %s", word, query_mode_words());
	query->shell.mode_set = true;
	return CLI_OK;
}

static int take_option(struct query *query, int option)
{
	struct query_format *format = &query->shell.format;

	switch (option) {
	case 'i':
		return take_file(query, optarg);
	case 'f':
		return set_mode(query, optarg);
	case OPTION_CSV:
		query->shell.headers_set = format->headers = true;
		return set_mode(query, "csv");
	case OPTION_JSON:
		return set_mode(query, "json");
	case OPTION_HEADER:
	case OPTION_NOHEADER:
		query->shell.headers_set = true;
		format->headers = option == OPTION_HEADER;
		break;
	case OPTION_SEPARATOR:
		format->separator = optarg;
		break;
	case OPTION_NULLVALUE:
		format->nothing = optarg;
		break;
	case 'o':
		query->output = optarg;
		break;
	case OPTION_MEMORY:
		if (!kb_size_parse(optarg, &query->memory) || !query->memory)
			return cli_fail("--memory %s: give a number of bytes, such as 2G", optarg);
		break;
	case OPTION_LINES:
		query->symbols.lines = true;
		break;
	default:
		if (!symbols_take(&query->symbols, option, optarg))
			return -1;
	}
	return CLI_OK;
}

int cmd_query(int argc, char **argv)
{
	static struct query query = {
		.memory = MEMORY,
		.symbols.size = sizeof(query.symbols),
		.shell.format.nothing = "",
	};
	int option, status;

	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		status = take_option(&query, option);
		if (status < 0)
			return cli_usage(option == 'h', &usage);
		if (status)
			return status;
	}
	symbols_end(&query.symbols);
	status = take_arguments(&query, argc, argv);
	return status ? status : run(&query);
}
