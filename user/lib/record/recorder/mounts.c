// SPDX-License-Identifier: MIT
/*
 * /proc/PID/mountinfo has for each mount the device, the folder of the file system that is mounted
 * (its root), and the mount point. A layered file system may give its files the device of a layer,
 * so such mounts count if size and time agree. Other mounts are not looked at: a server that
 * does not answer would hold up the recording. A file is only looked at by stat(2): an open one
 * would keep its mount busy.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/hash.h"
#include "record/recorder/mounts.h"

#define DELETED		" (deleted)"
#define KNOWN		1024U		/* paths that are remembered: a power of two */

struct mount {
	unsigned int major, minor;
	char *root, *point;
	bool layered;
};

struct table {
	struct mount *mounts;
	size_t nr, room;
	char *below;		/* in front of mount points: "/proc/PID/root" */
};

struct known {
	char *key, *path;	/* "FILE:IMAGE" */
};

struct kb_mounts {
	char *proc;
	struct known known[KNOWN];
};

struct wanted {
	const char *image;
	size_t length;		/* of its path, without DELETED */
	unsigned int major, minor;
	uint64_t inode, size, mtime;
};

struct kb_mounts *kb_mounts_create(const char *proc)
{
	struct kb_mounts *mounts = calloc(1, sizeof(*mounts));

	if (!mounts)
		return NULL;
	mounts->proc = strdup(proc ?: "/proc");
	if (mounts->proc)
		return mounts;
	free(mounts);
	return NULL;
}

void kb_mounts_destroy(struct kb_mounts *mounts)
{
	if (!mounts)
		return;
	for (size_t i = 0; i < KNOWN; i++) {
		free(mounts->known[i].key);
		free(mounts->known[i].path);
	}
	free(mounts->proc);
	free(mounts);
}

/* ---- tables of mounts ---- */

/* Blanks and some others stand there as \NNN. */
static void undo_escapes(char *text)
{
	char *to = text;

	for (; *text; to++) {
		unsigned int code;

		if (text[0] == '\\' && sscanf(text + 1, "%3o", &code) == 1 && strlen(text) >= 4) {
			*to = (char)code;
			text += 4;
		} else {
			*to = *text++;
		}
	}
	*to = '\0';
}

/* "ID PARENT MAJOR:MINOR ROOT POINT ... - TYPE ..." */
static bool add_line(struct table *table, const char *line)
{
	const char *type = strstr(line, " - ");
	struct mount mount = { .layered = type && strncmp(type, " - overlay ", 11) == 0 };

	if (sscanf(line, "%*u %*u %u:%u %ms %ms", &mount.major, &mount.minor, &mount.root,
		   &mount.point) != 4) {
		free(mount.root);
		return true;
	}
	undo_escapes(mount.root);
	undo_escapes(mount.point);
	if (KB_ARRAY_ROOM(table->mounts, table->room, table->nr + 1)) {
		table->mounts[table->nr++] = mount;
		return true;
	}
	free(mount.root);
	free(mount.point);
	return false;
}

static void table_release(struct table *table)
{
	for (size_t i = 0; i < table->nr; i++) {
		free(table->mounts[i].root);
		free(table->mounts[i].point);
	}
	free(table->mounts);
	free(table->below);
}

/* The mounts that @who sees; none if it is gone. False: out of memory. */
static bool table_read(struct table *table, const struct kb_mounts *mounts, const char *who,
		       bool own)
{
	char *path, *line = NULL;
	bool good = true;
	size_t room = 0;
	FILE *file;

	*table = (struct table) { 0 };
	if (asprintf(&path, "%s/%s/mountinfo", mounts->proc, who) < 0)
		return false;
	file = fopen(path, "re");
	free(path);
	while (file && good && getline(&line, &room, file) > 0)
		good = add_line(table, line);
	free(line);
	if (file)
		fclose(file);
	if (good && (own ? asprintf(&table->below, "%s", "") :
			   asprintf(&table->below, "%s/%s/root", mounts->proc, who)) < 0)
		table->below = NULL;
	if (good && table->below)
		return true;
	table_release(table);
	return false;
}

/* ---- the file ---- */

/* @wanted's path behind the root of @mount; NULL: it is not there. */
static const char *behind_root(const struct mount *mount, const struct wanted *wanted)
{
	size_t root = strcmp(mount->root, "/") == 0 ? 0 : strlen(mount->root);

	if (root > wanted->length || strncmp(wanted->image, mount->root, root) != 0 ||
	    (root < wanted->length && wanted->image[root] != '/'))
		return NULL;
	return wanted->image + root;
}

/* NULL: out of memory. */
static char *path_on(const struct mount *mount, const char *below, const char *behind)
{
	const char *point = strcmp(mount->point, "/") == 0 ? "" : mount->point;
	char *path;

	return asprintf(&path, "%s%s%s", below, point, behind) < 0 ? NULL : path;
/* cppcheck-suppress memleak ; asprintf() that fails has allocated nothing */
}

/* A layered file system may show another inode than it maps: that of a lower layer. */
static bool is_it(const char *path, const struct wanted *wanted, bool layered)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	       (layered || (uint64_t)st.st_ino == wanted->inode) &&
	       (uint64_t)st.st_size == wanted->size &&
	       (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec ==
		       wanted->mtime;
}

static bool is_its_device(const struct mount *mount, const struct wanted *wanted)
{
	return mount->major == wanted->major && mount->minor == wanted->minor;
}

/* The mount of @table on which the file is: of the file's device, or a layered one. */
static const struct mount *find_file(const struct table *table, const struct wanted *wanted,
				     bool device)
{
	for (size_t i = table->nr; i--;) {	/* a later mount may hide a former one */
		const struct mount *mount = &table->mounts[i];
		const char *behind = behind_root(mount, wanted);
		bool found;
		char *path;

		if (!behind || !(device ? is_its_device(mount, wanted) : mount->layered))
			continue;
		path = path_on(mount, table->below, behind);
		found = path && is_it(path, wanted, !device);
		free(path);
		if (found)
			return mount;
	}
	return NULL;
}

/* The mount that has the most of the file's device. */
static const struct mount *find_device(const struct table *table, const struct wanted *wanted)
{
	const struct mount *found = NULL;

	for (size_t i = 0; i < table->nr; i++) {
		const struct mount *mount = &table->mounts[i];

		if (is_its_device(mount, wanted) && behind_root(mount, wanted) &&
		    (!found || strlen(mount->root) < strlen(found->root)))
			found = mount;
	}
	return found;
}

/* The root directory of a task and its mounts say the same as ours. */
static bool sees_the_same(const struct table *theirs, const struct table *own)
{
	if (theirs->nr != own->nr)
		return false;
	for (size_t i = 0; i < own->nr; i++)
		if (!is_its_device(&own->mounts[i], &(struct wanted) {
				.major = theirs->mounts[i].major,
				.minor = theirs->mounts[i].minor }) ||
		    strcmp(own->mounts[i].root, theirs->mounts[i].root) != 0 ||
		    strcmp(own->mounts[i].point, theirs->mounts[i].point) != 0)
			return false;
	return true;
}

/* The path needs no mount point: the file is there below the root directory. */
static bool is_at_root(const struct table *table, const struct wanted *wanted)
{
	bool layered = false, found;
	char *path;

	for (size_t i = 0; i < table->nr; i++)
		if (strcmp(table->mounts[i].point, "/") == 0)
			layered = table->mounts[i].layered;
	if (asprintf(&path, "%s%s", table->below, wanted->image) < 0)
		return false;
	found = is_it(path, wanted, layered);
	free(path);
	return found;
}

/* The task's mounts count before ours. */
static char *find_path(const struct table *theirs, const struct table *own,
		       const struct wanted *wanted)
{
	const struct table *const tables[] = { theirs, own };
	const struct mount *mount = NULL;

	if (is_at_root(tables[!theirs->nr], wanted))
		return strdup(wanted->image);
	for (int device = 1; device >= 0 && !mount; device--)
		for (int i = theirs->nr ? 0 : 1; i < 2 && !mount; i++)
			mount = find_file(tables[i], wanted, device);
	for (int i = theirs->nr ? 0 : 1; i < 2 && !mount; i++)
		mount = find_device(tables[i], wanted);
	return mount ? path_on(mount, "", behind_root(mount, wanted)) : strdup(wanted->image);
}

static char *look_up(const struct kb_mounts *mounts, uint32_t task_id, const struct wanted *wanted)
{
	struct table theirs, own;
	char who[16], *path;

	snprintf(who, sizeof(who), "%" PRIu32, task_id);
	if (!table_read(&own, mounts, "self", true))
		return NULL;
	if (!table_read(&theirs, mounts, who, false)) {
		table_release(&own);
		return NULL;
	}
	if (sees_the_same(&theirs, &own)) {
		table_release(&theirs);
		theirs = (struct table) { 0 };
	}
	path = find_path(&theirs, &own, wanted);
	table_release(&theirs);
	table_release(&own);
	return path;
}

static bool parse(struct wanted *wanted, const char *image, struct kb_text file)
{
	size_t length = strlen(image), deleted = strlen(DELETED);
	char text[128];

	if (image[0] != '/' || !file.length || file.length >= sizeof(text))
		return false;
	memcpy(text, file.data, file.length);
	text[file.length] = '\0';
	wanted->image = image;
	wanted->length = length;
	if (length > deleted && strcmp(image + length - deleted, DELETED) == 0)
		wanted->length -= deleted;
	return sscanf(text, "%u:%u:%" SCNu64 ":%" SCNu64 ":%" SCNu64, &wanted->major,
		      &wanted->minor, &wanted->inode, &wanted->size, &wanted->mtime) == 5;
}

const char *kb_mounts_path(struct kb_mounts *mounts, uint32_t task_id, const char *image,
			   struct kb_text file)
{
	struct wanted wanted;
	struct known *known;
	char *key;

	if (!parse(&wanted, image, file))
		return image;
	if (asprintf(&key, "%.*s:%s", (int)file.length, file.data, image) < 0)
		return NULL;
	known = &mounts->known[kb_hash_string(key) % KNOWN];
	if (!known->key || strcmp(known->key, key) != 0) {
		char *path = look_up(mounts, task_id, &wanted);

		if (!path) {
			free(key);
			return NULL;
		}
		free(known->key);
		free(known->path);
		*known = (struct known) { key, path };
	} else {
		free(key);
	}
	return known->path;
}
