/* SPDX-License-Identifier: MIT */
/*
 * The output of `record`. A capture grows in FILE.partial, which can be read at any time. The
 * kernel's symbols are in FILE.partial.kallsyms. Both files get their final names at the end. A
 * small capture is replaced by a copy (FILE.compact) without unused rows of tables. Standard
 * output, pipes and devices get the whole capture at the end, from a temporary file without a
 * name.
 */
#ifndef KB_CLI_RECORD_OUTPUT_H
#define KB_CLI_RECORD_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct record_output {
	int fd;			/* a regular file, for the capture */
	const char *name;	/* the name for messages */
	char *final;		/* NULL if spooled to standard output */
	char *partial;		/* NULL if spooled */
	char *compact;		/* name of the copy without unused rows */
	char *side_final, *side_partial;
	FILE *side;		/* open while it is written */
	bool spooled;
	bool has_side;
	bool kept;		/* the partial file and its side file stay */
};

void record_output_init(struct record_output *out);

/* Returns 0, or CLI_IMPOSSIBLE after a message. */
int record_output_open(struct record_output *out, const char *path);

/* Opens the side file. NULL: there is none, after a message if opening failed. */
FILE *record_output_side(struct record_output *out);
/* Opens the side file again, to append. NULL: there is none. */
FILE *record_output_side_again(struct record_output *out);
/* Closes the side file. Removes it unless it is @useful. */
void record_output_side_done(struct record_output *out, bool useful);

/* The capture's name without directories, for the fact "name". NULL: it has none. */
const char *record_output_name(const struct record_output *out);

/* The size of the capture in bytes. */
uint64_t record_output_size(const struct record_output *out);

/*
 * record_output_compact() opens a file for a smaller copy of the partial file, or returns -1.
 * record_output_compact_done() closes it; if the copy is @whole, it gets the final name instead of
 * the partial file.
 */
int record_output_compact(struct record_output *out);
void record_output_compact_done(struct record_output *out, int fd, bool whole);

/*
 * Renames the files to their final names, or copies a spooled capture to the output. Removes the
 * files beside a former capture of the same name. Returns 0, or an exit status after a message.
 */
int record_output_commit(struct record_output *out);

/* After a commit: saves the symbols of the sampled code beside the capture. */
void record_output_symbols(struct record_output *out);

/* Keeps the partial file as it is. False: there is none. */
bool record_output_keep(struct record_output *out);

/* Removes files that were neither committed nor kept. */
void record_output_close(struct record_output *out);

/* Prints the summary on standard error. */
struct kb_device;
struct kb_recorder;
void record_summary(struct kb_device *device, struct kb_recorder *recorder, const char *name,
		    uint64_t bytes);

#endif
