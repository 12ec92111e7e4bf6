// SPDX-License-Identifier: MIT
/* Where mapped files are: mount points are added to paths inside mounts. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/tap.h"
#include "record/recorder/mounts.h"

#define SELF	1	/* a task that sees what this process sees */
#define OTHER	77	/* one with mounts of its own */
#define GONE	99

static char top[] = "/tmp/kbarman-mounts-XXXXXX";
static char text[4096];

static const char *at(const char *path)
{
	static char full[4][512];
	static int next;

	next = (next + 1) % 4;
	snprintf(full[next], sizeof(full[next]), "%s%s", top, path);
	return full[next];
}

static void write_text(const char *path, const char *what)
{
	int fd = open(at(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, what, strlen(what)) != (ssize_t)strlen(what))
		tap_ok(false, "files_can_be_made");
	close(fd);
}

/* The path of @image of @task, which is on a device of that number and is the file at @path. */
static const char *path_of(struct kb_mounts *mounts, unsigned int task, const char *image,
			   unsigned int minor, const char *path)
{
	static char file[128];
	struct stat st = { 0 };

	if (path)
		stat(at(path), &st);
	snprintf(file, sizeof(file), "8:%u:%llu:%llu:%llu", minor, (unsigned long long)st.st_ino,
		 (unsigned long long)st.st_size,
		 (unsigned long long)st.st_mtim.tv_sec * 1000000000 +
			 (unsigned long long)st.st_mtim.tv_nsec);
	return kb_mounts_path(mounts, task, image, kb_text(file));
}

int main(void)
{
	static const char *const folders[] = { "/self", "/1", "/77", "/77/root", "/77/root/data",
		"/disk", "/disk/lib", "/a b", "/merged", "/merged/bin" };
	struct kb_mounts *mounts;

	if (!mkdtemp(top))
		return 1;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		mkdir(at(folders[i]), 0700);
	snprintf(text, sizeof(text),
		 "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
		 "21 20 8:2 / %s/disk rw - ext4 /dev/sda2 rw\n"
		 "22 20 8:3 /sub/folder %s/a\\040b rw,shared:1 - xfs /dev/sda3 rw\n"
		 "23 20 0:40 / %s/merged rw - overlay overlay rw\n", top, top, top);
	write_text("/self/mountinfo", text);
	write_text("/1/mountinfo", text);
	write_text("/77/mountinfo", "30 1 0:50 / / rw - overlay overlay rw\n"
				    "31 30 8:2 / /data rw - ext4 /dev/sda2 rw\n");
	write_text("/disk/lib/code", "one");
	write_text("/a b/code", "three");
	write_text("/merged/bin/sh", "layered");
	write_text("/77/root/data/own", "its own");
	mounts = kb_mounts_create(top);

	tap_is_string(path_of(mounts, SELF, "/bin/program", 1, NULL), "/bin/program",
		      "paths_on_the_root_file_system_stay");
	tap_is_string(path_of(mounts, SELF, "/lib/code", 2, "/disk/lib/code"), at("/disk/lib/code"),
		      "a_mount_point_is_added");
	tap_is_string(path_of(mounts, GONE, "/lib/code", 2, "/disk/lib/code"), at("/disk/lib/code"),
		      "a_mount_point_is_added_when_the_task_is_gone");
	tap_is_string(path_of(mounts, SELF, "/sub/folder/code", 3, "/a b/code"), at("/a b/code"),
		      "a_part_of_a_file_system_may_be_mounted");
	tap_is_string(path_of(mounts, SELF, "/sub/folders/code", 3, NULL), "/sub/folders/code",
		      "what_is_not_mounted_stays");
	tap_is_string(path_of(mounts, SELF, "/lib/gone (deleted)", 2, NULL),
		      at("/disk/lib/gone (deleted)"), "a_deleted_file_has_its_mount_point");
	tap_is_string(path_of(mounts, SELF, "/bin/sh", 9, "/merged/bin/sh"), at("/merged/bin/sh"),
		      "a_file_of_a_layer_is_found");
	tap_is_string(path_of(mounts, OTHER, "/own", 2, "/77/root/data/own"), "/data/own",
		      "a_task_with_mounts_of_its_own_is_asked");
	tap_is_string(kb_mounts_path(mounts, SELF, "[vdso]", kb_text(NULL)), "[vdso]",
		      "what_is_no_file_stays");
	tap_is_string(kb_mounts_path(mounts, SELF, "/lib/code", kb_text(NULL)), "/lib/code",
		      "a_path_without_a_file_stays");
	kb_mounts_destroy(mounts);
	snprintf(text, sizeof(text), "rm -rf '%s'", top);
	return system(text) || tap_done();
}
