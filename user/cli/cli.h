/* SPDX-License-Identifier: MIT */
/*
 * What the verbs share: the table's prototypes, complaints, and output that is
 * under its final name only when it is whole.
 */
#ifndef KBARMAN_CLI_H
#define KBARMAN_CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <kbarman/error.h>

/* Exit statuses of every verb. */
enum cli_status {
	CLI_OK		= 0,
	CLI_DAMAGED	= 1,	/* done in part: something in the input was damaged */
	CLI_IMPOSSIBLE	= 2,	/* not done at all, wrong usage included */
};

struct cli_verb {
	const char *name;
	int (*run)(int argc, char **argv);	/* argv[0]: "kbarman VERB", for getopt_long() */
	const char *summary;			/* one line for `kbarman help` */
};

/* All of them; behind the last one there is one without a name. */
const struct cli_verb *cli_verbs(void);

extern const char *cli_verb_name;		/* the one that runs; NULL: none yet */

/* One line a verb, here and in the table in main.c. */
int cmd_annotate(int argc, char **argv);
int cmd_bundle(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_convert(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_flight(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_recover(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_script(int argc, char **argv);
int cmd_snapshot(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_version(int argc, char **argv);

/*
 * Everything that the tool says on standard error goes through these: one line,
 * "kbarman VERB: …". cli_fail() returns CLI_IMPOSSIBLE, for `return cli_fail(…)`.
 */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
#ifdef __clang_analyzer__	/* it sees one file at a time */
#define cli_fail(...)	(cli_fail(__VA_ARGS__), CLI_IMPOSSIBLE)
#endif
/* The same with the sentence of the library. */
int cli_fail_error(const struct kb_error *err);

/* What is not a complaint, a summary for example: -q keeps it away. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * From now on, what the library is at is said on standard error, if that is a terminal, the
 * user did not say -q, and it takes longer than a second: one line, called @what or, if that
 * is NULL, what the library calls it. @prints: the verb prints meanwhile. Before cli_sandbox().
 */
void cli_progress(const char *what, bool prints);
/* Takes the line away, before something else is printed; and that for good. */
void cli_progress_clear(void);
void cli_progress_end(void);

/*
 * For the table of options and the usage of a verb that has colours. @pad: blanks, to come to
 * the column of its other options.
 */
#define CLI_OPTION_COLOR	0x10000
#define CLI_COLOR_OPTION	{ "color", optional_argument, NULL, CLI_OPTION_COLOR }
#define CLI_COLOR_USAGE(pad) \
	"      --color[=WHEN]    " pad "always, never or auto (default; only on a terminal)\n"

/*
 * getopt_long() for verbs: also takes -V, -v and -q (and --color), and says itself what is
 * wrong before it returns '?', for which the answer is cli_usage(false, …).
 */
int cli_getopt(int argc, char **argv, const char *shorts, const struct option *longs);

/* -1 with -q, else the number of -v. */
int cli_verbosity(void);

/* May what goes to @stream have colours? */
bool cli_color(FILE *stream);

/* The escape in front of a share of that size, for CLI_COLOR_END behind it; NULL: none. */
#define CLI_COLOR_END	"\033[m"
const char *cli_share_color(FILE *stream, double percent);

/* The name most like @word of those tried; NULL if none is at all like it. */
struct cli_nearest {
	const char *word;
	const char *name;
	size_t far;
};

void cli_nearest_try(struct cli_nearest *nearest, const char *name);

/* Print the version, with @json what was built in. Returns an exit status. */
int cli_version(bool json);

/*
 * Usage: @text to stdout if the user asked for it (CLI_OK), else "try --help" to
 * stderr (CLI_IMPOSSIBLE), behind what getopt_long() has already said.
 */
int cli_usage(bool asked, const char *text);

#define CLI_CAPTURE	"kbarman.cap"	/* what record writes, and others read, unless told */

/*
 * The one file that a verb reads: @given (by an option; NULL: not), or the word at
 * argv[optind], or @otherwise, which is to be there. NULL after a message, also if it is given
 * twice.
 */
const char *cli_input(const char *given, int argc, char **argv, const char *otherwise);

/* A number with an optional suffix K, M, G (powers of 1024); false: not one. */
bool cli_parse_size(const char *text, unsigned long long *value);

/*
 * An output file. A regular file is written under a temporary name beside its
 * final one, and gets that by cli_output_commit(); until then, and after
 * cli_output_abandon(), a signal or an exit(), there is nothing under either.
 * "-" is standard output; pipes and devices are written directly.
 */
struct cli_output {
	FILE *stream;		/* for stdio */
	int fd;			/* the same file for write(); don't mix them unflushed */
	bool regular;
	char *path;		/* as messages say it */
	char *final;		/* NULL: written directly */
	char *temporary;
};

/* 0, or CLI_IMPOSSIBLE after a message. */
int cli_output_open(struct cli_output *out, const char *path);
/* Flushes, notices a full disk, renames; 0, or CLI_IMPOSSIBLE after a message. */
int cli_output_commit(struct cli_output *out);
void cli_output_abandon(struct cli_output *out);
/* What is not committed, for those who end at once. Context: signals too. */
void cli_output_remove_all(void);

#endif
