// SPDX-License-Identifier: GPL-2.0-only
/*
 * What programs write about themselves: annotations and values of custom counters.
 *
 * Who writes may be anybody that the mode of the device file lets, so nothing is
 * believed: a mark is copied in whole and checked before it is looked at by anyone else,
 * it says who wrote it and when by itself, and comes at a bounded rate. The rate is the
 * user's who opened the descriptor, over all of that user's descriptors.
 *
 * A record is written with preemption off and `recording` seen set; stop() clears that
 * and waits for an RCU grace period, so none is written behind the end. Nobody records:
 * a write() looks at one word, and a program that has mapped that word does not even come
 * here.
 */
#include <linux/align.h>
#include <linux/anon_inodes.h>
#include <linux/fs.h>
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
#define TELL_NS		((s64)NSEC_PER_SEC / 10)	/* between two records of losses */
#define TELL_MARKS	3	/* what such a record costs */
#define SHORT_TEXT	256	/* bytes that need no memory */

/* The word that programs map, on a page of its own; 0: nobody records marks. */
static struct kbarman_mark_state *state __ro_after_init;

static u32 recordings;		/* counted; under the session's lock */

/* ---- the rate ---- */

/* What a user has written, by whatever descriptor. */
struct account {
	struct list_head list;	/* of accounts */
	u32 user;
	unsigned int markers;	/* open descriptors; under accounts_lock */
	atomic64_t paid;	/* ns of ktime: what was written is paid for up to then */
	u32 recording;		/* that the two below are about */
	atomic_t untold;	/* marks lost that no ring tells of yet */
	s64 told;		/* ns of ktime: when a ring last told of some */
};

/* One whose last descriptor was closed stays until what it has written is paid for. */
static LIST_HEAD(accounts);
static DEFINE_SPINLOCK(accounts_lock);

static bool is_over(const struct account *account)
{
	return !account->markers && atomic64_read(&account->paid) <= ktime_get_ns();
}

/* The one of @user, @spare if there is none. Those that are over are moved to @old. */
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

/* Every mark is paid for with the time that it takes to earn one, up to BURST_NS ahead. */
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
 * A mark that is lost is counted, and costs nobody else anything: the record that tells of
 * losses is paid for by who lost them, with one of the next marks.
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

/* It is time to tell of losses. */
static bool wants_to_tell(const struct account *account)
{
	return account && atomic_read(&account->untold) &&
	       READ_ONCE(account->recording) == READ_ONCE(state->recording) &&
	       (s64)ktime_get_ns() - READ_ONCE(account->told) > TELL_NS;
}

/* With the record that @ring gets next. */
static void tell(struct kbarman_ring *ring, struct account *account)
{
	WRITE_ONCE(account->told, ktime_get_ns());
	kbarman_ring_owe(ring, atomic_xchg(&account->untold, 0));
}

/* ---- a mark ---- */

/* Fields that the type does not have are 0. */
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

/* The @count bytes of a struct that is longer than we know it. */
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

/* The struct in front of a text, checked. */
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

/* A series that a program has had made, and not one of ours. */
static bool good_series(u32 series)
{
	return series >= KBARMAN_SERIES_COUNT &&
	       series < READ_ONCE(kbarman_session.capture->nr_series);
}

/*
 * Into the ring; or, if it can't be paid for, among what is lost. @account NULL: it need
 * not be.
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
		goto out;	/* a CPU that is not recorded */
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
	/* The last mark may go without what is in front of the next one. */
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

	/* A table is still when the session is: see stop(). */
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

/* ---- the word ---- */

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
	/* For the last record_mark() and kbarman_marker_series(). */
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
