// SPDX-License-Identifier: MIT
/*
 * Options of all verbs. Each verb has one table, from which come what getopt_long() takes, the text
 * of --help and the list that the shells' completion asks for. This file prints its own messages
 * for the errors of getopt_long(), with the nearest option name, and handles the options that are
 * common to all verbs. What stands behind the options is the name of a file.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kbarman/version.h>

#include "base/array.h"
#include "cli/base/cli.h"
#include "cli/base/sandbox.h"

#define OPTIONS_MAX	64	/* of one verb, including the common ones */
#define SHORTS_MAX	96
#define WORD_MAX	32	/* compared bytes of a word */

enum {
	OPTION_LIST = CLI_OPTION_COLOR + 1,
	OPTION_NO_SANDBOX,
};

static const struct option common_options[] = {
	{ "help",	  no_argument,	     NULL, 'h' },
	{ "version",	  no_argument,	     NULL, 'V' },
	{ "verbose",	  no_argument,	     NULL, 'v' },
	{ "quiet",	  no_argument,	     NULL, 'q' },
	{ "no-sandbox",	  no_argument,	     NULL, OPTION_NO_SANDBOX },
	{ "list-options", no_argument,	     NULL, OPTION_LIST },	/* for completion */
};

static size_t nr_shown;		/* options that have the names of today */

static enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } color;

/*
 * The number of letters to change, to add, to leave out or to swap with a neighbour that turns one
 * word into the other.
 */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1] = { 0 };
	size_t la = strnlen(a, WORD_MAX), lb = strnlen(b, WORD_MAX);

	for (size_t j = 0; j <= lb; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t least = above[j - 1] + (a[i - 1] != b[j - 1]);

			if (above[j] + 1 < least)
				least = above[j] + 1;
			if (row[j - 1] + 1 < least)
				least = row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < least)
				least = before[j - 2] + 1;
			row[j] = least;
		}
	}
	return rows[la % 3][lb];
}

void cli_nearest_try(struct cli_nearest *nearest, const char *name)
{
	size_t length = strlen(nearest->word), far = distance(nearest->word, name);

	/* The beginning of a name counts as one wrong letter. */
	if (length > 1 && strncmp(nearest->word, name, length) == 0)
		far = 1;
	if (far <= (length < 3 ? 1 : 1 + length / 4) && (!nearest->name || far < nearest->far)) {
		nearest->name = name;
		nearest->far = far;
	}
}

static const struct option *find_option(const struct option *options, int value)
{
	for (; options->name; options++)
		if (options->val == value)
			return options;
	return NULL;
}

static void complain_long(const char *word, const struct option *options)
{
	struct cli_nearest nearest = { 0 };
	const struct option *option, *first = NULL;
	char name[WORD_MAX + 1];
	size_t length = strcspn(word, "=");

	snprintf(name, sizeof(name), "%.*s", (int)length, word);
	nearest.word = name;
	for (option = options; option->name; option++) {
		if (option < options + nr_shown)
			cli_nearest_try(&nearest, option->name);
		if (strncmp(option->name, word, length))
			continue;
		if (first) {
			cli_warn("--%s can be --%s and --%s: write the whole name", name,
				 first->name, option->name);
			return;
		}
		first = option;
	}
	if (first)
		cli_warn("--%s takes no value", first->name);
	else if (nearest.name)
		cli_warn("no option --%s: did you mean --%s?", name, nearest.name);
	else
		cli_warn("no option --%s", name);
}

/* Prints why getopt_long() has just returned ':' or '?'. */
static void complain(int what, char **argv, const struct option *options)
{
	const char *word = argv[optind - 1];
	const struct option *option = optopt ? find_option(options, optopt) : NULL;

	if (what == ':' && option)
		cli_warn("--%s needs a value", option->name);
	else if (what == ':')
		cli_warn("-%c needs a value", optopt);
	else if (optopt && optopt < 0x100 && !(option && strncmp(word, "--", 2) == 0))
		cli_warn("no option -%c", optopt);
	else
		complain_long(word + 2, options);
}

/* Prints a line "--NAME" or "--NAME=" for each option, and "-X" or "-X=". Older names are not shown. */
static void list_options(const struct option *options, const char *letters)
{
	for (const struct option *end = options + nr_shown; options < end; options++) {
		const char *value = options->has_arg == no_argument ? "" : "=";

		if (options->val == OPTION_LIST)
			continue;
		printf("--%s%s\n", options->name, value);
		if (options->val < 0x80 && strchr(letters, options->val))
			printf("-%c%s\n", options->val, value);
	}
}

static void set_color(const char *when)
{
	if (!when || !strcmp(when, "always"))
		color = COLOR_ALWAYS;
	else if (!strcmp(when, "never"))
		color = COLOR_NEVER;
	else if (!strcmp(when, "auto"))
		color = COLOR_AUTO;
	else
		exit(cli_fail("--color=%s: give always, never or auto", when));
}

/* Handles the common options. */
static bool take_common(int option, const struct option *options, const char *letters)
{
	switch (option) {
	case 'V':
		exit(cli_version());
	case 'v':
		cli_louder();
		return true;
	case 'q':
		cli_quiet();
		return true;
	case CLI_OPTION_COLOR:
		set_color(optarg);
		return true;
	case OPTION_NO_SANDBOX:
		cli_sandbox_off();
		return true;
	case OPTION_LIST:
		list_options(options, letters);
		exit(fflush(stdout) ? CLI_IMPOSSIBLE : CLI_OK);
	}
	return false;
}

static int has_argument(const struct cli_option *option)
{
	if (!option->argument)
		return no_argument;
	/* "[CHART:]NAME" is a long option's argument that begins with a part to be left out. */
	return option->argument[0] == '[' && (!option->name || option->argument[1] == '=') ?
	       optional_argument : required_argument;
}

/* The parameters of getopt_long(), from the table of a verb. */
static struct option all_options[OPTIONS_MAX];
static char all_letters[SHORTS_MAX];

static void add_letter(int letter, int has_arg)
{
	size_t length = strlen(all_letters);

	snprintf(all_letters + length, sizeof(all_letters) - length, "%c%s", letter,
		 has_arg == no_argument ? "" : has_arg == optional_argument ? "::" : ":");
}

static void add_option(size_t *nr, struct option option)
{
	if (*nr == OPTIONS_MAX - 1)
		return;
	all_options[(*nr)++] = option;
	all_options[*nr] = (struct option){ 0 };
}

/* Adds the options of @usage, either those with the names of today or those with older ones. */
static void add_options(size_t *nr, const struct cli_usage *usage, bool older)
{
	const struct cli_option *option = usage->options;

	for (; option && option->value; option++) {
		if (older != !option->help)
			continue;
		if (option->value < 0x80 && !strchr(all_letters, option->value))
			add_letter(option->value, has_argument(option));
		if (option->name)
			add_option(nr, (struct option){ option->name, has_argument(option), NULL,
							option->value });
	}
}

static void merge_options(const struct cli_usage *usage)
{
	size_t nr = 0;

	/* ':' in front: getopt returns ':' for a missing value, '?' for an unknown option. */
	snprintf(all_letters, sizeof(all_letters), "%s:", usage->in_order ? "+" : "");
	add_options(&nr, usage, false);
	for (size_t i = 0; i < ARRAY_SIZE(common_options); i++) {
		if (common_options[i].val < 0x80 && !strchr(all_letters, common_options[i].val))
			add_letter(common_options[i].val, common_options[i].has_arg);
		add_option(&nr, common_options[i]);
	}
	nr_shown = nr;
	add_options(&nr, usage, true);
}

int cli_getopt(int argc, char **argv, const struct cli_usage *usage)
{
	static const struct cli_usage *merged;
	int option;

	if (merged != usage) {
		merge_options(usage);
		merged = usage;
		opterr = 0;
	}
	do {
		option = getopt_long(argc, argv, all_letters, all_options, NULL);
		if (option == ':' || option == '?') {
			complain(option, argv, all_options);
			return '?';
		}
	} while (take_common(option, all_options, all_letters));
	return option;
}

static void print_option(const struct cli_option *option, int column)
{
	const char *line = option->help, *argument = option->argument ? option->argument : "";
	const char *blank = has_argument(option) == required_argument ? " " : "";
	int width = 0;

	if (option->value < 0x80)
		width += printf("  -%c%s", option->value, option->name ? ", " : "");
	else
		width += printf("      ");
	if (option->name)
		width += printf("--%s", option->name);
	width += printf("%s%s", blank, argument);
	if (width >= column) {
		putchar('\n');
		width = 0;
	}
	for (;;) {
		int length = (int)strcspn(line, "\n");

		printf("%*s%.*s\n", column - width, "", length, line);
		if (!line[length])
			return;
		line += length + 1;
		width = 0;
	}
}

void cli_print_usage(const struct cli_usage *usage)
{
	static const struct cli_option help = { 'h', "help", NULL, "this text" };
	const struct cli_option *option = usage->options;

	fputs(usage->head, stdout);
	for (; option && option->value; option++)
		if (option->help)
			print_option(option, (int)usage->column);
	print_option(&help, (int)usage->column);
	if (usage->tail)
		fputs(usage->tail, stdout);
}

int cli_version(void)
{
	printf("kbarman %s\n", kb_version());
	return fflush(stdout) ? CLI_IMPOSSIBLE : CLI_OK;
}

int cli_usage(bool asked, const struct cli_usage *usage)
{
	if (asked) {
		cli_print_usage(usage);
		return fflush(stdout) ? CLI_IMPOSSIBLE : CLI_OK;
	}
	return cli_fail("try 'kbarman %s --help'", cli_verb_name);
}

/* no-color.org: any value of NO_COLOR that is not empty switches colours off. */
bool cli_color(FILE *stream)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (color != COLOR_AUTO)
		return color == COLOR_ALWAYS;
	return !(no_color && *no_color) && term && strcmp(term, "dumb") && isatty(fileno(stream));
}

/* ---- the words behind a verb that are no options ---- */

const char *cli_input(const char *given, int argc, char **argv, const char *otherwise)
{
	if (!given && optind < argc)
		given = argv[optind++];
	if (optind < argc) {
		cli_fail("one FILE at a time: leave out '%s'", argv[optind]);
		return NULL;
	}
	if (given)
		return given;
	if (access(otherwise, F_OK) && errno == ENOENT) {
		cli_fail("there is no %s here: give the name of a capture", otherwise);
		return NULL;
	}
	return otherwise;
}
