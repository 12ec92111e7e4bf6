/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The registry of maps.c. It knows the executable mappings of each address space, and the
 * processes that were sampled in it. Each of these gets a row in the mmap table for each of the
 * mappings, whatever threads it has: more than one if a child shares memory with its parent, as
 * after vfork().
 *
 * The mm_struct identifies an address space. The registry holds a reference to the mm_struct
 * (mm_count), not to the memory, and callers hold their own reference. So the address of an
 * mm_struct always means the same address space, whatever fork, exec, vfork and reused ids do.
 *
 * Context of all functions: one task at a time, which may sleep.
 */
#ifndef KBARMAN_SPACES_H
#define KBARMAN_SPACES_H

#include <linux/types.h>

struct kbarman_code_bounds;
struct kbarman_fact;
struct kbarman_session;
struct kbarman_spaces;
struct mm_struct;

/*
 * Create an empty registry, which adds rows to the session's capture and says in @bounds where code
 * is. NULL if there is no memory.
 */
struct kbarman_spaces *kbarman_spaces_create(struct kbarman_session *session,
					     struct kbarman_code_bounds *bounds);
void kbarman_spaces_destroy(struct kbarman_spaces *spaces);	/* NULL is allowed */

/*
 * Take @fact: a mapping, a fork, the first sample of a process since it was created or executed a
 * new image, or the exit of its last thread. Returns false if there was no memory to remember the
 * process that was sampled; the caller then calls again at its next sample.
 */
bool kbarman_spaces_take(struct kbarman_spaces *spaces, const struct kbarman_fact *fact);

/* Some exits were not reported: processes whose bit in @live is not set have exited. */
void kbarman_spaces_exits(struct kbarman_spaces *spaces, const unsigned long *live);

/*
 * Ask for walks of all processes that are recorded. The mappings that a walk finds count as made
 * before the recording.
 */
void kbarman_spaces_walk_all(struct kbarman_spaces *spaces);

/*
 * A call of the functions above was left out. It was about @mm, or about an unknown address space.
 * @mm, or all address spaces, are walked again if a process was sampled there.
 */
void kbarman_spaces_distrust(struct kbarman_spaces *spaces, struct mm_struct *mm, u64 timestamp);
void kbarman_spaces_distrust_all(struct kbarman_spaces *spaces, u64 timestamp);

/*
 * Do a slice of the walks that are due. If no walk is due, the function returns false, and @pause
 * is the number of jiffies until one is due, or MAX_SCHEDULE_TIMEOUT if no walk is wanted.
 */
bool kbarman_spaces_walk(struct kbarman_spaces *spaces, unsigned long *pause);

/*
 * Limit the work of all functions above from now on, for a task that waits for their caller:
 * together they take some 100 ms more. Work that is not done is counted as missed. Context: any
 * task.
 */
void kbarman_spaces_hurry(struct kbarman_spaces *spaces);

/*
 * kbarman_spaces_condemn() marks the address spaces that no task uses any more, if it is time to
 * look for them. When it returns true, the caller first passes on all facts that were reported
 * before, and then calls kbarman_spaces_free_unused(), which frees the marked address spaces.
 */
bool kbarman_spaces_condemn(struct kbarman_spaces *spaces);
void kbarman_spaces_free_unused(struct kbarman_spaces *spaces);

#endif /* KBARMAN_SPACES_H */
