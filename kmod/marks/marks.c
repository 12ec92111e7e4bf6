// SPDX-License-Identifier: GPL-2.0-only
/*
 * Annotations and values of custom counters that programs write.
 *
 * The mode of the device file may allow anybody to write, so the input is not trusted. A mark is
 * copied completely and checked before it is used. The kernel adds the writer's thread id and the
 * time. Each user has a bounded rate: rate.h.
 *
 * A mark goes to every session that records marks. A record is written with preemption off, into a
 * session that is on the list. marks_stop() takes the session off the list, and an RCU grace period
 * passes before marks_end(), so no record is written after the end. While nobody records, write()
 * reads one word. A program that has mapped this word does not even call write().
 */
#include <linux/anon_inodes.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/percpu.h>
#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "capture/capture.h"
#include "capture/header.h"
#include "capture/tables.h"
#include "compat/mm.h"
#include "here.h"
#include "marks/marks.h"
#include "marks/rate.h"
#include "marks/series.h"
#include "ring/record.h"

#define TELL_MARKS	3	/* charge for records of losses, in marks */
#define SHORT_TEXT	256	/* bytes that fit onto the stack */

/* The word that programs map, on a page of its own. 0: nobody records marks. */
static struct kbarman_mark_state *marks_state __ro_after_init;

/* The sessions that record marks. RCU; the lock is for those who change the list. */
static LIST_HEAD(marks_sessions);
static DEFINE_SPINLOCK(marks_lock);
static u32 marks_recordings;	/* number of recordings so far. Protected by marks_lock */

/* ---- a mark ---- */

/* Which fields the types of marks use. */
static const struct mark_fields {
	bool known, text, channel, group, colour, value;
} mark_fields[] = {
	[KBARMAN_MARK_STRING] = { true, .text = true, .channel = true, .colour = true },
	[KBARMAN_MARK_BOOKMARK] = { true, .text = true, .colour = true },
	[KBARMAN_MARK_CHANNEL] = { true, .text = true, .channel = true, .group = true },
	[KBARMAN_MARK_GROUP] = { true, .text = true, .group = true },
	[KBARMAN_MARK_COUNTER] = { true, .value = true },
};

/* True if the fields that the type does not use are 0. */
static bool mark_has_good_fields(const struct kbarman_mark *mark)
{
	struct mark_fields uses = { };

	if (mark->type < ARRAY_SIZE(mark_fields))
		uses = mark_fields[array_index_nospec(mark->type, ARRAY_SIZE(mark_fields))];
	return uses.known && !mark->reserved && (uses.text || !mark->text_bytes) &&
	       (uses.channel || !mark->channel) && (uses.group || !mark->group) &&
	       (uses.colour || !mark->colour) &&
	       (uses.value || (!mark->series && !mark->value));
}

/* Skips the @count bytes by which the struct is longer than this kernel knows. They must be 0. */
static int mark_take_zeroes(struct iov_iter *from, size_t count)
{
	u8 bytes[64];

	while (count) {
		size_t n = min(count, sizeof(bytes));

		if (!copy_from_iter_full(bytes, n, from))
			return -EFAULT;
		if (memchr_inv(bytes, 0, n))
			return -E2BIG;
		count -= n;
	}
	return 0;
}

/* Copies and checks the struct in front of a text. */
static int mark_take(struct kbarman_mark *mark, struct iov_iter *from)
{
	size_t there = iov_iter_count(from);
	int error;

	static_assert(sizeof(*mark) == KBARMAN_MARK_SIZE_VER0);
	if (there < sizeof(*mark))
		return -EINVAL;
	if (!copy_from_iter_full(mark, sizeof(*mark), from))
		return -EFAULT;
	if (mark->size < sizeof(*mark) || mark->size > there)
		return -EINVAL;
	error = mark_take_zeroes(from, mark->size - sizeof(*mark));
	if (error)
		return error;
	if (mark->text_bytes > KBARMAN_MARK_TEXT_MAX)
		return -EMSGSIZE;
	if (mark->text_bytes > there - mark->size || !mark_has_good_fields(mark))
		return -EINVAL;
	return 0;
}

/* A mark on its way, and what its writer may. */
struct marking {
	const struct kbarman_mark *mark;
	const char *text;
	struct kbarman_account *account;	/* NULL: a descriptor that has no rate */
	struct kbarman_known_series *series;	/* NULL: none, or `row` */
	u32 row;		/* of the series in the only session that gets the mark */
	bool may;		/* the account has paid for it */
	bool telling;		/* it is preceded by records of losses */
};

/* The row of the mark's series in @session, or -ENOSPC. */
static int marking_row(const struct marking *it, struct kbarman_session *session)
{
	return it->series ? kbarman_series_row(it->series, session) : it->row;
}

static void marking_put_value(const struct marking *it, struct kbarman_session *session,
			      struct kbarman_ring *ring)
{
	int row = marking_row(it, session);

	if (row >= 0)
		kbarman_record_counter(ring, current->pid, row, it->mark->value);
	else
		kbarman_header_miss(session->capture, KBARMAN_MISSED_SERIES, 1);
}

/* Writes the mark into the ring of this CPU, or counts the mark as lost. */
static void marking_put(const struct marking *it, struct kbarman_session *session)
{
	struct kbarman_ring *ring = kbarman_ring_of(this_cpu_ptr(session->each));

	if (!ring)
		return;		/* this CPU is not recorded */
	if (it->may && it->telling)
		kbarman_account_tell(it->account, session, ring);
	if (!it->may)
		kbarman_account_lose(it->account, session, ring);
	else if (it->mark->type == KBARMAN_MARK_COUNTER)
		marking_put_value(it, session, ring);
	else
		kbarman_record_annotation(ring, current->pid, it->mark, it->text);
}

/* For a program's mark: it goes to every session. The sessions keep their rows of its series. */
static int mark_write_all_sessions(struct marking *it)
{
	struct kbarman_session *session;

	if (it->mark->type == KBARMAN_MARK_COUNTER) {
		it->series = kbarman_series_find(it->mark->series);
		if (!it->series)
			return list_empty(&marks_sessions) ? 0 : -EINVAL;
	}
	if (it->account)
		list_for_each_entry_rcu(session, &marks_sessions, marks_list)
			it->telling |= kbarman_account_wants_to_tell(it->account, session);
	it->may = !it->account ||
		  kbarman_account_pay(it->account, 1 + it->mark->text_bytes / 64 +
						   (it->telling ? TELL_MARKS : 0));
	list_for_each_entry_rcu(session, &marks_sessions, marks_list)
		marking_put(it, session);
	return 0;
}

/* True if a program created @series: not a series of the module, and it exists. */
static bool series_is_good(const struct kbarman_session *session, u32 series)
{
	return series >= KBARMAN_SERIES_COUNT && series < READ_ONCE(session->capture->nr_series);
}

/* For a mark of the session's owner: it goes to this session, and its series is a row there. */
static int mark_write_one_session(struct marking *it, struct kbarman_session *session)
{
	if (!READ_ONCE(session->marks_recording))
		return 0;
	it->row = it->mark->series;
	if (it->mark->type == KBARMAN_MARK_COUNTER && !series_is_good(session, it->row))
		return -EINVAL;
	it->may = true;
	marking_put(it, session);
	return 0;
}

static int mark_record(const struct kbarman_mark *mark, const char *text,
		       const struct kbarman_marks *marks)
{
	struct marking it = { .mark = mark, .text = text, .account = marks->account };
	int error;

	preempt_disable();
	error = marks->only ? mark_write_one_session(&it, marks->only) :
			      mark_write_all_sessions(&it);
	preempt_enable();
	return error;
}

static int mark_take_text(char *text, const struct kbarman_mark *mark, struct iov_iter *from)
{
	size_t end = mark->size + (size_t)mark->text_bytes;

	if (!copy_from_iter_full(text, mark->text_bytes, from))
		return -EFAULT;
	if (memchr(text, 0, mark->text_bytes))
		return -EINVAL;
	/* The padding behind the last mark may be missing. */
	iov_iter_advance(from, min(ALIGN(end, 8) - end, iov_iter_count(from)));
	return 0;
}

static int mark_write(const struct kbarman_marks *marks, struct iov_iter *from)
{
	char some[SHORT_TEXT], *text = some;
	struct kbarman_mark mark;
	int error;

	error = mark_take(&mark, from);
	if (error)
		return error;
	if (mark.text_bytes > sizeof(some)) {
		text = kmalloc(mark.text_bytes, GFP_KERNEL);
		if (!text)
			return -ENOMEM;
	}
	error = mark_take_text(text, &mark, from);
	if (!error)
		error = mark_record(&mark, text, marks);
	if (text != some)
		kfree(text);
	return error;
}

ssize_t kbarman_marks_write(const struct kbarman_marks *marks, struct iov_iter *from)
{
	size_t all = iov_iter_count(from), left;
	int error;

	if (!READ_ONCE(marks_state->recording))
		return all;
	while ((left = iov_iter_count(from))) {
		error = mark_write(marks, from);
		if (error)
			return left < all ? all - left : error;
		if (fatal_signal_pending(current))
			return all - iov_iter_count(from);
		cond_resched();
	}
	return all;
}

/* ---- series ---- */

static bool text_ends(const char *string, size_t size)
{
	return strnlen(string, size) < size;
}

static int series_check(const struct kbarman_mark_series *series)
{
	if (!text_ends(series->chart, sizeof(series->chart)) ||
	    !text_ends(series->name, sizeof(series->name)) ||
	    !text_ends(series->units, sizeof(series->units)) ||
	    !text_ends(series->description, sizeof(series->description)) || !series->chart[0] ||
	    !series->name[0])
		return -EINVAL;
	if (series->series_class < BM_SERIES_CLASS_DELTA ||
	    series->series_class > BM_SERIES_CLASS_ABSOLUTE ||
	    series->display < BM_SERIES_DISPLAY_ACCUMULATE ||
	    series->display > BM_SERIES_DISPLAY_MINIMUM ||
	    series->series_composition < BM_SERIES_STACKED ||
	    series->series_composition > BM_SERIES_LOG10 ||
	    series->rendering_type < BM_RENDERING_FILLED ||
	    series->rendering_type > BM_RENDERING_BAR ||
	    series->chart_flags & ~(BM_CHART_AVERAGE_SELECTION | BM_CHART_AVERAGE_CORES |
				    BM_CHART_PERCENTAGE | BM_CHART_PER_CPU))
		return -EINVAL;
	return 0;
}

/* -EAGAIN if nobody records marks, else the error of the session that lacks room. */
static int marks_add_rows(struct kbarman_known_series *series)
{
	struct kbarman_session *session;
	int error = -EAGAIN, added;

	/* It ends before marks_end(), so the tables do not change after that. */
	preempt_disable();
	list_for_each_entry_rcu(session, &marks_sessions, marks_list) {
		added = kbarman_series_add_row(series, session);
		error = error ? added : 0;
	}
	preempt_enable();
	return error;
}

/* A row of the owner's session is a series that needs no number beside it. */
static int marks_add_own_row(struct kbarman_session *session, struct kbarman_mark_series *series)
{
	int row = -EAGAIN;

	preempt_disable();
	if (READ_ONCE(session->marks_recording))
		row = kbarman_tables_add_series(session->capture, KBARMAN_USER_ROOT, series);
	preempt_enable();
	if (row < 0)
		return row;
	series->series = row;
	return 0;
}

int kbarman_marks_series(const struct kbarman_marks *marks, struct kbarman_mark_series *series)
{
	int error = series_check(series);

	if (error)
		return error;
	/* Before the rows: a session that begins meanwhile makes the number an old one. */
	series->recording = READ_ONCE(marks_state->recording);
	if (marks->only)
		return marks_add_own_row(marks->only, series);
	return kbarman_series_get(series,
				  marks->account ? kbarman_account_user(marks->account) :
						   KBARMAN_USER_ROOT, marks_add_rows);
}

/* ---- the mapped word ---- */

static vm_fault_t marks_state_fault(struct vm_fault *fault)
{
	struct page *page = virt_to_page(marks_state);

	get_page(page);
	fault->page = page;
	return 0;
}

static const struct vm_operations_struct marks_state_vm_operations = {
	.fault = marks_state_fault,
};

static int marks_state_mmap(struct file *file, struct vm_area_struct *vma)
{
	if (vma->vm_pgoff || vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EPERM;
	kbarman_vm_flags_clear(vma, VM_MAYWRITE | VM_MAYEXEC);
	kbarman_vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &marks_state_vm_operations;
	return 0;
}

static const struct file_operations marks_state_file_operations = {
	.owner = THIS_MODULE,
	.mmap = marks_state_mmap,
	.llseek = noop_llseek,
};

int kbarman_marks_state(void)
{
	return anon_inode_getfd("[kbarman-marks]", &marks_state_file_operations, NULL,
				O_RDONLY | O_CLOEXEC);
}

/* ---- the source ---- */

/* Names and series of an earlier recording are unknown to a session that joins: a new number. */
static void marks_begin(struct kbarman_session *session)
{
	spin_lock(&marks_lock);
	if (!++marks_recordings)
		marks_recordings = 1;
	WRITE_ONCE(session->marks_recording, marks_recordings);
	list_add_tail_rcu(&session->marks_list, &marks_sessions);
	WRITE_ONCE(marks_state->recording, marks_recordings);
	spin_unlock(&marks_lock);
}

static void marks_stop(struct kbarman_session *session)
{
	spin_lock(&marks_lock);
	WRITE_ONCE(session->marks_recording, 0);
	list_del_rcu(&session->marks_list);
	if (list_empty(&marks_sessions))
		WRITE_ONCE(marks_state->recording, 0);
	spin_unlock(&marks_lock);
}

/* mark_record() has finished, and so have those who add rows. */
static void marks_end(struct kbarman_session *session)
{
	bool last;

	spin_lock(&marks_lock);
	last = list_empty(&marks_sessions);
	spin_unlock(&marks_lock);
	kbarman_series_leave(session, last);
}

const struct kbarman_source kbarman_source_marker = {
	.name = "marks",
	.bit = KBARMAN_SOURCE_MARKS,
	.begin = marks_begin,
	.stop = marks_stop,
	.end = marks_end,
};

int __init kbarman_marks_init(void)
{
	marks_state = (void *)get_zeroed_page(GFP_KERNEL);
	if (!marks_state)
		return -ENOMEM;
	marks_state->size = sizeof(*marks_state);
	return 0;
}

void kbarman_marks_exit(void)
{
	kbarman_accounts_exit();
	free_page((unsigned long)marks_state);
}
