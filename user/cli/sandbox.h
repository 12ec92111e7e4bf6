/* SPDX-License-Identifier: MIT */
/*
 * Files are hostile, and so is what decodes them once it was fooled: verbs that read files of
 * others give up, before they open the first one, all that decoding does not need. From then
 * on the process can read files, and write what it has open already and below the folder of
 * its output. It can't start programs, talk to anybody, or touch other processes.
 *
 * By seccomp, and for files by Landlock too; where the kernel has neither, nothing happens.
 */
#ifndef KBARMAN_SANDBOX_H
#define KBARMAN_SANDBOX_H

#include <stdbool.h>

struct cli_sandbox {
	/* "-" and pipes are kept in temporary files while they are read */
	const char *const *inputs;
	int nr_inputs;
	const char *output;	/* file or folder that is written under this name; NULL: none,
				 * "-": standard output */
	bool network;		/* the output goes to a connection */
	bool processes;		/* living ones are asked for the files that they have mapped:
				 * nobody under Landlock may */
	bool decoder;		/* ELF files are decoded by somebody else: decoder.h */
};

/*
 * Once for all. Never fails: less than all is better than nothing. DEBUGINFOD_URLS lets libdebuginfod have
 * what it needs: the network, and files of its own.
 */
void cli_sandbox(const struct cli_sandbox *wanted);

/* For verbs that read one file, and write nothing but standard output. */
void cli_sandbox_reading(const char *input);

/* "-" or a name: it can't be read twice, and has no place in a file of the user's. */
bool cli_is_pipe(const char *path);

/* --no-sandbox, for all verbs. */
void cli_sandbox_off(void);

/* Is there one to be had in this build, and was it not switched off? */
bool cli_sandbox_is_on(void);

/* Has cli_sandbox() taken rights away? */
bool cli_sandbox_is_entered(void);

/*
 * For the keeper of decoders (decoder.h): gives up all rights but to answer its parent and to
 * start decoders, which inherit what it has left. It can open no file.
 */
void cli_sandbox_keeper(void);

/* For a decoder, which can use what it has open, and memory. */
void cli_sandbox_decoder(void);

/* What the kernel has of it. @landlock: its version, 0 if it has none. */
void cli_sandbox_features(bool *seccomp, int *landlock);

#endif
