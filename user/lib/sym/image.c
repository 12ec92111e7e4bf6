// SPDX-License-Identifier: MIT
/*
 * The kind of an image decides how it is read: a path is a file; a name in brackets is the
 * kernel or memory without a file. Each image is searched for once.
 */
#include <errno.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sym/debugfile.h"
#include "sym/file_id.h"
#include "sym/image.h"
#include "sym/kallsyms.h"
#include "sym/locate.h"
#include "sym/perfmap.h"
#include "sym/vdso.h"

static int compare(const void *left, const void *right)
{
	const struct kb_image *a = left, *b = right;

	return strcmp(a->name, b->name) ?: strcmp(a->file, b->file);
}

/* Names in brackets of user space. All others are the kernel or a module. */
static bool is_user_special(const char *name)
{
	static const char *const names[] = {
		"[vdso]", "[vdso32]", "[vsyscall]", "[vectors]", "[sigpage]", "[uprobes]",
		"[heap]", "[stack]", "[vvar]", "[unknown]",
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strncmp(name, "[anon", 5) == 0;
}

static bool ends_in(const char *name, const char *ending)
{
	size_t length = strlen(name), tail = strlen(ending);

	return length >= tail && strcmp(name + length - tail, ending) == 0;
}

/* The kernel invents names for memory without a path. */
static bool is_memory(const char *name)
{
	return strncmp(name, "//", 2) == 0 || strncmp(name, "/memfd:", 7) == 0 ||
	       strncmp(name, "/SYSV", 5) == 0 || strncmp(name, "anon_inode:", 11) == 0 ||
	       strncmp(name, "/dev/", 5) == 0;
}

static bool is_deleted(const char *name)
{
	return ends_in(name, " (deleted)");
}

/* The file identity matters only if there is, or was, a file to read. */
static bool is_path(const char *name)
{
	return name[0] == '/' && !is_memory(name);
}

static enum kb_image_kind kind_of(const char *name, bool kernel)
{
	if (name[0] == '[' && ends_in(name, "]"))
		return kernel && !is_user_special(name) ? KB_IMAGE_KERNEL : KB_IMAGE_OTHER;
	return is_memory(name) || is_deleted(name) ? KB_IMAGE_OTHER : KB_IMAGE_FILE;
}

static const char *base_of(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash && slash[1] ? slash + 1 : name;
}

static void release_image(void *data)
{
	struct kb_image *image = data;

	kb_elf_release(&image->elf);
	kb_lines_close(image->lines);
	free(image->path);
	free(image->complaint);
	free(image->name);
	free(image->file);
	free(image);
}

struct kb_image *kb_images_get(struct kb_images *images, const char *name, bool kernel)
{
	return kb_images_get_file(images, name, kb_text(NULL), kernel);
}

struct kb_image *kb_images_get_file(struct kb_images *images, const char *name,
				    struct kb_text file, bool kernel)
{
	struct kb_image *image = calloc(1, sizeof(*image)), **node = NULL;

	if (!image)
		return NULL;
	image->name = strdup(name && *name ? name : "[anon]");
	image->file = strndup(file.length ? file.data : "",
			      image->name && is_path(image->name) ? file.length : 0);
	if (image->name && image->file)
		node = tsearch(image, &images->tree, compare);
	if (!node || *node != image) {
		release_image(image);
		return node ? *node : NULL;
	}
	images->nr++;
	image->base = base_of(image->name);
	image->kind = kind_of(image->name, kernel);
	image->unknown_id = KB_SYMTAB_NO_ID;
	return image;
}

void kb_image_complain(struct kb_image *image, const char *format, ...)
{
	va_list args;

	if (image->complaint)
		return;
	va_start(args, format);
	if (vasprintf(&image->complaint, format, args) < 0)
		image->complaint = NULL;
	va_end(args);
}

static bool is_read(const struct kb_image *image)
{
	return image->elf.nr_segments || image->elf.symbols.nr_symbols;
}

/* Read the file that was found. */
static void take(struct kb_image *image)
{
	struct kb_error err = { 0 };

	if (!kb_elf_read(&image->elf, image->path, &err))
		return;
	if (image->kind == KB_IMAGE_FILE)
		kb_image_complain(image, "%s; give the tree of the recorded machine with --symfs "
				  "DIR", kb_error_text(&err));
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
		if (is_read(other))
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
	if (!is_read(image))
		image->same = find_copy(images, image);
	if (!is_read(image) && !image->same) {
		if (images->foreign && image->kind == KB_IMAGE_FILE)
			images->was_foreign = true;
		else if (!image->path)
			complain_of_absence(images, image);
		else if (image->fit != KB_FIT_SAME)
			guess(images, image);
	}
	if (image->path && !image->elf.has_symtab)
		kb_debugfile_add(&image->elf, images->symfs, image->name);
}

/* Whether the image was a file that may still be available from a process. */
static bool was_file(const struct kb_image *image)
{
	return is_deleted(image->name) && is_path(image->name);
}

/* Whether the image lacks symbols. A bundle does not say what else the file had. */
static bool is_stripped(const struct kb_image *image)
{
	if (!image->elf.nr_segments)
		return false;
	return image->elf.symbols.nr_symbols <= image->elf.nr_stubs ||
	       (image->path && !image->elf.has_symtab);
}

struct kb_image *kb_image_load(struct kb_images *images, struct kb_image *image)
{
	if (image->loaded)
		return image->same ? image->same : image;
	image->loaded = true;
	if (image->bundled)
		kb_debugfile_add(&image->elf, images->symfs, image->name);
	else if (image->kind == KB_IMAGE_FILE || was_file(image))
		load_file(images, image);
	else if (images->native && strcmp(image->name, "[vdso]") == 0)
		kb_vdso_read(&image->elf);
	if (kb_symtab_sort(&image->elf.symbols))
		kb_elf_release(&image->elf);
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
	image->no_lines = ret && ret != -ENOSYS;
	free(path);
}

/* The image's own file, if it has DWARF. A file with another build-id causes a complaint. */
static char *own_dwarf(const struct kb_images *images, struct kb_image *image)
{
	const char *names[] = { image->name, image->base };
	char *path;
	int i, ret;

	if (image->path)
		return image->elf.has_dwarf ? strdup(image->path) : NULL;
	for (i = 0; !images->foreign && i < (images->symfs[0] ? 2 : 1); i++) {
		path = kb_locate_below(images, names[i]);
		ret = path ? kb_elf_check_dwarf(&image->elf, path) : -ENOMEM;
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
		path = kb_debugfile_dwarf(&image->elf, images->symfs, image->name);
	kb_image_take_lines(images, image, path);
}

bool kb_image_is_anonymous(const struct kb_image *image)
{
	return image->kind == KB_IMAGE_OTHER &&
	       (strncmp(image->name, "[anon", 5) == 0 || strncmp(image->name, "//anon", 6) == 0 ||
		strncmp(image->name, "/memfd:", 7) == 0 || strcmp(image->name, "[heap]") == 0 ||
		strncmp(image->name, "/dev/zero", 9) == 0);
}

struct kb_image *kb_images_perfmap(struct kb_images *images, uint32_t pid)
{
	struct kb_image *image;
	char name[64];

	snprintf(name, sizeof(name), "/tmp/perf-%u.map", pid);
	image = kb_images_get(images, name, false);
	if (!image || image->loaded)
		return image;
	image->loaded = true;
	image->written = true;
	image->kind = KB_IMAGE_OTHER;
	if (!images->foreign && kb_perfmap_read(&image->elf.symbols, images->symfs, pid))
		kb_symtab_release(&image->elf.symbols);
	return image;
}

/* Only glibc has a twalk() that hands a pointer on, twalk_r(). */
static __thread struct {
	void (*visit)(struct kb_image *image, void *closure);
	void *closure;
} walker;

static void walk_node(const void *node, VISIT which, int depth)
{
	(void)depth;
	if (which == postorder || which == leaf)
		walker.visit(*(struct kb_image *const *)node, walker.closure);
}

void kb_images_walk(const struct kb_images *images,
		    void (*visit)(struct kb_image *image, void *closure), void *closure)
{
	walker.visit = visit;
	walker.closure = closure;
	twalk(images->tree, walk_node);
}

static void renew_image(struct kb_image *image, void *closure)
{
	(void)closure;
	image->row = NULL;		/* the old row belongs to the previous capture */
	if (image->written)
		kb_symtab_release(&image->elf.symbols);
	if (image->written || (!is_read(image) && !image->same && !image->bundled))
		image->sought = image->loaded = false;
}

void kb_images_renew(struct kb_images *images, const struct kb_header *header)
{
	kb_namesakes_release(&images->namesakes);
	images->header = header;
	kb_images_walk(images, renew_image, NULL);
}

void kb_images_forget(struct kb_images *images)
{
	tdestroy(images->tree, release_image);
	kb_namesakes_release(&images->namesakes);
	images->tree = NULL;
	images->nr = 0;
}

void kb_images_release(struct kb_images *images)
{
	kb_images_forget(images);
	free(images->symfs);
	images->symfs = NULL;
}
