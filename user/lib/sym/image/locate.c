// SPDX-License-Identifier: MIT
/*
 * Each candidate for the image's file gets a rating, and the best is kept. A file's identity
 * counts for more than the place where the file was found.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sym/files/file_id.h"
#include "sym/image/locate.h"

#define LIVE_TRIES	1000U	/* tasks that are asked for a file whose path no longer exists */

struct search {
	const struct kb_images *images;
	struct kb_image *image;
	const struct kb_map *const *others;	/* rows of files of that name */
	uint32_t nr_others;			/* these may include this one */
	bool alone;				/* no other file of that name is known */
};

char *kb_locate_below(const struct kb_images *images, const char *name)
{
	char *path;

	if (!images->symfs[0])
		return strdup(name);
	return asprintf(&path, "%s%s%s", images->symfs, name[0] == '/' ? "" : "/", name) < 0 ?
		NULL : path;
/* cppcheck-suppress memleak ; asprintf() that fails has allocated nothing */
}

static bool is_of(const struct kb_map *row, const char *file)
{
	return strlen(file) == row->file.length &&
	       memcmp(file, row->file.data, row->file.length) == 0;
}

static bool is_another_one(const struct search *search, const char *file)
{
	uint32_t i;

	for (i = 0; i < search->nr_others; i++)
		if (is_of(search->others[i], file))
			return true;
	return false;
}

static bool is_alone(const struct search *search)
{
	const char *file = search->image->file;
	uint32_t i;

	if (search->nr_others == KB_NAMESAKES_MAX)
		return false;
	for (i = 0; i < search->nr_others; i++)
		if (!is_of(search->others[i], file) &&
		    !kb_file_id_alike(search->others[i]->file, kb_text(file)))
			return false;
	return true;
}

/* The rating of the file at @path. It is @fit if only the place of the file speaks for it. */
static enum kb_fit rate(const struct search *search, const char *path, enum kb_fit fit)
{
	const char *wanted = search->image->file;
	char file[KB_FILE_ID];

	if (!wanted[0])
		return fit;
	if (!kb_file_id(path, file))
		return search->alone ? fit : KB_FIT_NONE;
	if (strcmp(file, wanted) == 0)
		return KB_FIT_SAME;
	if (kb_file_id_alike(kb_text(file), kb_text(wanted)))
		return KB_FIT_ALIKE;
	if (search->alone || (fit == KB_FIT_MAPPED && !is_another_one(search, file)))
		return fit;
	return KB_FIT_NONE;
}

/* Keep @path if its rating is better, else free it. True: no better one is possible. */
static bool offer(const struct search *search, char *path, enum kb_fit fit)
{
	struct kb_image *image = search->image;

	if (path && access(path, F_OK) == 0)
		fit = rate(search, path, fit);
	else
		fit = KB_FIT_NONE;
	if (fit > image->fit) {
		free(image->path);
		image->path = path;
		image->fit = fit;
	} else {
		free(path);
	}
	return image->fit >= (image->file[0] ? KB_FIT_SAME : KB_FIT_SEEN);
}

/* Whether the link points to the file that was mapped as @name, which may be deleted. */
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

/* Whether the process has another root directory than this one, as in a container. */
static bool has_other_root(uint32_t task_id)
{
	struct stat ours, theirs;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/root", task_id);
	return stat("/", &ours) == 0 && stat(path, &theirs) == 0 &&
	       (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino);
}

/* Only root can open the files that are mapped, but the user of a process can open its program. */
static bool ask_task_for_program(const struct search *search, const struct kb_map *row)
{
	char *path;

	if (asprintf(&path, "/proc/%u/exe", row->task_id) < 0)
		return false;
	return offer(search, path, is_link_to(path, search->image->name) ? KB_FIT_MAPPED : KB_FIT_NONE);
}

/*
 * While a process that has the image mapped is running, the kernel gives access to the file
 * itself, even if it was deleted or replaced, or only this process can see it. Otherwise the
 * process's root may have the file.
 */
static bool ask_task(const struct search *search, const struct kb_map *row)
{
	const char *name = search->image->name;
	bool linked, elsewhere;
	char *path;

	if (asprintf(&path, "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, row->task_id,
		     row->base_address, row->base_address + row->length) < 0)
		return false;
	linked = is_link_to(path, name);
	/* If the path differs (the file was renamed), only the identity of the file counts. */
	if (offer(search, path, linked ? KB_FIT_MAPPED : KB_FIT_NONE) ||
	    ask_task_for_program(search, row))
		return true;
	if (linked)
		return false;
	elsewhere = has_other_root(row->task_id);
	if (name[0] != '/' || !(search->image->file[0] || elsewhere) ||
	    asprintf(&path, "/proc/%u/root%s", row->task_id, name) < 0)
		return false;
	return offer(search, path, elsewhere ? KB_FIT_SEEN : KB_FIT_NAME);
}

/* Ask all tasks that have it mapped, the latest first: they are likely to be running. */
static bool ask_tasks(const struct search *search)
{
	const struct kb_header *header = search->images->header;
	const struct kb_map *first = search->image->row, *row = first;
	unsigned int tries = LIVE_TRIES;
	uint32_t i;

	if (!search->images->native || search->images->symfs[0] || !row)
		return false;
	if (ask_task(search, row))
		return true;
	for (i = header ? header->nr_maps : 0; i && tries; i--) {
		const struct kb_map *other = &header->maps[i - 1];

		if (other->image_ptr != first->image_ptr || other->task_id == row->task_id)
			continue;
		if (ask_task(search, other))
			return true;
		row = other;
		tries--;
	}
	return false;
}

/* Look below symfs, first for the whole path, then for its last component. */
static bool look_below(const struct search *search)
{
	const struct kb_image *image = search->image;
	const char *names[] = { image->name, image->base };
	int i;

	if (image->kind != KB_IMAGE_FILE)
		return false;
	for (i = 0; i < (search->images->symfs[0] ? 2 : 1); i++)
		if (offer(search, kb_locate_below(search->images, names[i]), KB_FIT_NAME) ||
		    image->fit != KB_FIT_NONE)
			break;
	return image->fit == KB_FIT_SAME;
}

void kb_locate(struct kb_images *images, struct kb_image *image)
{
	struct search search = { .images = images, .image = image };

	if (image->file[0])
		search.nr_others = kb_namesakes_find(&images->namesakes, images->header,
						     image->name, &search.others);
	search.alone = is_alone(&search);
	/* If the identity of the file is known, the path is checked first, else last. */
	if ((image->file[0] && look_below(&search)) || ask_tasks(&search))
		return;
	if (!image->file[0])
		look_below(&search);
	/* The path is kept for the message that says that it can't be read. */
	if (!image->path && search.alone && image->kind == KB_IMAGE_FILE) {
		image->path = kb_locate_below(images, images->symfs[0] ? image->base : image->name);
		image->fit = KB_FIT_NAME;
	}
}
