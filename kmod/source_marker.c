// SPDX-License-Identifier: GPL-2.0-only
/*
 * Annotations and values of custom counters that programs write.
 *
 * The mode of the device file may allow anybody to write, so the input is not trusted. A mark is
 * copied completely and checked before it is used. The kernel adds the writer's thread id and the
 * time. Each user has a bounded rate, for all descriptors that this user has opened.
 *
 * A record is written with preemption off, after `recording` was seen set. stop() clears
 * `recording` and waits for an RCU grace period, so no record is written after the end. While
 * nobody records, write() reads one word. A program that has mapped this word does not even call
 * write().
 */
#include <linux/anon_inodes.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "compat/mm.h"
#include "record.h"
#include "session.h"
#include "source_marker.h"
#include "sources.h"
#include "tables.h"
#include "users.h"

#define NS_A_MARK	(NSEC_PER_SEC / KBARMAN_MARK_RATE)
#define BURST_NS	((s64)KBARMAN_MARK_BURST * NS_A_MARK)
#define TELL_NS		((s64)NSEC_PER_SEC / 10)	/* from one record of losses to the next */
#define TELL_MARKS	3	/* charge for a record of losses, in marks */
#define SHORT_TEXT	256	/* bytes that fit onto the stack */

/* The word that programs map, on a page of its own. 0: nobody records marks. */
static struct kbarman_mark_state *state __ro_after_init;

static u32 recordings;		/* number of recordings so far. Protected by the session's lock */

/* ---- the rate ---- */

/* What a user has written, with all descriptors. */
struct account {
	struct list_head list;	/* in accounts */
	u32 user;
	unsigned int markers;	/* open descriptors. Protected by accounts_lock */
	atomic64_t paid;	/* time in ns of ktime_get_ns() up to which the user's rate is
				 * used */
	u32 recording;		/* number of the recording to which the next two fields belong */
	atomic_t untold;	/* lost marks that no ring has a record of yet */
	s64 told;		/* ns of ktime_get_ns() when a ring last got a record of losses */
};

/*
 * An account without open descriptors stays until `paid` has passed: closing and opening again does
 * not give a user more marks.
 */
static LIST_HEAD(accounts);
static DEFINE_SPINLOCK(accounts_lock);

static bool is_over(const struct account *account)
{
	return !account->markers && atomic64_read(&account->paid) <= ktime_get_ns();
}

/*
 * The account of @user. If there is none, @spare becomes the account. Accounts that are over are
 * moved to @old, for the caller to free.
 */
static struct account *find_account(u32 user, struct account *spare, struct list_head *old)
{
	struct account *account, *next, *found = NULL;

	lockdep_assert_held(&accounts_lock);
	list_for_each_entry_safe(account, next, &accounts, list) {
		if (account->user == user)
			found = account;
		else if (is_over(account))
			list_move(&account->list, old);
	}
	if (!found) {
		spare->user = user;
		list_add(&spare->list, &accounts);
		found = spare;
	}
	return found;
}

static void free_accounts(struct list_head *list)
{
	struct account *account, *next;

	list_for_each_entry_safe(account, next, list, list)
		kfree(account);
}

struct kbarman_marker *kbarman_marker_open(const struct cred *cred)
{
	struct kbarman_marker *marker = kzalloc(sizeof(*marker), GFP_KERNEL_ACCOUNT);
	struct account *spare = kzalloc(sizeof(*spare), GFP_KERNEL_ACCOUNT);
	LIST_HEAD(old);

	if (!marker || !spare) {
		kfree(spare);
		kfree(marker);
		return NULL;
	}
	marker->user = kbarman_user_of(cred);
	spin_lock(&accounts_lock);
	marker->account = find_account(marker->user, spare, &old);
	marker->account->markers++;
	spin_unlock(&accounts_lock);
	if (marker->account != spare)
		kfree(spare);
	free_accounts(&old);
	return marker;
}

void kbarman_marker_close(struct kbarman_marker *marker)
{
	spin_lock(&accounts_lock);
	marker->account->markers--;
	spin_unlock(&accounts_lock);
	kfree(marker);
}

/*
 * A mark costs NS_A_MARK ns of the user's time. A user can spend at most BURST_NS in advance.
 * Returns false if the user can't pay for @marks marks.
 */
static bool pay(struct account *account, u32 marks)
{
	s64 now = ktime_get_ns();
	s64 paid = atomic64_read(&account->paid), then;

	do {
		then = max(paid, now) + (s64)marks * NS_A_MARK;
		if (then - now > BURST_NS)
			return false;
	} while (!atomic64_try_cmpxchg(&account->paid, &paid, then));
	return true;
}

bool kbarman_marker_may(struct kbarman_marker *marker)
{
	return pay(marker->account, 1);
}

/*
 * Counts a lost mark. A lost mark costs other users nothing: the record of losses is charged to the
 * user who lost marks, together with one of that user's next marks.
 */
static void lose(struct kbarman_ring *ring, struct account *account)
{
	u32 recording = READ_ONCE(state->recording);

	kbarman_ring_lose(ring, KBARMAN_LOST_RATE);
	if (READ_ONCE(account->recording) != recording) {
		WRITE_ONCE(account->recording, recording);
		atomic_set(&account->untold, 0);
	}
	atomic_inc(&account->untold);
}

/* True if it is time for a record of losses. */
static bool wants_to_tell(const struct account *account)
{
	return account && atomic_read(&account->untold) &&
	       READ_ONCE(account->recording) == READ_ONCE(state->recording) &&
	       (s64)ktime_get_ns() - READ_ONCE(account->told) > TELL_NS;
}

/* The next record in @ring is preceded by a record of losses. */
static void tell(struct kbarman_ring *ring, struct account *account)
{
	WRITE_ONCE(account->told, ktime_get_ns());
	kbarman_ring_owe(ring, atomic_xchg(&account->untold, 0));
}

/* ---- a mark ---- */

/* True if the fields that the type does not use are 0. */
static bool good_fields(const struct kbarman_mark *mark)
{
	bool channel = false, group = false, colour = false;

	switch (mark->type) {
	case KBARMAN_MARK_STRING:
		channel = true;
		colour = true;
		break;
	case KBARMAN_MARK_BOOKMARK:
		colour = true;
		break;
	case KBARMAN_MARK_CHANNEL:
		channel = true;
		group = true;
		break;
	case KBARMAN_MARK_GROUP:
		group = true;
		break;
	case KBARMAN_MARK_COUNTER:
		return !mark->channel && !mark->group && !mark->colour && !mark->text_bytes &&
		       !mark->reserved;
	default:
		return false;
	}
	return (channel || !mark->channel) && (group || !mark->group) &&
	       (colour || !mark->colour) && !mark->series && !mark->value && !mark->reserved;
}

/* Skips the @count bytes by which the struct is longer than this kernel knows. They must be 0. */
static int take_zeroes(struct iov_iter *from, size_t count)
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
static int take_mark(struct kbarman_mark *mark, struct iov_iter *from)
{
	size_t there = iov_iter_count(from);
	int error;

	static_assert(sizeof(*mark) == KBARMAN_MARK_SIZE);
	if (there < sizeof(*mark))
		return -EINVAL;
	if (!copy_from_iter_full(mark, sizeof(*mark), from))
		return -EFAULT;
	if (mark->size < sizeof(*mark) || mark->size > there)
		return -EINVAL;
	error = take_zeroes(from, mark->size - sizeof(*mark));
	if (error)
		return error;
	if (mark->text_bytes > KBARMAN_MARK_TEXT_MAX)
		return -EMSGSIZE;
	if (mark->text_bytes > there - mark->size || !good_fields(mark))
		return -EINVAL;
	return 0;
}

/* True if a program created @series: not a series of the module, and it exists. */
static bool good_series(u32 series)
{
	return series >= KBARMAN_SERIES_COUNT &&
	       series < READ_ONCE(kbarman_session.capture->nr_series);
}

/*
 * Writes the mark into the ring, or counts it as lost if @account can't pay for it. @account is
 * NULL for a descriptor that has no rate.
 */
static int record_mark(const struct kbarman_mark *mark, const char *text, struct account *account)
{
	bool telling = wants_to_tell(account);
	struct kbarman_ring *ring;
	int error = 0;
	bool may;

	may = !account || pay(account, 1 + mark->text_bytes / 64 + (telling ? TELL_MARKS : 0));

	preempt_disable();
	if (!READ_ONCE(state->recording))
		goto out;
	if (mark->type == KBARMAN_MARK_COUNTER && !good_series(mark->series)) {
		error = -EINVAL;
		goto out;
	}
	ring = kbarman_this_ring();
	if (!ring)
		goto out;	/* this CPU is not recorded */
	if (may && telling)
		tell(ring, account);
	if (!may)
		lose(ring, account);
	else if (mark->type == KBARMAN_MARK_COUNTER)
		kbarman_record_counter(ring, current->pid, mark->series, mark->value);
	else
		kbarman_record_annotation(ring, current->pid, mark, text);
out:
	preempt_enable();
	return error;
}

static int take_text(char *text, const struct kbarman_mark *mark, struct iov_iter *from)
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

static int write_mark(struct kbarman_marker *marker, struct iov_iter *from)
{
	char some[SHORT_TEXT], *text = some;
	struct kbarman_mark mark;
	int error;

	error = take_mark(&mark, from);
	if (error)
		return error;
	if (mark.text_bytes > sizeof(some)) {
		text = kmalloc(mark.text_bytes, GFP_KERNEL);
		if (!text)
			return -ENOMEM;
	}
	error = take_text(text, &mark, from);
	if (!error)
		error = record_mark(&mark, text, marker ? marker->account : NULL);
	if (text != some)
		kfree(text);
	return error;
}

ssize_t kbarman_marker_write(struct kbarman_marker *marker, struct iov_iter *from)
{
	size_t all = iov_iter_count(from), left;
	int error;

	if (!READ_ONCE(state->recording))
		return all;
	while ((left = iov_iter_count(from))) {
		error = write_mark(marker, from);
		if (error)
			return left < all ? all - left : error;
		if (fatal_signal_pending(current))
			return all - iov_iter_count(from);
		cond_resched();
	}
	return all;
}

/* ---- series ---- */

static bool ends(const char *string, size_t size)
{
	return strnlen(string, size) < size;
}

int kbarman_marker_series(const struct kbarman_marker *marker, struct kbarman_mark_series *series)
{
	int row = -EAGAIN;

	if (!ends(series->chart, sizeof(series->chart)) ||
	    !ends(series->name, sizeof(series->name)) ||
	    !ends(series->units, sizeof(series->units)) ||
	    !ends(series->description, sizeof(series->description)) || !series->chart[0] ||
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

	/* stop() waits for this section, so the tables do not change after stop(). */
	preempt_disable();
	series->recording = READ_ONCE(state->recording);
	if (series->recording)
		row = kbarman_tables_add_series(kbarman_session.capture,
						marker ? marker->user : KBARMAN_USER_ROOT, series);
	preempt_enable();
	if (row < 0)
		return row;
	series->series = row;
	return 0;
}

/* ---- the mapped word ---- */

static vm_fault_t state_fault(struct vm_fault *fault)
{
	struct page *page = virt_to_page(state);

	get_page(page);
	fault->page = page;
	return 0;
}

static const struct vm_operations_struct state_vm_operations = {
	.fault = state_fault,
};

static int state_mmap(struct file *file, struct vm_area_struct *vma)
{
	if (vma->vm_pgoff || vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EPERM;
	kbarman_vm_flags_clear(vma, VM_MAYWRITE | VM_MAYEXEC);
	kbarman_vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &state_vm_operations;
	return 0;
}

static const struct file_operations state_file_operations = {
	.owner = THIS_MODULE,
	.mmap = state_mmap,
	.llseek = noop_llseek,
};

int kbarman_marker_state(void)
{
	return anon_inode_getfd("[kbarman-marks]", &state_file_operations, NULL,
				O_RDONLY | O_CLOEXEC);
}

/* ---- the source ---- */

static int start(struct kbarman_session *session)
{
	if (!++recordings)
		recordings = 1;
	WRITE_ONCE(state->recording, recordings);
	return 0;
}

static void stop(struct kbarman_session *session)
{
	WRITE_ONCE(state->recording, 0);
	/* Wait for record_mark() and kbarman_marker_series() on all CPUs. */
	synchronize_rcu();
}

const struct kbarman_source kbarman_source_marker = {
	.name = "marks",
	.bit = KBARMAN_SOURCE_MARKS,
	.start = start,
	.stop = stop,
};

int __init kbarman_marker_init(void)
{
	state = (void *)get_zeroed_page(GFP_KERNEL);
	if (!state)
		return -ENOMEM;
	state->size = sizeof(*state);
	return 0;
}

void kbarman_marker_exit(void)
{
	free_accounts(&accounts);
	free_page((unsigned long)state);
}
