/* SPDX-License-Identifier: MIT */
/* For the process that decodes files of other users and has no rights: see question.h. */
#ifndef KB_LIB_SYM_IMAGE_DECODE_H
#define KB_LIB_SYM_IMAGE_DECODE_H

#include "sym/question/question.h"

/* Open the libraries that decoding may need, while files can still be opened. */
void kb_decode_prepare(void);

/*
 * Answer @question about @fd in this process and write the answer to @out with
 * kb_answer_write(). Returns 0 or a negative errno.
 */
int kb_decode_answer(const struct kb_question *question, int fd, int out);

#endif
