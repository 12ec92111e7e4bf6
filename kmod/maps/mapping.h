/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is known of a mapping when it is made: a copy, which keeps nothing alive. A reference to the
 * file, for as long as a worker needs to get to it, would make umount of its file system fail.
 */
#ifndef KBARMAN_MAPPING_H
#define KBARMAN_MAPPING_H

#include <linux/limits.h>
#include <linux/types.h>

struct vm_area_struct;

/* The file that is mapped, as it was then. */
struct kbarman_mapped_file {
	bool known;		/* false: no file, or one of an internal mount */
	u32 major, minor;
	u64 inode, size, mtime;	/* mtime: ns since 1970 */
};

/* An executable mapping as it was made. */
struct kbarman_mapping {
	unsigned long start, end;
	u64 offset;			/* file offset of `start` */
	struct kbarman_mapped_file file;
	unsigned int length;		/* bytes of the name, without NUL; < PATH_MAX */
	const char *name;		/* a path inside its mount, "[vdso]", "//anon", ... */
};

/* Name of a mapping whose path can't be determined. */
#define KBARMAN_IMAGE_UNKNOWN	"[unknown]"

/*
 * Describe @vma. The name stands in @buffer, which has PATH_MAX bytes. Takes no lock. Context: any;
 * mmap_lock of @vma held.
 */
void kbarman_mapping_init(struct kbarman_mapping *mapping, struct vm_area_struct *vma,
			  char *buffer);

#endif /* KBARMAN_MAPPING_H */
