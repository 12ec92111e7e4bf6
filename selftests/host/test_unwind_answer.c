// SPDX-License-Identifier: MIT
/* Unwind rows that come from a decoder, which may lie. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/tap.h"
#include "sym/elf/elf.h"
#include "sym/elf/tables.h"
#include "sym/elf/unwind.h"
#include "sym/image/decode.h"
#include "sym/question/answer.h"

struct bytes {
	uint8_t *data;
	size_t size, at, piece;
};

static ssize_t some(void *context, void *to, size_t size)
{
	struct bytes *bytes = context;

	if (size > bytes->piece)
		size = bytes->piece;
	if (size > bytes->size - bytes->at)
		size = bytes->size - bytes->at;
	memcpy(to, bytes->data + bytes->at, size);
	bytes->at += size;
	return size;
}

static struct bytes whole_file(int fd)
{
	struct bytes bytes = { .piece = SIZE_MAX };
	struct stat st;

	if (fstat(fd, &st))
		exit(2);
	bytes.size = st.st_size;
	bytes.data = malloc(bytes.size);
	if (!bytes.data || pread(fd, bytes.data, bytes.size, 0) != (ssize_t)bytes.size)
		exit(2);
	return bytes;
}

/* The bytes of the answer to @what about @fd. */
static struct bytes answer_of(enum kb_question_what what, int fd)
{
	const struct kb_question question = { .what = what };
	int answer = memfd_create("answer", 0);
	struct bytes bytes;

	if (kb_decode_answer(&question, fd, answer))
		exit(2);
	bytes = whole_file(answer);
	close(answer);
	return bytes;
}

static int read_answer(struct kb_elf *found, struct bytes *bytes)
{
	bytes->at = 0;
	return kb_answer_read(found, some, bytes);
}

static bool are_same(const struct kb_elf *a, const struct kb_elf *b)
{
	return a->unwind.header && b->unwind.header &&
	       a->unwind.header->size == b->unwind.header->size &&
	       !memcmp(a->unwind.header, b->unwind.header, a->unwind.header->size) &&
	       a->nr_segments == b->nr_segments && a->nr_segments &&
	       !memcmp(a->segments, b->segments, a->nr_segments * sizeof(*a->segments)) &&
	       !memcmp(&a->build_id, &b->build_id, sizeof(a->build_id));
}

static void test_honest(struct bytes *answer, int fd)
{
	struct kb_elf here, there;

	if (!tap_is(kb_elf_unwind_read_fd(&here, fd, "me", NULL), 0, "rows_are_read_here"))
		exit(tap_done());
	for (answer->piece = 1; answer->piece <= 1 << 20; answer->piece <<= 10) {
		if (!tap_is(read_answer(&there, answer), 0, "rows_come_as_an_answer"))
			continue;
		tap_ok(are_same(&here, &there), "they_are_those_that_are_read_here");
		kb_elf_release(&there);
	}
	answer->piece = SIZE_MAX;
	kb_elf_release(&here);
}

static bool refuses(struct bytes *answer)
{
	static const struct kb_elf none;
	struct kb_elf found;
	int ret = read_answer(&found, answer);
	bool good = ret == -EPROTO && !memcmp(&found, &none, sizeof(none));

	kb_elf_release(&found);
	return good;
}

/* A decoder can make any checksum. */
static void make_checksum(const struct bytes *answer, size_t at)
{
	struct kb_unwind_header *block = malloc(answer->size - at);

	if (!block)
		exit(2);
	memcpy(block, answer->data + at, answer->size - at);
	block->crc = kb_unwind_block_crc(block);
	memcpy(answer->data + at, block, sizeof(*block));
	free(block);
}

static void test_lies(struct bytes *answer)
{
	struct kb_answer_head *head = (void *)answer->data;
	uint64_t size = head->unwind_size;
	size_t at = answer->size - size, step = size / 1000 + 1, i;
	bool all = true;
	uint8_t start[4];

	for (i = at; i < answer->size; i += step) {
		answer->data[i] ^= 0x40;
		all &= refuses(answer);
		answer->data[i] ^= 0x40;
	}
	tap_ok(all, "a_block_that_is_changed_anywhere_is_refused");

	/* the second start: rows are not sorted */
	i = at + sizeof(struct kb_unwind_header) + 4;
	memcpy(start, answer->data + i, sizeof(start));
	memset(answer->data + i, 0xff, sizeof(start));
	make_checksum(answer, at);
	tap_ok(refuses(answer), "a_wrong_block_with_a_right_checksum_is_refused");
	memcpy(answer->data + i, start, sizeof(start));
	make_checksum(answer, at);

	head->unwind_size = size - 1;
	tap_ok(refuses(answer), "a_block_that_goes_on_is_refused");
	head->unwind_size = size + 1;
	tap_ok(refuses(answer), "a_block_that_is_cut_is_refused");
	head->unwind_size = KB_UNWIND_SIZE_MAX;
	tap_ok(refuses(answer), "a_large_block_that_is_not_there_is_refused");
	head->unwind_size = (uint64_t)KB_UNWIND_SIZE_MAX + 1;
	tap_ok(refuses(answer) && answer->at == sizeof(*head), "a_larger_one_is_refused_at_once");
	head->unwind_size = 0;
	tap_ok(refuses(answer), "a_block_that_nobody_announced_is_refused");
	head->unwind_size = 1;
	answer->size = at + 1;
	tap_ok(refuses(answer), "a_block_of_one_byte_is_refused");
	head->unwind_size = size;
	answer->size = at + size;

	for (i = 0, all = true; i < size; i += step) {
		answer->size = at + i;
		all &= refuses(answer);
	}
	answer->size = at + size;
	tap_ok(all, "an_answer_that_is_cut_in_the_block_is_refused");
}

static void test_identity(int fd)
{
	struct bytes answer = answer_of(KB_QUESTION_IDENTITY, fd);
	struct kb_elf all, some_of_it;

	if (kb_elf_read_fd(&all, fd, "me", NULL))
		exit(2);
	if (tap_is(read_answer(&some_of_it, &answer), 0, "the_identity_comes_as_an_answer")) {
		tap_ok(all.build_id.length == some_of_it.build_id.length &&
		       !memcmp(&all.build_id, &some_of_it.build_id, sizeof(all.build_id)) &&
		       all.nr_segments == some_of_it.nr_segments,
		       "it_has_build_id_and_segments");
		tap_ok(!some_of_it.unwind.header && !some_of_it.symbols.nr_symbols &&
		       !some_of_it.functions.nr_symbols, "it_has_no_rows_and_no_symbols");
		kb_elf_release(&some_of_it);
	}
	kb_elf_release(&all);
	free(answer.data);
}

/* A file with the same bytes but those of an entry in the middle of .eh_frame. */
static int damaged_copy(int fd)
{
	struct bytes copy = whole_file(fd);
	struct kb_elf_tables tables = { 0 };
	struct kb_unwind_section frames;
	int damaged = memfd_create("damaged", 0);
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_memory((char *)copy.data, copy.size);
	if (kb_elf_tables_take(&tables, elf, NULL))
		exit(2);
	frames = tables.sections.frames[0].section;
	memset((uint8_t *)frames.data + frames.size / 2, 0xfe, 64);
	if (write(damaged, copy.data, copy.size) != (ssize_t)copy.size)
		exit(2);
	elf_end(elf);
	free(copy.data);
	return damaged;
}

static void test_damage(int fd)
{
	int damaged = damaged_copy(fd);
	struct bytes answer = answer_of(KB_QUESTION_UNWIND, damaged);
	struct kb_unwind_rows rows;
	struct kb_elf found;

	tap_is(kb_elf_unwind_fd(&rows, damaged, -1, "", NULL), -EBADMSG, "the_copy_is_damaged");
	kb_unwind_rows_release(&rows);
	if (tap_is(read_answer(&found, &answer), 0, "a_damaged_table_is_no_error"))
		tap_ok(found.unwind.header && found.unwind.header->nr_rows > 10,
		       "the_rows_that_could_be_read_come");
	kb_elf_release(&found);
	free(answer.data);
	close(damaged);
}

static void test_others(void)
{
	int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	struct bytes answer = answer_of(KB_QUESTION_UNWIND, fd);
	struct kb_answer_head head = { .magic = KB_ANSWER_MAGIC, .code = -ENOTSUP };
	struct bytes unknown = { (uint8_t *)&head, sizeof(head), 0, SIZE_MAX };
	struct kb_elf found;

	tap_is(read_answer(&found, &answer), -ENOEXEC, "text_has_no_rows");
	tap_is(read_answer(&found, &unknown), -ENOTSUP, "a_machine_may_be_unknown");
	free(answer.data);
	close(fd);
}

int main(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct bytes answer = answer_of(KB_QUESTION_UNWIND, fd);

	test_honest(&answer, fd);
	test_lies(&answer);
	test_identity(fd);
	test_damage(fd);
	test_others();
	free(answer.data);
	close(fd);
	return tap_done();
}
