/* SPDX-License-Identifier: MIT */
/*
 * Where `record` writes. A capture grows in FILE.partial, which can be read at any
 * time, with the kernel's symbols in FILE.partial.kallsyms, and both get their
 * final names at the end; if it is small, without the rows of tables that it did not
 * need, by a copy (FILE.compact). Standard output, pipes and devices get all of it at the
 * end, from a temporary file without a name.
 */
#ifndef KBARMAN_CLI_RECORD_OUTPUT_H
#define KBARMAN_CLI_RECORD_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct record_output {
	int fd;			/* a regular file, for the capture */
	const char *name;	/* as messages say it */
	char *final;		/* NULL if spooled to standard output */
	char *partial;		/* NULL if spooled */
	char *compact;		/* name of the copy without unused rows */
	char *side_final, *side_partial;
	FILE *side;		/* while it is written */
	bool spooled;
	bool has_side;
	bool kept;		/* partial and its side file stay */
};

void record_output_init(struct record_output *out);

/* 0, or CLI_IMPOSSIBLE after a message. */
int record_output_open(struct record_output *out, const char *path);

/* Open the side file; NULL if there is none, after a message if that is a pity. */
FILE *record_output_side(struct record_output *out);
/* Open it again, for more; NULL if there is none. */
FILE *record_output_side_again(struct record_output *out);
/* It is written; keep it only if it is @useful. */
void record_output_side_done(struct record_output *out, bool useful);

/* What the capture is called, without directories, for the fact "name"; NULL: nothing. */
const char *record_output_name(const struct record_output *out);

/* Bytes of the capture. */
uint64_t record_output_size(const struct record_output *out);

/*
 * A file for a smaller copy of the partial one, which is to get the final name
 * instead; -1 if there is none. Then whether it is whole.
 */
int record_output_compact(struct record_output *out);
void record_output_compact_done(struct record_output *out, int fd, bool whole);

/*
 * Final names, or all of it to where it goes; nothing stays beside it of another capture of
 * that name. 0, or an exit status after a message.
 */
int record_output_commit(struct record_output *out);

/* After a commit: save the symbols of what the samples hit beside the capture. */
void record_output_symbols(struct record_output *out);

/* The partial file is to stay as it is; false if there is none. */
bool record_output_keep(struct record_output *out);

/* Removes what was neither committed nor kept. */
void record_output_close(struct record_output *out);

/* The last lines on standard error. */
struct kb_device;
struct kb_recorder;
void record_summary(struct kb_device *device, struct kb_recorder *recorder, const char *name,
		    uint64_t bytes);

#endif
