// SPDX-License-Identifier: GPL-2.0-only
/*
 * No locks are needed here: all calls are made by one task at a time (see spaces.h).
 *
 * Memory is bounded. An address space has at most MAX_MAPPINGS mappings. The number of address
 * spaces is at most a quarter, or MIN_GRAVES, larger than at the last look for dead ones. Each
 * possible thread id has one bit. All mappings and their names together have at most MAX_BYTES: a
 * path can take 8 KiB, any user can create paths, and no user is charged for this memory. The last
 * look for dead address spaces left some bytes free; when half of these are used, the next look
 * frees dead address spaces. If that is not enough, one of the largest address spaces loses its
 * oldest mappings, which are counted as missed; other address spaces keep theirs.
 *
 * Time is bounded as well. A fact about a mapping takes O(log n) steps, and one step for each row
 * that it makes. An address space has at most as many rows in the mmap table as are free. An
 * address space with facts that were left out is walked, at most once in WALK_PAUSE. A walk is done
 * in slices, and the caller does its other work between two slices.
 */
#include <linux/bitops.h>
#include <linux/dcache.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/rbtree.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <linux/threads.h>
#include <linux/vmalloc.h>
#include <linux/xarray.h>

#include "compat/file.h"
#include "session.h"
#include "spaces.h"

#define MAX_MAPPINGS	4096	/* of an address space; the oldest ones are dropped */
#define MAX_BYTES	(64U << 20)	/* of mappings and images */
#define MIN_GRAVES	64
#define LOOK_PAUSE	(HZ / 10)	/* jiffies from one look for dead address spaces to the
					 * next */
#define FILE_BYTES	104	/* most bytes in front of a path */

#define WALK_SLICE	1024	/* mappings of any kind that one slice looks at */
#define WALK_PAUSE	HZ	/* jiffies from the end of a walk to the next walk of the same
				 * address space */
#define MAX_PAUSE	(2 * HZ)
#define LOCK_PAUSE	(HZ / 100 + 1)	/* jiffies until a busy mmap_lock is tried again */

/*
 * Steps that are still done after kbarman_spaces_hurry(), which take some 100 ms. A step is one
 * mapping that is looked at or reported, or one row.
 */
#define HURRY_STEPS	65536
#define HURRY_TRIES	16	/* tries to lock busy address spaces, up to a millisecond each */

/* The name of what is mapped. All mappings of it share one image. */
struct image {
	struct hlist_node node;		/* in images */
	unsigned int users;		/* number of mappings */
	unsigned int bytes;		/* bytes of memory */
	unsigned int length;
	unsigned int name_at;
	char name[];			/* the name begins at name_at; the bytes before it say which
					 * file it is */
};

struct mapping {
	struct rb_node node;		/* in space->mappings */
	struct list_head age;		/* in space->by_age */
	struct image *image;
	u64 timestamp;
	unsigned long start, end;
	u64 offset;
};

struct space {
	struct hlist_node node;		/* in spaces */
	struct list_head size;		/* in sizes[] */
	struct list_head pending;	/* in to_walk, or empty */
	struct mm_struct *mm;		/* with a reference (mm_count) */
	struct rb_root mappings;	/* by address; mappings do not overlap */
	struct list_head by_age;	/* the same mappings, oldest first */
	struct list_head threads;	/* threads whose last sample was in this address space */
	unsigned int nr_mappings;
	size_t bytes;			/* bytes of its mappings; each one counts its whole image */
	u32 rows;			/* of its threads; stream mode: with rows that have ended */
	u64 walk_since;			/* time that a walk assigns to the mappings it finds */
	u64 walk_due;			/* jiffies64 before which no walk is made */
	unsigned long walk_at;		/* address at which the walk goes on */
	u32 walk_left;			/* mappings for which the walk found no room */
	u32 left;			/* number of these that were counted as missed */
	bool complete;			/* all mappings are known, except for those that `trimmed`
					 * stands for */
	bool trimmed;			/* mappings were dropped or left out because there was no
					 * room */
	bool gap;			/* a fact was left out since the walk began */
	bool busy;			/* the last try found mmap_lock taken */
	bool condemned;
};

struct thread {
	struct list_head node;		/* in space->threads */
	struct space *space;
	u32 task_id;
	u32 rows;			/* made and not ended yet */
	u64 since;			/* the thread's rows are not stamped earlier: its id had
					 * rows before, which they replace. 0 = the id had no
					 * rows */
};

/* Name of a mapping whose path can't be determined. */
static const char unknown[] = "[unknown]";

#define IMAGE_BITS	14
#define SPACE_BITS	12

static struct tables {
	struct hlist_head images[1 << IMAGE_BITS];
	struct hlist_head spaces[1 << SPACE_BITS];
	unsigned long had_rows[BITS_TO_LONGS(PID_MAX_LIMIT)];	/* bit = task id: the id has had
								 * rows */
} *tables;

static siphash_key_t salt;		/* of the hash of images, because users choose paths */
static struct list_head sizes[BITS_PER_LONG + 1];	/* address spaces by fls_long(bytes) */
static LIST_HEAD(to_walk);
static DEFINE_XARRAY(threads);		/* by task id */
static struct kbarman_capture *capture;
static char *path_buffer;		/* FILE_BYTES + PATH_MAX */
static unsigned int nr_spaces;
static size_t nr_bytes;			/* bytes of all mappings and images */
static u32 nr_rows;			/* rows of all address spaces; stream mode: with rows that
					 * have ended */
static unsigned int look_at;		/* number of address spaces at which to look for dead
					 * ones */
static size_t look_at_bytes;		/* nr_bytes at which to look for them */
static u64 looked;			/* jiffies64 of the last look */
static bool all_seen;			/* all address spaces are known: one that is not in `spaces`
					 * is new */
static bool hurry;			/* a task waits: steps are limited */
static int steps_left, tries_left;	/* what is left of HURRY_STEPS and HURRY_TRIES */

static void out_of_memory(void)
{
	kbarman_header_miss(capture, KBARMAN_MISSED_MEMORY, 1);
}

/* Count a step. False if no more work may be done. */
static bool step(void)
{
	cond_resched();
	return !READ_ONCE(hurry) || steps_left-- > 0;
}

/* The same, for a whole fact. A fact that is dropped is counted as missed. */
static bool fact_step(void)
{
	if (step())
		return true;
	kbarman_header_miss(capture, KBARMAN_MISSED_QUEUE, 1);
	return false;
}

/* The most memory that kmalloc() uses for @size bytes. */
#define MEMORY_OF(size)	roundup_pow_of_two(size)

/* ---- images ---- */

static struct image *image_get(const char *name, unsigned int name_at)
{
	unsigned int length = strlen(name);
	u64 hash = siphash(name, length, &salt);
	struct hlist_head *bucket = &tables->images[hash_64(hash, IMAGE_BITS)];
	struct image *image;
	size_t size = struct_size(image, name, length + 1);

	hlist_for_each_entry(image, bucket, node)
		if (image->length == length && !memcmp(image->name, name, length))
			goto found;
	image = kmalloc(size, GFP_KERNEL);
	if (!image)
		return NULL;
	image->users = 0;
	image->bytes = MEMORY_OF(size);
	image->length = length;
	image->name_at = name_at;
	memcpy(image->name, name, length + 1);
	hlist_add_head(&image->node, bucket);
	nr_bytes += image->bytes;
found:
	image->users++;
	return image;
}

static void image_put(struct image *image)
{
	if (--image->users)
		return;
	hlist_del(&image->node);
	nr_bytes -= image->bytes;
	kfree(image);
}

/*
 * "kbarman.file=MAJOR:MINOR:INODE:SIZE:MTIME:". Inode numbers are used again, and overlayfs gives a
 * file a new inode when it copies the file up. Size and time of the last change belong to the
 * contents.
 */
static unsigned int print_file(char *buffer, struct file *file)
{
	const struct inode *inode = kbarman_file_inode(file);
	/*
	 * A writer may change the time at this moment. The file is a different one then, whichever
	 * time is read.
	 */
	struct timespec64 mtime = data_race(kbarman_inode_mtime(inode));

	/* Memory files on internal mounts have no path by which a reader could find them. */
	if (inode->i_sb->s_flags & SB_NOUSER)
		return 0;
	return scnprintf(buffer, FILE_BYTES, "kbarman.file=%u:%u:%llu:%llu:%llu:",
			 MAJOR(inode->i_sb->s_dev), MINOR(inode->i_sb->s_dev),
			 (u64)inode->i_ino, i_size_read(inode),
			 (u64)mtime.tv_sec * NSEC_PER_SEC + mtime.tv_nsec);
}

/* A mapping whose path can't be determined is kept, and named `unknown`. */
static struct image *image_of(const struct kbarman_mapping *from)
{
	char front[FILE_BYTES], *path;
	unsigned int length;

	if (!from->file)
		return image_get(from->name, 0);
	path = d_path(kbarman_file_path(from->file), path_buffer + FILE_BYTES, PATH_MAX);
	if (IS_ERR(path))
		return image_get(unknown, 0);
	length = print_file(front, from->file);
	return image_get(memcpy(path - length, front, length), length);
}

/* ---- mappings ---- */

void kbarman_mapping_init(struct kbarman_mapping *mapping, struct vm_area_struct *vma)
{
	const char *name = NULL;

	*mapping = (struct kbarman_mapping) {
		.start = vma->vm_start,
		.end = vma->vm_end,
		.offset = (u64)vma->vm_pgoff << PAGE_SHIFT,
		.file = vma->vm_file,
	};
	if (mapping->file)
		return;
	if (vma->vm_ops && vma->vm_ops->name)
		name = vma->vm_ops->name(vma);
	strscpy(mapping->name, name ?: "//anon", sizeof(mapping->name));
}

/* ---- rows ---- */

/* The rows of @thread have ended. In overwrite mode they can be used again. */
static void rows_over(struct thread *thread)
{
	if (capture->collector) {
		thread->space->rows -= thread->rows;
		nr_rows -= thread->rows;
	}
	thread->rows = 0;
}

/*
 * True if @space may have @count more rows. An address space has at most as many rows as are free.
 * A session of chosen processes has no such limit.
 */
static bool may_have_rows(struct space *space, u32 count)
{
	const u32 all = capture->layout.max_maps;

	return kbarman_session.tasks || (u64)nr_rows + space->rows + 2 * count <= all + 1;
}

static void make_row(struct thread *thread, u64 timestamp, u64 start, u64 length, u64 offset,
		     const char *image, size_t image_length, size_t name_at)
{
	if (!step() || !may_have_rows(thread->space, 1)) {
		kbarman_header_miss(capture, KBARMAN_MISSED_MAP, 1);
		return;
	}
	if (kbarman_tables_add_map(capture, timestamp, KBARMAN_USER_UNWANTED, thread->task_id,
				   start, length, offset, image, image_length, name_at))
		return;
	thread->rows++;
	thread->space->rows++;
	nr_rows++;
}

static void add_row(struct thread *thread, const struct mapping *mapping)
{
	make_row(thread, max(mapping->timestamp, thread->since), mapping->start,
		 mapping->end - mapping->start, mapping->offset, mapping->image->name,
		 mapping->image->length, mapping->image->name_at);
}

static void add_rows(struct thread *thread)
{
	struct mapping *mapping;

	list_for_each_entry(mapping, &thread->space->by_age, age)
		add_row(thread, mapping);
}

/*
 * For overwrite mode, where rows can be used again. Ends all rows of @thread and makes new rows for
 * what is mapped now, so that rows of former mappings end. A thread thus has at most twice the rows
 * that it needs, and some, however long it runs and maps.
 */
static void renew_rows(struct thread *thread)
{
	struct space *space = thread->space;
	u64 now;

	if (!capture->collector || thread->rows <= 2 * space->nr_mappings + 64 ||
	    !may_have_rows(space, space->nr_mappings))
		return;
	now = kbarman_clock();
	kbarman_tables_end_maps(capture, now, thread->task_id);
	rows_over(thread);
	thread->since = now;
	add_rows(thread);
}

/* ---- mappings of an address space ---- */

/* Add @mapping to the counts of @space (@sign is 1), or remove it (@sign is -1). */
static void account(struct space *space, const struct mapping *mapping, int sign)
{
	const size_t bytes = MEMORY_OF(sizeof(*mapping));

	space->nr_mappings += sign;
	space->bytes += sign * (bytes + mapping->image->bytes);
	list_move_tail(&space->size, &sizes[fls_long(space->bytes)]);
	nr_bytes += sign * bytes;
}

/* The first mapping that ends behind @address, or NULL. */
static struct mapping *mapping_behind(const struct space *space, unsigned long address)
{
	struct rb_node *node = space->mappings.rb_node;
	struct mapping *found = NULL;

	while (node) {
		struct mapping *mapping = rb_entry(node, struct mapping, node);

		if (address < mapping->end) {
			found = mapping;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

static void mapping_insert(struct space *space, struct mapping *mapping)
{
	struct rb_node **link = &space->mappings.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		if (mapping->start < rb_entry(parent, struct mapping, node)->start)
			link = &parent->rb_left;
		else
			link = &parent->rb_right;
	}
	rb_link_node(&mapping->node, parent, link);
	rb_insert_color(&mapping->node, &space->mappings);
	list_add_tail(&mapping->age, &space->by_age);
	account(space, mapping, 1);
}

static void mapping_free(struct space *space, struct mapping *mapping)
{
	rb_erase(&mapping->node, &space->mappings);
	list_del(&mapping->age);
	account(space, mapping, -1);
	image_put(mapping->image);
	kfree(mapping);
}

/* Ask for a walk of @space. Mappings that the walk finds count as made at @since. */
static void want_walk(struct space *space, u64 since)
{
	if (!list_empty(&space->pending))
		return;
	space->walk_since = since;
	space->walk_at = 0;
	list_add_tail(&space->pending, &to_walk);
}

/* A fact about @space was left out. */
static void distrust(struct space *space, u64 timestamp)
{
	space->complete = false;
	space->gap = true;
	if (!list_empty(&space->threads))
		want_walk(space, timestamp);
}

/*
 * Takes over the caller's reference to @image. Returns NULL if there is no memory, which is
 * counted.
 */
static struct mapping *mapping_add(struct space *space, struct image *image, u64 timestamp,
				   unsigned long start, unsigned long end, u64 offset)
{
	struct mapping *mapping = kmalloc(sizeof(*mapping), GFP_KERNEL);

	if (!mapping) {
		image_put(image);
		distrust(space, timestamp);
		out_of_memory();
		return NULL;
	}
	*mapping = (struct mapping) {
		.image = image,
		.timestamp = timestamp,
		.start = start,
		.end = end,
		.offset = offset,
	};
	mapping_insert(space, mapping);
	return mapping;
}

static void drop_oldest(struct space *space)
{
	mapping_free(space, list_first_entry(&space->by_age, struct mapping, age));
	space->trimmed = true;
	out_of_memory();
}

/*
 * The address space with the most bytes, or one with more than half as many. NULL if none has any.
 */
static struct space *large_space(void)
{
	int size;

	for (size = ARRAY_SIZE(sizes) - 1; size > 0; size--)
		if (!list_empty(&sizes[size]))
			return list_first_entry(&sizes[size], struct space, size);
	return NULL;
}

/*
 * Drops half of the mappings of a large address space at once: other address spaces may be as
 * large.
 */
static void keep_to_limit(void)
{
	struct space *large;
	unsigned int count;

	while (nr_bytes > MAX_BYTES && (large = large_space()))
		for (count = DIV_ROUND_UP(large->nr_mappings, 2); count; count--) {
			drop_oldest(large);
			cond_resched();
		}
}

/* True if @mapping already has all of [start, end) with this image and offset. */
static bool covers(const struct mapping *mapping, const struct image *image, unsigned long start,
		   unsigned long end, u64 offset)
{
	return mapping->start <= start && end <= mapping->end && mapping->image == image &&
	       mapping->offset + (start - mapping->start) == offset;
}

/* Remove [start, end) from @mapping, which may keep a part on either side. */
static void cut(struct space *space, struct mapping *mapping, unsigned long start,
		unsigned long end)
{
	if (mapping->start < start && end < mapping->end) {
		mapping->image->users++;
		mapping_add(space, mapping->image, mapping->timestamp, end, mapping->end,
			    mapping->offset + (end - mapping->start));
	}
	if (mapping->start < start) {
		mapping->end = start;
	} else if (end < mapping->end) {
		mapping->offset += end - mapping->start;
		mapping->start = end;
	} else {
		mapping_free(space, mapping);
	}
}

static void space_map(struct space *space, const struct kbarman_mapping *from, u64 timestamp)
{
	struct image *image = image_of(from);
	struct mapping *mapping;
	struct rb_node *next;
	struct thread *thread;

	if (!image) {
		distrust(space, timestamp);
		out_of_memory();
		return;
	}
	for (mapping = mapping_behind(space, from->start); mapping && mapping->start < from->end;
	     mapping = rb_entry_safe(next, struct mapping, node)) {
		if (covers(mapping, image, from->start, from->end, from->offset)) {
			image_put(image);
			return;
		}
		next = rb_next(&mapping->node);
		/* A walk also finds mappings that were made after the time that it assigns. */
		timestamp = max(timestamp, mapping->timestamp);
		cut(space, mapping, from->start, from->end);
		cond_resched();
	}
	if (space->nr_mappings >= MAX_MAPPINGS)
		drop_oldest(space);
	mapping = mapping_add(space, image, timestamp, from->start, from->end, from->offset);
	if (!mapping)
		return;
	list_for_each_entry(thread, &space->threads, node) {
		add_row(thread, mapping);
		renew_rows(thread);
	}
	keep_to_limit();
}

static void thread_free(struct thread *thread)
{
	rows_over(thread);
	xa_erase(&threads, thread->task_id);
	list_del(&thread->node);
	kfree(thread);
}

/* ---- address spaces ---- */

static struct hlist_head *bucket_of(const struct mm_struct *mm)
{
	return &tables->spaces[hash_ptr(mm, SPACE_BITS)];
}

static struct space *space_find(const struct mm_struct *mm)
{
	struct space *space;

	hlist_for_each_entry(space, bucket_of(mm), node)
		if (space->mm == mm)
			return space;
	return NULL;
}

static struct space *space_get(struct mm_struct *mm)
{
	struct space *space = space_find(mm);

	if (space)
		return space;
	space = kzalloc(sizeof(*space), GFP_KERNEL);
	if (!space) {
		out_of_memory();
		return NULL;
	}
	mmgrab(mm);
	space->mm = mm;
	space->mappings = RB_ROOT;
	space->walk_due = get_jiffies_64();
	INIT_LIST_HEAD(&space->by_age);
	INIT_LIST_HEAD(&space->threads);
	INIT_LIST_HEAD(&space->pending);
	list_add_tail(&space->size, &sizes[0]);
	hlist_add_head(&space->node, bucket_of(mm));
	nr_spaces++;
	return space;
}

static void space_free(struct space *space)
{
	struct mapping *mapping, *next_mapping;
	struct thread *thread, *next_thread;

	list_for_each_entry_safe(mapping, next_mapping, &space->by_age, age) {
		mapping_free(space, mapping);
		cond_resched();
	}
	list_for_each_entry_safe(thread, next_thread, &space->threads, node) {
		thread_free(thread);
		cond_resched();
	}
	hlist_del(&space->node);
	list_del(&space->size);
	list_del(&space->pending);
	nr_spaces--;
	mmdrop(space->mm);
	kfree(space);
}

/* ---- walks ---- */

static void end_walk(struct space *space)
{
	list_del_init(&space->pending);
	space->walk_due = get_jiffies_64() + WALK_PAUSE;
}

/*
 * Takes mmap_lock without waiting, except for some short tries if `hurry` is set. The owner of the
 * lock may itself wait for a network or for another process.
 */
static bool lock_mappings(struct mm_struct *mm)
{
	if (mmap_read_trylock(mm))
		return true;
	while (READ_ONCE(hurry) && tries_left-- > 0) {
		usleep_range(200, 1000);
		if (mmap_read_trylock(mm))
			return true;
	}
	return false;
}

/* If there is no room, the new mapping is counted and left out, and the known ones stay. */
static void walk_vma(struct space *space, struct vm_area_struct *vma)
{
	struct kbarman_mapping mapping;
	const struct mapping *known;

	if (space->nr_mappings >= MAX_MAPPINGS) {
		known = mapping_behind(space, vma->vm_start);
		if (!known || known->start >= vma->vm_end) {
			space->trimmed = true;
			space->walk_left++;
			return;
		}
	}
	kbarman_mapping_init(&mapping, vma);
	space_map(space, &mapping, space->walk_since);
}

/* Counts the mappings for which a walk found no room. The next walk does not count them again. */
static void count_left(struct space *space)
{
	if (space->walk_left > space->left) {
		kbarman_header_miss(capture, KBARMAN_MISSED_MEMORY, space->walk_left - space->left);
		space->left = space->walk_left;
	}
}

/* The walk is not made: no thread needs it any more, or there is no time left. */
static void give_up_walk(struct space *space)
{
	space->complete = false;
	end_walk(space);
}

/* True if the walk has reached the end. Context: mmap_lock held. */
static bool walk_slice(struct space *space)
{
	struct vm_area_struct *vma;
	unsigned int count = 0;

	if (!space->walk_at) {
		space->gap = false;
		space->complete = true;
		space->trimmed = false;
		space->walk_left = 0;
	}
	/* find_vma() works on kernels with a list of mappings and on kernels without one. */
	for (vma = find_vma(space->mm, space->walk_at); vma;
	     vma = find_vma(space->mm, space->walk_at)) {
		if (count++ >= WALK_SLICE || !step())
			return false;
		space->walk_at = vma->vm_end;
		if (vma->vm_flags & VM_EXEC)
			walk_vma(space, vma);
	}
	return true;
}

/* Do a slice of the walk of @space. */
static void walk(struct space *space)
{
	bool locked, done = false;

	if (!mmget_not_zero(space->mm)) {
		/* A thread was sampled, and its mappings are gone. */
		if (!list_empty(&space->threads))
			kbarman_header_miss(capture, KBARMAN_MISSED_QUEUE, 1);
		give_up_walk(space);
		return;
	}
	locked = lock_mappings(space->mm);
	space->busy = !locked;
	if (locked) {
		done = walk_slice(space);
		mmap_read_unlock(space->mm);
	}
	mmput_async(space->mm);
	if (done) {
		count_left(space);
		end_walk(space);
		if (space->gap && !READ_ONCE(hurry)) {
			space->complete = false;
			want_walk(space, kbarman_clock());
		}
	} else if (READ_ONCE(hurry) && (!locked || steps_left <= 0)) {
		kbarman_header_miss(capture, KBARMAN_MISSED_QUEUE, 1);
		give_up_walk(space);
	} else if (!locked) {
		space->walk_due = get_jiffies_64() + LOCK_PAUSE;
	}
}

static bool walk_is_due(const struct space *space)
{
	return time_after_eq64(get_jiffies_64(), space->walk_due) || READ_ONCE(hurry);
}

/*
 * Asks for a walk of @space unless all its mappings are known. If the walk is due, its first slice
 * is done now.
 */
static void know_all(struct space *space, u64 since)
{
	if (space->complete && list_empty(&space->pending))
		return;
	want_walk(space, since);
	if (walk_is_due(space))
		walk(space);
}

/* True if all mappings of @space are known. */
static bool is_complete(const struct space *space)
{
	return space->complete && list_empty(&space->pending);
}

bool kbarman_spaces_walk(unsigned long *pause)
{
	u64 now = get_jiffies_64(), next = now + MAX_PAUSE;
	struct space *space, *other;

	list_for_each_entry_safe(space, other, &to_walk, pending) {
		/* No thread needs the walk any more, or there is no time left. */
		if (READ_ONCE(hurry) && (list_empty(&space->threads) || steps_left <= 0)) {
			if (!list_empty(&space->threads))
				kbarman_header_miss(capture, KBARMAN_MISSED_QUEUE, 1);
			give_up_walk(space);
			continue;
		}
		if (walk_is_due(space)) {
			/* Move @space to the end, so that others get their turn. */
			list_move_tail(&space->pending, &to_walk);
			walk(space);
			return true;
		}
		next = min(next, space->walk_due);
	}
	*pause = list_empty(&to_walk) ? MAX_SCHEDULE_TIMEOUT : next - now;
	return false;
}

void kbarman_spaces_hurry(void)
{
	WRITE_ONCE(hurry, true);
}

void kbarman_spaces_map(struct mm_struct *mm, const struct kbarman_mapping *mapping,
			u64 timestamp)
{
	struct space *space = space_find(mm);

	if (!fact_step())
		return;
	if (!space) {
		space = space_get(mm);
		if (!space)
			return;
		/*
		 * If not all address spaces are known, a walk finds the earlier mappings at the
		 * first sample.
		 */
		space->complete = all_seen;
	}
	space_map(space, mapping, timestamp);
}

void kbarman_spaces_fork(struct mm_struct *parent, struct mm_struct *child, u64 timestamp)
{
	struct space *from, *to;
	struct mapping *mapping;

	if (!fact_step())
		return;
	from = space_find(parent);
	to = space_get(child);
	/* A walk of all processes may have found the child's mappings already. */
	if (!from || !to || !list_empty(&to->by_age))
		return;
	/* fork() itself may have held mmap_lock before. The child may end before the next try. */
	if (!list_empty(&from->pending) && (walk_is_due(from) || from->busy))
		walk(from);
	to->complete = is_complete(from);
	to->trimmed = from->trimmed;
	list_for_each_entry(mapping, &from->by_age, age) {
		if (!step()) {
			to->complete = false;
			break;
		}
		mapping->image->users++;
		mapping_add(to, mapping->image, timestamp, mapping->start, mapping->end,
			    mapping->offset);
	}
	keep_to_limit();
}

/* ---- threads ---- */

/*
 * The thread's id has rows of another image. Rows that would replace them may be missing. So a row
 * named `unknown` replaces all of them first.
 */
static void disown_rows(struct thread *thread)
{
	make_row(thread, thread->since - 1, 0, thread->space->mm->task_size, 0, unknown,
		 strlen(unknown), 0);
}

/* @thread was sampled in @space, and belongs to @space from now on. */
static void settle(struct thread *thread, struct space *space)
{
	thread->space = space;
	list_add_tail(&thread->node, &space->threads);
	if (thread->since && capture->collector)
		kbarman_tables_end_maps(capture, thread->since - 1, thread->task_id);
	if (thread->since && (!is_complete(space) || space->trimmed))
		disown_rows(thread);
	add_rows(thread);
}

static bool add_thread(struct space *space, u32 task_id, u64 timestamp)
{
	struct thread *thread = kzalloc(sizeof(*thread), GFP_KERNEL);

	if (!thread || xa_err(xa_store(&threads, task_id, thread, GFP_KERNEL))) {
		kfree(thread);
		out_of_memory();
		return false;
	}
	thread->task_id = task_id;
	thread->since = __test_and_set_bit(task_id, tables->had_rows) ? timestamp : 0;
	settle(thread, space);
	return true;
}

bool kbarman_spaces_sampled(struct mm_struct *mm, u32 task_id, u64 timestamp)
{
	struct thread *thread = xa_load(&threads, task_id);
	struct space *space;

	if (!fact_step())
		return true;
	space = space_get(mm);
	if (!space)
		return false;
	know_all(space, timestamp);
	if (!thread)
		return add_thread(space, task_id, timestamp);
	/* A new image; or a new thread with an id whose former owner's exit was left out. */
	rows_over(thread);
	list_del(&thread->node);
	thread->since = timestamp;
	settle(thread, space);
	return true;
}

void kbarman_spaces_exit(u32 task_id)
{
	struct thread *thread = xa_load(&threads, task_id);

	if (thread)
		thread_free(thread);
}

void kbarman_spaces_exits(const unsigned long *live)
{
	struct thread *thread;
	unsigned long task_id;

	xa_for_each(&threads, task_id, thread) {
		if (!test_bit(task_id, live))
			thread_free(thread);
		cond_resched();
	}
}

/* ---- all address spaces ---- */

/*
 * Finds a thread that still has memory, of every process that is recorded. Takes references to the
 * threads. Returns their number, at most @room.
 */
static unsigned int collect_threads(struct task_struct **found, unsigned int room)
{
	struct task_struct *process, *thread;
	unsigned int count = 0;

	rcu_read_lock();
	for_each_process(process) {
		if (count == room)
			break;
		/* Other bits of `flags` may change at this moment; PF_KTHREAD does not. */
		if (data_race(process->flags) & PF_KTHREAD || !kbarman_wants(process->pid))
			continue;
		for_each_thread(process, thread) {
			if (!READ_ONCE(thread->mm))
				continue;
			get_task_struct(thread);
			found[count++] = thread;
			break;
		}
	}
	rcu_read_unlock();
	return count;
}

static unsigned int count_processes(void)
{
	struct task_struct *process;
	unsigned int count = 0;

	rcu_read_lock();
	for_each_process(process)
		count++;
	rcu_read_unlock();
	return count;
}

/*
 * Makes an entry for the address space of every process that is recorded. With @walk_them, asks for
 * walks of them; without, each one is walked when a thread is sampled there.
 */
static void collect(u64 timestamp, bool walk_them)
{
	unsigned int i, count, room = count_processes();
	struct task_struct **found;

	/* A process that is created meanwhile is a copy of one that is counted. */
	room += room / 8 + 64;
	found = kvmalloc_array(room, sizeof(*found), GFP_KERNEL);
	if (!found) {
		out_of_memory();
		return;
	}
	count = collect_threads(found, room);
	all_seen = count < room;
	for (i = 0; i < count; i++) {
		struct mm_struct *mm = get_task_mm(found[i]);
		struct space *space = mm ? space_get(mm) : NULL;

		if (space && walk_them)
			want_walk(space, timestamp);
		if (mm)
			mmput_async(mm);
		put_task_struct(found[i]);
		cond_resched();
	}
	kvfree(found);
}

void kbarman_spaces_walk_all(u64 timestamp)
{
	collect(timestamp, true);
}

void kbarman_spaces_distrust(struct mm_struct *mm, u64 timestamp)
{
	struct space *space = space_get(mm);

	if (space)
		distrust(space, timestamp);
	else
		all_seen = false;
}

void kbarman_spaces_distrust_all(u64 timestamp)
{
	struct space *space;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tables->spaces); i++) {
		hlist_for_each_entry(space, &tables->spaces[i], node)
			distrust(space, timestamp);
		cond_resched();
	}
	collect(timestamp, false);
}

static void look_again_later(void)
{
	look_at = nr_spaces + max(nr_spaces / 4, (unsigned int)MIN_GRAVES);
	look_at_bytes = nr_bytes / 2 + MAX_BYTES / 2;
	looked = get_jiffies_64();
}

bool kbarman_spaces_condemn(void)
{
	struct space *space;
	unsigned int i;

	if (nr_spaces < look_at &&
	    (nr_bytes < look_at_bytes || time_before64(get_jiffies_64(), looked + LOOK_PAUSE)))
		return false;
	for (i = 0; i < ARRAY_SIZE(tables->spaces); i++) {
		hlist_for_each_entry(space, &tables->spaces[i], node)
			space->condemned = !atomic_read(&space->mm->mm_users);
		cond_resched();
	}
	/*
	 * Tasks that used the address space have reported their facts before they dropped mm_users.
	 * Pairs with the atomic_dec_and_test() of mmput().
	 */
	smp_rmb();
	return true;
}

static void free_spaces(bool all)
{
	struct hlist_node *next;
	struct space *space;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tables->spaces); i++) {
		hlist_for_each_entry_safe(space, next, &tables->spaces[i], node)
			if (all || space->condemned)
				space_free(space);
		cond_resched();
	}
}

void kbarman_spaces_bury(void)
{
	free_spaces(false);
	look_again_later();
}

int kbarman_spaces_create(struct kbarman_capture *to)
{
	unsigned int i;

	path_buffer = kmalloc(FILE_BYTES + PATH_MAX, GFP_KERNEL);
	tables = vzalloc(sizeof(*tables));
	if (!path_buffer || !tables) {
		vfree(tables);
		kfree(path_buffer);
		return -ENOMEM;
	}
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		INIT_LIST_HEAD(&sizes[i]);
	get_random_bytes(&salt, sizeof(salt));
	capture = to;
	nr_rows = 0;
	hurry = false;
	steps_left = HURRY_STEPS;
	tries_left = HURRY_TRIES;
	look_again_later();
	all_seen = false;
	return 0;
}

void kbarman_spaces_destroy(void)
{
	free_spaces(true);
	xa_destroy(&threads);
	vfree(tables);
	kfree(path_buffer);
	path_buffer = NULL;
	capture = NULL;
}
