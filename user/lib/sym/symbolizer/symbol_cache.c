// SPDX-License-Identifier: MIT
/*
 * A cache serves one capture at a time. What it has read stays when another capture comes. What may
 * have changed since is looked for again: files that were not there, perf maps, the modules.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/options.h"
#include "sym/elf/elf.h"
#include "sym/files/side.h"
#include "sym/names/python_name.h"
#include "sym/symbolizer/bundle.h"
#include "sym/symbolizer/kernel.h"
#include "sym/symbolizer/symbol_cache.h"

/* Limits for what is kept when another capture comes. */
#define KEPT_IMAGES	4096U
#define KEPT_IDS	(1U << 20)

static int set_symfs(struct kb_symbol_cache *cache, const char *symfs)
{
	size_t length = symfs ? strlen(symfs) : 0;

	while (length && symfs[length - 1] == '/')
		length--;
	cache->images.symfs = strndup(length ? symfs : "", length);
	return cache->images.symfs ? 0 : -ENOMEM;
}

/* @text may be NULL. */
static int copy(char **out, const char *text)
{
	*out = text ? strdup(text) : NULL;
	return text && !*out ? -ENOMEM : 0;
}

int kb_symbol_cache_create(struct kb_symbol_cache **out, const struct kb_symbol_options *options,
			   struct kb_error *err)
{
	struct kb_symbol_options known;
	struct kb_symbol_cache *cache;
	int ret = KB_OPTIONS(&known, options, err);

	if (ret)
		return ret;
	options = &known;
	cache = calloc(1, sizeof(*cache));
	if (!cache || set_symfs(cache, options->symfs) || copy(&cache->vmlinux, options->vmlinux) ||
	    copy(&cache->kallsyms_option, options->kallsyms)) {
		kb_symbol_cache_destroy(cache);
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	}
	cache->symfs_given = options->symfs;
	cache->complaints = options->complaints ?: 10;
	cache->raw_names = options->raw_names;
	cache->wants_lines = options->lines || options->inlined;
	cache->frames = (struct kb_line_cache) {
		.inlined = options->inlined,
		.demangler = options->raw_names ? NULL : &cache->demangler,
		.nr_ids = &cache->nr_ids,
	};
	kb_line_cache_init(&cache->frames);
	cache->nr_ids = 1;
	*out = cache;
	return 0;
}

static void forget_kernel(struct kb_symbol_cache *cache)
{
	kb_kallsyms_release(&cache->kallsyms);
	free(cache->kernel_images);
	cache->kernel_images = NULL;
	cache->kallsyms_tried = false;
}

static void forget_names(struct kb_symbol_cache *cache)
{
	for (uint32_t i = 0; i < cache->max_demangled; i++)
		free(cache->demangled[i]);
	free(cache->demangled);
	cache->demangled = NULL;
	cache->max_demangled = 0;
}

void kb_symbol_cache_destroy(struct kb_symbol_cache *cache)
{
	if (!cache)
		return;
	forget_kernel(cache);
	forget_names(cache);
	kb_line_cache_release(&cache->frames);
	kb_elf_release(&cache->kernel_elf);
	kb_demangler_release(&cache->demangler);
	kb_images_release(&cache->images);
	free(cache->kallsyms_path);
	free(cache->kallsyms_option);
	free(cache->vmlinux);
	free(cache->origin);
	free(cache);
}

/* Limits memory when captures come for weeks, and programs come and go. */
static void forget_all(struct kb_symbol_cache *cache)
{
	forget_kernel(cache);
	forget_names(cache);
	kb_line_cache_release(&cache->frames);
	kb_line_cache_init(&cache->frames);
	kb_elf_release(&cache->kernel_elf);
	kb_images_forget(&cache->images);
	cache->nr_ids = 1;
}

/*
 * A hash of /proc/modules: names and addresses of the modules. The third and fourth words of a
 * line are its users, which change all the time.
 */
static uint64_t modules_now(void)
{
	FILE *file = fopen("/proc/modules", "re");
	unsigned int word = 0;
	uint64_t hash = 1;
	int c;

	while (file && (c = getc_unlocked(file)) != EOF) {
		word = c == '\n' ? 0 : word + (c == ' ');
		if (word != 2 && word != 3)
			hash = kb_hash_word(hash, (uint8_t)c);
	}
	if (file)
		fclose(file);
	return hash;
}

/* Read CAPTURE.symbols if it exists. An error in it does not stop the reading of the capture. */
static void read_bundle(struct kb_symbol_cache *cache, const char *capture)
{
	char *path = kb_side_find(cache->barman, capture, KB_BUNDLE_SUFFIX);

	if (path)
		kb_bundle_read(&cache->images, path, &cache->bundle_error);
	free(path);
}

static int serve_first(struct kb_symbol_cache *cache, const char *path, struct kb_error *err)
{
	const struct kb_barman *barman = cache->barman;

	cache->images.header = kb_barman_header(barman);
	cache->images.native = kb_kernel_is_running(barman);
	cache->images.foreign = !cache->symfs_given && kb_kernel_is_elsewhere(barman);
	read_bundle(cache, path);
	cache->kallsyms_path = kb_kernel_symbols_path(barman, path, cache->kallsyms_option);
	if (!cache->kallsyms_option || !kb_symbol_cache_load_kernel(cache))
		return 0;
	if (err)
		*err = cache->kallsyms_error;
	return cache->kallsyms_error.code;
}

static void serve_another(struct kb_symbol_cache *cache)
{
	kb_images_renew(&cache->images, kb_barman_header(cache->barman));
	if (cache->kallsyms_tried && cache->images.native && cache->modules != modules_now())
		forget_kernel(cache);
	if (cache->images.nr > KEPT_IMAGES || cache->nr_ids > KEPT_IDS)
		forget_all(cache);
}

/* Machine and kernel of the capture; the caller frees it. NULL without memory. */
static char *origin_of(const struct kb_barman *barman)
{
	const char *release = kb_barman_fact(barman, "release");
	const char *host = kb_barman_fact(barman, "host");
	char *origin;

	return asprintf(&origin, "%s %s", host ?: "", release ?: "") < 0 ? NULL : origin;
/* cppcheck-suppress memleak ; asprintf() that fails has allocated nothing */
}

int kb_symbol_cache_serve(struct kb_symbol_cache *cache, const struct kb_barman *barman,
			  const char *path, struct kb_error *err)
{
	char *origin = origin_of(barman);
	bool known;

	if (!origin)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	known = cache->origin;
	if (known && strcmp(origin, cache->origin) != 0) {
		free(origin);
		return kb_error_set(err, -EXDEV, KB_NO_OFFSET, "the capture is of another machine "
				    "or kernel than the captures before it: give it another cache");
	}
	free(cache->origin);
	cache->origin = origin;
	cache->barman = barman;
	if (!known)
		return serve_first(cache, path, err);
	serve_another(cache);
	return 0;
}

int kb_symbol_cache_load_kernel(struct kb_symbol_cache *cache)
{
	struct kb_kallsyms *kallsyms = &cache->kallsyms;
	int ret;

	if (cache->kallsyms_tried)
		return cache->kallsyms_error.code;
	cache->kallsyms_tried = true;
	cache->kallsyms_error.code = 0;
	if (cache->images.native)
		cache->modules = modules_now();
	if (!cache->kallsyms_path)
		return kb_error_set(&cache->kallsyms_error, -ENOENT, KB_NO_OFFSET,
				    "there is no %.200s.kallsyms beside the capture: copy it "
				    "there, or give the kernel's symbols with --kallsyms FILE",
				    kb_side_name(cache->barman) ?: "CAPTURE");
	ret = kb_kallsyms_load(kallsyms, cache->images.header, cache->kallsyms_path,
			       &cache->kallsyms_error);
	if (ret)
		return ret;
	cache->kernel_images = calloc(kallsyms->nr_images, sizeof(*cache->kernel_images));
	if (cache->kernel_images)
		return 0;
	kb_kallsyms_release(kallsyms);
	return kb_error_set(&cache->kallsyms_error, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

struct kb_image *kb_symbol_cache_kernel_image(struct kb_symbol_cache *cache, uint32_t group)
{
	struct kb_image **image = &cache->kernel_images[group];

	if (!*image)
		*image = kb_images_get(&cache->images, cache->kallsyms.images[group], true);
	return *image;
}

/* The symbol with the new id @id is called @text, which is freed; NULL: its name stays. */
static void keep_name(struct kb_symbol_cache *cache, uint32_t id, char *text)
{
	uint32_t old = cache->max_demangled;

	if (!text)
		return;
	if (!KB_ARRAY_ROOM(cache->demangled, cache->max_demangled, (size_t)id + 1)) {
		free(text);
		return;
	}
	memset(cache->demangled + old, 0, (cache->max_demangled - old) * sizeof(*cache->demangled));
	cache->demangled[id] = text;
}

/* Demangle the name of the symbol with the new id @id. Without memory the name stays. */
static void demangle(struct kb_symbol_cache *cache, uint32_t id, const char *name)
{
	if (!cache->raw_names)
		keep_name(cache, id, kb_demangle(&cache->demangler, name));
}

void kb_symbol_cache_add(struct kb_symbol_cache *cache, const struct kb_symtab *symtab,
			 struct kb_symtab_symbol *symbol)
{
	const char *name = kb_symtab_name(symtab, symbol);

	kb_symbol_cache_id(cache, &symbol->id);
	if (name[0] == '_')
		demangle(cache, symbol->id, name);
	else if (cache->wants_lines && !cache->raw_names && kb_python_file(name))
		keep_name(cache, symbol->id,
			  strndup(name, (size_t)(kb_python_file(name) - name) - 1));
}
