/* SPDX-License-Identifier: MIT */
/*
 * sym/question/: files of others are decoded by a process without rights: what it is asked, and
 * what it answers, as bytes that are read as those of a hostile file.
 *
 * Files of other users are decoded by another process that has no rights. A program with such a
 * process calls kb_decode_by(). From then on the library opens files and checks their kind and
 * identity, but reads no byte of them: it passes each descriptor with a question to the
 * decoder, and reads the answer as it reads a hostile file (answer.h). Otherwise the library
 * decodes files in the calling process. The other process answers with decode.h.
 */
#ifndef KB_LIB_SYM_QUESTION_QUESTION_H
#define KB_LIB_SYM_QUESTION_QUESTION_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/error.h>

#include "sym/tables/elf_data.h"

enum kb_question_what {
	KB_QUESTION_ELF,	/* as kb_elf_read() */
	KB_QUESTION_DEBUG,	/* as kb_elf_add_debug(): the symbols to add */
	KB_QUESTION_PERFMAP,	/* as kb_perfmap_read(): its symbols */
	KB_QUESTION_NAME,	/* as kb_demangle(): one symbol with the name; no symbol: the
				 * name does not change */
	KB_QUESTION_IDENTITY,	/* as kb_elf_identify_fd(); costs little, whatever the file */
	KB_QUESTION_JITDUMP,	/* as kb_jitdump_read_fd(): its code, not indexed */
	KB_QUESTION_JITDUMP_UNWIND,	/* as kb_jitdump_unwind_fd() */
	KB_QUESTION_UNWIND,	/* as kb_elf_unwind_read_fd(): the same, and unwind rows */
};

struct kb_question {
	enum kb_question_what what;
	struct kb_build_id build_id;	/* KB_QUESTION_DEBUG: of the stripped file */
	bool has_debuglink;
	uint32_t debuglink_crc;
	char name[1024];		/* KB_QUESTION_NAME */
	uint64_t from;			/* KB_QUESTION_JITDUMP_UNWIND */
};

/* What happened to a decoder, besides errors of the question. */
#define KB_DECODER_FORBIDDEN	(-EPERM)	/* its sandbox stopped it */
#define KB_DECODER_DIED		(-ECHILD)
#define KB_DECODER_HUNG		(-ETIMEDOUT)	/* it took too long */
#define KB_DECODER_LIED		(-EPROTO)	/* its answer is invalid */
#define KB_DECODER_NONE		(-EAGAIN)	/* it could not be started */

/*
 * Ask @question about the file that is open as @fd (-1: no file) and called @label in messages.
 * *@found is empty and gets the answer. Returns 0 or a negative errno, with *@found empty.
 */
typedef int (*kb_decoder)(void *context, const struct kb_question *question, int fd,
			  const char *label, struct kb_elf *found);

/* Sets the decoder of the whole process. NULL, the default: decode in this process. */
void kb_decode_by(kb_decoder by, void *context);
bool kb_decodes_elsewhere(void);

/* Ask the decoder, from any thread; an error also puts a sentence into @err. */
int kb_decode_elsewhere(const struct kb_question *question, int fd, const char *label,
			struct kb_elf *found, struct kb_error *err);

#endif
