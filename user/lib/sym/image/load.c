// SPDX-License-Identifier: MIT
/* Each image is searched for once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sym/elf/elf.h"
#include "sym/files/file_id.h"
#include "sym/image/debugfile.h"
#include "sym/image/load.h"
#include "sym/image/locate.h"
#include "sym/image/vdso.h"
#include "sym/jit/jitdump_file.h"
#include "sym/jit/perfmap.h"

#define WITH_SYMFS "; give the tree of the recorded machine with --symfs DIR"

/* Read the file that was found. */
static void take(struct kb_image *image)
{
	struct kb_error err = { 0 };

	image->absent = false;
	if (!kb_image_room(image))
		kb_error_set(&err, -ENOMEM, KB_NO_OFFSET, "%s needs more memory than there is",
			     image->path);
	else if (!kb_elf_read(image->elf, image->path, &err))
		return;
	kb_image_empty(image);
	image->absent = image->kind == KB_IMAGE_FILE && err.code == -ENOENT;
	if (image->kind == KB_IMAGE_FILE && !image->absent)
		kb_image_complain(image, "%s" WITH_SYMFS, kb_error_text(&err));
	free(image->path);
	image->path = NULL;
	image->fit = KB_FIT_NONE;
}

/* Search for the image's file, once, and read it if its identity is certain. */
static void seek(struct kb_images *images, struct kb_image *image)
{
	if (image->sought || image->bundled || images->foreign)
		return;
	image->sought = true;
	kb_locate(images, image);
	if (image->fit == KB_FIT_SAME)
		take(image);
}

/*
 * Another image with a known file that is a copy of @image or its copied up version. NULL:
 * there is none.
 */
static struct kb_image *find_copy(struct kb_images *images, const struct kb_image *image)
{
	const struct kb_map *const *rows;
	uint32_t i, nr = 0;

	if (image->file[0])
		nr = kb_namesakes_find(&images->namesakes, images->header, image->name, &rows);
	for (i = 0; i < nr; i++) {
		struct kb_image *other;

		if (!kb_file_id_alike(rows[i]->file, kb_text(image->file)))
			continue;
		other = kb_images_get_file(images, rows[i]->image, rows[i]->file, false);
		if (!other || other == image)
			continue;
		if (!other->row)
			other->row = rows[i];
		seek(images, other);
		if (kb_image_is_read(other))
			return kb_image_load(images, other);
	}
	return NULL;
}

static void complain_of_absence(struct kb_images *images, struct kb_image *image)
{
	const struct kb_map *const *rows;

	if (image->kind == KB_IMAGE_OTHER)
		kb_image_complain(image, "%s: the file was replaced or deleted while it was in "
				  "use; its symbols are lost", image->name);
	else
		kb_image_complain(image, "%s%s is not the file that was recorded (%s, one of %u of "
				  "that name): it was replaced since, or the recorded file was in "
				  "the container of a process that has ended; run 'kbarman bundle' "
				  "while such processes live to save their symbols",
				  images->symfs, image->name,
				  image->file, kb_namesakes_find(&images->namesakes, images->header,
								 image->name, &rows));
}

/* Read the file of that name, although its identity is not certain. */
static void guess(const struct kb_images *images, struct kb_image *image)
{
	take(image);
	/* An id that is alike to itself has a meaningful size and time. */
	if (image->path && image->fit < KB_FIT_ALIKE && !images->symfs[0] &&
	    kb_file_id_alike(kb_text(image->file), kb_text(image->file)))
		kb_image_complain(image, "%s was changed or replaced since it was recorded: names "
				  "may be those of other code", image->name);
}

static void load_file(struct kb_images *images, struct kb_image *image)
{
	seek(images, image);
	if (!kb_image_is_read(image))
		image->same = find_copy(images, image);
	if (!kb_image_is_read(image) && !image->same) {
		if (images->foreign && image->kind == KB_IMAGE_FILE)
			images->was_foreign = true;
		else if (!image->path)
			complain_of_absence(images, image);
		else if (image->fit != KB_FIT_SAME)
			guess(images, image);
	}
	if (image->path && !image->elf->has_symtab)
		kb_debugfile_add(image->elf, images->symfs, image->name);
}

/* Whether the image lacks symbols. A bundle does not say what else the file had. */
static bool is_stripped(const struct kb_image *image)
{
	if (!image->elf->nr_segments)
		return false;
	return image->elf->symbols.nr_symbols <= image->elf->nr_stubs ||
	       (image->path && !image->elf->has_symtab);
}

struct kb_image *kb_image_load(struct kb_images *images, struct kb_image *image)
{
	if (image->loaded)
		return image->same ? image->same : image;
	image->loaded = true;
	if (image->bundled)
		kb_debugfile_add(image->elf, images->symfs, image->name);
	else if (image->kind == KB_IMAGE_FILE || kb_image_was_file(image))
		load_file(images, image);
	else if (images->native && strcmp(image->name, "[vdso]") == 0 && kb_image_room(image))
		kb_vdso_read(image->elf);
	if (image->elf != &kb_no_elf && kb_elf_sort(image->elf, kb_image_label(image)))
		kb_image_empty(image);
	image->stripped = is_stripped(image);
	return image->same ? image->same : image;
}

void kb_image_take_lines(struct kb_images *images, struct kb_image *image, char *path)
{
	struct kb_error err = { 0 };
	int ret;

	image->lines_tried = true;
	image->no_lines = true;
	if (!path)
		return;
	ret = kb_lines_open(&image->lines, path, &err);
	if (ret == -ENOSYS)
		images->no_libdw = true;
	else if (ret && ret != -ENODATA)
		kb_image_complain(image, "%s", kb_error_text(&err));
	image->no_lines = ret == -ENODATA;
	free(path);
}

/* The image's own file, if it has DWARF. A file with another build-id causes a complaint. */
static char *own_dwarf(const struct kb_images *images, struct kb_image *image)
{
	const char *names[] = { image->name, image->base };
	char *path;
	int i, ret;

	if (image->path)
		return image->elf->has_dwarf ? strdup(image->path) : NULL;
	for (i = 0; !images->foreign && i < (images->symfs[0] ? 2 : 1); i++) {
		path = kb_locate_below(images, names[i]);
		ret = path ? kb_elf_check_dwarf(image->elf, path) : -ENOMEM;
		if (!ret)
			return path;
		if (ret == -ESTALE)
			kb_image_complain(image, "%s is not the file that was recorded (the "
						 "build-id differs): its lines are not used", path);
		free(path);
	}
	return NULL;
}

void kb_image_load_lines(struct kb_images *images, struct kb_image *image)
{
	char *path;

	if (image->lines_tried)
		return;
	path = own_dwarf(images, image);
	if (!path)
		path = kb_debugfile_dwarf(image->elf, images->symfs, image->name);
	kb_image_take_lines(images, image, path);
}

struct kb_image *kb_images_perfmap(struct kb_images *images, uint32_t pid)
{
	uint64_t key = pid;
	struct kb_image *image;
	char name[64];
	int ret;

	if (!images->without_map.row_size)
		kb_table_init(&images->without_map, sizeof(key), 1);
	if (kb_table_find(&images->without_map, &key))
		return NULL;
	snprintf(name, sizeof(name), "/tmp/perf-%u.map", pid);
	image = kb_images_get(images, name, false);
	if (!image || image->loaded)
		return image;
	image->loaded = true;
	image->written = true;
	image->kind = KB_IMAGE_OTHER;
	ret = images->foreign ? -EXDEV : kb_image_room(image) ?
		kb_perfmap_read(&image->elf->symbols, images->symfs, pid) : -ENOMEM;
	if (!ret)
		return image;
	kb_image_empty(image);
	if (ret == -EFBIG) {
		kb_image_complain(image, "%s%s is too large: names of code that was made at run time "
				  "are missing", images->symfs, name);
		return image;
	}
	kb_images_remove(images, image);
	kb_table_get(&images->without_map, &key);
	return NULL;
}

struct kb_image *kb_images_jitdump(struct kb_images *images, const struct kb_map *row)
{
	struct kb_image *image = kb_images_get_file(images, row->image, row->file, false);
	struct kb_error err = { 0 };

	if (!image || image->loaded || image->bundled)
		return image;
	image->loaded = true;
	image->written = true;
	image->kind = KB_IMAGE_OTHER;
	if (images->foreign)
		images->was_foreign = true;
	else if (kb_image_room(image) &&
		 kb_jitdump_file_read(image->elf, images->symfs, row, &err))
		kb_image_complain(image, "%s", kb_error_text(&err));
	return image;
}

char *kb_image_complaint(const struct kb_images *images, const struct kb_image *image)
{
	char *path, *sentence = NULL;

	if (!image->absent || image->complaint)
		return image->complaint ? strdup(image->complaint) : NULL;
	path = kb_locate_below(images, images->symfs[0] ? image->base : image->name);
	if (path && asprintf(&sentence, "%s can't be read: %s" WITH_SYMFS, path,
			     strerror(ENOENT)) < 0)
		sentence = NULL;
	free(path);
	return sentence;
}
