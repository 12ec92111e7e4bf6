/* SPDX-License-Identifier: MIT */
/*
 * cli/base/: what every verb is made of: messages, options and their tables, output files that get
 * their names at the end, the choice of a part of a capture, the sandbox, and the process that
 * decodes for verbs with rights.
 *
 * The common part of the verbs: prototypes of the verbs, complaints, and output files that get
 * their final names only when they are complete.
 */
#ifndef KB_CLI_BASE_CLI_H
#define KB_CLI_BASE_CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <kbarman/error.h>

/* Exit statuses of every verb. */
enum cli_status {
	CLI_OK		= 0,
	CLI_DAMAGED	= 1,	/* done in part: the input is damaged */
	CLI_IMPOSSIBLE	= 2,	/* not done, for example because of wrong usage */
};

struct cli_verb {
	const char *name;
	int (*run)(int argc, char **argv);	/* argv[0]: "kbarman VERB", for getopt_long() */
	const char *summary;			/* one line for `kbarman help` */
};

/* All verbs. The last entry has no name. main() sets this. */
extern const struct cli_verb *cli_verbs;

extern const char *cli_verb_name;		/* the verb that runs; NULL: none yet */

/* Each verb has one line here and one in the table in main.c. */
int cmd_annotate(int argc, char **argv);
int cmd_bundle(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_convert(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_flight(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_push(int argc, char **argv);
int cmd_query(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_recover(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_script(int argc, char **argv);
int cmd_snapshot(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_version(int argc, char **argv);

/*
 * The tool prints all messages on standard error through these functions, as one line
 * "kbarman VERB: …". cli_fail() returns CLI_IMPOSSIBLE, for `return cli_fail(…)`.
 */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
#ifdef __clang_analyzer__	/* the analyzer sees one file at a time */
#define cli_fail(...)	(cli_fail(__VA_ARGS__), CLI_IMPOSSIBLE)
#endif
/* The same with the message of a library error. */
int cli_fail_error(const struct kb_error *err);

/* A message that is not a complaint, such as a summary. -q suppresses it. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Notes that the file or directory @path was written: its bytes, and the number of records in it, 0
 * if that is not known. Nothing is said of pipes, devices and standard output ("-").
 */
void cli_wrote(const char *path, uint64_t records);

/*
 * From now on, show the progress of the library in one line on standard error. The line appears
 * after a second, on a terminal only, and not with -q. @what: the name of the task, NULL: the
 * library's name for it. @prints: the verb prints to standard output meanwhile; then there is no
 * line if standard output is a terminal. Call this function before cli_sandbox().
 */
void cli_progress(const char *what, bool prints);
/* cli_progress_clear(): erase the line before other output. cli_progress_end(): for good. */
void cli_progress_clear(void);
void cli_progress_end(void);

/*
 * An option of a verb. The table of these is the one place for it: what getopt_long() takes, what
 * --help says and what the shells complete come from there. A table ends with a zeroed option.
 */
struct cli_option {
	int value;		/* what cli_getopt() returns; a letter is also the short option */
	const char *name;	/* of the long option; NULL: there is only the letter */
	const char *argument;	/* "FILE"; NULL: none. One that may be left out begins with '[': it
				 * is "[=WHEN]", or "[WHEN]" if there is only the letter */
	const char *help;	/* for the usage; lines with '\n' between them. NULL: @name is an older
				 * name, which works until 1.0 and is not shown (kbarman(1), OLDER NAMES) */
};

/* How to use a verb. -h is in no table: all verbs have it. */
struct cli_usage {
	const char *head;	/* of the text: the words, what the verb does, an empty line */
	const struct cli_option *options;	/* NULL: none */
	unsigned int column;	/* of the text, in which the help of options begins */
	const char *tail;	/* of the text; NULL: none */
	bool in_order;		/* options end where the first other word is */
};

/* For the table of options of a verb with colours. */
#define CLI_OPTION_COLOR	0x10000
#define CLI_COLOR_OPTION \
	{ CLI_OPTION_COLOR, "color", "[=WHEN]", \
	  "always, never or auto (default; only on a terminal)" }

/* For the table of options of a verb that records, counts or reads. */
#define CLI_CPU_OPTION	{ 'C', "cpu", "LIST", "use only these CPUs, as in 0-3,8" }

/*
 * getopt_long() for verbs. Also handles -V, -v, -q and --color. Prints a message before it returns
 * '?'; the verb then returns cli_usage(false, …).
 */
int cli_getopt(int argc, char **argv, const struct cli_usage *usage);

/*
 * Parses the value of @option, a length of time from @least to @most ns (base/duration.h). A number
 * without a unit is in units of @unit_ns. Returns 0, or an exit status after a message.
 */
int cli_take_duration(const char *option, const char *value, uint64_t unit_ns, uint64_t least,
		      uint64_t most, uint64_t *ns);
/* The same in whole milliseconds, which is also the unit of a number without one. */
int cli_take_ms(const char *option, const char *value, uint64_t least, uint64_t most, uint64_t *ms);

/* Returns -1 with -q, else how often -v was given: cli_quiet(), cli_louder(). */
int cli_verbosity(void);
void cli_quiet(void);
void cli_louder(void);

/* May the output to @stream have colours? */
bool cli_color(FILE *stream);

/* Finds the name most like @word among the names tried; NULL if no name is like it. */
struct cli_nearest {
	const char *word;
	const char *name;
	size_t far;
};

void cli_nearest_try(struct cli_nearest *nearest, const char *name);

/* Prints the version. Returns an exit status. */
int cli_version(void);

/* Prints the text of --help to stdout. */
void cli_print_usage(const struct cli_usage *usage);

/*
 * If the user asked for the usage, prints it to stdout and returns CLI_OK. Otherwise prints "try
 * --help" to stderr, after getopt's message, and returns CLI_IMPOSSIBLE.
 */
int cli_usage(bool asked, const struct cli_usage *usage);

#define CLI_CAPTURE	"kbarman.cap"	/* default of record and of the verbs that read */

/*
 * Returns the one file that a verb reads: @given (by an option, or NULL), else argv[optind], else
 * @otherwise, which must exist. Returns NULL after a message if there is no file, or two.
 */
const char *cli_input(const char *given, int argc, char **argv, const char *otherwise);

/*
 * An output file. A regular file is written under a temporary name in the folder of its final name.
 * cli_output_commit() renames it. cli_output_abandon(), a signal and exit() remove the temporary
 * file; a file that had the final name stays. "-" is standard output. Pipes and devices are written
 * directly.
 */
struct cli_output {
	FILE *stream;		/* for stdio */
	int fd;			/* the same file for write(); don't mix them unflushed */
	bool regular;
	char *path;		/* the name for messages */
	char *final;		/* NULL: the file is written directly */
	char *temporary;
};

/* Returns 0, or CLI_IMPOSSIBLE after a message. */
int cli_output_open(struct cli_output *out, const char *path);

/* The same for a capture and what belongs to it: nobody but the owner and the group can read it. */
int cli_output_open_private(struct cli_output *out, const char *path);
/* Flushes, checks for errors such as a full disk, renames. The same results. */
int cli_output_commit(struct cli_output *out);
void cli_output_abandon(struct cli_output *out);
/*
 * For a name that nobody has given: returns @name, malloc()ed, if there is no such file; otherwise frees it and
 * returns NULL after a message, also for NULL: there was no memory for it.
 */
char *cli_output_new(char *name);
/* Removes the file @temporary at exit and at a signal that ends the verb. False: there are too many. */
bool cli_output_remember(char *temporary);
/* Removes all outputs that are not committed, before an immediate end. Context: signals too. */
void cli_output_remove_all(void);
/* The sandbox permits files of the output's folder only: messages about it say so from now on. */
void cli_output_confined(void);

#endif
