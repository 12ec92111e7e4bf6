/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The registry, for the files that it consists of: space.c has an address space, with the names of
 * what is mapped there and the rows of its processes, space_walk.c looks its mappings up, and
 * spaces.c knows all address spaces and takes what is reported.
 *
 * Memory is bounded. An address space has at most KBARMAN_MAX_MAPPINGS mappings. The number of
 * address spaces is at most a quarter, or MIN_GRAVES, larger than at the last look for dead ones.
 * Each possible process id has one bit. All mappings and their names together have at most
 * KBARMAN_MAX_BYTES: a path can take 8 KiB, any user can create paths, and no user is charged for
 * this memory. The last look for dead address spaces left some bytes free; when half of these are
 * used, the next look frees dead address spaces. If that is not enough, one of the largest address
 * spaces loses its oldest mappings, which are counted as missed; other address spaces keep theirs.
 *
 * Time is bounded as well. A fact about a mapping takes O(log n) steps, and one step for each row
 * that it makes. An address space has at most as many rows in the mmap table as are free. An
 * address space with facts that were left out is walked, at most once in WALK_PAUSE. A walk is done
 * in slices, and the caller does its other work between two slices.
 *
 * No locks are needed: all calls are made by one task at a time (see spaces.h).
 */
#ifndef KBARMAN_SPACE_H
#define KBARMAN_SPACE_H

#include <linux/list.h>
#include <linux/log2.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/siphash.h>
#include <linux/threads.h>
#include <linux/xarray.h>

#include "capture/header.h"
#include "maps/mapping.h"

#define KBARMAN_MAX_MAPPINGS	4096	/* of an address space; the oldest ones are dropped */
#define KBARMAN_MAX_BYTES	(64U << 20)	/* of mappings and images */

/*
 * Steps that are still done after kbarman_spaces_hurry(), which take some 100 ms. A step is one
 * mapping that is looked at or reported, or one row.
 */
#define KBARMAN_HURRY_STEPS	65536
#define KBARMAN_HURRY_TRIES	16	/* tries to lock busy address spaces, up to a
					 * millisecond each */

struct kbarman_capture;
struct kbarman_code_bounds;
struct kbarman_session;

/* The name of what is mapped. All mappings of it share one image. */
struct kbarman_image {
	struct hlist_node node;		/* in images */
	unsigned int users;		/* number of mappings */
	unsigned int bytes;		/* bytes of memory */
	struct kbarman_mapped_file file;
	unsigned int length;
	unsigned int name_at;
	char name[];			/* the name begins at name_at; the bytes before it say which
					 * file it is */
};

/* A mapping that is known. */
struct kbarman_known {
	struct rb_node node;		/* in space->mappings */
	struct list_head age;		/* in space->by_age */
	struct kbarman_image *image;
	u64 timestamp;
	unsigned long start, end;
	u64 offset;
};

/* An address space. */
struct kbarman_space {
	struct hlist_node node;		/* in spaces */
	struct list_head size;		/* in sizes[] */
	struct list_head pending;	/* in to_walk, or empty */
	struct kbarman_spaces *all;	/* to which it belongs */
	struct mm_struct *mm;		/* with a reference (mm_count) */
	u32 task_id;			/* of a task that used it */
	struct rb_root mappings;	/* by address; mappings do not overlap */
	struct list_head by_age;	/* the same mappings, oldest first */
	struct list_head processes;	/* whose last sample was in this address space: one, but for
					 * children that share memory with their parents */
	unsigned int nr_mappings;
	size_t bytes;			/* bytes of its mappings; each one counts its whole image */
	u32 rows;			/* of its processes; stream mode: with rows that have ended */
	u64 walk_since;			/* time that a walk assigns to the mappings it finds */
	u64 walk_due;			/* jiffies64 before which no walk is made */
	unsigned long walk_at;		/* address at which the walk goes on */
	u32 walk_left;			/* mappings for which the walk found no room */
	u32 left;			/* number of these that were counted as missed */
	unsigned int nr_ended;		/* number of `processes` that have ended, at most */
	bool complete;			/* all mappings are known, except for those that `trimmed`
					 * stands for */
	bool trimmed;			/* mappings were dropped or left out because there was no
					 * room */
	bool gap;			/* a fact was left out since the walk began */
	bool busy;			/* the last try found mmap_lock taken */
	bool unused;			/* nobody used the memory any more at the last look */
};

/* A process of which a thread was sampled. */
struct kbarman_process {
	struct list_head node;		/* in space->processes */
	struct kbarman_space *space;
	u32 id;				/* the thread group's */
	u32 rows;			/* made and not ended yet */
	u64 since;			/* the process's rows are not stamped earlier: its id had
					 * rows before, which they replace. 0 = the id had no
					 * rows */
	bool ended;			/* it waits for its rows only: a walk was put off */
};

#define KBARMAN_IMAGE_BITS	14
#define KBARMAN_SPACE_BITS	12

struct kbarman_spaces {
	const struct kbarman_session *session;
	struct kbarman_capture *capture;
	struct kbarman_code_bounds *bounds;
	struct hlist_head images[1 << KBARMAN_IMAGE_BITS];
	struct hlist_head spaces[1 << KBARMAN_SPACE_BITS];
	unsigned long had_rows[BITS_TO_LONGS(PID_MAX_LIMIT)];	/* bit = id of a process: it has
								 * had rows */
	siphash_key_t salt;		/* of the hash of images, because users choose paths */
	struct list_head sizes[BITS_PER_LONG + 1];	/* address spaces by fls_long(bytes) */
	struct list_head to_walk;
	struct xarray processes;	/* by id */
	struct kbarman_walk_batch *batch;
	unsigned int nr_spaces;
	size_t nr_bytes;		/* bytes of all mappings and images */
	u32 nr_rows;			/* rows of all address spaces; stream mode: with rows that
					 * have ended */
	unsigned int look_at;		/* number of address spaces at which to look for dead
					 * ones */
	size_t look_at_bytes;		/* nr_bytes at which to look for them */
	u64 looked;			/* jiffies64 of the last look */
	bool all_seen;			/* all address spaces are known: one that is not in `spaces`
					 * is new */
	bool hurry;			/* a task waits: steps are limited */
	int steps_left, tries_left;	/* what is left of KBARMAN_HURRY_STEPS and _TRIES */
};

/* Mappings that a walk has copied while it held locks: few, and one long name at most. */
struct kbarman_walk_batch {
	unsigned int nr, bytes;
	struct kbarman_mapping mappings[8];
	char names[PATH_MAX + 512];	/* `bytes` are in use */
};

/* The most memory that kmalloc() uses for @size bytes. */
#define KBARMAN_MEMORY_OF(size)	roundup_pow_of_two(size)

/* ---- limits ---- */

/* Count what was left out because there was no memory. */
static inline void kbarman_spaces_out_of_memory(struct kbarman_spaces *spaces)
{
	kbarman_header_miss(spaces->capture, KBARMAN_MISSED_MEMORY, 1);
}

/* Count a step. False if no more work may be done. The second one reschedules first. */
static inline bool kbarman_spaces_step_atomic(struct kbarman_spaces *spaces)
{
	return !READ_ONCE(spaces->hurry) || spaces->steps_left-- > 0;
}

static inline bool kbarman_spaces_step(struct kbarman_spaces *spaces)
{
	cond_resched();
	return kbarman_spaces_step_atomic(spaces);
}

/* ---- space.c ---- */

/* Rows for all mappings of the process's address space. */
void kbarman_process_add_rows(struct kbarman_process *process);

/* The rows of @process have ended. In overwrite mode they can be used again. */
void kbarman_process_end_rows(struct kbarman_process *process);

/*
 * The process's id has rows of another image. Rows that would replace them may be missing. So a row
 * named KBARMAN_IMAGE_UNKNOWN replaces all of them first.
 */
void kbarman_process_hide_rows(struct kbarman_process *process);
void kbarman_process_free(struct kbarman_process *process);

/* The first mapping that ends behind @address, or NULL. */
struct kbarman_known *kbarman_space_mapping_behind(const struct kbarman_space *space,
						   unsigned long address);

/* @space has the mapping @from since @timestamp. */
void kbarman_space_map(struct kbarman_space *space, const struct kbarman_mapping *from,
		       u64 timestamp);

/* @to has all mappings of @from since @timestamp. */
void kbarman_space_copy(struct kbarman_space *to, struct kbarman_space *from, u64 timestamp);
void kbarman_space_free_mappings(struct kbarman_space *space);

/* True if all mappings of @space are known. */
static inline bool kbarman_space_is_complete(const struct kbarman_space *space)
{
	return space->complete && list_empty(&space->pending);
}

/* Ask for a walk of @space. Mappings that the walk finds count as made at @since. */
void kbarman_space_want_walk(struct kbarman_space *space, u64 since);

/* A fact about @space was left out. */
void kbarman_space_distrust(struct kbarman_space *space, u64 timestamp);

/* ---- space_walk.c ---- */

/* Do a slice of the walk of @space. */
void kbarman_space_walk(struct kbarman_space *space);

bool kbarman_space_walk_is_due(const struct kbarman_space *space);

#endif /* KBARMAN_SPACE_H */
