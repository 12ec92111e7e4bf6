// SPDX-License-Identifier: MIT
/* Writes go to a temporary name first, so a bundle is complete or does not exist. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/array.h"
#include "base/io/create.h"
#include "base/progress_tell.h"
#include "sym/files/regular.h"
#include "sym/symbolizer/bundle.h"
#include "sym/tables/symtab_fill.h"

#define MAGIC		"kbarman-symbols 1\n"
#define MAX_LINE	(64U << 10)	/* bytes; a longer line is damage */
#define MAX_SEGMENTS	64U
/* A compressed file may expand to any size; symbols of programs are four to ten times as long. */
#define MAX_TEXT	(512U << 20)	/* bytes, */
#define MAX_RATIO	64U		/* or so many for each byte of the file */

/* ---- writing ---- */

static void put_name(gzFile file, const char *name)
{
	for (; *name; name++) {
		unsigned char c = *name;

		if (c < ' ' || c == '\\' || c >= 0x7f)
			gzprintf(file, "\\%03o", c);
		else
			gzputc(file, c);
	}
	gzputc(file, '\n');
}

static void put_lines(gzFile file, const struct kb_jit *jit, const struct kb_jit_code *code)
{
	for (uint32_t i = code->first_line; i < code->first_line + code->nr_lines; i++) {
		gzprintf(file, "line %x %x ", jit->lines[i].offset, jit->lines[i].line);
		put_name(file, jit->files + jit->lines[i].file);
	}
}

static void put_image(gzFile file, const struct kb_image *image)
{
	const struct kb_elf *elf = image->elf;
	char build_id[KB_BUILD_ID_TEXT];
	uint32_t i;

	gzprintf(file, "image %s", kb_build_id_text(build_id, &elf->build_id) ? build_id : "-");
	if (image->file[0])
		gzprintf(file, "@%s", image->file);
	gzputc(file, ' ');
	put_name(file, image->name);
	for (i = 0; i < elf->nr_segments; i++) {
		const struct kb_elf_segment *segment = &elf->segments[i];

		gzprintf(file, "segment %llx %llx %llx %c\n", (unsigned long long)segment->offset,
			 (unsigned long long)segment->vaddr, (unsigned long long)segment->size,
			 segment->executable ? 'x' : '-');
	}
	for (i = 0; i < elf->symbols.nr_symbols; i++) {
		const struct kb_symtab_symbol *symbol = &elf->symbols.symbols[i];
		const struct kb_jit_code *code = elf->jit.nr_codes ? &elf->jit.codes[i] : NULL;

		if (code)
			gzprintf(file, "code %llx %llx ", (unsigned long long)code->since,
				 (unsigned long long)code->until);
		else
			gzputs(file, "symbol ");
		gzprintf(file, "%llx %llx ", (unsigned long long)symbol->start,
			 (unsigned long long)symbol->size);
		put_name(file, kb_symtab_name(&elf->symbols, symbol));
		if (code)
			put_lines(file, &elf->jit, code);
	}
}

static void visit_image(struct kb_image *image, void *file)
{
	if (image->elf->nr_segments || image->elf->symbols.nr_symbols) {
		kb_progress_tell("saving symbols", 0, 0);
		put_image(file, image);
	}
}

int kb_bundle_write(const struct kb_images *images, const char *path, struct kb_error *err)
{
	char *temporary;
	gzFile file;
	int ret = 0, fd;

	if (asprintf(&temporary, "%s" KB_BUNDLE_WRITTEN, path) < 0)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	fd = kb_create(AT_FDCWD, temporary, KB_CREATE_NEW, KB_CREATE_PRIVATE);
	errno = 0;
	file = fd < 0 ? NULL : gzdopen(fd, "w4");
	if (file) {
		gzputs(file, MAGIC);
		kb_images_walk(images, visit_image, file);
		if (gzclose(file) != Z_OK)
			ret = errno ? -errno : -EIO;
		else if (rename(temporary, path))
			ret = -errno;
		if (ret)
			unlink(temporary);
	} else if (fd < 0) {
		ret = fd;
	} else {
		ret = errno ? -errno : -ENOMEM;
		close(fd);
		unlink(temporary);
	}
	free(temporary);
	return ret ? kb_error_set(err, ret, KB_NO_OFFSET, "%s can't be written: %s", path,
				  strerror(-ret)) : 0;
}

/* ---- reading ---- */

struct reader {
	struct kb_images *images;
	struct kb_image *image;		/* image of the current lines */
	bool skips;			/* the image was there before: skip its lines */
};

/* Parse a hexadecimal number and the blank after it. */
static bool take_number(const char **at, uint64_t *number)
{
	char *end;

	if (!isxdigit((unsigned char)**at))
		return false;
	errno = 0;
	*number = strtoull(*at, &end, 16);
	if (errno || *end != ' ')
		return false;
	*at = end + 1;
	return true;
}

/* Undo put_name(), in place. */
static bool take_name(char *name)
{
	char *to = name;

	for (; *name; name++) {
		if (*name == '\\') {
			if (strspn(name + 1, "01234567") < 3 || name[1] > '3')
				return false;
			*to = (name[1] - '0') << 6 | (name[2] - '0') << 3 | (name[3] - '0');
			name += 3;
			if (!*to++)
				return false;
		} else {
			*to++ = *name;
		}
	}
	*to = '\0';
	return true;
}

static bool take_build_id(const char *text, size_t length, struct kb_build_id *id)
{
	uint32_t i;

	if (length == 1 && *text == '-')
		return true;
	if (length % 2 || length > 2 * KB_BUILD_ID_MAX)
		return false;
	for (i = 0; i < length / 2; i++) {
		char byte[3] = { text[2 * i], text[2 * i + 1] };

		if (!isxdigit((unsigned char)byte[0]) || !isxdigit((unsigned char)byte[1]))
			return false;
		id->bytes[i] = strtoul(byte, NULL, 16);
	}
	id->length = length / 2;
	return true;
}

/* All lines of an image were read. */
static int finish_image(struct reader *reader)
{
	struct kb_image *image = reader->image;

	reader->image = NULL;
	if (!image || reader->skips)
		return 0;
	image->bundled = true;
	if (image->elf->jit.nr_codes) {
		/* The rest of a damaged image does not count. */
		if (image->elf->symbols.nr_symbols == image->elf->jit.nr_codes)
			return kb_jit_index(&image->elf->jit, &image->elf->symbols);
		kb_image_empty(image);
		return 0;
	}
	/* A debug file may have been installed since. */
	image->loaded = image->elf->symbols.nr_symbols > image->elf->nr_stubs;
	return !image->loaded ? 0 : kb_elf_sort(image->elf, kb_image_label(image)) ? -ENOMEM : 0;
}

static int take_image(struct reader *reader, char *at)
{
	struct kb_build_id id = { 0 };
	char *name = strchr(at, ' '), *file;
	struct kb_text which = { 0 };
	int ret = finish_image(reader);

	if (ret)
		return ret;
	if (!name)
		return -EBADMSG;
	file = memchr(at, '@', name - at);
	if (file)
		which = (struct kb_text) { file + 1, name - file - 1 };
	if (!take_build_id(at, (file ? file : name) - at, &id) || !take_name(++name) || !*name)
		return -EBADMSG;
	reader->image = kb_images_get_file(reader->images, name, which, false);
	if (!reader->image)
		return -ENOMEM;
	/* The first one of several equal images counts. */
	reader->skips = reader->image->loaded || reader->image->bundled;
	if (reader->skips)
		return 0;
	reader->image->loaded = true;
	if (!kb_image_room(reader->image))
		return -ENOMEM;
	reader->image->elf->build_id = id;
	reader->image->elf->segments = calloc(MAX_SEGMENTS, sizeof(struct kb_elf_segment));
	return reader->image->elf->segments ? 0 : -ENOMEM;
}

static int take_segment(struct reader *reader, const char *at)
{
	struct kb_elf_segment segment;
	struct kb_elf *elf;

	if (!reader->image)
		return -EBADMSG;
	elf = reader->image->elf;
	if (reader->skips)
		return 0;
	if (!take_number(&at, &segment.offset) || !take_number(&at, &segment.vaddr) ||
	    !take_number(&at, &segment.size) || (*at != 'x' && *at != '-') || at[1] ||
	    !segment.size || segment.size > UINT64_MAX - segment.offset ||
	    elf->nr_segments == MAX_SEGMENTS)
		return -EBADMSG;
	segment.executable = *at == 'x';
	elf->segments[elf->nr_segments++] = segment;
	return 0;
}

/* Whether stripped files have a symbol of that name, too, or one is made for them. */
static bool is_stub(const char *name, size_t length)
{
	return (length > 4 && strcmp(name + length - 4, "@plt") == 0) ||
	       strcmp(name, "_start") == 0 || strcmp(name, "_init") == 0 ||
	       strcmp(name, "_fini") == 0;
}

static int take_symbol(struct reader *reader, char *at)
{
	uint64_t address, size;
	const char *numbers = at;
	struct kb_elf *elf;
	size_t length;

	if (!reader->image)
		return -EBADMSG;
	if (reader->skips)
		return 0;
	if (!take_number(&numbers, &address) || !take_number(&numbers, &size) || !size)
		return -EBADMSG;
	at += numbers - at;
	if (!take_name(at) || !*at)
		return -EBADMSG;
	length = strlen(at);
	elf = reader->image->elf;
	if (kb_symtab_is_nameless(at, address, kb_image_label(reader->image)))
		return kb_symtab_add(&elf->functions, address, size, KB_SYMTAB_NO_LIMIT, "", 0,
				     KB_RANK_NAMELESS, 0);
	elf->nr_stubs += is_stub(at, length);
	return kb_symtab_add(&elf->symbols, address, size, KB_SYMTAB_NO_LIMIT, at, length,
			     KB_RANK_GLOBAL, 0);
}

/* Code of a jitdump: a symbol with times. */
static int take_code(struct reader *reader, char *at)
{
	struct kb_jit_code code = { 0 };
	const char *numbers = at;
	uint64_t start, size;
	struct kb_elf *elf;

	if (!reader->image)
		return -EBADMSG;
	elf = reader->image->elf;
	if (reader->skips)
		return 0;
	if (!take_number(&numbers, &code.since) || !take_number(&numbers, &code.until) ||
	    !take_number(&numbers, &start) || !take_number(&numbers, &size) || !size ||
	    start == UINT64_MAX || size > UINT64_MAX - start ||
	    elf->symbols.nr_symbols != elf->jit.nr_codes)
		return -EBADMSG;
	at += numbers - at;
	if (!take_name(at) || !*at)
		return -EBADMSG;
	if (elf->jit.nr_codes == KB_JIT_MAX_CODES)
		return -EFBIG;
	if (!KB_ARRAY_ROOM(elf->jit.codes, elf->jit.max_codes, elf->jit.nr_codes + 1))
		return -ENOMEM;
	code.first_line = elf->jit.nr_lines;
	elf->jit.codes[elf->jit.nr_codes++] = code;
	return kb_symtab_add(&elf->symbols, start, size, KB_SYMTAB_NO_LIMIT, at, strlen(at),
			     KB_RANK_GLOBAL, 0);
}

/* A line of the code before it. */
static int take_jit_line(struct reader *reader, char *at)
{
	const char *numbers = at;
	uint64_t offset, line;
	struct kb_jit *jit;

	if (!reader->image)
		return -EBADMSG;
	jit = &reader->image->elf->jit;
	if (reader->skips)
		return 0;
	if (!take_number(&numbers, &offset) || !take_number(&numbers, &line) ||
	    offset > UINT32_MAX || line > INT32_MAX || !jit->nr_codes)
		return -EBADMSG;
	at += numbers - at;
	if (!take_name(at))
		return -EBADMSG;
	jit->codes[jit->nr_codes - 1].nr_lines++;
	return kb_jit_add_line(jit, offset, line, at, strlen(at));
}

static int take_line(struct reader *reader, char *line)
{
	if (strncmp(line, "code ", 5) == 0)
		return take_code(reader, line + 5);
	if (strncmp(line, "line ", 5) == 0)
		return take_jit_line(reader, line + 5);
	if (strncmp(line, "symbol ", 7) == 0)
		return take_symbol(reader, line + 7);
	if (strncmp(line, "segment ", 8) == 0)
		return take_segment(reader, line + 8);
	if (strncmp(line, "image ", 6) == 0)
		return take_image(reader, line + 6);
	return -EBADMSG;
}

/* Read lines up to the first invalid one. @number: number of the last line read. */
static int read_lines(struct reader *reader, gzFile file, uint64_t left, unsigned long *number)
{
	char *line = malloc(MAX_LINE);
	int ret = line ? 0 : -ENOMEM, code;

	for (*number = 1; !ret && gzgets(file, line, MAX_LINE); ++*number) {
		size_t length = strlen(line);

		if (!length || line[length - 1] != '\n') {
			ret = -EBADMSG;
			break;
		}
		line[length - 1] = '\0';
		if (length > left)
			ret = -EFBIG;
		else
			left -= length;
		if (ret)
			break;
		if (*number > 1)
			ret = take_line(reader, line);
		else if (strncmp(line, MAGIC, strlen(MAGIC) - 1) != 0)
			ret = -ENODATA;
	}
	if (!ret && *number == 1)
		ret = -ENODATA;
	gzerror(file, &code);
	if (!ret && code != Z_OK && code != Z_STREAM_END)
		ret = -EBADMSG;
	free(line);
	return ret;
}

int kb_bundle_read(struct kb_images *images, const char *path, struct kb_error *err)
{
	struct reader reader = { .images = images };
	int fd = kb_open_regular(path, 0), ret;
	unsigned long number = 0;
	struct stat st;
	uint64_t most;
	gzFile file;

	ret = fd < 0 ? fd : fstat(fd, &st) ? -errno : 0;
	file = ret ? NULL : gzdopen(fd, "r");
	if (!file) {
		ret = ret ?: -ENOMEM;
		if (fd >= 0)
			close(fd);
		return kb_error_set(err, ret, KB_NO_OFFSET, "%s can't be read: %s", path,
				    strerror(-ret));
	}
	most = (uint64_t)st.st_size * MAX_RATIO;
	ret = read_lines(&reader, file, most > MAX_TEXT ? most : MAX_TEXT, &number);
	gzclose(file);
	if (finish_image(&reader) && !ret)
		ret = -ENOMEM;
	switch (ret) {
	case 0:
		return 0;
	case -EBADMSG:
		return kb_error_set(err, ret, KB_NO_OFFSET, "%s is damaged in line %lu: make it "
				    "again with 'kbarman bundle'", path, number);
	case -ENODATA:
		return kb_error_set(err, ret, KB_NO_OFFSET, "%s is not a bundle of symbols", path);
	case -EFBIG:
		return kb_error_set(err, ret, KB_NO_OFFSET, "%s has too much: what stands there from "
				    "line %lu on has no names; give the file tree of the recorded "
				    "machine with --symfs DIR", path, number);
	default:
		return kb_error_set(err, ret, KB_NO_OFFSET, "%s needs more memory than there is",
				    path);
	}
}
