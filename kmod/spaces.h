/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The registry behind source_maps.c: which executable mappings an address space has,
 * and which threads were sampled in it. Every thread sampled gets a row in the mmap
 * table of every mapping, so that a reader need know nothing of processes.
 *
 * An address space is known by its mm_struct. The registry holds a reference (of the
 * struct, not of the memory), and callers hold theirs, so an address never comes to
 * mean another one; fork, exec, vfork and reused ids need no care.
 *
 * Context of all: one task at a time, which may sleep.
 */
#ifndef KBARMAN_SPACES_H
#define KBARMAN_SPACES_H

#include <linux/types.h>

#include "header.h"

#define KBARMAN_MAPPING_NAME	16

struct file;
struct mm_struct;
struct vm_area_struct;

/* An executable mapping as it was made. */
struct kbarman_mapping {
	unsigned long start, end;
	u64 offset;			/* of start, in the file */
	struct file *file;		/* NULL = none: it has a name */
	char name[KBARMAN_MAPPING_NAME];	/* "[vdso]" or "//anon" */
};

/* Describe @vma, with no reference to its file. Context: its mmap_lock is held. */
void kbarman_mapping_init(struct kbarman_mapping *mapping, struct vm_area_struct *vma);

/* An empty registry for rows in @capture. 0 or -ENOMEM. */
int kbarman_spaces_create(struct kbarman_capture *capture);
void kbarman_spaces_destroy(void);

/*
 * @mm has @mapping since @timestamp; it replaces what was in its place. Those who say
 * so are taken to say it of all that is mapped after kbarman_spaces_walk_all(), until
 * kbarman_spaces_distrust() says otherwise.
 */
void kbarman_spaces_map(struct mm_struct *mm, const struct kbarman_mapping *mapping,
			u64 timestamp);

/* @child is a copy of @parent since @timestamp. */
void kbarman_spaces_fork(struct mm_struct *parent, struct mm_struct *child, u64 timestamp);

/*
 * Thread @task_id was sampled in @mm at @timestamp, for the first time since it was
 * made or had a new image. False if not all rows could be had: tell it again.
 */
bool kbarman_spaces_sampled(struct mm_struct *mm, u32 task_id, u64 timestamp);

/* Thread @task_id is no more. */
void kbarman_spaces_exit(u32 task_id);

/* Some of these were left out: threads whose bit is not in @live are no more. */
void kbarman_spaces_exits(const unsigned long *live);

/* All processes that are recorded are to be walked: what they have mapped is as of @timestamp. */
void kbarman_spaces_walk_all(u64 timestamp);

/*
 * A call of the above was left out that was about @mm, or about nobody knows which: walk
 * it again, or all, if a thread was sampled there.
 */
void kbarman_spaces_distrust(struct mm_struct *mm, u64 timestamp);
void kbarman_spaces_distrust_all(u64 timestamp);

/*
 * Do a slice of the walks that are due. False if there was none: @pause says in how many jiffies
 * there will be one, MAX_SCHEDULE_TIMEOUT: none is wanted.
 */
bool kbarman_spaces_walk(unsigned long *pause);

/*
 * Somebody waits for the caller of the above: all of them, together, do no more than takes some
 * 100 ms from now on. What is left out is counted. Context: any task.
 */
void kbarman_spaces_hurry(void);

/*
 * If it is time for it, find the address spaces that nobody lives in any more. When
 * that returns true the caller passes on everything that was said of them before, and
 * then they can be buried.
 */
bool kbarman_spaces_condemn(void);
void kbarman_spaces_bury(void);

#endif /* KBARMAN_SPACES_H */
