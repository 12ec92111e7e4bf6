// SPDX-License-Identifier: MIT
/*
 * What an image is tells how it is read: a path is a file, a name in brackets is the
 * kernel's or memory without a file. Each one is looked for once.
 */
#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sym/debugfile.h"
#include "sym/file_id.h"
#include "sym/image.h"
#include "sym/kallsyms.h"
#include "sym/perfmap.h"
#include "sym/vdso.h"

#define LIVE_TRIES	1000U	/* tasks that are asked for a file that is gone */

static int compare(const void *left, const void *right)
{
	const struct kb_image *a = left, *b = right;

	return strcmp(a->name, b->name) ?: strcmp(a->file, b->file);
}

/* Bracketed names of user space; every other one is the kernel's or a module's. */
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

/* The kernel makes paths up for memory that has no file. */
static bool is_no_file(const char *name)
{
	return strncmp(name, "//", 2) == 0 || strncmp(name, "/memfd:", 7) == 0 ||
	       strncmp(name, "/SYSV", 5) == 0 || strncmp(name, "anon_inode:", 11) == 0 ||
	       strncmp(name, "/dev/", 5) == 0 || ends_in(name, " (deleted)");
}

/* Which file of a name it is matters where there is one to be read. */
static bool is_path(const char *name)
{
	return name[0] == '/' && (!is_no_file(name) || (ends_in(name, " (deleted)") &&
							 strncmp(name, "/memfd:", 7) != 0 &&
							 strncmp(name, "/dev/", 5) != 0 &&
							 strncmp(name, "/SYSV", 5) != 0));
}

static enum kb_image_kind kind_of(const char *name, bool kernel)
{
	if (name[0] == '[' && ends_in(name, "]"))
		return kernel && !is_user_special(name) ? KB_IMAGE_KERNEL : KB_IMAGE_OTHER;
	return is_no_file(name) ? KB_IMAGE_OTHER : KB_IMAGE_FILE;
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

static char *path_below(const struct kb_images *images, const char *name)
{
	char *path;

	if (!images->symfs[0])
		return strdup(name);
	return asprintf(&path, "%s%s%s", images->symfs, name[0] == '/' ? "" : "/", name) < 0 ?
		NULL : path;
}

/* Below symfs first by the whole path, then by the last component. */
static int load_below(const struct kb_images *images, struct kb_image *image,
		      struct kb_error *err)
{
	const char *names[] = { image->name, image->base };
	char *path;
	int i, ret = 0;

	for (i = 0; i < (images->symfs[0] ? 2 : 1); i++) {
		path = path_below(images, names[i]);
		if (!path)
			return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
		ret = kb_elf_read(&image->elf, path, err);
		if (!ret) {
			image->path = path;
			break;
		}
		free(path);
		if (ret != -ENOENT && ret != -ENOTDIR)
			break;
	}
	return ret;
}

/* Read @path, which is to be freed and may be NULL, as the image's file. */
static bool read_live(struct kb_image *image, char *path)
{
	if (path && !kb_elf_read(&image->elf, path, NULL)) {
		image->path = path;
		return true;
	}
	free(path);
	return false;
}

/* Does the link show the file that was mapped as @name, which may be gone since? */
static bool is_link_to(const char *path, const char *name)
{
	char text[4096];
	ssize_t length = readlink(path, text, sizeof(text) - 1);
	size_t same = strlen(name);

	if (length < (ssize_t)same)
		return false;
	text[length] = '\0';
	return memcmp(text, name, same) == 0 &&
	       (!text[same] || strcmp(text + same, " (deleted)") == 0);
}

/* Is the root of that process, as in a container, another directory than ours? */
static bool has_other_root(uint32_t task_id)
{
	struct stat ours, theirs;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/root", task_id);
	return stat("/", &ours) == 0 && stat(path, &theirs) == 0 &&
	       (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino);
}

/* False too if it can't be told. */
static bool is_the_file(const struct kb_image *image, const char *path)
{
	char file[KB_FILE_ID];

	return !image->file[0] || (kb_file_id(path, file) && strcmp(file, image->file) == 0);
}

/*
 * While a process lives that has the image mapped, the kernel shows the very file, be it
 * deleted, replaced, or seen by that process only; and else at least its root.
 */
static bool load_from(struct kb_image *image, const struct kb_map *row)
{
	char *path;

	if (asprintf(&path, "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, row->task_id,
		     row->base_address, row->base_address + row->length) < 0)
		return false;
	if (is_link_to(path, image->name))
		return read_live(image, path);
	free(path);
	if (image->name[0] != '/' || !(image->file[0] || has_other_root(row->task_id)) ||
	    asprintf(&path, "/proc/%u/root%s", row->task_id, image->name) < 0)
		return false;
	if (is_the_file(image, path))
		return read_live(image, path);
	free(path);
	return false;
}

/* By any task that has it mapped; those that came last are likely to live. */
static bool load_live(const struct kb_images *images, struct kb_image *image)
{
	const struct kb_map *row = image->row;
	unsigned int tries = LIVE_TRIES;
	uint32_t i;

	if (!images->native || images->symfs[0] || !row)
		return false;
	if (load_from(image, row))
		return true;
	for (i = images->header ? images->header->nr_maps : 0; i && tries; i--) {
		const struct kb_map *other = &images->header->maps[i - 1];

		if (other->image_ptr != image->row->image_ptr || other->task_id == row->task_id)
			continue;
		if (load_from(image, other))
			return true;
		row = other;
		tries--;
	}
	return false;
}

/* Memory without a file. */
static void load_other(const struct kb_images *images, struct kb_image *image)
{
	if (images->native && strcmp(image->name, "[vdso]") == 0)
		kb_vdso_read(&image->elf);
	else if (ends_in(image->name, " (deleted)") && image->name[0] == '/' &&
		 strncmp(image->name, "/memfd:", 7) != 0 && !load_live(images, image))
		kb_image_complain(image, "%s: the file was replaced or deleted while it was in "
				  "use, its symbols are gone", image->name);
}

/* No other file has taken the place of the image's, as far as this machine can tell. */
static bool may_be_here(const struct kb_images *images, const struct kb_image *image)
{
	char file[KB_FILE_ID];

	return !images->native || images->symfs[0] || !image->file[0] ||
	       !kb_file_id(image->name, file) || strcmp(file, image->file) == 0;
}

static void load_file(struct kb_images *images, struct kb_image *image)
{
	struct kb_error err = { 0 };

	if (images->foreign) {
		images->was_foreign = true;
		return;
	}
	if (!load_live(images, image) && !may_be_here(images, image)) {
		kb_image_complain(image, "%s is not the file that was recorded: it was replaced "
				  "since, or is another one in the container of a process that "
				  "is gone", image->name);
		return;
	}
	if (!image->path && load_below(images, image, &err)) {
		kb_image_complain(image, "%s; give the tree of the recorded machine with --symfs "
				  "DIR", err.text);
		return;
	}
	if (!image->elf.has_symtab)
		kb_debugfile_add(&image->elf, images->symfs, image->name);
}

void kb_image_load(struct kb_images *images, struct kb_image *image)
{
	if (image->loaded)
		return;
	image->loaded = true;
	if (image->bundled)
		kb_debugfile_add(&image->elf, images->symfs, image->name);
	else if (image->kind == KB_IMAGE_OTHER)
		load_other(images, image);
	else
		load_file(images, image);
	if (kb_symtab_sort(&image->elf.symbols))
		kb_elf_release(&image->elf);
	image->stripped = image->elf.nr_segments &&
			  image->elf.symbols.nr_symbols <= image->elf.nr_stubs;
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
		kb_image_complain(image, "%s", err.text);
	image->no_lines = ret && ret != -ENOSYS;
	free(path);
}

/* The image's own file, if it has DWARF. One of another build is not taken, loudly. */
static char *own_dwarf(const struct kb_images *images, struct kb_image *image)
{
	const char *names[] = { image->name, image->base };
	char *path;
	int i, ret;

	if (image->path)
		return image->elf.has_dwarf ? strdup(image->path) : NULL;
	for (i = 0; !images->foreign && i < (images->symfs[0] ? 2 : 1); i++) {
		path = path_below(images, names[i]);
		ret = path ? kb_elf_check_dwarf(&image->elf, path) : -ENOMEM;
		if (!ret)
			return path;
		if (ret == -ESTALE)
			kb_image_complain(image, "%s is not the file that was recorded, its "
					  "build-id is another: its lines are not used", path);
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
	image->kind = KB_IMAGE_OTHER;
	if (!images->foreign && kb_perfmap_read(&image->elf.symbols, images->symfs, pid))
		kb_symtab_release(&image->elf.symbols);
	return image;
}

void kb_images_release(struct kb_images *images)
{
	tdestroy(images->tree, release_image);
	images->tree = NULL;
	free(images->symfs);
	images->symfs = NULL;
}
