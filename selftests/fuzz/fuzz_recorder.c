// SPDX-License-Identifier: MIT
/*
 * Fuzz target of what a recorder reads with all rights, or has decoded for it: text of /proc,
 * answers of decoders, and ELF files, perf maps and jitdumps in a decoder. The first byte says
 * which:
 *
 *	l	lines of /proc/PID/maps
 *	k	/proc/kallsyms, and behind a zero /proc/modules
 *	a	an answer, of whatever process
 *	b	the same, with the checksum that its unwind rows need
 *	e, d	an ELF file, a debug file: what comes out of the decoder and its answer is the same
 *	u	an ELF file: its unwind rows and its identity, likewise
 *	p	a perf map, likewise
 *	j	a jitdump: its names and lines, and its unwind rows, likewise
 *	n	a name that is to be demangled, likewise
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kbarman/kernel_maps.h>

#include "sym/elf/elf.h"
#include "sym/elf/unwind.h"
#include "sym/files/file_id.h"
#include "sym/image/decode.h"
#include "sym/jit/jitdump.h"
#include "sym/jit/perfmap.h"
#include "sym/names/demangle.h"
#include "sym/question/answer.h"

static int file_with(int *fd, const uint8_t *data, size_t size)
{
	if (*fd < 0)
		*fd = memfd_create("fuzz", 0);
	if (ftruncate(*fd, 0) || pwrite(*fd, data, size, 0) != (ssize_t)size ||
	    lseek(*fd, 0, SEEK_SET))
		abort();
	return *fd;
}

/* ---- text ---- */

static void try_lines(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size), *rest = text, *line;

	while ((line = strsep(&rest, "\n"))) {
		struct kb_device_inode found;

		kb_file_id_of_line(line, 0x7f0000000000, &found);
	}
	free(text);
}

/* No two overlap, and each has a name that ends. */
static void check_maps(const struct kb_kernel_maps *maps)
{
	uint32_t i;

	for (i = 0; i < maps->nr; i++) {
		const struct kb_kernel_map *map = &maps->maps[i];

		if (!map->length || map->base_address + map->length - 1 < map->base_address ||
		    strnlen(map->image, sizeof(map->image)) == sizeof(map->image) ||
		    (i && map[-1].base_address + map[-1].length > map->base_address))
			abort();
	}
}

static char proc[] = "/tmp/kbarman-fuzz-XXXXXX";

static const char *in_proc(const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	return path;
}

static void link_in_proc(const char *name, int fd)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/%d/fd/%d", getpid(), fd);
	if (symlink(link, in_proc(name)))
		abort();
}

static void remove_proc(void)
{
	unlink(in_proc("kallsyms"));
	unlink(in_proc("modules"));
	rmdir(proc);
}

static void try_kernel(const uint8_t *data, size_t size)
{
	const uint8_t *zero = memchr(data, 0, size), *second = zero ? zero + 1 : data + size;
	static int kallsyms = -1, modules = -1;
	struct kb_kernel_maps maps;
	static FILE *copy;

	file_with(&kallsyms, data, zero ? zero - data : (ptrdiff_t)size);
	file_with(&modules, second, data + size - second);
	if (!copy) {
		copy = fopen("/dev/null", "w");
		if (!copy || !mkdtemp(proc))
			abort();
		link_in_proc("kallsyms", kallsyms);
		link_in_proc("modules", modules);
		atexit(remove_proc);
	}
	if (kb_kernel_maps_read(&maps, proc, copy, NULL))
		return;
	check_maps(&maps);
	kb_kernel_maps_append_new(&maps, proc, copy, NULL);
	kb_kernel_maps_free(&maps);
}

/* ---- answers ---- */

struct bytes {
	const uint8_t *at;
	size_t left;
};

static ssize_t some(void *context, void *to, size_t size)
{
	struct bytes *bytes = context;

	if (size > bytes->left)
		size = bytes->left;
	memcpy(to, bytes->at, size);
	bytes->at += size;
	bytes->left -= size;
	return size;
}

static void search(const struct kb_elf *elf, uint64_t address)
{
	const struct kb_elf_segment *segment = kb_elf_segment_at(elf, address);
	struct kb_symtab_hit hit;

	if (segment && address - segment->offset >= segment->size)
		abort();
	kb_symtab_find(&elf->symbols, address, &hit);
	if (address < hit.low || address > hit.high)
		abort();
	if (hit.symbol && (address - hit.symbol->start >= hit.symbol->size ||
			   !*kb_symtab_name(&elf->symbols, hit.symbol)))
		abort();
}

/* Each rule that is found has its steps in the block. */
static void search_rows(const struct kb_unwind_rows *rows)
{
	const struct kb_unwind_step *rule;
	uint32_t i;

	for (i = 0; rows->header && i < rows->header->nr_rows; i++) {
		rule = kb_unwind_rule_at(rows, rows->header->base + rows->starts[i]);
		if (rule->what > KB_UNWIND_NO_RULE || rule < rows->steps ||
		    rule + rule->count >= rows->steps + rows->header->nr_steps)
			abort();
	}
}

static int read_answer(struct kb_elf *found, const uint8_t *data, size_t size)
{
	struct bytes bytes = { data, size };

	return kb_answer_read(found, some, &bytes);
}

static void try_answer(const uint8_t *data, size_t size)
{
	struct kb_elf found;
	uint32_t i;

	if (read_answer(&found, data, size))
		return;
	if (strchr(found.debuglink, '/') || found.build_id.length > KB_BUILD_ID_MAX ||
	    kb_elf_sort(&found, kb_text("lib")))
		abort();
	for (i = 0; i < found.symbols.nr_symbols; i++)
		search(&found, found.symbols.symbols[i].start);
	search(&found, 0);
	search(&found, UINT64_MAX);
	search_rows(&found.unwind);
	kb_elf_release(&found);
}

/* A hostile decoder makes any checksum; a fuzzer does not find it. */
static void try_answer_with_checksum(const uint8_t *data, size_t size)
{
	struct kb_unwind_header *block;
	struct kb_answer_head head;
	uint8_t *copy;

	if (size < sizeof(head))
		return;
	memcpy(&head, data, sizeof(head));
	if (head.unwind_size < sizeof(*block) || head.unwind_size > size - sizeof(head))
		return;
	copy = malloc(size);
	block = malloc(head.unwind_size);
	if (!copy || !block)
		abort();
	memcpy(copy, data, size);
	memcpy(block, data + size - head.unwind_size, head.unwind_size);
	block->size = head.unwind_size;
	block->crc = kb_unwind_block_crc(block);
	memcpy(copy + size - head.unwind_size, block, sizeof(*block));
	try_answer(copy, size);
	free(block);
	free(copy);
}

/* ---- what is decoded ---- */

/* What a decoder says, by way of its answer. */
static int by_answer(struct kb_elf *found, const struct kb_question *question, int fd)
{
	static int answer = -1;
	struct stat st;
	uint8_t *data;
	int ret;

	file_with(&answer, NULL, 0);
	if (kb_decode_answer(question, fd, answer) || fstat(answer, &st))
		abort();
	data = malloc(st.st_size);
	if (!data || pread(answer, data, st.st_size, 0) != st.st_size)
		abort();
	ret = read_answer(found, data, st.st_size);
	free(data);
	return ret;
}

static void compare(const struct kb_symtab *a, const struct kb_symtab *b)
{
	uint32_t i;

	if (a->nr_symbols != b->nr_symbols)
		abort();
	for (i = 0; i < a->nr_symbols; i++)
		if (a->symbols[i].start != b->symbols[i].start ||
		    a->symbols[i].size != b->symbols[i].size ||
		    strcmp(kb_symtab_name(a, &a->symbols[i]), kb_symtab_name(b, &b->symbols[i])))
			abort();
}

static void try_elf(const uint8_t *data, size_t size)
{
	const struct kb_question question = { .what = KB_QUESTION_ELF };
	struct kb_elf here, there;
	static int file = -1;
	int ret;

	file_with(&file, data, size);
	ret = kb_elf_read_fd(&here, file, "", NULL);
	if (by_answer(&there, &question, file) != ret)
		abort();
	if (ret)
		return;
	compare(&here.symbols, &there.symbols);
	compare(&here.functions, &there.functions);
	if (here.nr_segments != there.nr_segments || here.build_id.length != there.build_id.length ||
	    strcmp(here.debuglink, there.debuglink))
		abort();
	kb_elf_release(&here);
	kb_elf_release(&there);
}

static void try_unwind(const uint8_t *data, size_t size)
{
	struct kb_question question = { .what = KB_QUESTION_UNWIND };
	struct kb_elf here, there;
	static int file = -1;
	int ret;

	file_with(&file, data, size);
	ret = kb_elf_unwind_read_fd(&here, file, "", NULL);
	if (by_answer(&there, &question, file) != ret)
		abort();
	if (!ret) {
		if (here.nr_segments != there.nr_segments ||
		    here.build_id.length != there.build_id.length ||
		    here.unwind.header->size != there.unwind.header->size ||
		    memcmp(here.unwind.header, there.unwind.header, here.unwind.header->size))
			abort();
		search_rows(&there.unwind);
		kb_elf_release(&here);
		kb_elf_release(&there);
	}
	question.what = KB_QUESTION_IDENTITY;
	if (by_answer(&there, &question, file) == -EPROTO)
		abort();
	kb_elf_release(&there);
}

static void try_debug(const uint8_t *data, size_t size)
{
	struct kb_question question = { .what = KB_QUESTION_DEBUG };
	struct kb_elf here, there;
	static int file = -1;

	file_with(&file, data, size);
	if (!kb_elf_read_fd(&here, file, "", NULL)) {
		question.build_id = here.build_id;
		kb_elf_release(&here);
	}
	if (!by_answer(&there, &question, file))
		kb_elf_release(&there);
}

static void try_perfmap(const uint8_t *data, size_t size)
{
	const struct kb_question question = { .what = KB_QUESTION_PERFMAP };
	struct kb_symtab here = { 0 };
	struct kb_elf there;
	static int file = -1;
	int ret;

	file_with(&file, data, size);
	ret = by_answer(&there, &question, file);
	if (ret == -EPROTO || kb_perfmap_parse(&here, (const char *)data, size) || ret)
		abort();
	if (kb_symtab_sort(&there.symbols))
		abort();
	compare(&here, &there.symbols);
	kb_symtab_release(&here);
	kb_elf_release(&there);
}

/* Names and lines, and then unwind rows: what comes out of the answer is what is in the file. */
static void try_jitdump(const uint8_t *data, size_t size)
{
	struct kb_question question = { .what = KB_QUESTION_JITDUMP };
	struct kb_elf here = { 0 }, there;
	static int file = -1;
	int ret;

	file_with(&file, data, size);
	ret = kb_jitdump_parse(&here.jit, &here.symbols, data, size);
	if (by_answer(&there, &question, file) != ret)
		abort();
	if (!ret && (there.jit.nr_codes != here.jit.nr_codes ||
		     there.jit.nr_lines != here.jit.nr_lines ||
		     kb_jit_index(&there.jit, &there.symbols)))
		abort();
	kb_elf_release(&here);
	kb_elf_release(&there);
	question.what = KB_QUESTION_JITDUMP_UNWIND;
	if (by_answer(&there, &question, file) != ret && ret != -EFBIG)
		abort();
	for (uint32_t i = 0; i < there.jit.nr_codes; i++) {
		const struct kb_jit_code *code = &there.jit.codes[i];
		struct kb_unwind_rows rows;
		void *block = malloc(code->unwind_size);

		if (!code->unwind_size || !block) {
			free(block);
			continue;
		}
		memcpy(block, there.jit.unwind + code->unwind, code->unwind_size);
		if (kb_unwind_rows_take(&rows, block, code->unwind_size, NULL))
			abort();
		search_rows(&rows);
		kb_unwind_rows_release(&rows);
	}
	kb_elf_release(&there);
}

static void try_name(const uint8_t *data, size_t size)
{
	struct kb_question question = { .what = KB_QUESTION_NAME };
	struct kb_elf found;

	memcpy(question.name, data, size < sizeof(question.name) ? size : sizeof(question.name) - 1);
	if (by_answer(&found, &question, -1))
		abort();
	if (found.symbols.nr_symbols > 1)
		abort();
	kb_elf_release(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct {
		char what;
		void (*try)(const uint8_t *data, size_t size);
	} kinds[] = {
		{ 'l', try_lines }, { 'k', try_kernel }, { 'a', try_answer }, { 'e', try_elf },
		{ 'd', try_debug }, { 'u', try_unwind }, { 'b', try_answer_with_checksum },
		{ 'p', try_perfmap }, { 'n', try_name }, { 'j', try_jitdump },
	};
	size_t i;

	for (i = 0; size && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].what == data[0])
			kinds[i].try(data + 1, size - 1);
	return 0;
}
