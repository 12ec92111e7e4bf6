// SPDX-License-Identifier: GPL-2.0-only
/*
 * Executable mappings: see source_maps.h.
 *
 * Linux calls perf_event_mmap() for every new mapping, whatever creates it. A kprobe there sees all
 * mappings, even of a process that lives for a few milliseconds. There are two exceptions. Mappings
 * that mremap() moves are seen by a kprobe at copy_vma(). Mappings that mremap() extends in place
 * are not seen.
 *
 * The kprobes, the fork probe and the overflow handler put facts into one queue. A worker, which
 * may sleep, takes them out, looks up paths and adds rows (spaces.c). The order in the queue is the
 * order in which places were claimed. So a fact that happened after another one, on whatever CPU,
 * is behind it in the queue.
 *
 * Without kprobes the worker looks up the mappings of a thread at the thread's first sample, and
 * again at the first sample after it has executed a new image.
 *
 * Kernel modules that are loaded during the session get rows of task 0.
 */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/hash.h>
#include <linux/file.h>
#include <linux/irq_work.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/threads.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "clock.h"
#include "compat/argument.h"
#include "compat/cmpxchg.h"
#include "compat/mm.h"
#include "compat/module.h"
#include "compat/workqueue.h"
#include "session.h"
#include "source_maps.h"
#include "sources.h"
#include "spaces.h"

#define QUEUE_SIZE	4096U	/* a power of two */
#define SHARE_BITS	10
#define GAP_BITS	8
#define GAP_TRIES	8

enum fact_kind {
	FACT_NONE,		/* the place is free, or its fact is not written yet */
	FACT_MAP,
	FACT_FORK,
	FACT_SAMPLED,
	FACT_EXIT,
};

/* Holds references to the mm's (mm_count) and to the mapping's file. */
struct fact {
	enum fact_kind kind;	/* written last, with release */
	u32 task_id;		/* FACT_SAMPLED, FACT_EXIT */
	u32 share;		/* index in shares[] of the process that has the place */
	u64 timestamp;
	struct mm_struct *mm;	/* not for FACT_EXIT */
	union {
		struct mm_struct *parent;		/* FACT_FORK */
		struct kbarman_mapping mapping;		/* FACT_MAP */
	};
};

/*
 * The queue has many writers, at any level up to NMI, and one reader, the worker. A writer has
 * preemption off from claim() to publish(), so the reader never waits long.
 */
static struct fact *queue;	/* [QUEUE_SIZE] */
static unsigned int queue_head;	/* the next place to claim; advanced by cmpxchg */
static unsigned int queue_tail;	/* the next place to read; written by the worker */

/*
 * Number of places that a process has in the queue. No process gets more places than are free. So
 * one process that maps or forks without end fills half of the queue, and two such processes fill
 * two thirds. Processes are told apart by a salted hash of their id, because a process that forks
 * can choose ids.
 */
static atomic_t shares[1 << SHARE_BITS];
static u32 share_salt;

/*
 * Address spaces with facts that were left out, each with a reference (mm_count). If the array has
 * no room, WANTED_DISTRUST is set, because any address space may be meant.
 */
static struct mm_struct *gaps[1 << GAP_BITS];

/*
 * Bit = thread id: the worker knows that this thread was sampled, or a fact that says so is queued.
 * Cleared when the id gets a new owner or a new image. NULL while the source does not run. Freed an
 * RCU grace period after it becomes NULL.
 */
static unsigned long *sampled_tasks;

/* Other work of the worker: bits, set before the worker is kicked. */
enum {
	WANTED_WALK,		/* look up the mappings that existed at start */
	WANTED_GAPS,		/* a mapping or a fork was left out: see gaps[] */
	WANTED_DISTRUST,	/* a fact of an unknown address space was left out */
	WANTED_EXITS,		/* an exit was left out */
	WANTED_TELL,		/* moved mappings are not seen any more */
};

static unsigned long wanted;

/* The worker runs for the last time and must not be queued again. */
static bool stopping;

/* Facts that got no place. The worker adds them to the capture's missed facts. */
static atomic_t left_out;

/* ---- the queue ---- */

/* Claim a place for the current process. NULL if the queue is full or the process has its share. */
static struct fact *claim(void)
{
	unsigned int head = READ_ONCE(queue_head);
	u32 share = hash_32(current->tgid ^ share_salt, SHARE_BITS);
	int has = atomic_inc_return(&shares[share]);
	struct fact *fact;
	int taken;

	do {
		/*
		 * Pairs with the release in drain(): the place is free. If queue_tail has passed
		 * `head` in the meantime, the difference is negative, and the cmpxchg below fails.
		 */
		taken = head - smp_load_acquire(&queue_tail);
		if (taken + has > (int)QUEUE_SIZE) {
			atomic_dec(&shares[share]);
			return NULL;
		}
	} while (!try_cmpxchg(&queue_head, &head, head + 1));
	fact = &queue[head % QUEUE_SIZE];
	fact->share = share;
	fact->timestamp = kbarman_clock();
	return fact;
}

static void kick_worker(struct irq_work *work);
static DEFINE_IRQ_WORK(kick, kick_worker);

static void publish(struct fact *fact, enum fact_kind kind)
{
	/* Pairs with the acquire in drain(). */
	smp_store_release(&fact->kind, kind);
	irq_work_queue(&kick);
}

static void leave_out(void)
{
	atomic_inc(&left_out);
	irq_work_queue(&kick);
}

static bool remember_gap(struct mm_struct *mm)
{
	unsigned int i, at = hash_ptr(mm, GAP_BITS);

	for (i = 0; i < GAP_TRIES; i++) {
		struct mm_struct **gap = &gaps[(at + i) % ARRAY_SIZE(gaps)], *other = NULL;

		if (READ_ONCE(*gap) == mm)
			return true;
		mmgrab(mm);
		if (try_cmpxchg(gap, &other, mm))
			return true;
		/* Never the last reference: the caller or its child owns the address space. */
		mmdrop(mm);
		if (other == mm)
			return true;
	}
	return false;
}

/*
 * Leaves out a fact about @mm that will not be reported again.
 * Context: the task that owns @mm, or the parent of a task that owns @mm and has not run yet;
 * preemption off.
 */
static void leave_out_for_good(struct mm_struct *mm)
{
	set_bit(remember_gap(mm) ? WANTED_GAPS : WANTED_DISTRUST, &wanted);
	leave_out();
}

/* There was no memory for the thread. Its next sample reports it again. */
static void ask_again(u32 task_id)
{
	unsigned long *sampled = READ_ONCE(sampled_tasks);

	if (sampled)
		clear_bit(task_id, sampled);
}

static void handle(const struct fact *fact)
{
	switch (fact->kind) {
	case FACT_NONE:
		break;
	case FACT_MAP:
		kbarman_spaces_map(fact->mm, &fact->mapping, fact->timestamp);
		if (fact->mapping.file)
			fput(fact->mapping.file);
		mmdrop(fact->mm);
		break;
	case FACT_FORK:
		kbarman_spaces_fork(fact->parent, fact->mm, fact->timestamp);
		mmdrop(fact->parent);
		mmdrop(fact->mm);
		break;
	case FACT_SAMPLED:
		if (!kbarman_spaces_sampled(fact->mm, fact->task_id, fact->timestamp))
			ask_again(fact->task_id);
		mmdrop(fact->mm);
		break;
	case FACT_EXIT:
		kbarman_spaces_exit(fact->task_id);
		break;
	}
}

/*
 * Heeds gaps before the facts that come after them: the thread that left out a fact did set_bit()
 * before its next publish().
 */
static void heed_gaps(u64 timestamp)
{
	struct mm_struct *mm;
	unsigned int i;

	if (likely(!test_bit(WANTED_GAPS, &wanted)) ||
	    !test_and_clear_bit(WANTED_GAPS, &wanted))
		return;
	for (i = 0; i < ARRAY_SIZE(gaps); i++) {
		mm = READ_ONCE(gaps[i]) ? xchg(&gaps[i], NULL) : NULL;
		if (!mm)
			continue;
		kbarman_spaces_distrust(mm, timestamp);
		mmdrop(mm);
	}
}

/*
 * Handles all facts whose places are claimed by now. Returns false if one of them is not written
 * yet; its writer kicks the worker afterwards.
 */
static bool drain(void)
{
	unsigned int tail = queue_tail, end = READ_ONCE(queue_head);

	while (tail != end) {
		struct fact *place = &queue[tail % QUEUE_SIZE], fact;

		/* Pairs with the release in publish(). */
		if (smp_load_acquire(&place->kind) == FACT_NONE)
			return false;
		fact = *place;
		WRITE_ONCE(place->kind, FACT_NONE);
		atomic_dec(&shares[fact.share]);
		/* Pairs with the acquire in claim(). */
		smp_store_release(&queue_tail, ++tail);
		heed_gaps(fact.timestamp);
		handle(&fact);
		cond_resched();
	}
	return true;
}

/*
 * Work on all address spaces or threads, at most once a second: otherwise a process that makes it
 * necessary all the time could keep the worker busy with it. Returns in how many jiffies it must be
 * called again.
 */
static unsigned long look_at_all(void)
{
	const unsigned long *sampled = READ_ONCE(sampled_tasks);
	u64 now = get_jiffies_64();
	static u64 due;

	if (!test_bit(WANTED_DISTRUST, &wanted) && !test_bit(WANTED_EXITS, &wanted))
		return MAX_SCHEDULE_TIMEOUT;
	if (now < due)
		return due - now;
	if (test_and_clear_bit(WANTED_DISTRUST, &wanted))
		kbarman_spaces_distrust_all(kbarman_clock());
	if (test_and_clear_bit(WANTED_EXITS, &wanted) && sampled)
		kbarman_spaces_exits(sampled);
	due = get_jiffies_64() + HZ;
	return MAX_SCHEDULE_TIMEOUT;
}

static void work(struct work_struct *unused);
static DECLARE_WORK(worker, work);

static void work_again(struct work_struct *unused)
{
	queue_work(kbarman_unbound_wq, &worker);
}

/* Only queues the worker, so it never does the worker's work at the same time. */
static DECLARE_DELAYED_WORK(later, work_again);

static void tell_of_probes(struct kbarman_capture *capture);

static void work(struct work_struct *unused)
{
	unsigned long pause, other_pause;

	if (test_and_clear_bit(WANTED_TELL, &wanted))
		tell_of_probes(kbarman_session.capture);
	if (test_and_clear_bit(WANTED_WALK, &wanted))
		kbarman_spaces_walk_all(kbarman_session.started.timestamp);
	/*
	 * Facts occupy places in the queue that others need. So facts are handled between any two
	 * slices of walks.
	 */
	do {
		drain();
		heed_gaps(kbarman_clock());
		kbarman_header_miss(kbarman_session.capture, KBARMAN_MISSED_QUEUE,
				    atomic_xchg(&left_out, 0));
		if (kbarman_spaces_condemn() && drain())
			kbarman_spaces_bury();
		other_pause = look_at_all();
	} while (kbarman_spaces_walk(&pause));
	pause = min(pause, other_pause);
	if (pause != MAX_SCHEDULE_TIMEOUT && !READ_ONCE(stopping))
		mod_delayed_work(kbarman_unbound_wq, &later, pause);
}

/* Context: hard interrupt; a thread on PREEMPT_RT. */
static void kick_worker(struct irq_work *unused)
{
	queue_work(kbarman_unbound_wq, &worker);
}

/* ---- reports of other sources ---- */

void kbarman_maps_sampled(void)
{
	unsigned long *sampled = READ_ONCE(sampled_tasks);
	struct mm_struct *mm = current->mm;
	struct fact *fact;

	if (likely(!sampled || test_bit(current->pid, sampled)) || !mm)
		return;
	if (test_and_set_bit(current->pid, sampled))
		return;
	fact = claim();
	if (!fact) {
		clear_bit(current->pid, sampled);	/* the next sample tries again */
		leave_out();
		return;
	}
	mmgrab(mm);
	fact->mm = mm;
	fact->task_id = current->pid;
	publish(fact, FACT_SAMPLED);
}

static void push_fork(struct mm_struct *parent, struct mm_struct *child)
{
	struct fact *fact = claim();

	if (!fact) {
		leave_out_for_good(child);
		return;
	}
	mmgrab(parent);
	mmgrab(child);
	fact->parent = parent;
	fact->mm = child;
	publish(fact, FACT_FORK);
}

void kbarman_maps_fork(struct task_struct *parent, struct task_struct *child)
{
	unsigned long *sampled;

	preempt_disable_notrace();
	sampled = READ_ONCE(sampled_tasks);
	if (sampled) {
		clear_bit(child->pid, sampled);
		if (parent->mm && child->mm && child->mm != parent->mm &&
		    kbarman_wants(child->pid))
			push_fork(parent->mm, child->mm);
	}
	preempt_enable_notrace();
}

void kbarman_maps_exec(struct task_struct *task)
{
	unsigned long *sampled;

	preempt_disable_notrace();
	sampled = READ_ONCE(sampled_tasks);
	if (sampled)
		clear_bit(task->pid, sampled);
	preempt_enable_notrace();
}

/*
 * If the queue is full, the thread's bit in sampled_tasks is cleared instead, and the worker later
 * finds the threads whose bit is cleared.
 */
void kbarman_maps_exit(u32 task_id)
{
	unsigned long *sampled;
	struct fact *fact;

	preempt_disable_notrace();
	sampled = READ_ONCE(sampled_tasks);
	if (sampled && test_bit(task_id, sampled)) {
		fact = claim();
		if (fact) {
			fact->task_id = task_id;
			publish(fact, FACT_EXIT);
		} else {
			clear_bit(task_id, sampled);
			set_bit(WANTED_EXITS, &wanted);
			irq_work_queue(&kick);
		}
	}
	preempt_enable_notrace();
}

/*
 * ---- the kprobes ----
 *
 * No header says which arguments these functions of Linux have, or that they have them for good. So
 * the module checks what it finds in their places. What is not a mapping there is not followed, and
 * the features say that mappings are not seen:
 *
 * perf_event_mmap()	checked at module init, with a mapping that the module makes
 * copy_vma()		checked at each call, because a module can't call mremap()
 */

static u32 features;

static void __maybe_unused set_features(bool made, bool moved)
{
	WRITE_ONCE(features, (made ? KBARMAN_FEATURE_MAPS_MADE : 0) |
			     (made && moved ? KBARMAN_FEATURE_MAPS : 0));
}

u32 kbarman_maps_features(void)
{
	return READ_ONCE(features);
}

#if IS_ENABLED(CONFIG_KPROBES) && defined(kbarman_argument)
static void push_map(struct mm_struct *mm, const struct kbarman_mapping *mapping)
{
	struct fact *fact = claim();

	if (!fact) {
		leave_out_for_good(mm);
		return;
	}
	mmgrab(mm);
	fact->mm = mm;
	fact->mapping = *mapping;
	if (fact->mapping.file)
		get_file(fact->mapping.file);
	publish(fact, FACT_MAP);
}

/* True if @vma is a mapping of the current task. @vma may be anything. Context: as on_mmap(). */
static bool is_vma(const struct vm_area_struct *vma)
{
	unsigned long start;

	return !get_kernel_nofault(start, &vma->vm_start) && find_vma(current->mm, start) == vma;
}

/* What perf_event_mmap() was called with for the mapping that kbarman_maps_probe() makes. */
static struct {
	struct task_struct *maker;	/* NULL: no mapping is being made */
	unsigned long start, end;
} checked;

/* Context: as on_mmap(). */
static int on_checked_mmap(struct kprobe *unused, struct pt_regs *regs)
{
	const struct vm_area_struct *vma = (void *)kbarman_argument(regs, 0);

	if (READ_ONCE(checked.maker) == current && is_vma(vma)) {
		checked.start = vma->vm_start;
		checked.end = vma->vm_end;
	}
	return 0;
}

/* True if the argument of perf_event_mmap() was a new mapping. Context: task. */
static bool mmap_is_as_expected(void)
{
	unsigned long at;

	if (!current->mm)
		return false;
	checked.start = 0;
	checked.end = 0;
	WRITE_ONCE(checked.maker, current);
	at = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, 0);
	WRITE_ONCE(checked.maker, NULL);
	if (IS_ERR_VALUE(at))
		return false;
	vm_munmap(at, PAGE_SIZE);
	return checked.start <= at && at < checked.end;
}

/*
 * perf_event_mmap(vma).
 * Context: a task that holds the mmap_lock of the vma; preemption or interrupts off.
 */
static int on_mmap(struct kprobe *unused, struct pt_regs *regs)
{
	struct vm_area_struct *vma = (struct vm_area_struct *)kbarman_argument(regs, 0);
	struct kbarman_mapping mapping;

	if (vma->vm_flags & VM_EXEC && kbarman_wants(current->pid)) {
		kbarman_mapping_init(&mapping, vma);
		push_map(vma->vm_mm, &mapping);
	}
	return 0;
}

/* True if copy_vma()'s arguments can be those of a move. Context: as on_mmap(). */
static bool is_move(struct vm_area_struct *vma, unsigned long start, unsigned long length,
		    unsigned long offset)
{
	return is_vma(vma) && length && !offset_in_page(start | length) &&
	       start + length > start && start + length <= KBARMAN_TASK_SIZE_MAX &&
	       offset - vma->vm_pgoff < vma_pages(vma);
}

/* Set for good when copy_vma() was called with other arguments than is_move() knows. */
static bool moves_differ;

/*
 * copy_vma(&vma, address, length, page offset, ...): mremap() is about to move a part of the
 * mapping. If the move fails afterwards, nothing is mapped at the new address and no code runs
 * there, so the row does no harm.
 * Context: as on_mmap().
 */
static int on_move(struct kprobe *unused, struct pt_regs *regs)
{
	struct vm_area_struct *vma = NULL;
	struct kbarman_mapping mapping;

	if (READ_ONCE(moves_differ))
		return 0;
	if (get_kernel_nofault(vma, (struct vm_area_struct **)kbarman_argument(regs, 0)) ||
	    !is_move(vma, kbarman_argument(regs, 1), kbarman_argument(regs, 2),
		     kbarman_argument(regs, 3))) {
		WRITE_ONCE(moves_differ, true);
		set_features(kbarman_maps_features() & KBARMAN_FEATURE_MAPS_MADE, false);
		set_bit(WANTED_TELL, &wanted);
		leave_out();
		return 0;
	}
	if (vma->vm_flags & VM_EXEC && kbarman_wants(current->pid)) {
		kbarman_mapping_init(&mapping, vma);
		mapping.start = kbarman_argument(regs, 1);
		mapping.end = mapping.start + kbarman_argument(regs, 2);
		mapping.offset = (u64)kbarman_argument(regs, 3) << PAGE_SHIFT;
		push_map(vma->vm_mm, &mapping);
	}
	return 0;
}

static struct probe {
	const char *symbol;
	kprobe_pre_handler_t handler;
	bool usable;		/* as found at module init */
	bool attached;
	struct kprobe kprobe;
} probes[] = {
	{ .symbol = "perf_event_mmap", .handler = on_mmap },
	/* mremap(2), which does not call perf_event_mmap() */
	{ .symbol = "copy_vma", .handler = on_move },
};

static int attach_probe(struct probe *probe, kprobe_pre_handler_t handler)
{
	int error;

	/* Unregistering leaves values in the struct that registering refuses. */
	probe->kprobe = (struct kprobe) {
		.symbol_name = probe->symbol,
		.pre_handler = handler,
	};
	error = register_kprobe(&probe->kprobe);
#ifdef KBARMAN_ENTRY_BYTES
	if (error == -EINVAL) {
		probe->kprobe = (struct kprobe) {
			.symbol_name = probe->symbol,
			.offset = KBARMAN_ENTRY_BYTES,
			.pre_handler = handler,
		};
		error = register_kprobe(&probe->kprobe);
	}
#endif
	probe->attached = !error;
	return error;
}

static void detach_probe(struct probe *probe)
{
	struct kprobe *kprobe = &probe->kprobe;
	kprobe_opcode_t *address = kprobe->addr;

	if (!probe->attached)
		return;
	unregister_kprobe(kprobe);
	if (!kprobe->addr) {
		/*
		 * ftrace had no memory to release the function. The kprobe is then still
		 * registered, although its module may be unloaded. Marked as disabled, the kprobe
		 * can be unregistered without ftrace. What ftrace keeps then calls no handler.
		 */
		kprobe->addr = address;
		kprobe->flags |= KPROBE_FLAG_DISABLED;
		unregister_kprobe(kprobe);
	}
	probe->attached = false;
}

static void detach_probes(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		detach_probe(&probes[i]);
}

/* Attach those that this kernel has. */
static void attach_probes(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (probes[i].usable)
			attach_probe(&probes[i], probes[i].handler);
	set_features(probes[0].attached, probes[1].attached && !moves_differ);
}

/* The handlers of a session are not called here: there is no queue. */
void kbarman_maps_probe(void)
{
	probes[0].usable = !attach_probe(&probes[0], on_checked_mmap) && mmap_is_as_expected();
	probes[1].usable = !attach_probe(&probes[1], NULL);
	set_features(probes[0].usable, probes[1].usable);
	detach_probes();
}
#else
static void attach_probes(void)
{
}

static void detach_probes(void)
{
}

void kbarman_maps_probe(void)
{
}
#endif

/* Writes into the capture which mappings are not seen. */
static void tell_of_probes(struct kbarman_capture *capture)
{
	u32 seen = kbarman_maps_features();

	if (!(seen & KBARMAN_FEATURE_MAPS))
		kbarman_header_fact(capture, "maps", "%s",
				    seen & KBARMAN_FEATURE_MAPS_MADE ? "made" : "start");
}

/* ---- modules ---- */

static int on_module(struct notifier_block *unused, unsigned long state, void *argument)
{
	const struct module *module = argument;
	char name[MODULE_NAME_LEN + 2];
	unsigned long start, length;
	int name_length;

	if (state != MODULE_STATE_COMING)
		return NOTIFY_DONE;
	start = kbarman_module_text(module, &length);
	name_length = scnprintf(name, sizeof(name), "[%s]", module->name);
	kbarman_tables_add_map(kbarman_session.capture, kbarman_clock(), KBARMAN_USER_ROOT, 0,
			       start, length, 0, name,
			       name_length, 0);
	return NOTIFY_OK;
}

static struct notifier_block module_notifier = { .notifier_call = on_module };

/* ---- the source ---- */

static int start(struct kbarman_session *session)
{
	unsigned long *sampled = vzalloc(BITS_TO_LONGS(PID_MAX_LIMIT) * sizeof(long));
	int error = -ENOMEM;

	queue = vzalloc(array_size(QUEUE_SIZE, sizeof(*queue)));
	if (!sampled || !queue)
		goto err_memory;
	queue_head = 0;
	queue_tail = 0;
	memset(shares, 0, sizeof(shares));
	share_salt = get_random_u32();
	wanted = 0;
	stopping = false;
	atomic_set(&left_out, 0);
	error = kbarman_spaces_create(session->capture);
	if (error)
		goto err_memory;
	if (session->kernel_addresses) {
		error = register_module_notifier(&module_notifier);
		if (error)
			goto err_notifier;
	}
	/*
	 * The queue and the bitmap exist before a probe can find them. Pairs with the probe's
	 * READ_ONCE() and its address dependency.
	 */
	smp_store_release(&sampled_tasks, sampled);
	attach_probes();
	tell_of_probes(session->capture);
	return 0;

err_notifier:
	kbarman_spaces_destroy();
err_memory:
	vfree(queue);
	queue = NULL;
	vfree(sampled);
	return error;
}

/* Called after the probes are attached, so that no mapping is missed in between. */
void kbarman_maps_begin(void)
{
	if (!sampled_tasks)
		return;
	set_bit(WANTED_WALK, &wanted);
	queue_work(kbarman_unbound_wq, &worker);
}

static void stop(struct kbarman_session *session)
{
	unsigned long *sampled = sampled_tasks;

	detach_probes();
	if (session->kernel_addresses)
		unregister_module_notifier(&module_notifier);
	WRITE_ONCE(sampled_tasks, NULL);
	/* All probes that saw the pointer have finished, and have kicked the worker. */
	synchronize_rcu();
	irq_work_sync(&kick);
	/* The worker does its other work once more, in bounded time, and then stops. */
	kbarman_spaces_hurry();
	WRITE_ONCE(stopping, true);
	queue_work(kbarman_unbound_wq, &worker);
	flush_work(&worker);
	cancel_delayed_work_sync(&later);
	flush_work(&worker);
	kbarman_spaces_destroy();
	vfree(queue);
	queue = NULL;
	vfree(sampled);
}

const struct kbarman_source kbarman_source_maps = {
	.name = "maps",
	.bit = KBARMAN_SOURCE_MAPS,
	.start = start,
	.stop = stop,
};
