/* SPDX-License-Identifier: MIT */
/*
 * The images that mappings show, each one once, its symbols read when an address
 * in it is first asked for.
 */
#ifndef KBARMAN_SYM_IMAGE_H
#define KBARMAN_SYM_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>

#include "sym/elf.h"
#include "sym/lines.h"
#include "sym/namesakes.h"

enum kb_image_kind {
	KB_IMAGE_FILE,		/* a path */
	KB_IMAGE_KERNEL,	/* "[kernel.kallsyms]", "[MODULE]" */
	KB_IMAGE_OTHER,		/* "[vdso]", "[anon]", what was deleted: no file to read */
};

/* What speaks for the file that an image is read from. */
enum kb_fit {
	KB_FIT_NONE,		/* there is none */
	KB_FIT_NAME,		/* it has that path */
	KB_FIT_SEEN,		/* in the root of a process that had it mapped */
	KB_FIT_MAPPED,		/* a process has it mapped there now */
	KB_FIT_ALIKE,		/* it is as long, and was last changed at the same time */
	KB_FIT_SAME,		/* it is the one that was recorded */
};

struct kb_image {
	char *name;		/* as mapped */
	char *file;		/* which of the files of that name, as in struct kb_map; "" */
	const char *base;	/* the last component of it */
	enum kb_image_kind kind;
	bool sought;		/* what there is on this machine was looked at */
	bool loaded;		/* tried at least */
	bool bundled;		/* what it is comes from a bundle */
	bool written;		/* by a process that runs: a perf map, which grows */
	struct kb_elf elf;
	uint32_t unknown_id;	/* of addresses that no symbol covers */
	char *complaint;	/* one sentence, or NULL */
	const struct kb_map *row;	/* one that shows it, NULL: none, or of the kernel */
	bool stripped;		/* it was read, and has none, or those that it exports */
	bool lacks_names;	/* for an address that was asked for */
	char *path;		/* the file it was read from; NULL: none, or a bundle */
	enum kb_fit fit;	/* of path */
	struct kb_image *same;	/* the one that it is a copy of, and has its symbols; or NULL */
	struct kb_lines *lines;	/* NULL: not asked for, or there are none */
	bool lines_tried, no_lines;
};

struct kb_images {
	void *tree;		/* by name and file: tsearch(3) */
	uint32_t nr;		/* in it */
	struct kb_namesakes namesakes;
	const struct kb_header *header;	/* of the capture; NULL: none */
	char *symfs;		/* "" for the root itself */
	bool native;		/* recorded on the kernel that runs here */
	bool foreign;		/* recorded on another host, and no symfs was given: the
				 * files here are others, whatever they are called */
	bool was_foreign;	/* and that mattered */
	bool no_libdw;		/* that was missing when it was wanted */
};

/*
 * The image called @name ("" or NULL: anonymous memory), new ones of the kind that
 * the name and @kernel tell. NULL without memory.
 */
struct kb_image *kb_images_get(struct kb_images *images, const char *name, bool kernel);

/* The same of one of several files of that name. */
struct kb_image *kb_images_get_file(struct kb_images *images, const char *name,
				    struct kb_text file, bool kernel);

/*
 * Read the symbols of an image, unless they are there already, and return it; or another one
 * of that name, if it was copied up or copied and only that is to be had. What is wrong
 * becomes its complaint.
 */
struct kb_image *kb_image_load(struct kb_images *images, struct kb_image *image);

/*
 * Find the DWARF of an image that is a file, and is loaded, unless that was tried. What is
 * wrong becomes its complaint.
 */
void kb_image_load_lines(struct kb_images *images, struct kb_image *image);

/* Take @path, which is to be freed and may be NULL, for the image's DWARF. */
void kb_image_take_lines(struct kb_images *images, struct kb_image *image, char *path);

/* Is @image memory that no file stands behind, as JIT compilers use it? */
bool kb_image_is_anonymous(const struct kb_image *image);

/*
 * The image of the code that process @pid made at run time, by its perf map, symbols
 * read; it has none if there is no such map. NULL without memory.
 */
struct kb_image *kb_images_perfmap(struct kb_images *images, uint32_t pid);

/* Give @image a complaint, if it has none. */
void kb_image_complain(struct kb_image *image, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * From now on the images are of another capture of the same machine, with @header: what was
 * read stays; what was not found, and what processes write themselves, is looked for again.
 */
void kb_images_renew(struct kb_images *images, const struct kb_header *header);

/* All of them, but not symfs: as after a start. */
void kb_images_forget(struct kb_images *images);

void kb_images_release(struct kb_images *images);

#endif
