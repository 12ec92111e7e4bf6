/* SPDX-License-Identifier: MIT */
/*
 * cli/dump/: kbarman dump and check: the table of formats, and a file for each that prints what is
 * in one.
 *
 * The formats of `dump` and `check`: formats.c has one row for each format. A new format needs a
 * row there, and a dump and a check function here.
 */
#ifndef KB_CLI_DUMP_FORMATS_H
#define KB_CLI_DUMP_FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/json.h"

#define FORMAT_PROBE_BYTES	4096

struct cli_format {
	const char *name;	/* the name for messages: "Barman capture" */
	/*
	 * Are these the first bytes (FORMAT_PROBE_BYTES, fewer only if the file is shorter) of a
	 * file of this format? The probes are called in the order of the rows: strict ones come
	 * first.
	 */
	bool (*probe)(const uint8_t *start, size_t length);
	/*
	 * Prints the content of the file at @path ("-": standard input) to @json. Complains with
	 * cli_warn(). Returns an exit status.
	 */
	int (*dump)(const char *path, struct kb_json *json);
	/*
	 * Reads the whole file and prints nothing. Calls @say for each error, with one sentence
	 * that has the offset. Returns an exit status; CLI_OK: the file is valid.
	 */
	int (*check)(const char *path, void (*say)(const char *sentence));
};

/*
 * Returns the format of the file at *@path, or NULL after a message. A pipe can be read from its
 * beginning afterwards. A named pipe becomes standard input, and *@path "-".
 */
const struct cli_format *cli_format_of(const char **path);

/* All formats. The last entry has no name. */
const struct cli_format *cli_formats(void);

bool probe_barman(const uint8_t *start, size_t length);
int dump_barman(const char *path, struct kb_json *json);
int check_barman(const char *path, void (*say)(const char *sentence));

bool probe_annotate(const uint8_t *start, size_t length);
int dump_annotate(const char *path, struct kb_json *json);
int check_annotate(const char *path, void (*say)(const char *sentence));

bool probe_heph(const uint8_t *start, size_t length);
int dump_heph(const char *path, struct kb_json *json);
int check_heph(const char *path, void (*say)(const char *sentence));

bool probe_tptp(const uint8_t *start, size_t length);
int dump_tptp(const char *path, struct kb_json *json);
int check_tptp(const char *path, void (*say)(const char *sentence));

#endif
