// SPDX-License-Identifier: GPL-2.0-only
/*
 * There are no locks here: all belongs to the one task that may call (see spaces.h).
 * Memory is bounded by what lives: MAX_MAPPINGS an address space, a quarter more address
 * spaces than were alive at the last look, and one word for every thread id that ever
 * got rows. Mappings and their names together have MAX_BYTES, however many live: a path can
 * take 8 KiB, and any user can make them, at nobody's expense. Dead ones go when half of what
 * there was left is taken; where that does not do, the address space that has most gives
 * its oldest mappings, which are counted, and others keep theirs.
 */
#include <linux/dcache.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/stringhash.h>
#include <linux/xarray.h>

#include "compat/file.h"
#include "session.h"
#include "spaces.h"

#define MAX_MAPPINGS	4096	/* an address space; the oldest ones go */
#define MAX_BYTES	(64U << 20)	/* of mappings and images */
#define LOCK_TRIES	4
#define MIN_GRAVES	64
#define FILE_BYTES	104	/* in front of a path, at most */

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
	struct list_head node;		/* in space->mappings */
	struct image *image;
	u64 timestamp;
	unsigned long start, end;
	u64 offset;
};

struct space {
	struct hlist_node node;		/* in spaces */
	struct mm_struct *mm;		/* with a reference (mm_count) */
	struct list_head mappings;	/* oldest first; none overlaps another */
	struct list_head threads;	/* sampled here last */
	unsigned int nr_mappings;
	size_t bytes;			/* theirs, each with all of its image */
	bool complete;			/* nothing mapped is missing, */
	bool trimmed;			/* but what there was no room for */
	bool condemned;
};

struct thread {
	struct list_head node;		/* in space->threads */
	struct space *space;
	u32 task_id;
	u64 since;			/* no row is stamped earlier: the id has rows from
					 * before that, which they replace. 0 = it has none */
};

/* What can't be told, and must not be left out. */
static const char unknown[] = "[unknown]";

/* What the id has left in `threads` once its address space is gone: it has rows. */
#define HAD_ROWS	xa_mk_value(1)

static DEFINE_HASHTABLE(images, 10);
static DEFINE_HASHTABLE(spaces, 10);
static DEFINE_XARRAY(threads);		/* by task id: struct thread or HAD_ROWS */
static struct kbarman_capture *capture;
static char *path_buffer;		/* FILE_BYTES + PATH_MAX */
static unsigned int nr_spaces;
static size_t nr_bytes;			/* of all mappings and images */
static unsigned int look_at;		/* that many spaces: time to look for dead ones, */
static size_t look_at_bytes;		/* and that many bytes */
static bool all_seen;			/* an address space that is not here is new */

static void out_of_memory(void)
{
	kbarman_header_miss(capture, KBARMAN_MISSED_MEMORY);
}

/* What kmalloc() makes of it, at most. */
#define MEMORY_OF(size)	roundup_pow_of_two(size)

/* ---- images ---- */

static struct image *image_get(const char *name, unsigned int name_at)
{
	unsigned int length = strlen(name);
	u32 hash = full_name_hash(NULL, name, length);
	struct image *image;
	size_t size = struct_size(image, name, length + 1);

	hash_for_each_possible(images, image, node, hash)
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
	hash_add(images, &image->node, hash);
	nr_bytes += image->bytes;
found:
	image->users++;
	return image;
}

static void image_put(struct image *image)
{
	if (--image->users)
		return;
	hash_del(&image->node);
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

static void add_row(const struct thread *thread, const struct mapping *mapping)
{
	kbarman_header_add_map(capture, max(mapping->timestamp, thread->since), thread->task_id,
			       mapping->start, mapping->end - mapping->start, mapping->offset,
			       mapping->image->name, mapping->image->length,
			       mapping->image->name_at);
}

/* @mapping is one more of @space, or one less. */
static void account(struct space *space, const struct mapping *mapping, int sign)
{
	const size_t bytes = MEMORY_OF(sizeof(*mapping));

	space->nr_mappings += sign;
	space->bytes += sign * (bytes + mapping->image->bytes);
	nr_bytes += sign * bytes;
}

static void mapping_free(struct space *space, struct mapping *mapping)
{
	list_del(&mapping->node);
	account(space, mapping, -1);
	image_put(mapping->image);
	kfree(mapping);
}

/* Takes over the caller's reference to @image. NULL: out of memory, counted. */
static struct mapping *mapping_add(struct space *space, struct image *image, u64 timestamp,
				   unsigned long start, unsigned long end, u64 offset)
{
	struct mapping *mapping = kmalloc(sizeof(*mapping), GFP_KERNEL);

	if (!mapping) {
		image_put(image);
		space->complete = false;
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
	list_add_tail(&mapping->node, &space->mappings);
	account(space, mapping, 1);
	return mapping;
}

static void drop_oldest(struct space *space)
{
	mapping_free(space, list_first_entry(&space->mappings, struct mapping, node));
	space->trimmed = true;
	out_of_memory();
}

/* NULL: nobody has anything. */
static struct space *largest_space(void)
{
	struct space *space, *largest = NULL;
	size_t bytes = 0;
	int bucket;

	hash_for_each(spaces, bucket, space, node)
		if (space->bytes > bytes) {
			bytes = space->bytes;
			largest = space;
		}
	return largest;
}

/* Half of what it has at once, for there may be many address spaces to look at. */
static void keep_to_limit(void)
{
	struct space *largest;
	unsigned int count;

	while (nr_bytes > MAX_BYTES && (largest = largest_space())) {
		for (count = DIV_ROUND_UP(largest->nr_mappings, 2); count; count--)
			drop_oldest(largest);
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
	struct mapping *mapping, *next;
	struct thread *thread;

	if (!image) {
		space->complete = false;
		out_of_memory();
		return;
	}
	list_for_each_entry_safe(mapping, next, &space->mappings, node) {
		if (mapping->end <= from->start || from->end <= mapping->start)
			continue;
		if (covers(mapping, image, from->start, from->end, from->offset)) {
			image_put(image);
			return;
		}
		cut(space, mapping, from->start, from->end);
	}
	if (space->nr_mappings >= MAX_MAPPINGS)
		drop_oldest(space);
	mapping = mapping_add(space, image, timestamp, from->start, from->end, from->offset);
	if (!mapping)
		return;
	list_for_each_entry(thread, &space->threads, node)
		add_row(thread, mapping);
	keep_to_limit();
}

static void thread_free(struct thread *thread)
{
	/* In place of what is there: needs no memory. */
	xa_store(&threads, thread->task_id, HAD_ROWS, 0);
	list_del(&thread->node);
	kfree(thread);
}

/* ---- address spaces ---- */

static struct space *space_find(const struct mm_struct *mm)
{
	struct space *space;

	hash_for_each_possible(spaces, space, node, (unsigned long)mm)
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
	INIT_LIST_HEAD(&space->mappings);
	INIT_LIST_HEAD(&space->threads);
	hash_add(spaces, &space->node, (unsigned long)mm);
	nr_spaces++;
	return space;
}

static void space_free(struct space *space)
{
	struct mapping *mapping, *next_mapping;
	struct thread *thread, *next_thread;

	list_for_each_entry_safe(mapping, next_mapping, &space->mappings, node)
		mapping_free(space, mapping);
	list_for_each_entry_safe(thread, next_thread, &space->threads, node)
		thread_free(thread);
	hash_del(&space->node);
	nr_spaces--;
	mmdrop(space->mm);
	kfree(space);
}

/*
 * The mmap_lock, but not at any price: its owner may be at the mercy of a network or
 * of another process, and stop() waits for who calls.
 */
static bool lock_mappings(struct mm_struct *mm)
{
	int tries;

	for (tries = 0; tries < LOCK_TRIES; tries++) {
		if (mmap_read_trylock(mm))
			return true;
		usleep_range(200, 1000);
	}
	return false;
}

/* Add what is mapped now and not known, if there is anybody left to ask. */
static void space_walk(struct space *space, u64 timestamp)
{
	struct kbarman_mapping mapping;
	struct vm_area_struct *vma;

	if (space->complete || !mmget_not_zero(space->mm))
		return;
	if (lock_mappings(space->mm)) {
		space->complete = true;
		space->trimmed = false;
		/* One by one: the same on kernels with and without a list of them. */
		for (vma = find_vma(space->mm, 0); vma; vma = find_vma(space->mm, vma->vm_end)) {
			if (!(vma->vm_flags & VM_EXEC))
				continue;
			kbarman_mapping_init(&mapping, vma);
			space_map(space, &mapping, timestamp);
		}
		mmap_read_unlock(space->mm);
	}
	mmput_async(space->mm);
}

void kbarman_spaces_map(struct mm_struct *mm, const struct kbarman_mapping *mapping,
			u64 timestamp)
{
	struct space *space = space_find(mm);

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
	struct space *from = space_find(parent), *to = space_get(child);
	struct mapping *mapping;

	/* The walk over all processes may have been faster. */
	if (!from || !to || !list_empty(&to->mappings))
		return;
	to->complete = from->complete;
	to->trimmed = from->trimmed;
	list_for_each_entry(mapping, &from->mappings, node) {
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
static void disown_rows(const struct thread *thread, const struct space *space)
{
	kbarman_header_add_map(capture, thread->since - 1, thread->task_id, 0,
			       space->mm->task_size, 0, unknown, strlen(unknown), 0);
}

/* @thread was sampled in @space: it belongs there from now on. */
static void settle(struct thread *thread, struct space *space)
{
	struct mapping *mapping;

	if (thread->since && (!space->complete || space->trimmed))
		disown_rows(thread, space);
	thread->space = space;
	list_add_tail(&thread->node, &space->threads);
	list_for_each_entry(mapping, &space->mappings, node)
		add_row(thread, mapping);
}

static bool add_thread(struct space *space, u32 task_id, u64 since)
{
	struct thread *thread = kmalloc(sizeof(*thread), GFP_KERNEL);

	if (!thread || xa_err(xa_store(&threads, task_id, thread, GFP_KERNEL))) {
		kfree(thread);
		out_of_memory();
		return false;
	}
	thread->task_id = task_id;
	thread->since = since;
	settle(thread, space);
	return true;
}

bool kbarman_spaces_sampled(struct mm_struct *mm, u32 task_id, u64 timestamp)
{
	struct space *space = space_get(mm);
	void *known = xa_load(&threads, task_id);
	struct thread *thread = xa_is_value(known) ? NULL : known;

	if (!space)
		return false;
	space_walk(space, timestamp);
	if (!thread) {
		if (!add_thread(space, task_id, known ? timestamp : 0))
			return false;
	} else if (thread->space != space) {
		/* A new image, or a new thread with an old id. */
		list_del(&thread->node);
		thread->since = timestamp;
		settle(thread, space);
	}
	return space->complete;
}

void kbarman_spaces_exit(u32 task_id)
{
	void *known = xa_load(&threads, task_id);

	if (known && !xa_is_value(known))
		thread_free(known);
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

void kbarman_spaces_walk_all(u64 timestamp)
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

		if (space)
			space_walk(space, timestamp);
		if (mm)
			mmput_async(mm);
		put_task_struct(found[i]);
		cond_resched();
	}
	kvfree(found);
}

void kbarman_spaces_distrust(u64 timestamp)
{
	struct space *space;
	int bucket;

	all_seen = false;
	hash_for_each(spaces, bucket, space, node) {
		space->complete = false;
		if (!list_empty(&space->threads))
			space_walk(space, timestamp);
		cond_resched();
	}
}

static void look_again_later(void)
{
	look_at = nr_spaces + max(nr_spaces / 4, (unsigned int)MIN_GRAVES);
	look_at_bytes = nr_bytes / 2 + MAX_BYTES / 2;
}

bool kbarman_spaces_condemn(void)
{
	struct space *space;
	int bucket;

	if (nr_spaces < look_at && nr_bytes < look_at_bytes)
		return false;
	hash_for_each(spaces, bucket, space, node)
		space->condemned = !atomic_read(&space->mm->mm_users);
	/*
	 * Whoever lived there has said what it had to say before it let go: pairs with
	 * the atomic_dec_and_test() of mmput().
	 */
	smp_rmb();
	return true;
}

void kbarman_spaces_bury(void)
{
	struct hlist_node *next;
	struct space *space;
	int bucket;

	hash_for_each_safe(spaces, bucket, next, space, node)
		if (space->condemned)
			space_free(space);
	look_again_later();
}

int kbarman_spaces_create(struct kbarman_capture *to)
{
	path_buffer = kmalloc(FILE_BYTES + PATH_MAX, GFP_KERNEL);
	if (!path_buffer)
		return -ENOMEM;
	capture = to;
	look_again_later();
	all_seen = false;
	return 0;
}

void kbarman_spaces_destroy(void)
{
	struct hlist_node *next;
	struct space *space;
	int bucket;

	hash_for_each_safe(spaces, bucket, next, space, node)
		space_free(space);
	xa_destroy(&threads);
	kfree(path_buffer);
	path_buffer = NULL;
	capture = NULL;
}
