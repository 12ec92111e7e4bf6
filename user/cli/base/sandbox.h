/* SPDX-License-Identifier: MIT */
/*
 * Files may be malicious and may take over the code that decodes them. So verbs that read other
 * people's files give up all rights that decoding does not need, before they open the first file.
 * From then on the process can read files, and write to files that are open already and to the
 * folder of its output. It can't start programs, make connections, or touch other processes.
 *
 * The sandbox uses seccomp, and Landlock for files. On a kernel with neither, nothing happens.
 */
#ifndef KB_CLI_BASE_SANDBOX_H
#define KB_CLI_BASE_SANDBOX_H

#include <stdbool.h>

struct cli_sandbox {
	/* data of "-" and of pipes is kept in temporary files */
	const char *const *inputs;
	int nr_inputs;
	const char *output;	/* name of the output, a file or folder; NULL: none,
				 * "-": standard output */
	bool network;		/* the output goes to a connection */
	bool temporary;		/* the verb keeps data in temporary files, whatever the inputs are */
	bool threads;		/* a library, or what compresses, needs threads for that */
	bool child;		/* the verb waits for a process that it has started */
	bool processes;		/* the verb reads which files running processes have mapped,
				 * which Landlock forbids */
	bool decoder;		/* another process decodes ELF files: decoder.h */
};

/*
 * Enters the sandbox, for good. Never fails: part of a sandbox is better than none. With
 * DEBUGINFOD_URLS set, libdebuginfod may use the network and its own files.
 */
void cli_sandbox(const struct cli_sandbox *wanted);

/* For verbs that read one file and write only to standard output. */
void cli_sandbox_reading(const char *input);

/* Is @path ("-" or a name) not a regular file, so that it can be read only once? */
bool cli_is_pipe(const char *path);

/* The option --no-sandbox of all verbs. */
void cli_sandbox_off(void);

/* Does this build have a sandbox, and is it not switched off? */
bool cli_sandbox_is_on(void);

/* Has cli_sandbox() taken rights away? */
bool cli_sandbox_is_entered(void);

/*
 * For the keeper of decoders (decoder.h): gives up all rights except to answer the parent and to
 * start decoders, which inherit the remaining rights. The keeper can't open files.
 */
void cli_sandbox_keeper(void);

/* For a decoder: leaves only the use of open files and of memory. */
void cli_sandbox_decoder(void);

/* The parts that the kernel supports. @landlock: its version, 0: none. */
void cli_sandbox_features(bool *seccomp, int *landlock);

#endif
