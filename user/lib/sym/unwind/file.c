// SPDX-License-Identifier: MIT
/*
 * A file that the cache knows costs a look at its headers. Whoever decodes files takes that look,
 * too: see question.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sym/elf/elf.h"
#include "sym/elf/unwind.h"
#include "sym/image/vdso.h"
#include "sym/question/question.h"
#include "sym/unwind/cache.h"
#include "sym/unwind/file.h"

static int ask(struct kb_elf *elf, enum kb_question_what what, int fd, const char *image,
	       struct kb_error *err)
{
	const struct kb_question question = { .what = what };

	if (kb_decodes_elsewhere())
		return kb_decode_elsewhere(&question, fd, image, elf, err);
	return what == KB_QUESTION_IDENTITY ? kb_elf_identify_fd(elf, fd, image, err) :
	       kb_elf_unwind_read_fd(elf, fd, image, err);
}

static int compile(struct kb_elf *elf, int fd, const char *image, struct kb_error *err)
{
	int ret = ask(elf, KB_QUESTION_UNWIND, fd, image, err);

	if (ret || elf->unwind.header)
		return ret;
	kb_elf_release(elf);
	return kb_error_set(err, KB_DECODER_LIED, KB_NO_OFFSET,
			    "%s can't be read: its reader gave no unwind rows", image);
}

/* Rows of the cache go with the segments of this very file. */
static int read_cached(struct kb_elf *elf, const struct kb_unwind_cache *cache, int fd,
		       const char *image, struct kb_error *err)
{
	int ret = ask(elf, KB_QUESTION_IDENTITY, fd, image, err);

	if (ret)
		return ret;
	kb_unwind_rows_release(&elf->unwind);
	if (kb_unwind_cache_get(cache, &elf->build_id, &elf->unwind))
		return 0;
	kb_elf_release(elf);
	ret = compile(elf, fd, image, err);
	if (!ret)
		kb_unwind_cache_put(cache, &elf->build_id, &elf->unwind);
	return ret;
}

static int read_fd(struct kb_elf *elf, int fd, const char *image, struct kb_error *err)
{
	struct kb_unwind_cache cache;
	int ret;

	if (!kb_unwind_cache_open(&cache, fd))
		return compile(elf, fd, image, err);
	ret = read_cached(elf, &cache, fd, image, err);
	kb_unwind_cache_close(&cache);
	return ret;
}

/*
 * All processes on this kernel have the same vdso, but those with another size of a word. Only the
 * latter have it below 4 GiB.
 */
static int read_vdso(struct kb_elf *elf, const struct kb_unwind_place *place,
		     struct kb_error *err)
{
	if ((place->start > UINT32_MAX) != (sizeof(void *) == 8))
		return kb_error_set(err, -ENOTSUP, KB_NO_OFFSET,
				    "[vdso] is that of another machine");
	return kb_vdso_unwind(elf, err);
}

static int read_file(struct kb_elf *elf, const struct kb_unwind_place *place,
		     struct kb_error *err)
{
	int fd = kb_unwind_place_open(place, err), ret;

	if (fd < 0)
		return fd;
	ret = read_fd(elf, fd, place->image, err);
	close(fd);
	return ret;
}

int kb_unwind_file_load(struct kb_unwind_file *file, const struct kb_unwind_place *place,
			struct kb_error *err)
{
	bool vdso = strcmp(place->image, "[vdso]") == 0;
	struct kb_elf elf;
	int ret = vdso ? read_vdso(&elf, place, err) : read_file(&elf, place, err);

	*file = (struct kb_unwind_file) { 0 };
	if (ret)
		return ret;
	*file = (struct kb_unwind_file) { elf.unwind, elf.segments, elf.nr_segments };
	elf.unwind = (struct kb_unwind_rows) { 0 };
	elf.segments = NULL;
	kb_elf_release(&elf);
	return 0;
}

void kb_unwind_file_release(struct kb_unwind_file *file)
{
	kb_unwind_rows_release(&file->rows);
	free(file->segments);
	*file = (struct kb_unwind_file) { 0 };
}
