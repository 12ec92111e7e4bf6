/* SPDX-License-Identifier: MIT */
/*
 * Decodes other people's files for verbs that run with all rights: a process without rights
 * decodes each file. The verb forks a keeper before it reads any file. The keeper gives up its
 * rights, and then forks a decoder for each question. A decoder has its file, a pipe for its
 * answer, and memory, and ends after the answer. A malicious file can only make its own decoder
 * answer wrongly.
 *
 * If a decoder dies, hangs or gives no valid answer, its file has no names, or call chains end in its
 * code. This is counted.
 */
#ifndef KB_CLI_BASE_DECODER_H
#define KB_CLI_BASE_DECODER_H

#include <sys/types.h>

/*
 * Starts the keeper and lets the library ask it. Call this before cli_sandbox() and before the
 * process has threads. With --no-sandbox, and in builds without a sandbox, nothing happens.
 */
void cli_decoder_start(void);

/* The number of the keeper; 0: there is none. */
pid_t cli_decoder_process(void);

/* Prints what is missing because a decoder failed. Counts start again at 0. */
void cli_decoder_report(void);

#endif
