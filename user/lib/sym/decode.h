/* SPDX-License-Identifier: MIT */
/*
 * Files of other people decoded by another process, which has no rights. Who has one tells the
 * library by kb_decode_by(). From then on the library opens files and looks at their kind and
 * identity, but reads no byte of them: it hands each descriptor over with a question, and takes
 * the answer as it would take a hostile file (answer.h). Without one, the library decodes in
 * the process that calls it.
 */
#ifndef KBARMAN_SYM_DECODE_H
#define KBARMAN_SYM_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/error.h>

#include "sym/elf.h"

enum kb_question_what {
	KB_QUESTION_ELF,	/* as kb_elf_read() */
	KB_QUESTION_DEBUG,	/* as kb_elf_add_debug(): the symbols that are to be added */
	KB_QUESTION_PERFMAP,	/* as kb_perfmap_read(): its symbols */
	KB_QUESTION_NAME,	/* as kb_demangle(): the one symbol's name; no symbol: as it is */
};

struct kb_question {
	enum kb_question_what what;
	struct kb_build_id build_id;	/* KB_QUESTION_DEBUG: of the file that it belongs to */
	bool has_debuglink;
	uint32_t debuglink_crc;
	char name[1024];		/* KB_QUESTION_NAME */
};

/* What became of a decoder; beside the errors of what it was asked for. */
#define KB_DECODER_FORBIDDEN	(-EPERM)	/* it was stopped by its sandbox */
#define KB_DECODER_DIED		(-ECHILD)
#define KB_DECODER_HUNG		(-ETIMEDOUT)	/* it took too long */
#define KB_DECODER_LIED		(-EPROTO)	/* its answer is none */
#define KB_DECODER_NONE		(-EAGAIN)	/* none could be started */

/*
 * Ask @question of the file that is open as @fd (-1: of none), which messages call @label, for
 * *@found, which is empty. 0 or a negative errno, with @found empty.
 */
typedef int (*kb_decoder)(void *context, const struct kb_question *question, int fd,
			  const char *label, struct kb_elf *found);

/* For all of the process. @decoder NULL: in this process, as it is at first. */
void kb_decode_by(kb_decoder decoder, void *context);
bool kb_decodes_elsewhere(void);

/* Ask the decoder; @err gets a sentence. */
int kb_decode_elsewhere(const struct kb_question *question, int fd, const char *label,
			struct kb_elf *found, struct kb_error *err);

/* ---- for the other process ---- */

/* Open the libraries that decoding may need, while files can be opened. */
void kb_decode_prepare(void);

/* Answer @question about @fd in this process, to @out: see kb_answer_write(). 0 or -errno. */
int kb_decode_answer(const struct kb_question *question, int fd, int out);

#endif
