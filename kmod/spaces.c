// SPDX-License-Identifier: GPL-2.0-only
/*
 * There are no locks here: all belongs to the one task that may call (see spaces.h).
 *
 * Memory is bounded by what lives: MAX_MAPPINGS an address space, a quarter more address
 * spaces than were alive at the last look, and one bit for every thread id there can be.
 * Mappings and their names together have MAX_BYTES, however many live: a path can
 * take 8 KiB, and any user can make them, at nobody's expense. Dead ones go when half of what
 * there was left is taken; where that does not do, an address space that has most (or half as
 * much) gives its oldest mappings, which are counted, and others keep theirs.
 *
 * Time is bounded as well: a fact about a mapping takes O(log n) steps, and one for each row that
 * it makes. An address space has no more rows in the mmap table than it leaves free for all
 * others. Where something was left out, the address space that it was about is walked, in slices
 * between which the caller sees to its other work, and once in WALK_PAUSE.
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

#define MAX_MAPPINGS	4096	/* an address space; the oldest ones go */
#define MAX_BYTES	(64U << 20)	/* of mappings and images */
#define MIN_GRAVES	64
#define LOOK_PAUSE	(HZ / 10)	/* from one look for dead ones to the next */
#define FILE_BYTES	104	/* in front of a path, at most */

#define WALK_SLICE	1024	/* mappings of whatever kind that are looked at in one go */
#define WALK_PAUSE	HZ	/* from the end of a walk to the next one in the same place */
#define MAX_PAUSE	(2 * HZ)
#define LOCK_PAUSE	(HZ / 100 + 1)	/* until a busy address space is tried again */

/*
 * What is still done after kbarman_spaces_hurry(): a step is a mapping that is looked at or told
 * of, or a row; some 100 ms.
 */
#define HURRY_STEPS	65536
#define HURRY_TRIES	16	/* to get at busy address spaces, a millisecond each */

/* What is mapped, once for all mappings of it. */
struct image {
	struct hlist_node node;		/* in images */
	unsigned int users;		/* mappings */
	unsigned int bytes;		/* of memory */
	unsigned int length;
	unsigned int name_at;
	char name[];			/* from name_at on; in front of it, which file it is */
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
	struct list_head size;		/* in sizes */
	struct list_head pending;	/* in to_walk, or empty */
	struct mm_struct *mm;		/* with a reference (mm_count) */
	struct rb_root mappings;	/* by address; none overlaps another */
	struct list_head by_age;	/* the same, oldest first */
	struct list_head threads;	/* sampled here last */
	unsigned int nr_mappings;
	size_t bytes;			/* theirs, each with all of its image */
	u32 rows;			/* of its threads; in stream mode all that they ever had */
	u64 walk_since;			/* what a walk finds was there then */
	u64 walk_due;			/* in jiffies: not before */
	unsigned long walk_at;		/* where it goes on */
	u32 walk_left;			/* mappings that it found no room for, */
	u32 left;			/* and that are counted */
	bool complete;			/* nothing mapped is missing, */
	bool trimmed;			/* but what there was no room for */
	bool gap;			/* something was left out since the walk began */
	bool condemned;
};

struct thread {
	struct list_head node;		/* in space->threads */
	struct space *space;
	u32 task_id;
	u32 rows;			/* made since they were last ended */
	u64 since;			/* no row is stamped earlier: the id has rows from
					 * before that, which they replace. 0 = it has none */
};

/* What can't be told, and must not be left out. */
static const char unknown[] = "[unknown]";

#define IMAGE_BITS	14
#define SPACE_BITS	12

static struct tables {
	struct hlist_head images[1 << IMAGE_BITS];
	struct hlist_head spaces[1 << SPACE_BITS];
	unsigned long had_rows[BITS_TO_LONGS(PID_MAX_LIMIT)];	/* by task id: it ever had */
} *tables;

static siphash_key_t salt;		/* of images: paths are what others like */
static struct list_head sizes[BITS_PER_LONG + 1];	/* of spaces, by fls_long(bytes) */
static LIST_HEAD(to_walk);
static DEFINE_XARRAY(threads);		/* by task id */
static struct kbarman_capture *capture;
static char *path_buffer;		/* FILE_BYTES + PATH_MAX */
static unsigned int nr_spaces;
static size_t nr_bytes;			/* of all mappings and images */
static u32 nr_rows;			/* of all spaces; in stream mode of all that ever were */
static unsigned int look_at;		/* that many spaces: time to look for dead ones, */
static size_t look_at_bytes;		/* and that many bytes, */
static u64 looked;			/* but not too soon, in jiffies */
static bool all_seen;			/* an address space that is not here is new */
static bool hurry;			/* somebody waits */
static int steps_left, tries_left;	/* then */

static void out_of_memory(void)
{
	kbarman_header_miss(capture, KBARMAN_MISSED_MEMORY, 1);
}

/* False: somebody has waited long enough. */
static bool step(void)
{
	cond_resched();
	return !READ_ONCE(hurry) || steps_left-- > 0;
}

/* The same, for a whole fact. */
static bool fact_step(void)
{
	if (step())
		return true;
	kbarman_header_miss(capture, KBARMAN_MISSED_QUEUE, 1);
	return false;
}

/* What kmalloc() makes of it, at most. */
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
 * "kbarman.file=MAJOR:MINOR:INODE:SIZE:MTIME:". Inodes are used again, and overlayfs gives a
 * file another one when it copies it up; size and time of the last change stay with what is
 * in it.
 */
static unsigned int print_file(char *buffer, struct file *file)
{
	const struct inode *inode = kbarman_file_inode(file);
	/* Who writes to it may be at work on that: it is another file then, either way. */
	struct timespec64 mtime = data_race(kbarman_inode_mtime(inode));

	/* Memory that no path leads to is nobody's to look for. */
	if (inode->i_sb->s_flags & SB_NOUSER)
		return 0;
	return scnprintf(buffer, FILE_BYTES, "kbarman.file=%u:%u:%lu:%llu:%llu:",
			 MAJOR(inode->i_sb->s_dev), MINOR(inode->i_sb->s_dev), inode->i_ino,
			 i_size_read(inode),
			 (u64)mtime.tv_sec * NSEC_PER_SEC + mtime.tv_nsec);
}

/* A path that can't be told is no reason to leave the mapping out. */
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

/* The rows that @thread has got are over. They come back if the session overwrites. */
static void rows_over(struct thread *thread)
{
	if (capture->collector) {
		thread->space->rows -= thread->rows;
		nr_rows -= thread->rows;
	}
	thread->rows = 0;
}

/*
 * @space may have @count rows more: it has no more than it leaves to all others. Who records some
 * processes only may give them all there is.
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
 * Where rows can be used again: end those of @thread that say what is mapped no more, by ending
 * all and making those anew that say what is. So a thread has twice the rows that it needs, at
 * most, however long it runs and maps.
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

/* @mapping is one more of @space, or one less. */
static void account(struct space *space, const struct mapping *mapping, int sign)
{
	const size_t bytes = MEMORY_OF(sizeof(*mapping));

	space->nr_mappings += sign;
	space->bytes += sign * (bytes + mapping->image->bytes);
	list_move_tail(&space->size, &sizes[fls_long(space->bytes)]);
	nr_bytes += sign * bytes;
}

/* The first one that ends behind @address, or NULL. */
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

/* Ask for a walk, which tells what was there at @since. */
static void want_walk(struct space *space, u64 since)
{
	if (!list_empty(&space->pending))
		return;
	space->walk_since = since;
	space->walk_at = 0;
	list_add_tail(&space->pending, &to_walk);
}

/* Something of @space was left out. */
static void distrust(struct space *space, u64 timestamp)
{
	space->complete = false;
	space->gap = true;
	if (!list_empty(&space->threads))
		want_walk(space, timestamp);
}

/* Takes over the caller's reference to @image. NULL: out of memory, counted. */
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

/* One that has most, or half as much. NULL: nobody has anything. */
static struct space *large_space(void)
{
	int size;

	for (size = ARRAY_SIZE(sizes) - 1; size > 0; size--)
		if (!list_empty(&sizes[size]))
			return list_first_entry(&sizes[size], struct space, size);
	return NULL;
}

/* Half of what it has at once, as others may have as much. */
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

/* @mapping says it all already: there is nothing new in [start, end). */
static bool covers(const struct mapping *mapping, const struct image *image, unsigned long start,
		   unsigned long end, u64 offset)
{
	return mapping->start <= start && end <= mapping->end && mapping->image == image &&
	       mapping->offset + (start - mapping->start) == offset;
}

/* Cut [start, end) out of what @mapping has, on either side of which some may be left. */
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
		/* A walk finds what came after it was asked for, too. */
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
 * The mmap_lock, but not at any price: its owner may be at the mercy of a network or
 * of another process.
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

/* What there is no room for is counted, and others that are known stay. */
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

/* What the walk found no room for, once for all walks that find the same. */
static void count_left(struct space *space)
{
	if (space->walk_left > space->left) {
		kbarman_header_miss(capture, KBARMAN_MISSED_MEMORY, space->walk_left - space->left);
		space->left = space->walk_left;
	}
}

/* There will be no walk: nobody is left to ask, or no time. */
static void give_up_walk(struct space *space)
{
	space->complete = false;
	end_walk(space);
}

/* False: it is not over, or was not begun. Context: mmap_lock is held. */
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
	/* One by one: the same on kernels with and without a list of them. */
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

/* A slice of the walk of @space. */
static void walk(struct space *space)
{
	bool locked, done = false;

	if (!mmget_not_zero(space->mm)) {
		give_up_walk(space);
		return;
	}
	locked = lock_mappings(space->mm);
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

/* Know all of @space, if that can be had by a look at it now; else it comes later. */
static void know_all(struct space *space, u64 since)
{
	if (space->complete && list_empty(&space->pending))
		return;
	want_walk(space, since);
	if (walk_is_due(space))
		walk(space);
}

/* Nothing that it has mapped is missing. */
static bool is_complete(const struct space *space)
{
	return space->complete && list_empty(&space->pending);
}

bool kbarman_spaces_walk(unsigned long *pause)
{
	u64 now = get_jiffies_64(), next = now + MAX_PAUSE;
	struct space *space, *other;

	list_for_each_entry_safe(space, other, &to_walk, pending) {
		/* Nobody will want to know any more. */
		if (READ_ONCE(hurry) && (list_empty(&space->threads) || steps_left <= 0)) {
			if (!list_empty(&space->threads))
				kbarman_header_miss(capture, KBARMAN_MISSED_QUEUE, 1);
			give_up_walk(space);
			continue;
		}
		if (walk_is_due(space)) {
			/* To the end, for others to have their turn. */
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
		/* Else what it had before is found when it is sampled. */
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
	/* A look at all processes may have been faster. */
	if (!from || !to || !list_empty(&to->by_age))
		return;
	if (!list_empty(&from->pending) && walk_is_due(from))
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
 * The rows that the id has are of another image, and some may be missing that would
 * replace them: where nothing is known, it is better to say so than to let them stand.
 */
static void disown_rows(struct thread *thread)
{
	make_row(thread, thread->since - 1, 0, thread->space->mm->task_size, 0, unknown,
		 strlen(unknown), 0);
}

/* @thread was sampled in @space: it belongs there from now on. */
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
	/* A new image, or a new thread with an old id, whose end was left out. */
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

/* ---- all of them ---- */

/* A thread that has memory yet, of every process that is recorded: with a reference. */
static unsigned int collect_threads(struct task_struct **found, unsigned int room)
{
	struct task_struct *process, *thread;
	unsigned int count = 0;

	rcu_read_lock();
	for_each_process(process) {
		if (count == room)
			break;
		/* Others of its flags come and go, this one does not. */
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

/* All that are recorded have an address space here; it is walked, or when it is sampled. */
static void collect(u64 timestamp, bool walk_them)
{
	unsigned int i, count, room = count_processes();
	struct task_struct **found;

	/* Who is made meanwhile is a copy of a process that is seen. */
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
	 * Whoever lived there has said what it had to say before it let go: pairs with
	 * the atomic_dec_and_test() of mmput().
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
