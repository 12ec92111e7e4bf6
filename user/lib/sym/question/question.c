// SPDX-License-Identifier: MIT
/*
 * A recorder asks from several threads, and one question is answered at a time. The decoder's error
 * text is not shown, because a hostile file may have chosen it. Only the decoder's error code is
 * used.
 */
#include <errno.h>
#include <pthread.h>

#include "sym/question/question.h"

static kb_decoder decoder;
static void *decoder_context;
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

void kb_decode_by(kb_decoder by, void *context)
{
	decoder = by;
	decoder_context = context;
}

bool kb_decodes_elsewhere(void)
{
	return decoder;
}

static const char *explain(int code, enum kb_question_what what)
{
	switch (code) {
	case -ENOEXEC:
		return what == KB_QUESTION_JITDUMP ? "is no jitdump" :
			"is neither a program nor a shared library";
	case -EBADMSG:
		return "is damaged";
	case -EFBIG:
		return what == KB_QUESTION_UNWIND || what == KB_QUESTION_JITDUMP ||
		       what == KB_QUESTION_JITDUMP_UNWIND ?
			"has too much code" : "has too many symbols";
	case -ENOTSUP:
		return "is of a machine that is not known";
	case -ENOMEM:
		return "needs more memory than there is";
	case KB_DECODER_FORBIDDEN:
		return "may be malicious: its reader was stopped by the sandbox";
	case KB_DECODER_DIED:
		return "can't be read: its reader crashed";
	case KB_DECODER_HUNG:
		return "can't be read: that took too long";
	case KB_DECODER_LIED:
		return "can't be read: its reader gave no valid answer";
	case KB_DECODER_NONE:
		return "can't be read: its reader could not be started";
	default:
		return "can't be read";
	}
}

int kb_decode_elsewhere(const struct kb_question *question, int fd, const char *label,
			struct kb_elf *found, struct kb_error *err)
{
	int ret;

	pthread_mutex_lock(&asking);
	ret = decoder(decoder_context, question, fd, label, found);
	pthread_mutex_unlock(&asking);
	return ret ? kb_error_set(err, ret, KB_NO_OFFSET, "%s %s", label,
				  explain(ret, question->what)) : 0;
}
