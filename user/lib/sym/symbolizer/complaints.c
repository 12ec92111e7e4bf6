// SPDX-License-Identifier: MIT
/* What a symbolizer says of names that it did not find, and how it saves those that it found. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "sym/files/packages.h"
#include "sym/files/side.h"
#include "sym/image/load.h"
#include "sym/question/question.h"
#include "sym/symbolizer/bundle.h"
#include "sym/symbolizer/inside.h"

struct listener {
	void (*say)(void *context, const char *sentence);
	void *context;
	struct list {
		char names[320];	/* names of images, separated by ", " */
		unsigned int nr, more;	/* more: how many are not in names */
	} stripped, without_lines, packages;
	const char **paths;		/* files of those images */
	size_t nr_paths, max_paths;
	struct kb_image **images;	/* those with a complaint of their own */
	size_t nr_images, max_images;
};

static void note(struct list *list, const char *name)
{
	size_t used = strlen(list->names), length = strlen(name);

	list->nr++;
	if (used + length + 3 > sizeof(list->names))
		list->more++;
	else
		sprintf(list->names + used, "%s%s", used ? ", " : "", name);
}

/* Without memory, the package of @path is not named. */
static void note_path(struct listener *listener, const char *path)
{
	if (KB_ARRAY_ROOM(listener->paths, listener->max_paths, listener->nr_paths + 1))
		listener->paths[listener->nr_paths++] = path;
}

static void note_complaint(struct kb_image *image, void *closure)
{
	bool lacks_names = image->stripped && image->lacks_names;
	struct listener *listener = closure;

	if ((image->complaint || image->absent) &&
	    KB_ARRAY_ROOM(listener->images, listener->max_images, listener->nr_images + 1))
		listener->images[listener->nr_images++] = image;
	if (lacks_names)
		note(&listener->stripped, image->name);
	if (image->no_lines && !lacks_names)
		note(&listener->without_lines, image->name);
	if (lacks_names || image->no_lines)
		note_path(listener, image->name);
}

/* Those with most addresses first. */
static int compare_images(const void *left, const void *right)
{
	const struct kb_image *a = *(struct kb_image *const *)left;
	const struct kb_image *b = *(struct kb_image *const *)right;

	if (a->asked != b->asked)
		return a->asked > b->asked ? -1 : 1;
	return strcmp(a->name, b->name) ?: strcmp(a->file, b->file);
}

static void say_of_images(struct listener *listener, const struct kb_images *images, size_t most)
{
	size_t nr = listener->nr_images;
	char sentence[96], *complaint;

	if (nr)
		qsort(listener->images, nr, sizeof(*listener->images), compare_images);
	for (size_t i = 0; i < nr && i < most; i++) {
		complaint = kb_image_complaint(images, listener->images[i]);
		if (complaint)
			listener->say(listener->context, complaint);
		free(complaint);
	}
	free(listener->images);
	if (nr <= most)
		return;
	snprintf(sentence, sizeof(sentence), "and %zu more files, for such reasons (-v shows all)",
		 nr - most);
	listener->say(listener->context, sentence);
}

/* What says that there is more than the names of @list. */
static const char *more_of(const struct list *list, char *text, size_t size)
{
	text[0] = '\0';
	if (list->more)
		snprintf(text, size, "%sand %u more", list->names[0] ? " " : "", list->more);
	return text;
}

static void say_list(const struct listener *listener, const struct list *list, const char *what)
{
	char sentence[512], more[48];

	if (!list->nr)
		return;
	more_of(list, more, sizeof(more));
	snprintf(sentence, sizeof(sentence), "%s (packages with their debug symbols would help): %s%s",
		 what, list->names, more);
	listener->say(listener->context, sentence);
}

/* Only the C library of Debian has its debug symbols in a package of another name. */
static void note_package(void *context, const char *package)
{
	struct listener *listener = context;
	char name[128];

	snprintf(name, sizeof(name), "%.100s%s", package,
		 strcmp(package, "libc6") == 0 ? "-dbg" : "-dbgsym");
	note(&listener->packages, name);
}

static void say_packages(struct listener *listener, const struct kb_images *images)
{
	const struct list *list = &listener->packages;
	char sentence[512], more[48];

	/* With rights to record, lists of others are not read. */
	if (!images->foreign && !(kb_decodes_elsewhere() && images->symfs[0]))
		kb_packages_of(images->symfs, listener->paths, listener->nr_paths, note_package,
			       listener);
	free(listener->paths);
	if (!list->nr)
		return;
	snprintf(sentence, sizeof(sentence), "for their debug symbols, look for %s%s in Debian's "
		 "debug archive, or set DEBUGINFOD_URLS", list->names,
		 more_of(list, more, sizeof(more)));
	listener->say(listener->context, sentence);
}

void kb_symbolizer_complaints(const struct kb_symbolizer *symbolizer,
			      void (*say)(void *context, const char *sentence), void *context)
{
	const struct kb_symbol_cache *cache = symbolizer->cache;
	struct listener listener = { .say = say, .context = context };
	char *sentence;

	if (cache->bundle_error.code)
		say(context, kb_error_text(&cache->bundle_error));
	kb_images_walk(&cache->images, note_complaint, &listener);
	say_of_images(&listener, &cache->images, cache->complaints);
	say_list(&listener, &listener.stripped, "functions without names, these files are stripped");
	say_list(&listener, &listener.without_lines, "no lines, they have no debug information");
	say_packages(&listener, &cache->images);
	if (cache->images.no_libdw)
		say(context, "no lines, they need libdw: install the package libdw1, or "
		    "elfutils-libs");
	if (cache->images.was_foreign &&
	    asprintf(&sentence, "the capture was made on %.100s, not here: run 'kbarman bundle' "
		     "there and bring %s.symbols along, or give the file tree of that machine "
		     "with --symfs DIR (--symfs / uses the files of this machine)",
		     kb_barman_fact(cache->barman, "host"),
		     kb_side_name(cache->barman) ?: "CAPTURE") >= 0) {
		say(context, sentence);
		free(sentence);
	}
	if (symbolizer->nameless_kernel &&
	    asprintf(&sentence, "kernel addresses have no names: %s",
		     kb_error_text(&cache->kallsyms_error)) >= 0) {
		say(context, sentence);
		free(sentence);
	}
	if (symbolizer->unmapped)
		say(context, "some addresses are in no mapping of the capture; they are counted "
			     "as [unknown]");
}

int kb_symbolizer_save(const struct kb_symbolizer *symbolizer, const char *capture,
		       struct kb_error *err)
{
	const struct kb_symbol_cache *cache = symbolizer->cache;
	char *path;
	int ret;

	/* An empty file must not replace symbols that the recording machine has saved. */
	if (cache->images.was_foreign)
		return kb_error_set(err, -EXDEV, KB_NO_OFFSET, "nothing was saved: the files of the "
				    "machine that recorded %s are not here", capture);
	if (asprintf(&path, "%s" KB_BUNDLE_SUFFIX, capture) < 0)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	ret = kb_bundle_write(&cache->images, path, err);
	free(path);
	return ret;
}
