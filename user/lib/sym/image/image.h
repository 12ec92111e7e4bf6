/* SPDX-License-Identifier: MIT */
/*
 * sym/image/: from a mapping to what its file has: where the file is (locate.h), which debug file
 * it has (debugfile.h), and reading them when the first address is asked for (load.h).
 *
 * The images that mappings refer to, each once, with what was read of them (load.h).
 */
#ifndef KB_LIB_SYM_IMAGE_IMAGE_H
#define KB_LIB_SYM_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>

#include "base/table.h"
#include "sym/files/namesakes.h"
#include "sym/lines/lines.h"
#include "sym/tables/elf_data.h"

enum kb_image_kind {
	KB_IMAGE_FILE,		/* a path */
	KB_IMAGE_KERNEL,	/* "[kernel.kallsyms]", "[MODULE]" */
	KB_IMAGE_OTHER,		/* "[vdso]", "[anon]", deleted files: no file to read */
};

/* How certain it is that a file is the image's file. */
enum kb_fit {
	KB_FIT_NONE,		/* there is no file */
	KB_FIT_NAME,		/* it has the path of the image */
	KB_FIT_SEEN,		/* it is in the root of a process that had it mapped */
	KB_FIT_MAPPED,		/* a process has it mapped there now */
	KB_FIT_ALIKE,		/* it has the recorded size and time of last change */
	KB_FIT_SAME,		/* it is the recorded file */
};

struct kb_image {
	char *name;		/* as mapped */
	char *file;		/* identity of the file, as in struct kb_map; "" */
	const char *base;	/* the last component of it */
	enum kb_image_kind kind;
	bool anonymous;		/* memory without a file, as JIT compilers use it */
	bool sought;		/* files of this machine were searched */
	bool loaded;		/* reading was tried */
	bool bundled;		/* its data come from a bundle */
	bool written;		/* a perf map or jitdump: a running process still writes it */
	struct kb_elf *elf;	/* kb_no_elf: nothing was found; see kb_image_room() */
	uint32_t unknown_id;	/* id for addresses without a symbol */
	char *complaint;	/* one sentence, or NULL */
	bool absent;		/* there is no such file; kb_image_complaint() says so */
	const struct kb_map *row;	/* a row that maps it; NULL: none, or a kernel image */
	bool stripped;		/* it was read and has no symbols, or only exported ones */
	bool lacks_names;	/* an address that was resolved has no name */
	uint32_t asked;		/* how often it was looked for an address there */
	char *path;		/* file it was read from; NULL: none, or a bundle */
	enum kb_fit fit;	/* certainty of path */
	struct kb_image *same;	/* the image of which this is a copy, and whose symbols it uses;
				 * NULL: none */
	struct kb_lines *lines;	/* NULL: not requested, or there are none */
	bool lines_tried, no_lines;
};

struct kb_images {
	void *tree;		/* by name and file: tsearch(3) */
	uint32_t nr;		/* in it */
	struct kb_table without_map;	/* processes that have no perf map */
	struct kb_namesakes namesakes;
	const struct kb_header *header;	/* of the capture; NULL: none */
	char *symfs;		/* "" for the root directory */
	bool native;		/* recorded on the running kernel */
	bool foreign;		/* recorded on another host and no symfs was given: files here
				 * are different ones, whatever their names are */
	bool was_foreign;	/* an image was not read because of that */
	bool no_libdw;		/* libdw was needed and is not installed */
};

/*
 * The image called @name ("" or NULL: anonymous memory). The kind of a new one follows from
 * @name and @kernel. NULL without memory.
 */
struct kb_image *kb_images_get(struct kb_images *images, const char *name, bool kernel);

/* The same for one of several files of that name. */
struct kb_image *kb_images_get_file(struct kb_images *images, const char *name,
				    struct kb_text file, bool kernel);

/* What all images have of which nothing was found: there may be many. It is not written to. */
extern struct kb_elf kb_no_elf;

/* Let @image have data of its own, which are empty before. False: no memory. */
bool kb_image_room(struct kb_image *image);

/* Drop the data of @image. */
void kb_image_empty(struct kb_image *image);

/* Remove @image, to which nothing else points. */
void kb_images_remove(struct kb_images *images, struct kb_image *image);

/* Whether @image was a file that may still be available from a process. */
bool kb_image_was_file(const struct kb_image *image);

/* Whether data of @image were found. */
static inline bool kb_image_is_read(const struct kb_image *image)
{
	return image->elf->nr_segments || image->elf->symbols.nr_symbols;
}

/* The name of @image's file without directories. */
struct kb_text kb_image_label(const struct kb_image *image);

/* Give @image a complaint, if it has none. */
void kb_image_complain(struct kb_image *image, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * From now on the images belong to another capture of the same machine, with @header. Data that
 * were read stay. Files that were not found, and perf maps, are searched for again.
 */
void kb_images_renew(struct kb_images *images, const struct kb_header *header);

/* Call @visit for each image, in the order of their names. It must not walk itself. */
void kb_images_walk(const struct kb_images *images,
		    void (*visit)(struct kb_image *image, void *closure), void *closure);

/* Remove all images, but keep symfs. */
void kb_images_forget(struct kb_images *images);

void kb_images_release(struct kb_images *images);

#endif
