// SPDX-License-Identifier: MIT
/*
 * kbarman convert: converts a capture to another format, and writes it to a file or to a program
 * that listens. The library's table of exports describes the formats.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kbarman/export.h>
#include <kbarman/tptp.h>

#include "analysis/trace/parts.h"
#include "base/io/out_packet.h"
#include "cli/base/cli.h"
#include "cli/base/directory.h"
#include "cli/base/filters.h"
#include "cli/base/sandbox.h"
#include "cli/base/symbols.h"
#include "cli/net/connect.h"
#include "cli/net/serve.h"
#include "export/arm/annotate_side.h"
#include "sym/files/side.h"

#define TPTP_PORT	"10002"	/* of TPTP's Agent Controller */
#define NEGOTIATION_MS	2000

enum {
	OPTION_CONNECT = 256, OPTION_SERVE, OPTION_ARRAYS, OPTION_SAMPLE_TEXT, OPTION_PICTURE,
	OPTION_PICTURE_TEXT, OPTION_AGGREGATE, OPTION_COUNTER_VALUES, OPTION_INLINE, OPTION_LINES,
	OPTION_HOST,
};

static const struct cli_option options[] = {
	{ 't', "to", "FORMAT", "write this format, one of those below" },
	{ 'f', "format", "VARIANT", "the form of the output: a variant of FORMAT, listed below it" },
	{ 'o', "output", "OUT",
	  "write to OUT, a file ('-' is standard output; default: FILE\n"
	  "with the extension of FORMAT), or to a WHERE of --connect" },
	{ OPTION_CONNECT, "connect", "[=WHERE]",
	  "send the output to WHERE: tcp:HOST:PORT, udp:HOST:PORT,\n"
	  "unix:PATH or unix:@NAME (annotate: the default is the Annotate\n"
	  "daemon of this machine)" },
	{ OPTION_SERVE, "serve", "[=[HOST:]PORT]",
	  "wait for a client to connect and send it the output (default\n"
	  "HOST: the loopback interface; tptp: the default PORT is 10002)" },
	{ 'e', "event", "EVENT", "folded, flamegraph: use this event to weigh samples" },
	{ OPTION_INLINE, "inline", NULL, "call chains: treat inlined functions as called ones" },
	{ OPTION_LINES, "lines", NULL, "pprof: with lines of source files" },
	{ OPTION_HOST, "host", "NAME", "parquet: the name of the machine (default: the recorded one)" },
	{ OPTION_ARRAYS, "arrays", NULL,
	  "heph: write call chains as arrays, and texts at full length;\n"
	  "existing readers do not take such a trace" },
	{ OPTION_SAMPLE_TEXT, "sample-text", NULL,
	  "annotate: write a line of text for each PC sample" },
	{ OPTION_PICTURE, "picture", "FILE", "annotate: add this image" },
	{ OPTION_PICTURE_TEXT, "picture-text", "TEXT", "annotate: the text of the image" },
	{ OPTION_AGGREGATE, "aggregate", NULL,
	  "tptp: write one pair of messages for each thread and method" },
	{ OPTION_COUNTER_VALUES, "counter-values", "HOW",
	  "read counter values of FILE as delta, cumulative or auto\n"
	  "(default auto)" },
	{ OPTION_COUNTER_VALUES, "counters", "HOW", NULL },
	FILTERS_OPTIONS,
	SYMBOLS_OPTIONS,
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman convert [FILE] --to FORMAT [-o OUT]\n"
	"\n"
	"Convert the capture FILE (default kbarman.cap; '-' is standard input) to another format.\n"
	"\n",
	.options = options,
	.column = 26,
	.tail =
	"\n"
	"formats:\n",
};

struct convert {
	const struct kb_export *export;
	const char *extension;		/* of the variant */
	const char *input;
	const char *output;		/* NULL: default, or a connection */
	bool connect, serve;
	const char *where;		/* NULL: the daemon of this machine */
	const char *picture;		/* file */
	enum kb_counters counters;
	struct filters filters;
	struct kb_symbol_options symbols;
	struct kb_export_options options;
	char *path;			/* of the output; NULL: a connection */
	bool written;			/* path is complete */
};

static void say(void *context, const char *sentence)
{
	(void)context;
	cli_warn("%s", sentence);
}

static int help(void)
{
	const struct kb_export *const *e;
	const char *const *format;

	cli_print_usage(&usage);
	for (e = kb_export_all(); *e; e++) {
		printf("  %-12s %s\n", (*e)->name, (*e)->description);
		for (format = (*e)->formats; format && *format; format += 2)
			printf("  %-12s   --format=%s (%s)\n", "", format[0], format[1]);
	}
	return fflush(stdout) ? CLI_IMPOSSIBLE : CLI_OK;
}

/* "heph, annotate, …" for messages. */
static const char *export_names(void)
{
	static char names[256];
	const struct kb_export *const *e;
	size_t at = 0;

	for (e = kb_export_all(); *e && at < sizeof(names); e++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", at ? ", " : "",
				       (*e)->name);
	return names;
}

static bool parse_counters(const char *text, enum kb_counters *counters)
{
	static const char *const names[] = { "auto", "delta", "cumulative" };
	int i;

	for (i = 0; i < 3; i++) {
		if (strcmp(text, names[i]) == 0) {
			*counters = (enum kb_counters)i;
			return true;
		}
	}
	return false;
}

/* Takes one option. Returns 0, or an exit status after a message. */
static int parse_option(struct convert *c, int option, const char **to)
{
	switch (option) {
	case 't':
		*to = optarg;
		return 0;
	case 'f':
		c->options.format = optarg;
		return 0;
	case 'o':
		c->output = optarg;
		return 0;
	case OPTION_CONNECT:
		c->connect = true;
		c->where = optarg;
		return 0;
	case OPTION_SERVE:
		c->serve = true;
		c->where = optarg;
		return 0;
	case 'e':
		c->options.event = optarg;
		return 0;
	case OPTION_INLINE:
		c->symbols.inlined = true;
		return 0;
	case OPTION_LINES:
		c->symbols.lines = true;
		return 0;
	case OPTION_HOST:
		c->options.host = optarg;
		return 0;
	case OPTION_ARRAYS:
		c->options.arrays = true;
		return 0;
	case OPTION_SAMPLE_TEXT:
		c->options.sample_text = true;
		return 0;
	case OPTION_PICTURE:
		c->picture = optarg;
		return 0;
	case OPTION_PICTURE_TEXT:
		c->options.picture_text = optarg;
		return 0;
	case OPTION_AGGREGATE:
		c->options.aggregate = true;
		return 0;
	case OPTION_COUNTER_VALUES:
		if (parse_counters(optarg, &c->counters))
			return 0;
		return cli_fail("--counter-values %s: give delta, cumulative or auto", optarg);
	}
	switch (filters_take(&c->filters, option, optarg)) {
	case FILTERS_TAKEN:
		return 0;
	case FILTERS_WRONG:
		return CLI_IMPOSSIBLE;
	case FILTERS_OTHER:
		break;
	}
	return symbols_take(&c->symbols, option, optarg) ? 0 : cli_usage(false, &usage);
}

/* Finds the export and its variant by name. */
static int find_export(struct convert *c, const char *to)
{
	const char *const *format;

	if (!to)
		return cli_fail("no format is given: give --to and one of: %s", export_names());
	c->export = kb_export_find(to);
	if (!c->export)
		return cli_fail("there is no format '%s': give one of: %s", to, export_names());
	c->extension = c->export->extension;
	if (!c->options.format)
		return 0;
	for (format = c->export->formats; format && *format; format += 2) {
		if (strcmp(format[0], c->options.format) == 0) {
			c->extension = format[1];
			return 0;
		}
	}
	return cli_fail("%s has no variant '%s': see 'kbarman convert --help'", to,
			c->options.format);
}

/*
 * Returns the argument, which is the capture; NULL after a message. The message mentions -o if the
 * argument seems to be the name of the output.
 */
static const char *find_input(const struct convert *c, int argc, char **argv)
{
	const char *last = argv[argc - 1];
	int words = argc - optind;
	bool gone = words == 1 && strcmp(last, "-") && access(last, F_OK) && errno == ENOENT;

	if (!c->output && !c->connect && !c->serve && (words == 2 || gone)) {
		cli_fail("%s%s: the argument is the capture to read; to write a file of that name, "
			 "give -o %s", last, gone ? " is not there" : "", last);
		return NULL;
	}
	return cli_input(NULL, argc, argv, CLI_CAPTURE);
}

/* Returns false and sets *@status if nothing is left to do. */
static bool parse(struct convert *c, int argc, char **argv, int *status)
{
	const char *to = NULL;
	int option;

	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		if (option == 'h') {
			*status = help();
			return false;
		}
		*status = parse_option(c, option, &to);
		if (*status)
			return false;
	}
	symbols_end(&c->symbols);
	c->input = find_input(c, argc, argv);
	*status = c->input ? find_export(c, to) : CLI_IMPOSSIBLE;
	if (!*status && c->output && cli_is_connection(c->output)) {
		c->connect = true;
		c->where = c->output;
		c->output = NULL;
	}
	if (!*status && c->export->directory && (c->connect || c->serve))
		*status = cli_fail("%s is a directory and can't be sent: give -o DIRECTORY",
				   c->export->name);
	if (!*status && c->connect + c->serve + !!c->output > 1)
		*status = cli_fail("give only one of -o, --connect and --serve");
	if (!*status && c->serve && !c->where && strcmp(c->export->name, "tptp") == 0)
		c->where = TPTP_PORT;
	if (!*status && c->serve && !c->where)
		*status = cli_fail("--serve needs a port: give --serve=PORT");
	if (!*status && c->connect && !c->where && strcmp(c->export->name, "annotate") != 0)
		*status = cli_fail("--connect needs an address: give --connect=tcp:HOST:PORT");
	return *status == 0;
}

/* Returns FILE with the extension of the format, or "-" for standard input, to be freed. */
static char *default_output(const struct convert *c)
{
	const char *slash = strrchr(c->input, '/');
	const char *dot = strrchr(slash ? slash + 1 : c->input, '.');
	size_t stem = dot && dot != (slash ? slash + 1 : c->input) ? (size_t)(dot - c->input) :
								     strlen(c->input);
	char *path;

	if (strcmp(c->input, "-") == 0)
		return strdup("-");
	if (asprintf(&path, "%.*s%s", (int)stem, c->input, c->extension) < 0)
		return NULL;
	return path;
}

static bool same_file(const char *one, const char *other)
{
	struct stat a, b;

	return strcmp(one, "-") != 0 && strcmp(other, "-") != 0 && stat(one, &a) == 0 &&
	       stat(other, &b) == 0 && S_ISREG(a.st_mode) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static int map_picture(struct convert *c)
{
	int fd = open(c->picture, O_RDONLY | O_CLOEXEC);
	struct stat st;
	int status = 0;
	void *map;

	if (fd < 0)
		return cli_fail("%s: %s", c->picture, strerror(errno));
	if (fstat(fd, &st) < 0) {
		status = cli_fail("%s: %s", c->picture, strerror(errno));
	} else if (!S_ISREG(st.st_mode) || !st.st_size) {
		status = cli_fail("%s: not an image: give a regular file that is not empty",
				  c->picture);
	} else {
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map == MAP_FAILED) {
			status = cli_fail("%s: %s", c->picture, strerror(errno));
		} else {
			c->options.picture = map;
			c->options.picture_bytes = (uint64_t)st.st_size;
		}
	}
	close(fd);
	return status;
}

/* The side file with messages of Annotate clients, to be freed. NULL: there is none. */
static char *find_beside(const struct convert *c, const struct kb_trace *trace)
{
	if (strcmp(c->export->name, "annotate"))
		return NULL;
	return kb_side_find(kb_trace_barman(trace), c->input, ANNOTATE_SIDE_SUFFIX);
}

static int run_to(struct convert *c, struct kb_trace *trace, int fd, struct kb_error *err)
{
	struct kb_out *out;
	int result = kb_out_fd(&out, fd);
	char *beside;

	if (result)
		return kb_error_set(err, result, KB_NO_OFFSET, "out of memory");
	kb_out_behind(out);
	beside = find_beside(c, trace);
	c->options.beside = beside;
	c->options.filter = filters_get(&c->filters);
	result = kb_export_run(c->export, trace, &c->options, out, err);
	kb_out_destroy(out);
	free(beside);
	return result;
}

/* The name of the capture without its folder and its last extension, to be freed. */
static char *capture_name(const struct convert *c)
{
	const char *slash = strrchr(c->input, '/'), *base = slash ? slash + 1 : c->input;
	const char *dot = strrchr(base, '.');

	if (strcmp(c->input, "-") == 0)
		base = "capture";
	return dot && dot > base ? strndup(base, (size_t)(dot - base)) : strdup(base);
}

/* Runs an export that adds to a directory of many captures. */
static int into_directory(struct convert *c, struct kb_trace *trace, struct kb_error *err, int *result)
{
	char *name = capture_name(c);
	struct kb_out *out = NULL;
	bool made = false;
	int status = 0;

	if (!name || kb_out_memory(&out)) {
		status = cli_fail("out of memory");
	} else if (strcmp(c->path, "-") == 0) {
		status = cli_fail("%s is a directory of files: give -o DIRECTORY", c->export->name);
	} else if (!(made = !mkdir(c->path, 0777)) && errno != EEXIST) {
		status = cli_fail("can't make %s: %s", c->path, strerror(errno));
	} else {
		/* a file that grows too large must be an error, after which all are removed */
		signal(SIGXFSZ, SIG_IGN);
		c->options.directory = c->path;
		c->options.name = name;
		c->options.filter = filters_get(&c->filters);
		*result = kb_export_run(c->export, trace, &c->options, out, err);
		c->written = *result >= 0;
		if (made && !c->written)
			rmdir(c->path);		/* unless somebody has put something into it */
	}
	kb_out_destroy(out);
	free(name);
	return status;
}

/* Runs an export that writes a directory of files. */
static int to_directory(struct convert *c, struct kb_trace *trace, struct kb_error *err, int *result)
{
	struct cli_directory directory = { 0 };
	struct kb_out *out;
	int status;

	if (kb_out_memory(&out))
		return cli_fail("out of memory");
	if (strcmp(c->path, "-") == 0)
		status = cli_fail("%s is a directory of files: give -o DIRECTORY", c->export->name);
	else
		status = cli_directory_open(&directory, c->path);
	if (!status) {
		c->options.directory = directory.temporary;
		c->options.filter = filters_get(&c->filters);
		*result = kb_export_run(c->export, trace, &c->options, out, err);
		if (*result < 0)
			cli_directory_abandon(&directory);
		else
			status = cli_directory_commit(&directory);
		c->written = *result >= 0 && !status;
	}
	kb_out_destroy(out);
	return status;
}

static int to_file(struct convert *c, struct kb_trace *trace, struct kb_error *err, int *result)
{
	struct cli_output output;
	int status;

	if (same_file(c->input, c->path))
		return cli_fail("%s is the capture itself: give another file with -o", c->path);
	status = cli_output_open(&output, c->path);
	if (status)
		return status;
	*result = run_to(c, trace, output.fd, err);
	if (*result < 0)
		cli_output_abandon(&output);
	else
		status = cli_output_commit(&output);
	c->written = *result >= 0 && !status;
	return status;
}

#ifndef KBARMAN_WITHOUT_tptp
/* TPTP is sent as XML unless the client has said that it takes the binary form. */
static void negotiate(struct convert *c, int fd)
{
	bool want_binary = c->options.format && strcmp(c->options.format, "binary") == 0;

	if (kb_tptp_negotiate(fd, want_binary, NEGOTIATION_MS) > 0)
		return;
	if (want_binary)
		cli_warn("the client did not say that it takes the binary form: sending XML");
	c->options.format = NULL;
}
#endif

static int to_listener(struct convert *c, struct kb_trace *trace, struct kb_error *err, int *result)
{
	int fd = c->serve ? cli_serve(c->where) :
		 c->where ? cli_connect(c->where) : cli_connect_annotate();

	if (fd < 0)
		return CLI_IMPOSSIBLE;
#ifndef KBARMAN_WITHOUT_tptp
	if (strcmp(c->export->name, "tptp") == 0)
		negotiate(c, fd);
#endif
	c->options.tid = (int32_t)gettid();
	c->options.pid = (int32_t)getpid();
	*result = run_to(c, trace, fd, err);
	cli_hang_up(fd);
	if (*result == -ECONNREFUSED)
		kb_error_set(err, *result, KB_NO_OFFSET,
			     "%s: nobody listens there: start the receiver first", c->where);
	else if (*result == -EPIPE || *result == -ECONNRESET)
		kb_error_set(err, *result, KB_NO_OFFSET,
			     "the listener closed the connection before the end of the capture");
	else if (*result >= 0)
		cli_note("sent %" PRIu64 " records to %s", kb_trace_nr_shown(trace),
			 c->serve ? "the client" : c->where ?: "gatord");
	return 0;
}

static void confine(const struct convert *c)
{
	cli_sandbox(&(struct cli_sandbox) { .inputs = &c->input, .nr_inputs = 1, .threads = true,
					    .network = c->connect || c->serve,
					    .output = c->path });
}

static int convert(struct convert *c)
{
	const struct kb_trace_options how = {
		.size = sizeof(how), .symbols = &c->symbols, .counters = c->counters,
	};
	struct kb_symbolizer *symbolizer;
	struct kb_error err = { 0 };
	struct kb_trace *trace;
	int status, result = 0;

	if (c->picture && map_picture(c))
		return CLI_IMPOSSIBLE;
	if (!c->connect && !c->serve) {
		c->path = c->output ? strdup(c->output) : default_output(c);
		if (!c->path)
			return cli_fail("out of memory");
	}
	cli_progress(NULL, c->path && strcmp(c->path, "-") == 0);
	confine(c);
	if (kb_trace_open(&trace, c->input, &how, &err))
		return cli_fail_error(&err);
	symbolizer = kb_trace_symbolizer(trace, &err);
	if (!symbolizer) {
		kb_trace_close(trace);
		return cli_fail_error(&err);
	}
	if (filters_check(&c->filters, trace, c->input)) {
		kb_trace_close(trace);
		return CLI_IMPOSSIBLE;
	}
	status = (c->connect || c->serve ? to_listener : c->export->adds ? into_directory :
		  c->export->directory ? to_directory : to_file)(c, trace, &err, &result);
	cli_progress_end();
	if (!status && result < 0) {
		status = cli_fail_error(&err);
	} else if (!status) {
		kb_symbolizer_complaints(symbolizer, say, NULL);
		if (result > 0) {
			cli_warn("%s", kb_error_text(&err));
			status = CLI_DAMAGED;
		}
		if (c->written)
			cli_wrote(c->path, kb_trace_nr_shown(trace));
	}
	kb_trace_close(trace);
	return status;
}

int cmd_convert(int argc, char **argv)
{
	struct convert c = {
		.options = { .size = sizeof(c.options), .say = say },
		.symbols.size = sizeof(c.symbols),
	};
	int status;

	signal(SIGPIPE, SIG_IGN);
	status = parse(&c, argc, argv, &status) ? convert(&c) : status;
	filters_release(&c.filters);
	free(c.path);
	return status;
}
