/* SPDX-License-Identifier: MIT */
/*
 * Who decodes the files of other people for verbs that run with all rights: a process for each
 * file, which has none. A keeper is forked before anything was read. It gives up its rights, and
 * from then on forks a decoder for each question. A decoder has its file, a pipe for its answer
 * and memory; it ends with the answer. One that was fooled can answer wrongly for its own file,
 * and nothing else.
 *
 * A decoder that dies, hangs or makes no sense costs the names of its file, which is counted.
 */
#ifndef KBARMAN_CLI_DECODER_H
#define KBARMAN_CLI_DECODER_H

/*
 * Start the keeper, and have the library ask it. Before cli_sandbox(), and before the process
 * has threads. Nothing happens with --no-sandbox, and in builds that have no sandbox.
 */
void cli_decoder_start(void);

/* Say which names are missing as a decoder failed, once. */
void cli_decoder_report(void);

#endif
