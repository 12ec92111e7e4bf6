// SPDX-License-Identifier: MIT
/*
 * The kind of an image decides how it is read: a path is a file; a name in brackets is the
 * kernel or memory without a file.
 */
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "sym/image/image.h"

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

	for (i = 0; i < ARRAY_SIZE(names); i++)
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

#define DELETED	" (deleted)"

static bool is_deleted(const char *name)
{
	return ends_in(name, DELETED);
}

/* The file identity matters only if there is, or was, a file to read. */
static bool is_path(const char *name)
{
	return name[0] == '/' && !is_memory(name);
}

static bool is_anonymous(const char *name)
{
	return strncmp(name, "[anon", 5) == 0 || strncmp(name, "//anon", 6) == 0 ||
	       strncmp(name, "/memfd:", 7) == 0 || strcmp(name, "[heap]") == 0 ||
	       strncmp(name, "/dev/zero", 9) == 0;
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

struct kb_elf kb_no_elf;

static char no_file[] = "";

bool kb_image_room(struct kb_image *image)
{
	if (image->elf == &kb_no_elf)
		image->elf = calloc(1, sizeof(*image->elf)) ?: &kb_no_elf;
	return image->elf != &kb_no_elf;
}

void kb_image_empty(struct kb_image *image)
{
	if (image->elf == &kb_no_elf)
		return;
	kb_elf_release(image->elf);
	free(image->elf);
	image->elf = &kb_no_elf;
}

static void release_image(void *data)
{
	struct kb_image *image = data;

	kb_image_empty(image);
	kb_lines_close(image->lines);
	free(image->path);
	free(image->complaint);
	free(image->name);
	if (image->file != no_file)
		free(image->file);
	free(image);
}

void kb_images_remove(struct kb_images *images, struct kb_image *image)
{
	tdelete(image, &images->tree, compare);
	release_image(image);
	images->nr--;
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
	image->elf = &kb_no_elf;
	image->name = strdup(name && *name ? name : "[anon]");
	image->file = image->name && is_path(image->name) && file.length ?
		strndup(file.data, file.length) : no_file;
	if (image->name && image->file)
		node = tsearch(image, &images->tree, compare);
	if (!node || *node != image) {
		release_image(image);
		return node ? *node : NULL;
	}
	images->nr++;
	image->base = base_of(image->name);
	image->kind = kind_of(image->name, kernel);
	image->anonymous = image->kind != KB_IMAGE_KERNEL && is_anonymous(image->name);
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

struct kb_text kb_image_label(const struct kb_image *image)
{
	struct kb_text label = kb_text(image->base);

	if (is_deleted(image->base))
		label.length -= strlen(DELETED);
	return label;
}

bool kb_image_was_file(const struct kb_image *image)
{
	return is_deleted(image->name) && is_path(image->name);
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
		kb_image_empty(image);
	if (image->written || (!kb_image_is_read(image) && !image->same && !image->bundled))
		image->sought = image->loaded = false;
}

void kb_images_renew(struct kb_images *images, const struct kb_header *header)
{
	kb_namesakes_release(&images->namesakes);
	kb_table_release(&images->without_map);
	images->header = header;
	kb_images_walk(images, renew_image, NULL);
}

void kb_images_forget(struct kb_images *images)
{
	tdestroy(images->tree, release_image);
	kb_namesakes_release(&images->namesakes);
	kb_table_release(&images->without_map);
	images->tree = NULL;
	images->nr = 0;
}

void kb_images_release(struct kb_images *images)
{
	kb_images_forget(images);
	free(images->symfs);
	images->symfs = NULL;
}
