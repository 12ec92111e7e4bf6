/* SPDX-License-Identifier: MIT */
/*
 * What `dump` and `check` know: one row a format in formats.c. A new format is a
 * row there, a dump function and a check function here.
 */
#ifndef KBARMAN_CLI_FORMATS_H
#define KBARMAN_CLI_FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json.h"

#define FORMAT_PROBE_BYTES	4096

struct cli_format {
	const char *name;	/* as people say it: "Barman capture" */
	/*
	 * Do these first bytes (FORMAT_PROBE_BYTES, less only if the file is shorter)
	 * look like it? Rows are asked in order: strict ones come first.
	 */
	bool (*probe)(const uint8_t *start, size_t length);
	/*
	 * Print all of the file at @path ("-": standard input) to @json. Complains
	 * with cli_warn(). Returns an exit status.
	 */
	int (*dump)(const char *path, struct kb_json *json);
	/*
	 * Read all of it and print nothing. What is wrong goes to @say, one sentence
	 * each with the offset in it. Returns an exit status: CLI_OK is a valid file.
	 */
	int (*check)(const char *path, void (*say)(const char *sentence));
};

/*
 * The format of the file at *@path; NULL after a complaint. A pipe can be read from
 * its beginning afterwards; a named one has become standard input, *@path "-".
 */
const struct cli_format *cli_format_of(const char **path);

/* All of them; behind the last one there is one without a name. */
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
