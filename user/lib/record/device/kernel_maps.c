// SPDX-License-Identifier: MIT
/*
 * Rows of a capture's mmap table for the text of the kernel and its modules. The kernel module
 * can't find these out by itself.
 *
 * The kernel's text is [_stext, _etext) of kallsyms. A line of /proc/modules has a module's
 * address and size. Since Linux 6.4 the size is that of all parts of the module, which are no
 * longer adjacent, so a range ends where the next one begins.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/kernel_maps.h>

#include "format/gzip_whole.h"

static FILE *open_proc(const char *proc, const char *name, struct kb_error *err)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", proc ?: "/proc", name);
	file = fopen(path, "re");
	if (!file)
		kb_error_set(err, -errno, KB_NO_OFFSET, "%s can't be read: %s", path,
			     strerror(errno));
	return file;
}

static int add_map(struct kb_kernel_maps *maps, uint64_t base, uint64_t length, const char *name)
{
	struct kb_kernel_map *map;

	if (!(maps->nr & (maps->nr - 1))) {	/* grows at 0, 1, 2, 4, … */
		size_t room = maps->nr ? 2 * (size_t)maps->nr : 1;
		void *grown = realloc(maps->maps, room * sizeof(*map));

		if (!grown)
			return -ENOMEM;
		maps->maps = grown;
	}
	map = &maps->maps[maps->nr++];
	map->base_address = base;
	map->length = length;
	snprintf(map->image, sizeof(map->image), "[%s]", name);
	return 0;
}

/* Lines are "ADDRESS TYPE NAME" and maybe "\t[MODULE]". */
static int read_kallsyms(struct kb_kernel_maps *maps, const char *proc, FILE *copy,
			 struct kb_error *err)
{
	FILE *file = open_proc(proc, "kallsyms", err);
	uint64_t stext = 0, etext = 0;
	char *line = NULL;
	size_t room = 0;
	int ret = 0;

	if (!file)
		return err ? err->code : -ENOENT;
	maps->hidden = true;
	while (getline(&line, &room, file) > 0) {
		char *end;
		uint64_t address = strtoull(line, &end, 16);

		if (end == line || strlen(end) < 4)
			continue;
		if (maps->hidden && !address)
			continue;
		/*
		 * The first addresses may really be zero (per-CPU symbols on x86). They are not
		 * code and are left out of the copy.
		 */
		maps->hidden = false;
		if (!strcmp(end + 3, "_stext\n"))
			stext = address;
		else if (!strcmp(end + 3, "_etext\n"))
			etext = address;
		if (copy)
			fputs(line, copy);
	}
	if (ferror(file))
		ret = kb_error_set(err, -EIO, KB_NO_OFFSET, "kallsyms can't be read to its end");
	free(line);
	fclose(file);
	if (!ret && !maps->hidden && stext < etext)
		ret = add_map(maps, stext, etext - stext, "kernel.kallsyms");
	return ret;
}

/* Lines are "NAME SIZE REFCOUNT USERS STATE ADDRESS" and maybe taint flags. */
static int read_modules(struct kb_kernel_maps *maps, const char *proc)
{
	FILE *file = open_proc(proc, "modules", NULL);
	char *line = NULL;
	size_t room = 0;
	int ret = 0;

	if (!file)
		return 0;	/* a kernel without modules */
	while (!ret && getline(&line, &room, file) > 0) {
		char name[sizeof(maps->maps->image) - 2];
		uint64_t size, address;

		if (sscanf(line, "%61s %" SCNu64 " %*s %*s %*s %" SCNx64, name, &size,
			   &address) == 3 && size && address && address + size > address)
			ret = add_map(maps, address, size, name);
	}
	free(line);
	fclose(file);
	return ret;
}

static int compare_maps(const void *a, const void *b)
{
	const struct kb_kernel_map *x = a, *y = b;

	return x->base_address < y->base_address ? -1 : x->base_address > y->base_address;
}

/* Sort the ranges and cut overlaps. Of two ranges at one address one is removed. */
static void separate_maps(struct kb_kernel_maps *maps)
{
	uint32_t kept = 0;

	if (!maps->nr)
		return;
	qsort(maps->maps, maps->nr, sizeof(*maps->maps), compare_maps);
	for (uint32_t i = 0; i < maps->nr; i++) {
		struct kb_kernel_map *map = &maps->maps[i];

		if (i + 1 < maps->nr && map[1].base_address - map->base_address < map->length)
			map->length = map[1].base_address - map->base_address;
		if (map->length)
			maps->maps[kept++] = *map;
	}
	maps->nr = kept;
}

int kb_kernel_maps_read(struct kb_kernel_maps *maps, const char *proc, FILE *copy,
			struct kb_error *err)
{
	int ret;

	memset(maps, 0, sizeof(*maps));
	ret = read_kallsyms(maps, proc, copy, err);
	if (!ret && !maps->hidden)
		ret = read_modules(maps, proc);
	if (ret == -ENOMEM)
		kb_error_set(err, ret, KB_NO_OFFSET, "out of memory for the kernel's modules");
	if (ret)
		kb_kernel_maps_free(maps);
	else
		separate_maps(maps);
	return ret;
}

void kb_kernel_maps_free(struct kb_kernel_maps *maps)
{
	free(maps->maps);
	memset(maps, 0, sizeof(*maps));
}

static const struct kb_kernel_map *find_image(const struct kb_kernel_maps *maps, const char *image)
{
	for (uint32_t i = 0; i < maps->nr; i++) {
		if (!strcmp(maps->maps[i].image, image))
			return &maps->maps[i];
	}
	return NULL;
}

/* Copy the lines of kallsyms that end in "[MODULE]" with one of the modules of @maps. */
static int copy_modules(const struct kb_kernel_maps *maps, const char *proc, FILE *copy,
			struct kb_error *err)
{
	FILE *file = open_proc(proc, "kallsyms", err);
	char *line = NULL;
	size_t room = 0;
	ssize_t length;

	if (!file)
		return err ? err->code : -ENOENT;
	while ((length = getline(&line, &room, file)) > 0) {
		char *image = strrchr(line, '[');

		if (!image || line[length - 1] != '\n')
			continue;
		line[length - 1] = '\0';
		if (find_image(maps, image))
			fprintf(copy, "%s\n", line);
	}
	free(line);
	fclose(file);
	return 0;
}

int kb_kernel_maps_append_new(const struct kb_kernel_maps *known, const char *proc, FILE *copy,
			      struct kb_error *err)
{
	struct kb_kernel_maps now = { 0 };
	uint32_t kept = 0;
	int ret = read_modules(&now, proc);

	if (ret)
		kb_error_set(err, ret, KB_NO_OFFSET, "out of memory for the kernel's modules");
	for (uint32_t i = 0; i < now.nr; i++) {
		if (!find_image(known, now.maps[i].image))
			now.maps[kept++] = now.maps[i];
	}
	now.nr = kept;
	if (!ret && kept)
		ret = copy_modules(&now, proc, copy, err);
	kb_kernel_maps_free(&now);
	return ret ?: (int)kept;
}

int kb_kernel_maps_add(const struct kb_kernel_maps *maps, struct kb_device *device,
		       uint32_t *added, struct kb_error *err)
{
	struct kbarman_map_row *rows = calloc(maps->nr ? maps->nr : 1, sizeof(*rows));
	int ret;

	*added = 0;
	if (!rows)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	for (uint32_t i = 0; i < maps->nr; i++) {
		const struct kb_kernel_map *map = &maps->maps[i];

		rows[i].base_address = map->base_address;
		rows[i].length = map->length;
		rows[i].image_ptr = (uintptr_t)map->image;
		rows[i].image_length = (uint32_t)strlen(map->image);
	}
	*added = maps->nr;
	ret = kb_device_add_maps(device, rows, added, err);
	free(rows);
	return ret;
}

/* The lines of @kallsyms that are code, with an address. Returns 0 or a negative errno. */
static int read_code(FILE *kallsyms, char **text, size_t *size)
{
	FILE *copy = open_memstream(text, size);
	char *line = NULL, *type;
	size_t room = 0;
	int ret;

	if (!copy)
		return -ENOMEM;
	while (getline(&line, &room, kallsyms) > 0)
		if (strtoull(line, &type, 16) && *type == ' ' && strchr("tTwW", type[1]))
			fputs(line, copy);
	free(line);
	ret = ferror(kallsyms) ? -EIO : ferror(copy) ? -ENOMEM : 0;
	return fclose(copy) ? -ENOMEM : ret;
}

int kb_kernel_symbols_keep(struct kb_device *device, const char *proc, struct kb_error *err)
{
	FILE *file = open_proc(proc, "kallsyms", err);
	char *text = NULL;
	void *packed = NULL;
	size_t size = 0, bytes;
	int ret;

	if (!file)
		return err ? err->code : -ENOENT;
	ret = read_code(file, &text, &size);
	if (!ret)
		ret = size ? kb_gzip_pack(text, size, &packed, &bytes) : -EACCES;
	if (ret)
		kb_error_set(err, ret, KB_NO_OFFSET, ret == -EACCES ? "the kernel hides its addresses" :
			     "kallsyms can't be read to its end: %s", strerror(-ret));
	else
		ret = kb_device_add_symbols(device, packed, bytes, err);
	free(packed);
	free(text);
	fclose(file);
	return ret;
}
