// SPDX-License-Identifier: MIT
/* Each question has one function of the library that answers it when it is called here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/zstd.h"
#include "sym/elf/elf.h"
#include "sym/elf/minidebug.h"
#include "sym/elf/unwind.h"
#include "sym/image/decode.h"
#include "sym/jit/jitdump.h"
#include "sym/jit/perfmap.h"
#include "sym/names/demangle.h"
#include "sym/question/answer.h"

static struct kb_demangler demangler;

void kb_decode_prepare(void)
{
	kb_minidebug_prepare();
	kb_zstd();
	free(kb_demangle(&demangler, "_Z1av"));
}

static int read_debug(const struct kb_question *question, int fd, struct kb_elf *found)
{
	found->build_id = question->build_id;
	found->debuglink[0] = question->has_debuglink ? '?' : '\0';
	found->debuglink_crc = question->debuglink_crc;
	return kb_elf_add_debug_fd(found, fd);
}

static int demangle(const char *name, struct kb_elf *found)
{
	char *text = kb_demangle(&demangler, name);
	int ret = 0;

	if (text && *text)
		ret = kb_symtab_add(&found->symbols, 0, 1, KB_SYMTAB_NO_LIMIT, text, strlen(text),
				    KB_RANK_GLOBAL, 0);
	free(text);
	return ret;
}

static int decode(const struct kb_question *question, int fd, struct kb_elf *found)
{
	switch (question->what) {
	case KB_QUESTION_ELF:
		return kb_elf_read_fd(found, fd, "", NULL);
	case KB_QUESTION_DEBUG:
		return read_debug(question, fd, found);
	case KB_QUESTION_PERFMAP:
		return kb_perfmap_read_fd(&found->symbols, fd);
	case KB_QUESTION_JITDUMP:
		return kb_jitdump_read_fd(&found->jit, &found->symbols, fd);
	case KB_QUESTION_JITDUMP_UNWIND:
		return kb_jitdump_unwind_fd(&found->jit, &found->symbols, fd, question->from);
	case KB_QUESTION_NAME:
		return demangle(question->name, found);
	case KB_QUESTION_IDENTITY:
		return kb_elf_identify_fd(found, fd, "", NULL);
	case KB_QUESTION_UNWIND:
		return kb_elf_unwind_read_fd(found, fd, "", NULL);
	}
	return -EINVAL;
}

int kb_decode_answer(const struct kb_question *question, int fd, int out)
{
	struct kb_elf found = { 0 };
	int code = decode(question, fd, &found);
	int ret = kb_answer_write(out, code, &found);

	kb_elf_release(&found);
	return ret;
}
