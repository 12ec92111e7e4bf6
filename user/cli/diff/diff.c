// SPDX-License-Identifier: MIT
/*
 * kbarman diff: what differs between two groups of captures, and how sure that is. The library
 * compares (kbarman/diff.h); this verb says what, and turns conditions into an exit status.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kbarman/diff_export.h>

#include "cli/base/cli.h"
#include "cli/base/filters.h"
#include "cli/base/sandbox.h"
#include "cli/base/symbols.h"
#include "cli/diff/conditions.h"
#include "cli/diff/json.h"

#define CONDITIONS_MAX	32

/* Beside those of all verbs. */
#define DIFF_HOLDS	3

enum {
	OPTION_ONE_RUN = 512, OPTION_FAIL_IF = 256, OPTION_LEVEL, OPTION_PER_SECOND, OPTION_PERCENT, OPTION_ALL,
	OPTION_ROWS, OPTION_FORCE, OPTION_WAITS, OPTION_INLINE,
};

static const struct cli_option options[] = {
	{ OPTION_FAIL_IF, "fail-if", "CONDITION",
	  "exit with status 3 if this is certain, as in cpu:+2%@95 (CPU time rose\n"
	  "by more than 2 %), wait/xz:+10%, ipc:-1%; may be given several times" },
	{ OPTION_ONE_RUN, "one-run", NULL,
	  "let --fail-if judge by one capture a side, of which how much two runs\n"
	  "differ is not known" },
	{ OPTION_LEVEL, "confidence", "PERCENT", "how sure is certain (default 95)" },
	{ OPTION_PER_SECOND, "per-second", NULL,
	  "compare what happens in a second, not in a run" },
	{ OPTION_PERCENT, "percent-limit", "N",
	  "leave out rows below N percent of their table (default 0.5)" },
	{ OPTION_ALL, "all", NULL, "show all rows, also those whose difference is not certain" },
	{ OPTION_ROWS, "rows", "N", "show at most N rows of a table (default 20)" },
	FILTERS_OPTIONS,
	{ OPTION_FORCE, "force", NULL, "compare also what can't be compared" },
	{ 't', "to", "FORMAT",
	  "write this format instead, for a viewer: html, flamegraph, folded,\n"
	  "pprof, speedscope" },
	{ 'o', "output", "OUT", "write to OUT, a file ('-' is standard output), with --to" },
	{ OPTION_WAITS, "waits", NULL, "in that file: time off the CPU, not on it" },
	{ OPTION_INLINE, "inline", NULL, "treat inlined functions as called ones" },
	SYMBOLS_OPTIONS,
	CLI_COLOR_OPTION,
	{ 'j', "json", NULL, "print JSON, one object per line, and everything" },
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman diff [OPTIONS] A B\n"
	"       kbarman diff [OPTIONS] A… -- B…\n"
	"\n"
	"Show what differs between captures A and B, and how sure that is: CPU time, waits,\n"
	"delays, counters, idling, interrupts. Give several captures of each, if you can.\n"
	"\n",
	.options = options,
	.column = 25,
	.tail =
	"\n"
	"Exit status: 0 compared; 1 a capture is damaged, its undamaged part was compared; 2 not\n"
	"compared; 3 a condition of --fail-if holds.\n",
};

struct diff {
	char **paths;
	unsigned int nr_of_a, nr;	/* those of A come first */
	struct kb_diff_options how;
	struct kb_symbol_options symbols;
	struct kb_diff_text_options text;
	struct kb_diff_write_options write;
	const struct kb_diff_format *format;
	const char *output;
	struct diff_condition conditions[CONDITIONS_MAX];
	unsigned int nr_conditions;
	struct filters filters;
	bool json, force, one_run;

	struct kb_differ *differ;
	const struct kb_diff *got;
	bool damaged;
	unsigned int nr_empty;		/* captures of which options choose nothing */
};

static double level_of(const struct diff *diff)
{
	return diff->how.level > 0 ? diff->how.level : 0.95;
}

/* ---- arguments ---- */

static bool parse_number(const char *text, double low, double high, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return end != text && !*end && *value >= low && *value <= high;
}

static int take_option(struct diff *diff, int option)
{
	double value;

	switch (option) {
	case OPTION_FAIL_IF:
		if (diff->nr_conditions == CONDITIONS_MAX)
			return cli_fail("at most %d times --fail-if", CONDITIONS_MAX);
		return diff_condition_parse(&diff->conditions[diff->nr_conditions++], optarg);
	case OPTION_LEVEL:
		if (!parse_number(optarg, 50, 99.9999, &value))
			return cli_fail("--confidence %s: give percent, from 50 to 99.9999", optarg);
		diff->how.level = value / 100;
		return CLI_OK;
	case OPTION_PERCENT:
		if (!parse_number(optarg, 0, 100, &value))
			return cli_fail("--percent-limit %s: give a number from 0 to 100", optarg);
		diff->how.least = value > 0 ? value / 100 : -1;
		return CLI_OK;
	case OPTION_ROWS:
		if (!parse_number(optarg, 1, 1e9, &value))
			return cli_fail("--rows %s: give a number", optarg);
		diff->text.most = (uint32_t)value;
		return CLI_OK;
	default:
		diff->format = kb_diff_format_find(optarg);
		return diff->format ? CLI_OK : cli_fail("--to %s: give html, flamegraph, folded, "
							"pprof or speedscope", optarg);
	}
}

/* Options that are only remembered. False: it is none of these. */
static bool take_word(struct diff *diff, int option)
{
	switch (option) {
	case OPTION_PER_SECOND:
		diff->how.per_second = true;
		return true;
	case OPTION_ALL:
		diff->text.all = true;
		return true;
	case OPTION_FORCE:
		diff->force = true;
		return true;
	case OPTION_ONE_RUN:
		diff->one_run = true;
		return true;
	case OPTION_WAITS:
		diff->write.waits = true;
		return true;
	case OPTION_INLINE:
		diff->symbols.inlined = true;
		return true;
	case 'j':
		diff->json = true;
		return true;
	case 'o':
		diff->output = optarg;
		return true;
	}
	return symbols_take(&diff->symbols, option, optarg);
}

/* The number of words behind the first "--"; -1: there is none. getopt_long() takes it away. */
static int words_behind(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return argc - i - 1;
	return -1;
}

static int take_paths(struct diff *diff, int argc, char **argv, int behind)
{
	diff->paths = argv + optind;
	diff->nr = (unsigned int)(argc - optind);
	if (behind >= 0 && behind < (int)diff->nr)
		diff->nr_of_a = diff->nr - (unsigned int)behind;
	else if (diff->nr == 2)
		diff->nr_of_a = 1;
	if (!diff->nr_of_a || diff->nr_of_a == diff->nr)
		return cli_fail("give two captures, or those of A, then --, then those of B");
	if (diff->nr_conditions && diff->nr == 2 && !diff->one_run)
		return cli_fail("--fail-if: how much two runs of the same work differ shows in no "
				"single capture: give several captures of each side, or --one-run "
				"to judge by one");
	if (!diff->format != !diff->output)
		return cli_fail(diff->format ? "give the file to write with -o" :
					       "say the format of the file with --to");
	return CLI_OK;
}

static int parse(struct diff *diff, int argc, char **argv)
{
	int behind = words_behind(argc, argv), option, status;
	enum filters_taken taken;

	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		if (option == 'h' || option == '?') {
			status = cli_usage(option == 'h', &usage);
			return status ? status : -1;
		}
		if (take_word(diff, option))
			continue;
		taken = filters_take(&diff->filters, option, optarg);
		if (taken == FILTERS_WRONG)
			return CLI_IMPOSSIBLE;
		if (taken == FILTERS_TAKEN)
			continue;
		status = take_option(diff, option);
		if (status)
			return status;
	}
	symbols_end(&diff->symbols);
	return take_paths(diff, argc, argv, behind);
}

/* ---- comparing ---- */

static void complain(void *context, const char *sentence)
{
	(void)context;
	cli_warn("%s", sentence);
}

static int add(struct diff *diff, unsigned int i)
{
	const struct kb_trace_options how = { .size = sizeof(how), .symbols = &diff->symbols };
	struct kb_error err = { 0 };
	struct kb_trace *trace;
	char why[FILTERS_WHY];
	int ret;

	if (kb_trace_open(&trace, diff->paths[i], &how, &err))
		return cli_fail_error(&err);
	ret = filters_choose(&diff->filters, trace, diff->paths[i], why);
	if (ret < 1)
		cli_warn("%s", why);
	if (ret < 0) {
		kb_trace_close(trace);
		return CLI_IMPOSSIBLE;
	}
	diff->nr_empty += !ret;
	ret = kb_differ_add(diff->differ, i >= diff->nr_of_a, trace, &err);
	if (ret > 0)
		cli_warn("%s", kb_error_text(&err));
	diff->damaged |= ret > 0;
	if (ret >= 0 && cli_verbosity() > 0)
		kb_symbolizer_complaints(kb_trace_symbolizer(trace, NULL), complain, NULL);
	kb_trace_close(trace);
	return ret < 0 ? cli_fail_error(&err) : CLI_OK;
}

static int compare(struct diff *diff)
{
	struct kb_error err = { 0 };
	int status = CLI_OK;

	diff->how.filter = filters_get(&diff->filters);
	if (kb_differ_create(&diff->differ, &diff->how, &err))
		return cli_fail_error(&err);
	for (unsigned int i = 0; i < diff->nr && !status; i++)
		status = add(diff, i);
	cli_progress_end();
	if (status)
		return status;
	if (diff->nr_empty == diff->nr)
		return cli_fail("nothing is left to compare");
	return kb_differ_judge(diff->differ, &diff->got, &err) ? cli_fail_error(&err) : CLI_OK;
}

/* ---- results ---- */

/* The captures of a side as one text, for the head; NULL without memory. */
static char *list_paths(const struct diff *diff, unsigned int from, unsigned int until)
{
	char *list = strdup(""), *longer;

	for (unsigned int i = from; i < until && list; i++) {
		if (asprintf(&longer, "%s%s%s", list, i > from ? " " : "", diff->paths[i]) < 0)
			longer = NULL;
		free(list);
		list = longer;
	}
	return list;
}

static int print_text(struct diff *diff)
{
	char *a = list_paths(diff, 0, diff->nr_of_a), *b = list_paths(diff, diff->nr_of_a, diff->nr);
	struct kb_out *out;
	int ret = a && b ? kb_out_fd(&out, STDOUT_FILENO) : -ENOMEM;

	if (!ret) {
		diff->text.sides[0] = a;
		diff->text.sides[1] = b;
		diff->text.filter = diff->filters.text;
		diff->text.colors = cli_color(stdout);
		ret = kb_diff_text(diff->got, &diff->text, out, NULL);
		kb_out_destroy(out);
	}
	free(a);
	free(b);
	return ret;
}

static int write_file(struct diff *diff)
{
	struct cli_output output;
	char *title = NULL;
	struct kb_out *out;
	int ret;

	if (cli_output_open(&output, diff->output))
		return CLI_IMPOSSIBLE;
	if (diff->nr == 2 && asprintf(&title, "%s, then %s", diff->paths[0], diff->paths[1]) > 0)
		diff->write.title = title;
	ret = kb_out_fd(&out, output.fd);
	if (!ret) {
		ret = kb_diff_write(diff->got, diff->format, &diff->write, out, NULL);
		kb_out_destroy(out);
	}
	free(title);
	if (!ret)
		return cli_output_commit(&output);
	cli_warn("can't write %s: %s", output.path, strerror(-ret));
	cli_output_abandon(&output);
	return CLI_IMPOSSIBLE;
}

static int print(struct diff *diff)
{
	int ret = 0;

	if (diff->format)
		return write_file(diff);
	ret = diff->json ? diff_print_json(diff->got, level_of(diff), diff->filters.text) :
			   print_text(diff);
	return ret ? cli_fail("can't write standard output: %s", strerror(-ret)) : CLI_OK;
}

static int check_conditions(struct diff *diff)
{
	bool any = false;

	for (unsigned int i = 0; i < diff->nr_conditions; i++) {
		const struct diff_condition *condition = &diff->conditions[i];
		const struct kb_diff_row *row = NULL;
		bool holds;

		if (diff_condition_check(condition, diff->got, level_of(diff), &holds, &row))
			return CLI_IMPOSSIBLE;
		any |= holds;
		if (diff->json && diff_print_condition(condition, holds, row))
			return cli_fail("can't write standard output");
		if (holds)
			cli_warn("%s: it changed by %+.2f %%, from %.9g to %.9g", condition->text,
				 100 * row->change, row->a, row->b);
	}
	return any ? DIFF_HOLDS : CLI_OK;
}

/* Numbers that mean different things are not compared unless somebody insists. */
static int check_doubts(const struct diff *diff, const struct kb_diff *got)
{
	bool grave = false;

	for (uint32_t i = 0; i < got->nr_doubts && !diff->force; i++) {
		if (!got->doubts[i].grave)
			continue;
		cli_warn("the captures can't be compared: %s", got->doubts[i].sentence);
		grave = true;
	}
	return grave ? cli_fail("--force compares them nevertheless") : CLI_OK;
}

static int run(struct diff *diff)
{
	int status;

	cli_progress(NULL, false);
	cli_sandbox(&(struct cli_sandbox){ .inputs = (const char *const *)diff->paths,
					   .nr_inputs = (int)diff->nr, .output = diff->output });
	status = compare(diff);
	if (status || !diff->got)
		return status ? status : CLI_IMPOSSIBLE;
	status = check_doubts(diff, diff->got);
	if (!status)
		status = print(diff);
	if (!status)
		status = check_conditions(diff);
	return status || !diff->damaged ? status : CLI_DAMAGED;
}

int cmd_diff(int argc, char **argv)
{
	struct diff diff = {
		.how.size = sizeof(diff.how),
		.symbols.size = sizeof(diff.symbols),
		.text.size = sizeof(diff.text),
		.write.size = sizeof(diff.write),
	};
	int status = parse(&diff, argc, argv);

	if (!status)
		status = run(&diff);
	kb_differ_destroy(diff.differ);
	filters_release(&diff.filters);
	for (unsigned int i = 0; i < diff.nr_conditions; i++)
		diff_condition_release(&diff.conditions[i]);
	return status < 0 ? CLI_OK : status;
}
